//! The `mr` item type: one branch, one commit, one merge request, driven to its merge.

pub mod dashboard;
pub mod decide;
pub mod dims;
pub mod events;
pub mod facts;
pub mod gate;
pub mod ownership;
pub mod ticket;
pub mod trailer;
pub mod train;
pub mod tree;
pub mod view;
pub mod wanted;

/// The name of this type (DDR-12).
pub const ITEM_TYPE: &str = "mr";
