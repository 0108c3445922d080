//! Models of issue tracking, checked in every order of steps. A step is one effect of a real program of `collie_core::issue` on a table that
//! means what every store must mean; a crash drops the program, a worker that froze is one whose turn never comes.
//!
//! A mutant lies to a program, or keeps one of its writes from happening. It must be caught, except where the rule that it breaks is
//! known to be a second line of defence: then the verdict is recorded.

pub mod fixture;
pub mod projection;
pub mod registration;
pub mod stage;
pub mod tracking;

use stateright::{Checker as _, Model};
use std::fmt::Debug;
use std::hash::Hash;

/// What the search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Different states.
    pub states: usize,
    /// The first broken rule, and the steps that lead to it.
    pub broken: Option<(String, Vec<String>)>,
}

/// A state that knows which rule was broken on the way to it.
pub trait Judged {
    /// The rule, if one was.
    fn broken(&self) -> Option<&str>;
}

/// Looks at every state of a model that has the one property that no rule is broken.
pub fn check<M>(model: M) -> Outcome
where
    M: Model + Send + Sync + 'static,
    M::State: Judged + Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    let broken = checker.discoveries().into_values().next().map(|path| {
        let rule = path.last_state().broken().unwrap_or_default().to_owned();
        (rule, path.into_actions().into_iter().map(|action| format!("{action:?}")).collect())
    });
    Outcome { states: checker.unique_state_count(), broken }
}
