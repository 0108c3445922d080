//! May it be merged, and if not, what is missing? Judged from one reading of the merge request.
//!
//! GitLab's `detailed_merge_status` names only the first failing check; this names every unmet condition that the
//! reading shows. Upholds INV-2 by handing out a [`MergeTicket`] only where [`ticket`](super::ticket) issues one. Words
//! it does not know mean "not ready".

use super::facts::Blocker;
use super::ticket::{MergeTicket, NoTicket, PipelineRule};
use super::view::{MergeRequest, Pipeline};
use crate::id::Sha;
use crate::time::Timestamp;

/// What the gate needs to know beside the reading.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// Whether the caller wants Collie to merge.
    pub auto_merge: bool,
    /// The head that Collie verified as its own.
    pub verified_head: Option<&'a Sha>,
    /// Whether merges need a pipeline.
    pub pipelines: PipelineRule,
    /// Approvals still missing, where that was asked separately.
    pub approvals_left: Option<u64>,
}

/// The verdict of the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Merge exactly this.
    Open(MergeTicket),
    /// Nothing is known to be missing, but GitLab is still checking: read again soon.
    Checking(Vec<Blocker>),
    /// Something is missing.
    Shut(Vec<Blocker>),
}

impl Gate {
    /// What is missing.
    #[must_use]
    pub fn blockers(&self) -> &[Blocker] {
        match self {
            Self::Open(_) => &[],
            Self::Checking(blockers) | Self::Shut(blockers) => blockers,
        }
    }
}

/// Whether GitLab is computing and will soon answer with another word. `conflict` without `has_conflicts` means a conflict
/// that is being checked again; a word about CI beside a pipeline that counts means that GitLab lags behind it.
fn is_transient(mr: &MergeRequest, has_ticket: bool) -> bool {
    match mr.detailed_merge_status.as_str() {
        "checking" | "unchecked" | "preparing" | "approvals_syncing" => true,
        "conflict" => !mr.has_conflicts,
        "ci_still_running" | "ci_must_pass" => has_ticket,
        _ => false,
    }
}

/// Whether the target has moved in a way that a rebuild can answer.
#[must_use]
pub fn wants_rebuild(mr: &MergeRequest) -> bool {
    mr.has_conflicts || mr.detailed_merge_status == "need_rebase"
}

/// Judges one reading.
#[must_use]
pub fn judge(mr: &MergeRequest, conditions: &Conditions<'_>, now: Timestamp) -> Gate {
    let ticket = MergeTicket::issue(mr, conditions.verified_head, conditions.pipelines);
    let mut found = Findings { list: Vec::new(), now };
    if let Err(why) = &ticket {
        found.no_ticket(why);
    }
    found.of_reading(mr);
    found.of_approvals(mr, conditions.approvals_left);
    let ready = found.list.is_empty();
    found.of_status(mr);
    if !conditions.auto_merge {
        found.add("auto_merge_off", "submission", "auto_merge is off: a person merges, or a submission with auto_merge does");
    }
    match ticket {
        Ok(ticket) if found.list.is_empty() => Gate::Open(ticket),
        ticket if ready && conditions.auto_merge && is_transient(mr, ticket.is_ok()) => Gate::Checking(found.list),
        _ => Gate::Shut(found.list),
    }
}

struct Findings {
    list: Vec<Blocker>,
    now: Timestamp,
}

impl Findings {
    fn add(&mut self, code: &str, source: &str, detail: impl Into<String>) {
        if self.list.iter().all(|b| b.code != code) {
            self.list.push(Blocker { code: code.into(), detail: detail.into(), source: source.into(), seen_at: self.now });
        }
    }

    fn no_ticket(&mut self, why: &NoTicket) {
        match why {
            NoTicket::HeadNotVerified => {
                self.add("head_not_verified", "merge_request", "the branch's head is not the commit Collie verified");
            }
            NoTicket::NoPipeline => self.add("pipeline_missing", "pipeline", "no pipeline has started for the head yet"),
            NoTicket::OtherCommit(p) => {
                self.add("pipeline_other_commit", "pipeline", format!("pipeline {} ran for {}, not for the head", p.id, p.sha.short()));
            }
            NoTicket::OtherRef(p) => {
                self.add("pipeline_does_not_count", "pipeline", format!("pipeline {} ran for {:?}", p.id, p.git_ref));
            }
            NoTicket::NotSuccessful(p) => self.unsuccessful(p),
        }
    }

    fn unsuccessful(&mut self, pipeline: &Pipeline) {
        let (code, words) = match pipeline.status.as_str() {
            "failed" => ("pipeline_failed", "has failed"),
            "canceled" | "canceling" => ("pipeline_canceled", "was canceled"),
            "skipped" => ("pipeline_skipped", "was skipped, which never counts"),
            "manual" => ("pipeline_manual", "waits for a manual job"),
            _ => ("pipeline_running", "has not finished"),
        };
        self.add(code, "pipeline", format!("pipeline {} {words}", pipeline.id));
    }

    /// What the merge request shows in fields of its own, whichever check GitLab names first.
    fn of_reading(&mut self, mr: &MergeRequest) {
        let status = mr.detailed_merge_status.as_str();
        if mr.draft || status == "draft_status" {
            self.add("draft", "merge_request", "it is a draft");
        }
        if mr.has_conflicts {
            self.add("conflict", "merge_request", "it conflicts with the target branch");
        }
        if status == "discussions_not_resolved" {
            self.add("discussions_not_resolved", "merge_request", "threads are open");
        }
        if mr.can_merge == Some(false) {
            self.add("may_not_merge", "merge_request", "Collie's user may not merge into the target branch");
        }
        if let Some(error) = mr.merge_error.as_deref().filter(|e| !e.is_empty()) {
            self.add("merge_error", "merge_request", error.chars().take(200).collect::<String>());
        }
    }

    fn of_approvals(&mut self, mr: &MergeRequest, left: Option<u64>) {
        match left {
            Some(0) => {}
            Some(n) => self.add("not_approved", "approvals", format!("{n} approval(s) are missing")),
            None if mr.detailed_merge_status == "not_approved" => self.add("not_approved", "merge_request", "approvals are missing"),
            None => {}
        }
    }

    /// GitLab's own word, where nothing above said the same.
    fn of_status(&mut self, mr: &MergeRequest) {
        match mr.detailed_merge_status.as_str() {
            "mergeable" | "not_approved" | "draft_status" | "discussions_not_resolved" => {}
            "conflict" if mr.has_conflicts => {}
            "ci_still_running" | "ci_must_pass" if self.list.iter().any(|b| b.source == "pipeline") => {}
            "preparing" | "checking" | "unchecked" | "conflict" => {
                self.add("rechecking", "merge_request", "GitLab is checking whether it can be merged")
            }
            "approvals_syncing" => self.add("approvals_syncing", "merge_request", "GitLab is recomputing approvals"),
            "need_rebase" => self.add("need_rebase", "merge_request", "the target moved and the project wants a rebase"),
            word => {
                let word: String = word.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect();
                self.add(&word, "merge_request", format!("GitLab says {word}"));
            }
        }
    }
}
