//! The verdict on registration and the order of jobs, and on every mutant of them.

#![allow(clippy::print_stdout, reason = "the counts are read")]

use collie_models::check;
use collie_models::registration::{Mutant, Registration};

#[test]
fn requests_are_tracked_in_the_order_of_their_admission_and_every_job_ends() {
    let outcome = check(Registration { mutant: None });
    println!("{:>9} states  three callers, two with one uri", outcome.states);
    assert_eq!(outcome.broken, None);
}

#[test]
fn every_mutant_is_caught() {
    for mutant in Mutant::ALL {
        let outcome = check(Registration { mutant: Some(mutant) });
        println!("{mutant:?}: {:?}, {} states", outcome.broken.as_ref().map(|(rule, _)| rule), outcome.states);
        assert!(outcome.broken.is_some(), "{mutant:?} breaks no rule");
    }
}
