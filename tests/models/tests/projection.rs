//! The verdict on what is derived from the history, and on every mutant of it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and its counts are read")]

use collie_models::check;
use collie_models::projection::{Mutant, Projection};

#[test]
fn no_order_of_recordings_makes_a_summary_go_back() {
    let outcome = check(Projection::new(None).unwrap());
    println!("{:>9} states  six recordings of one issue", outcome.states);
    assert_eq!(outcome.broken, None);
}

#[test]
fn every_mutant_is_caught() {
    for mutant in Mutant::ALL {
        let outcome = check(Projection::new(Some(mutant)).unwrap());
        println!("{mutant:?}: {:?}, {} states", outcome.broken.as_ref().map(|(rule, _)| rule), outcome.states);
        assert!(outcome.broken.is_some(), "{mutant:?} breaks no rule");
    }
}
