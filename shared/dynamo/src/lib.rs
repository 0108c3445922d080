#![doc = include_str!("../README.md")]

mod companion;
mod key;
pub mod memory;
mod pack;
mod row;
pub mod units;
