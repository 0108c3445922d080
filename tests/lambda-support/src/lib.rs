#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod aws;
mod events;
mod function;
mod runtime;
mod table;
mod world;

pub use aws::{Aws, Hidden, Object, Put, Sent};
pub use events::{assert_matches, failed, fifo_message, message, queue_event, sample};
pub use function::Function;
pub use runtime::{Answer, RuntimeApi};
pub use table::{Fault, Table};
pub use world::{BOT, TRACKED, World, submission};

use std::time::Duration;
use tokio::net::TcpListener;

/// What anything may take; the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Serves a router on a free port; the answer is where.
async fn serve(router: axum::Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address.to_string()
}
