//! What a decider answers: the one next action or a wait, and every rule it looked at on the way (DDR-4, DDR-5).

use crate::item::DimensionKey;
use crate::time::Timestamp;
use serde::Serialize;

/// The name of an action; its executor is found by it. An action without executor fails the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Action(pub &'static str);

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// Exactly this action.
    Act(Action),
    /// Nothing before this time.
    Wait {
        /// When the item is to be looked at again; never where nothing is deferred.
        until: Option<Timestamp>,
    },
    /// The item is terminal.
    Rest,
}

/// What a decider chose, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// What comes next.
    pub next: Next,
    /// Every rule looked at, in order.
    pub report: Vec<Rule>,
}

/// One rule a decider looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The dimension, or for the cancel request its stand-in.
    pub dimension: DimensionKey,
    /// The action it would choose.
    pub action: Action,
    /// What was found.
    pub finding: Finding,
}

/// What was found for one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It is the next action.
    Chosen,
    /// It would be, later.
    Deferred {
        /// Not before this.
        until: Timestamp,
        /// Why, for people.
        why: String,
    },
    /// Nothing is needed.
    NotNeeded,
    /// It is needed, and the item is blocked.
    Blocked,
    /// A rule above comes first.
    Gated,
}

/// A rule to look at, with what is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The dimension.
    pub dimension: DimensionKey,
    /// Its action.
    pub action: Action,
    /// What is found when it is this rule's turn; `Chosen` for an actionable one.
    pub finding: Finding,
    /// Whether nothing below it runs while it is needed, deferred or not.
    pub gate: bool,
}

/// Picks the first actionable candidate. A gate that is needed ends the search; otherwise the earliest deferral is the wait.
#[must_use]
pub fn pick(candidates: Vec<Candidate>) -> Decision {
    let (mut report, mut next, mut until) = (Vec::with_capacity(candidates.len()), None, None);
    let mut closed = false;
    for Candidate { dimension, action, finding, gate } in candidates {
        let finding = if closed { Finding::Gated } else { finding };
        match &finding {
            Finding::Chosen => next = Some(Next::Act(action)),
            Finding::Deferred { until: at, .. } => until = Some(until.map_or(*at, |have: Timestamp| have.min(*at))),
            _ => {}
        }
        closed |= next.is_some() || (gate && matches!(finding, Finding::Deferred { .. }));
        report.push(Rule { dimension, action, finding });
    }
    Decision { next: next.unwrap_or(Next::Wait { until }), report }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{NOW, in_seconds};

    const A: Action = Action("a");
    const B: Action = Action("b");

    fn candidate(action: Action, finding: Finding, gate: bool) -> Candidate {
        Candidate { dimension: DimensionKey::new(action.0), action, finding, gate }
    }

    fn deferred(seconds: u64) -> Finding {
        Finding::Deferred { until: in_seconds(seconds), why: "later".into() }
    }

    #[test]
    fn picks_the_first_actionable_rule_that_no_closed_gate_hides() {
        let wait = |seconds| Next::Wait { until: Some(in_seconds(seconds)) };
        let cases = [
            ([(Finding::Chosen, false), (Finding::Chosen, false)], Next::Act(A), Finding::Gated),
            ([(Finding::NotNeeded, true), (Finding::Chosen, false)], Next::Act(B), Finding::Chosen),
            ([(Finding::Blocked, true), (Finding::Chosen, false)], Next::Act(B), Finding::Chosen),
            ([(deferred(9), false), (Finding::Chosen, false)], Next::Act(B), Finding::Chosen),
            ([(deferred(9), true), (Finding::Chosen, false)], wait(9), Finding::Gated),
            ([(deferred(9), true), (deferred(3), false)], wait(9), Finding::Gated),
            ([(deferred(9), false), (deferred(3), false)], wait(3), deferred(3)),
            ([(deferred(3), false), (deferred(9), true)], wait(3), deferred(9)),
            ([(Finding::NotNeeded, false), (Finding::Blocked, false)], Next::Wait { until: None }, Finding::Blocked),
        ];
        for ([(first, gate), (second, gate_too)], next, last) in cases {
            let decision = pick(vec![candidate(A, first.clone(), gate), candidate(B, second, gate_too)]);
            let report = vec![
                Rule { dimension: DimensionKey::new("a"), action: A, finding: first },
                Rule { dimension: DimensionKey::new("b"), action: B, finding: last },
            ];
            assert_eq!(decision, Decision { next, report });
        }
        assert_eq!(pick(Vec::new()), Decision { next: Next::Wait { until: None }, report: Vec::new() });
    }

    #[test]
    fn a_decision_is_shown_as_json_with_snake_case_words() {
        let decision =
            pick(vec![candidate(A, Finding::Deferred { until: NOW, why: "error".into() }, true), candidate(B, Finding::Chosen, false)]);
        let want = serde_json::json!({
            "next": {"wait": {"until": 1_769_882_644_000_u64}},
            "report": [
                {"dimension": "a", "action": "a", "finding": {"deferred": {"until": 1_769_882_644_000_u64, "why": "error"}}},
                {"dimension": "b", "action": "b", "finding": "gated"},
            ],
        });
        assert_eq!(serde_json::to_value(decision).unwrap(), want);
    }
}
