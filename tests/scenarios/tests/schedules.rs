//! Random schedules of the real protocol, and of every wrong one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_scenarios::mutant::Mutant;
use collie_scenarios::random;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seeds that every run tries; a failure prints its seed.
const SEEDS: std::ops::Range<u64> = 0..100;
/// Seeds that are tried at most until a wrong protocol is found out.
const HUNT: std::ops::Range<u64> = 0..600;

fn told(seed: u64, cancels: bool, mutant: Option<Mutant>) -> std::thread::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(random::run(seed, cancels, mutant))))
}

#[test]
fn no_schedule_breaks_the_protocol() {
    for seed in SEEDS {
        for cancels in [false, true] {
            if let Err(panic) = told(seed, cancels, None) {
                eprintln!("seed {seed}, cancels {cancels}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn every_wrong_protocol_is_found_out() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let found =
        |mutant| HUNT.flat_map(|seed| [(seed, false), (seed, true)]).find(|(seed, cancels)| told(*seed, *cancels, Some(mutant)).is_err());
    let verdicts: Vec<_> = Mutant::ALL.into_iter().map(|mutant| (mutant, found(mutant))).collect();
    std::panic::set_hook(quiet);
    for (mutant, seed) in &verdicts {
        println!("{mutant:?}: found by seed {seed:?}");
    }
    let survivors: Vec<_> = verdicts.iter().filter(|(_, seed)| seed.is_none()).map(|(mutant, _)| mutant).collect();
    assert!(survivors.is_empty(), "no seed finds {survivors:?}");
}
