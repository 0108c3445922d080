//! `collie`: the whole system in one process, and its command line.
fn main() {}
