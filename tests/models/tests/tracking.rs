//! The verdict of every scenario, and of every mutant.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and its counts are read")]

use collie_core::issue::row::Outcome;
use collie_models::check;
use collie_models::tracking::{Mutant, Role, Scenario, Tracking};

use Role::{Edit, New, Old, RecoverNew, RecoverOld};

const OPENS_AND_CLOSES: Scenario = Scenario {
    name: "an older build opens b and closes a, a newer one the other way round",
    open: &["a"],
    closed: &[],
    old: &["b"],
    outcome: Outcome::Failed,
    new: &["a"],
    roles: &[Old, Old, RecoverOld],
    all_crash: true,
};

const fn roles(roles: &'static [Role]) -> Scenario {
    Scenario { roles, ..OPENS_AND_CLOSES }
}

/// Few enough actors that at every state all may crash.
fn scenarios() -> Vec<Scenario> {
    vec![
        OPENS_AND_CLOSES,
        roles(&[Old, Old, New]),
        roles(&[Old, RecoverOld, New]),
        roles(&[Old, RecoverNew, New]),
        roles(&[Old, RecoverOld, RecoverOld]),
        roles(&[Old, Edit, New]),
        roles(&[Old, RecoverOld, Edit]),
        Scenario { name: "a closed issue opens again", closed: &["b"], ..roles(&[Old, RecoverOld, New]) },
        Scenario { name: "both builds report both", old: &["a", "b"], new: &["a", "b"], ..roles(&[Old, RecoverOld, New]) },
        Scenario { name: "nobody reports anything", open: &["a", "b"], old: &[], new: &[], ..roles(&[Old, RecoverOld, New]) },
        Scenario { name: "a whole task fails", old: &["t*"], ..roles(&[Old, RecoverOld, New]) },
        Scenario { name: "a cancelled build", outcome: Outcome::Cancelled, ..roles(&[Old, RecoverOld, New]) },
    ]
}

#[test]
fn no_order_of_steps_breaks_a_rule() {
    for scenario in scenarios() {
        let told = format!("{}: {:?}", scenario.name, scenario.roles);
        let outcome = check(Tracking::new(scenario, None).unwrap());
        println!("{:>9} states  {told}", outcome.states);
        assert_eq!(outcome.broken, None, "{told}");
    }
}

#[test]
fn two_workers_a_recovery_and_a_newer_request_at_once_break_no_rule() {
    let outcome = check(Tracking::new(Scenario { all_crash: false, ..roles(&[Old, Old, RecoverOld, New]) }, None).unwrap());
    println!("{:>9} states  two workers, a recovery and a newer request", outcome.states);
    assert_eq!(outcome.broken, None);
}

/// The first scenario that catches a mutant, with the rule that it breaks and the states that were looked at.
fn verdict(mutant: Mutant) -> Option<(String, usize)> {
    scenarios().into_iter().find_map(|scenario| {
        let outcome = check(Tracking::new(scenario, Some(mutant)).unwrap());
        outcome.broken.map(|(rule, _)| (rule, outcome.states))
    })
}

#[test]
fn every_mutant_is_caught() {
    for mutant in Mutant::FATAL {
        let found = verdict(mutant);
        println!("{mutant:?}: {found:?}");
        assert!(found.is_some(), "{mutant:?} breaks no rule");
    }
}

#[test]
fn rules_that_are_a_second_line_of_defence_are_recorded() {
    for mutant in Mutant::REDUNDANT {
        let found = verdict(mutant);
        println!("{mutant:?}: {found:?}");
    }
}
