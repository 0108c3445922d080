//! CI issue tracking: which issues of a queue are open, since which build, and what closed them, through crashes, replays and concurrent
//! builds.
//!
//! Callers admit requests, give them builds and report issues ([`call`]). Each request has a job; a worker tracks the oldest
//! ([`delivery`], [`walk`]), recovery gives up what no worker can end ([`recovery`]). Both are programs: they say which effect comes
//! next and are told what came of it ([`program`]), so that models run the very rules that the engine runs. What the writes mean is
//! [`table`], what they are about is [`row`] and where it is [`place`], what one build means for one issue is [`lifecycle`].
//!
//! Order comes from requests, never from builds or clocks: a late result of an older request meets a checkpoint that is past it.
//!
//! Upholds INV-5 and INV-13.

pub mod call;
pub mod ci;
pub mod delivery;
pub mod hook;
pub mod id;
pub mod job;
pub mod key;
pub mod lifecycle;
pub mod place;
pub mod program;
pub mod record;
pub mod recovery;
pub mod row;
pub mod table;
pub mod walk;

#[cfg(test)]
mod tests;
