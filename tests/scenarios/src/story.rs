//! Telling one story again and again, each time with another thing gone wrong.

use crate::effects::{Effects, Fault};
use std::future::Future;

/// What an enumeration covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crashed {
    /// Effects of the undisturbed story.
    pub effects: usize,
    /// Runs in which something went wrong; every one of them held.
    pub runs: usize,
}

/// Runs `tell` once undisturbed and counts its effects; then once for every effect and every [`Fault`]. Each run must reach the
/// story's end and hold every invariant, which `tell` itself asserts. Every fault must have struck.
pub fn survives_crash_at_every_effect<F: Future<Output = ()>>(tell: impl Fn(Effects) -> F) -> Crashed {
    let undisturbed = Effects::default();
    run(tell(undisturbed.clone()), "undisturbed");
    let names = undisturbed.log();
    let mut runs = 0;
    for (at, name) in names.iter().enumerate() {
        for fault in Fault::ALL {
            let effects = Effects::striking(at, fault);
            run(tell(effects.clone()), &format!("{fault:?} at effect {at} ({name})"));
            assert!(effects.has_struck(), "{fault:?} at effect {at} ({name}) never struck: the story is not the same twice");
            runs += 1;
        }
    }
    assert_eq!(runs, names.len() * Fault::ALL.len());
    Crashed { effects: names.len(), runs }
}

/// Tells one story on a runtime of its own, naming it where it fails.
#[allow(clippy::print_stderr, reason = "a failed story names the fault that broke it")]
fn run(story: impl Future<Output = ()>, name: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(story)));
    if let Err(panic) = told {
        eprintln!("the story broke: {name}");
        std::panic::resume_unwind(panic);
    }
}
