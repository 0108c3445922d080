#![doc = include_str!("../README.md")]

pub mod cost;
pub mod ports;
