#![doc = include_str!("../README.md")]

mod about;
mod answer;
mod body;
mod code;
mod fields;
mod gate;
mod openapi;
mod pace;
mod page;
pub mod pages;
mod plan;
mod problem;
mod refusal;
mod routes;
mod state;
pub mod submission;
mod view;

pub use code::Code;
pub use openapi::document;
pub use problem::{FieldError, Problem};
pub use routes::router;
pub use state::{ApiState, HookConnection, HookDoor};
