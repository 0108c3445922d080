//! One rule's machine: whether something begins at a keyword, and what it is.
//!
//! A keyword is where a find may begin, and most of the time is none: the probe walks a lazily built automaton from there until
//! it is stuck, usually after a few bytes. Only what is not stuck is searched properly. What has no bound is searched in windows
//! that overlap by half, each byte at most three times. So the work is bounded by the text's length, whatever it holds.

use super::rules::{Place, Rule, syntax};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use regex_automata::util::pool::{Pool, PoolGuard};
use regex_automata::{Anchored, Input};
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// How far a probe walks where a rule sets no bound.
const PROBE: usize = 128;
/// What an unbounded search looks at in one go.
const WINDOW: usize = 16 * 1024;

type NewCache = Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>;

/// A rule, compiled.
pub(super) struct Seeker {
    place: Place,
    probe: DFA,
    caches: Pool<Cache, NewCache>,
    full: Regex,
}

/// How far one rule has got in one text.
pub(super) struct Progress<'s> {
    cache: PoolGuard<'s, Cache, NewCache>,
    found: Captures,
    /// Keywords before this position have been dealt with.
    next: usize,
    /// Where the last find ended.
    floor: usize,
}

impl Seeker {
    /// None where the expression cannot be compiled, which a test excludes.
    pub(super) fn of(rule: &Rule) -> Option<Self> {
        let (expression, place) = (rule.expression(), rule.place()?);
        let probe = DFA::builder()
            .syntax(syntax())
            .thompson(regex_automata::nfa::thompson::Config::new().utf8(false))
            .configure(DFA::config().skip_cache_capacity_check(true))
            .build(&expression)
            .ok()?;
        let full = Regex::builder().syntax(syntax()).configure(Regex::config().utf8_empty(false)).build(&expression).ok()?;
        let for_caches = probe.clone();
        let caches: Pool<Cache, NewCache> = Pool::new(Box::new(move || for_caches.create_cache()));
        Some(Self { place, probe, caches, full })
    }

    /// The start of a text.
    pub(super) fn begin(&self) -> Progress<'_> {
        Progress { cache: self.caches.get(), found: self.full.create_captures(), next: 0, floor: 0 }
    }

    /// The find that a keyword at a position leads to, if it does: where it lies. Its groups are in [`Progress::group`].
    pub(super) fn seek(&self, text: &[u8], keyword: usize, progress: &mut Progress<'_>) -> Option<Range<usize>> {
        if keyword < progress.next {
            return None;
        }
        match self.place {
            Place::Begins { longest } => {
                let reach = keyword.saturating_add(longest).min(text.len());
                self.may_begin(text, keyword, longest, progress).then_some(())?;
                self.search(text, keyword..reach, Anchored::Yes, progress)
            }
            Place::BeginsOpen => {
                self.may_begin(text, keyword, PROBE, progress).then_some(())?;
                self.slide(text, keyword, WINDOW / 2, progress)
            }
            Place::Anywhere => {
                let found = self.search(text, progress.floor..text.len(), Anchored::No, progress);
                progress.next = if found.is_some() { keyword } else { usize::MAX };
                found
            }
            Place::Around { before, after } => {
                let from = keyword.saturating_sub(before).max(progress.floor);
                self.slide(text, from, after, progress)
            }
        }
    }

    /// Searches a window; without a find, all keywords whose finds it would have shown are done.
    fn slide(&self, text: &[u8], from: usize, after: usize, progress: &mut Progress<'_>) -> Option<Range<usize>> {
        let to = from.saturating_add(after.saturating_mul(4).min(WINDOW)).min(text.len());
        let found = self.search(text, from..to, Anchored::No, progress);
        if found.is_none() {
            progress.next = if to == text.len() { to } else { to.saturating_sub(after) };
        }
        found
    }

    fn search(&self, text: &[u8], range: Range<usize>, anchored: Anchored, progress: &mut Progress<'_>) -> Option<Range<usize>> {
        self.full.search_captures(&Input::new(text).range(range).anchored(anchored), &mut progress.found);
        let found = progress.found.get_match()?.range();
        (progress.next, progress.floor) = (found.end, found.end);
        Some(found)
    }

    /// Whether the automaton, begun at a keyword, gets anywhere. A doubt counts as yes.
    fn may_begin(&self, text: &[u8], keyword: usize, most: usize, progress: &mut Progress<'_>) -> bool {
        self.walk(text, keyword, most, &mut progress.cache).unwrap_or(true)
    }

    fn walk(&self, text: &[u8], keyword: usize, most: usize, cache: &mut Cache) -> Option<bool> {
        let input = Input::new(text).range(keyword..).anchored(Anchored::Yes);
        let mut state: LazyStateID = self.probe.start_state_forward(cache, &input).ok()?;
        for byte in text.iter().skip(keyword).take(most + 1) {
            state = self.probe.next_state(cache, state, *byte).ok()?;
            if state.is_tagged() {
                if state.is_match() {
                    return Some(true);
                } else if state.is_dead() {
                    return Some(false);
                } else if state.is_quit() {
                    return None;
                }
            }
        }
        let is_at_end = keyword + most >= text.len();
        Some(!is_at_end || self.probe.next_eoi_state(cache, state).ok()?.is_match())
    }
}

impl Progress<'_> {
    /// The part of the last find that is the secret: a group, else the first that took part, else all of it.
    pub(super) fn group(&self, group: usize) -> Option<Range<usize>> {
        let first = || (1..self.found.group_len()).find_map(|at| self.found.get_group(at));
        let chosen = if group > 0 { self.found.get_group(group) } else { first() };
        chosen.or_else(|| self.found.get_group(0)).map(|span| span.range())
    }

    /// Nothing more is looked for.
    pub(super) const fn stop(&mut self) {
        self.next = usize::MAX;
    }
}
