//! The `mr` item type: one branch, one commit, one merge request, driven to its merge.

pub mod ticket;
pub mod view;
