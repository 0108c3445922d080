//! May it be merged, and if not, what is missing? Judged from one reading of the merge request.
//!
//! GitLab's `detailed_merge_status` names only the first failing check; this names every unmet condition that the
//! reading shows. Upholds INV-2 by handing out a [`MergeTicket`] only where [`ticket`](super::ticket) issues one. Words
//! it does not know mean "not ready".

use super::facts::Blocker;
use super::ticket::{MergeTicket, MergedResult, NoTicket, PipelineRule};
use super::train;
use super::view::{MergeRequest, Pipeline};
use crate::id::Sha;
use crate::time::Timestamp;

/// The code of the blocker that a new pipeline of the merged result answers.
pub const OLD_TARGET: &str = "pipeline_old_target";

/// The codes of blockers. A word of GitLab's that Collie does not know is a code as well, and in no list.
pub const CODES: [&str; 37] = [
    OLD_TARGET,
    train::IN_TRAIN,
    train::DROPPED,
    "not_open",
    "head_not_verified",
    "pipeline_missing",
    "pipeline_other_commit",
    "pipeline_does_not_count",
    "pipeline_failed",
    "pipeline_canceled",
    "pipeline_skipped",
    "pipeline_manual",
    "pipeline_running",
    "draft",
    "conflict",
    "discussions_not_resolved",
    "may_not_merge",
    "merge_error",
    "not_approved",
    "rechecking",
    "approvals_syncing",
    "need_rebase",
    "auto_merge_off",
    "unknown_status",
    "merge_time",
    "commits_status",
    "ci_must_pass",
    "ci_still_running",
    "merge_request_blocked",
    "requested_changes",
    "status_checks_must_pass",
    "jira_association_missing",
    "locked_paths",
    "locked_lfs_files",
    "security_policy_violations",
    "security_policy_pipeline_check",
    "title_regex",
];

/// The words of `detailed_merge_status` that Collie knows the meaning of.
const KNOWN_WORDS: [&str; 24] = [
    "preparing",
    "checking",
    "unchecked",
    "mergeable",
    "not_open",
    "merge_time",
    "draft_status",
    "commits_status",
    "discussions_not_resolved",
    "conflict",
    "need_rebase",
    "ci_must_pass",
    "ci_still_running",
    "not_approved",
    "approvals_syncing",
    "merge_request_blocked",
    "requested_changes",
    "status_checks_must_pass",
    "jira_association_missing",
    "locked_paths",
    "locked_lfs_files",
    "security_policy_violations",
    "security_policy_pipeline_check",
    "title_regex",
];

/// Whether this is a word that GitLab is known to say. Others are as good as "not ready", and worth a line in the log.
#[must_use]
pub fn knows(word: &str) -> bool {
    KNOWN_WORDS.contains(&word)
}

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
    /// What a pipeline of the merged result ran on, where there is one.
    pub merged_result: Option<&'a MergedResult>,
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
    let ticket = MergeTicket::issue(mr, conditions.verified_head, conditions.pipelines, conditions.merged_result);
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
        debug_assert!(CODES.contains(&code) || (source == "merge_request" && !knows(code)), "{code} is not listed");
        if self.list.iter().all(|b| b.code != code) {
            self.list.push(Blocker { code: code.into(), detail: detail.into(), source: source.into(), seen_at: self.now });
        }
    }

    fn no_ticket(&mut self, why: &NoTicket) {
        match why {
            NoTicket::NotOpen => self.add("not_open", "merge_request", "it is not open"),
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
            NoTicket::OldTarget(p) => {
                self.add(OLD_TARGET, "pipeline", format!("pipeline {} ran for an earlier head of the target branch", p.id));
            }
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
        if status == "discussions_not_resolved" || (status != "mergeable" && !mr.discussions_resolved) {
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
                let word = if word.is_empty() { "unknown_status".to_owned() } else { word };
                self.add(&word, "merge_request", format!("GitLab says {word}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mr::view::State;
    use crate::sample::{self, HEAD, NOW, pipeline};
    use proptest::prelude::*;

    fn head() -> Sha {
        Sha::new(HEAD)
    }

    fn conditions(head: &Sha) -> Conditions<'_> {
        Conditions {
            auto_merge: true,
            verified_head: Some(head),
            pipelines: PipelineRule::Required,
            approvals_left: None,
            merged_result: None,
        }
    }

    fn show(gate: &Gate) -> String {
        let word = match gate {
            Gate::Open(ticket) => return format!("open {}", ticket.sha().short()),
            Gate::Checking(_) => "checking",
            Gate::Shut(_) => "shut",
        };
        gate.blockers().iter().fold(word.to_owned(), |text, b| format!("{text} {}", b.code))
    }

    fn judged(change: impl FnOnce(&mut MergeRequest)) -> Gate {
        let mut mr = sample::merge_request();
        change(&mut mr);
        judge(&mr, &conditions(&head()), NOW)
    }

    type Edit = fn(&mut MergeRequest);

    #[test]
    fn a_ready_merge_request_is_merged_at_exactly_its_verified_head() {
        assert_eq!(show(&judged(|_| ())), "open 7c1d5f0e");
        assert_eq!(judged(|_| ()).blockers(), []);
    }

    #[test]
    fn each_condition_alone_shuts_the_gate_and_is_named() {
        let cases: [(Edit, &str); 17] = [
            (|mr| mr.draft = true, "draft"),
            (|mr| mr.detailed_merge_status = "draft_status".into(), "draft"),
            (|mr| mr.has_conflicts = true, "conflict"),
            (|mr| mr.detailed_merge_status = "discussions_not_resolved".into(), "discussions_not_resolved"),
            (|mr| mr.detailed_merge_status = "not_approved".into(), "not_approved"),
            (|mr| mr.detailed_merge_status = "need_rebase".into(), "need_rebase"),
            (|mr| mr.can_merge = Some(false), "may_not_merge"),
            (|mr| mr.merge_error = Some("pre-receive hook".into()), "merge_error"),
            (|mr| mr.sha = Some(Sha::new("0000")), "head_not_verified"),
            (|mr| mr.state = State::Locked, "not_open"),
            (|mr| mr.head_pipeline = None, "pipeline_missing"),
            (|mr| mr.head_pipeline = Some(pipeline("bot/openssl", "0000", "success")), "pipeline_other_commit"),
            (|mr| mr.head_pipeline = Some(pipeline("refs/merge-requests/2/merge", HEAD, "success")), "pipeline_does_not_count"),
            (|mr| mr.head_pipeline = Some(pipeline("bot/openssl", HEAD, "failed")), "pipeline_failed"),
            (|mr| mr.head_pipeline = Some(pipeline("bot/openssl", HEAD, "canceled")), "pipeline_canceled"),
            (|mr| mr.head_pipeline = Some(pipeline("bot/openssl", HEAD, "skipped")), "pipeline_skipped"),
            (|mr| mr.head_pipeline = Some(pipeline("bot/openssl", HEAD, "manual")), "pipeline_manual"),
        ];
        for (change, code) in cases {
            assert_eq!(show(&judged(change)), format!("shut {code}"));
        }
        let harmless: [Edit; 3] =
            [|mr| mr.merge_error = Some(String::new()), |mr| mr.can_merge = None, |mr| mr.discussions_resolved = false];
        for change in harmless {
            assert_eq!(show(&judged(change)), "open 7c1d5f0e");
        }
    }

    #[test]
    fn every_unmet_condition_is_named_whichever_one_gitlab_names_first() {
        for word in ["draft_status", "discussions_not_resolved", "conflict", "checking"] {
            let mr = MergeRequest {
                draft: true,
                has_conflicts: true,
                discussions_resolved: false,
                can_merge: Some(false),
                merge_error: Some("no".into()),
                head_pipeline: Some(pipeline("bot/openssl", HEAD, "running")),
                detailed_merge_status: word.into(),
                ..sample::merge_request()
            };
            let verified = head();
            let all = Conditions { auto_merge: false, approvals_left: Some(2), ..conditions(&verified) };
            let tail = if word == "checking" { " rechecking" } else { "" };
            let want = format!(
                "shut pipeline_running draft conflict discussions_not_resolved may_not_merge merge_error not_approved{tail} auto_merge_off"
            );
            assert_eq!(show(&judge(&mr, &all, NOW)), want, "{word}");
        }
    }

    #[test]
    fn a_transient_word_alone_means_checking_and_beside_a_condition_means_shut() {
        let cases = [
            ("checking", "rechecking"),
            ("unchecked", "rechecking"),
            ("preparing", "rechecking"),
            ("conflict", "rechecking"),
            ("approvals_syncing", "approvals_syncing"),
            ("ci_still_running", "ci_still_running"),
            ("ci_must_pass", "ci_must_pass"),
        ];
        for (word, code) in cases {
            assert_eq!(show(&judged(|mr| mr.detailed_merge_status = word.into())), format!("checking {code}"));
            let draft = judged(|mr| (mr.draft, mr.detailed_merge_status) = (true, word.into()));
            assert_eq!(show(&draft), format!("shut draft {code}"));
        }
    }

    #[test]
    fn a_word_about_ci_adds_nothing_to_what_the_pipeline_says_itself() {
        for word in ["ci_still_running", "ci_must_pass"] {
            let running = judged(|mr| {
                mr.detailed_merge_status = word.into();
                mr.head_pipeline = Some(pipeline("bot/openssl", HEAD, "running"));
            });
            assert_eq!(show(&running), "shut pipeline_running");
        }
    }

    #[test]
    fn an_unknown_word_is_not_ready_and_is_quoted_without_anything_odd_in_it() {
        let cases = [
            ("locked_paths", "locked_paths"),
            ("Brand_New9", "Brand_New9"),
            ("a b<script>", "abscript"),
            ("", "unknown_status"),
            ("żółć", "unknown_status"),
        ];
        for (word, code) in cases {
            assert_eq!(show(&judged(|mr| mr.detailed_merge_status = word.into())), format!("shut {code}"), "{word:?}");
        }
    }

    #[test]
    fn a_merged_result_on_a_target_that_has_moved_is_named_and_one_on_the_target_as_it_is_opens_the_gate() {
        let mr =
            MergeRequest { head_pipeline: Some(pipeline("refs/merge-requests/2/merge", "joint", "success")), ..sample::merge_request() };
        let verified = head();
        let gate = |target: &str| {
            let parents = vec![Sha::new("target"), head()];
            let result = MergedResult { sha: Sha::new("joint"), parents, target_head: Sha::new(target) };
            show(&judge(&mr, &Conditions { merged_result: Some(&result), ..conditions(&verified) }, NOW))
        };
        assert_eq!((gate("target").as_str(), gate("moved").as_str()), ("open 7c1d5f0e", "shut pipeline_old_target"));
    }

    #[test]
    fn every_known_word_gives_a_listed_code_or_an_open_gate() {
        for word in KNOWN_WORDS {
            let gate = judged(|mr| mr.detailed_merge_status = word.into());
            assert!(gate.blockers().iter().all(|b| CODES.contains(&b.code.as_str())), "{word}");
        }
    }

    #[test]
    fn new_words_of_gitlab_are_not_known() {
        assert!(knows("mergeable") && knows("need_rebase") && !knows("brand_new_word") && !knows(""));
    }

    #[test]
    fn approvals_that_were_asked_for_count_more_than_the_word() {
        let verified = head();
        let cases = [
            ("mergeable", Some(0), "open 7c1d5f0e"),
            ("mergeable", Some(1), "shut not_approved"),
            ("not_approved", None, "shut not_approved"),
            ("draft_status", Some(1), "shut draft not_approved"),
        ];
        for (word, approvals_left, want) in cases {
            let mr = MergeRequest { detailed_merge_status: word.into(), ..sample::merge_request() };
            assert_eq!(show(&judge(&mr, &Conditions { approvals_left, ..conditions(&verified) }, NOW)), want);
        }
    }

    #[test]
    fn without_auto_merge_a_ready_merge_request_waits_for_a_person() {
        let verified = head();
        let off = Conditions { auto_merge: false, ..conditions(&verified) };
        assert_eq!(show(&judge(&sample::merge_request(), &off, NOW)), "shut auto_merge_off");
        let checking = MergeRequest { detailed_merge_status: "checking".into(), ..sample::merge_request() };
        assert_eq!(show(&judge(&checking, &off, NOW)), "shut rechecking auto_merge_off");
    }

    #[test]
    fn a_blocker_says_where_and_when_it_was_seen() {
        let gate = judged(|mr| mr.head_pipeline = Some(pipeline("bot/openssl", "aabbccddeeff", "success")));
        let want = Blocker {
            code: "pipeline_other_commit".into(),
            detail: "pipeline 90 ran for aabbccdd, not for the head".into(),
            source: "pipeline".into(),
            seen_at: NOW,
        };
        assert_eq!(gate.blockers(), [want]);
        let long = judged(|mr| mr.merge_error = Some("ż".repeat(900)));
        assert_eq!(long.blockers()[0].detail, "ż".repeat(200));
    }

    #[test]
    fn a_rebuild_answers_a_conflict_and_a_need_of_rebase() {
        let wants = |has_conflicts, word: &str| {
            wants_rebuild(&MergeRequest { has_conflicts, detailed_merge_status: word.into(), ..sample::merge_request() })
        };
        assert!(wants(true, "conflict") && wants(true, "draft_status") && wants(false, "need_rebase"));
        assert!(!wants(false, "conflict") && !wants(false, "mergeable"));
    }

    fn any_reading() -> impl Strategy<Value = MergeRequest> {
        let state = prop::sample::select(vec![State::Opened, State::Opened, State::Locked, State::Merged, State::Closed]);
        let word = prop::sample::select(vec!["mergeable", "mergeable", "checking", "conflict", "ci_must_pass", "not_approved", "new"]);
        let git_ref = prop::sample::select(vec!["bot/openssl", "refs/merge-requests/2/head", "refs/merge-requests/2/merge", "main"]);
        let status = prop::sample::select(vec!["success", "success", "failed", "skipped", "running"]);
        let sha = || prop::sample::select(vec![HEAD, HEAD, "0000"]);
        let pipeline = prop::option::weighted(0.8, (git_ref, sha(), status).prop_map(|(r, sha, status)| pipeline(r, sha, status)));
        let flags = prop::array::uniform2(prop::bool::weighted(0.2));
        (state, word, pipeline, sha(), flags).prop_map(|(state, word, head_pipeline, sha, [draft, has_conflicts])| MergeRequest {
            state,
            draft,
            has_conflicts,
            head_pipeline,
            sha: Some(Sha::new(sha)),
            detailed_merge_status: word.into(),
            ..sample::merge_request()
        })
    }

    proptest! {
        #[test]
        fn an_open_gate_means_an_open_and_mergeable_request_whose_verified_head_has_a_pipeline_that_counts(
            mr in any_reading(), auto_merge: bool, none: bool, verified in prop::option::weighted(0.9, Just(head())),
        ) {
            let pipelines = if none { PipelineRule::None } else { PipelineRule::Required };
            let conditions = Conditions { auto_merge, verified_head: verified.as_ref(), pipelines, approvals_left: None, merged_result: None };
            let gate = judge(&mr, &conditions, NOW);
            let Gate::Open(ticket) = &gate else {
                prop_assert!(!gate.blockers().is_empty(), "shut without a reason");
                return Ok(());
            };
            prop_assert!(auto_merge && mr.state == State::Opened && mr.detailed_merge_status == "mergeable");
            prop_assert!(!mr.draft && !mr.has_conflicts);
            prop_assert_eq!((Some(ticket.sha()), mr.sha.as_ref()), (verified.as_ref(), verified.as_ref()));
            if !none {
                let p = mr.head_pipeline.unwrap();
                prop_assert_eq!((Some(p.id), &p.sha, p.status.as_str()), (ticket.pipeline(), ticket.sha(), "success"));
                prop_assert!(["bot/openssl", "refs/merge-requests/2/head"].contains(&p.git_ref.as_str()), "{}", p.git_ref);
            }
        }
    }
}
