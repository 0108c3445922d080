//! A model of GitLab behind real HTTP, for tests and demonstrations.
