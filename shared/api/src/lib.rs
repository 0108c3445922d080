#![doc = include_str!("../README.md")]

mod code;
mod problem;
mod state;
pub mod submission;

pub use code::Code;
pub use problem::{FieldError, Problem};
pub use state::{ApiState, HookConnection, HookDoor};

/// The API over its state.
#[must_use]
pub fn router(state: ApiState) -> axum::Router {
    axum::Router::new().with_state(state)
}
