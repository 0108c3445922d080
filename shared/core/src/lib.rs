#![doc = include_str!("../README.md")]

pub mod access;
pub mod ci;
pub mod decision;
pub mod error;
pub mod event;
pub mod files;
pub mod id;
pub mod issue;
pub mod item;
pub mod letter;
pub mod mr;
pub mod outcome;
pub mod policy;
pub mod queue;
pub mod rate;
pub mod repair;
#[cfg(test)]
mod sample;
pub mod time;
pub mod upsert;
