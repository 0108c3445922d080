//! The forge port over GitLab's REST API.
