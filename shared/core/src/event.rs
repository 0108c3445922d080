//! What GitLab's hooks say, reduced to what decisions need. An event is a hint: none of them sets a phase.
//!
//! [`Event::parse`] reads a delivery body (`X-Gitlab-Event` bodies of the Merge Request, Pipeline and Job hooks) and
//! leaves out everything a handler does not use, so that an inbox entry stays within 300 bytes.

use crate::id::{JobId, MrIid, PipelineId, ProjectId, Sha, UserId};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happened, as an inbox keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A merge request changed.
    MergeRequest {
        /// When, by the object's `updated_at`.
        at: Timestamp,
        /// Its number.
        iid: MrIid,
        /// `open`, `update`, `merge`, `close`, `reopen`, `approved` and so on.
        action: String,
        /// Its head.
        head: Option<Sha>,
        /// The head before, where the change was a push to the source branch.
        oldrev: Option<Sha>,
        /// Who did it.
        user: UserId,
    },
    /// A pipeline changed its status.
    Pipeline {
        /// When it finished, else the delivery's time.
        at: Timestamp,
        /// The pipeline.
        id: PipelineId,
        /// Its status.
        status: String,
        /// The commit it ran for.
        sha: Sha,
    },
    /// A job changed its status.
    Job {
        /// When it finished, else the delivery's time.
        at: Timestamp,
        /// This try.
        id: JobId,
        /// Its pipeline.
        pipeline: PipelineId,
        /// Its name.
        name: String,
        /// Its stage.
        stage: String,
        /// Its status.
        status: String,
        /// Why it failed.
        failure_reason: String,
    },
}

impl Event {
    /// When it happened.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        match self {
            Self::MergeRequest { at, .. } | Self::Pipeline { at, .. } | Self::Job { at, .. } => *at,
        }
    }

    /// Its kind, for people and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::MergeRequest { .. } => "merge_request",
            Self::Pipeline { .. } => "pipeline",
            Self::Job { .. } => "job",
        }
    }
}

/// What an event is about, by which its item is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A merge request, with its source branch as a second way to find the item.
    MergeRequest {
        /// Its number.
        iid: MrIid,
        /// Its source branch.
        source_branch: String,
    },
    /// A git ref: a branch, or a ref of a merge request.
    Ref(String),
}

impl Subject {
    /// The merge request that a `refs/merge-requests/<iid>/…` ref belongs to.
    #[must_use]
    pub fn merge_request(&self) -> Option<MrIid> {
        match self {
            Self::MergeRequest { iid, .. } => Some(*iid),
            Self::Ref(name) => name.strip_prefix("refs/merge-requests/")?.split('/').next()?.parse().ok().map(MrIid),
        }
    }

    /// The branch by which the item can be found where no merge request is linked.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::MergeRequest { source_branch, .. } => Some(source_branch),
            Self::Ref(name) if name.starts_with("refs/") => None,
            Self::Ref(name) => Some(name),
        }
    }
}

/// A parsed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The project it came from.
    pub project_id: ProjectId,
    /// What it is about.
    pub subject: Subject,
    /// What it says.
    pub event: Event,
}

/// Why a body gives no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// A kind that no item type listens to.
    #[error("hooks of kind {0:?} are not used")]
    Ignored(String),
    /// Not what GitLab sends.
    #[error("the delivery is malformed: {0}")]
    Malformed(&'static str),
}

impl Delivery {
    /// Reads a hook body that was received at `now`.
    ///
    /// # Errors
    /// [`Unusable::Ignored`] for kinds nobody listens to, [`Unusable::Malformed`] for what GitLab does not send.
    pub fn parse(body: &[u8], now: Timestamp) -> Result<Self, Unusable> {
        let body: Value = serde_json::from_slice(body).map_err(|_| Unusable::Malformed("it is not JSON"))?;
        let kind = text(&body, "/object_kind").ok_or(Unusable::Malformed("object_kind is missing"))?;
        match kind {
            "merge_request" => merge_request(&body, now),
            "pipeline" => pipeline(&body, now),
            "build" => job(&body, now),
            other => Err(Unusable::Ignored(other.chars().take(40).collect())),
        }
        .map(|(subject, event, project)| Self { project_id: project, subject, event })
    }
}

type Parts = (Subject, Event, ProjectId);

fn merge_request(body: &Value, now: Timestamp) -> Result<Parts, Unusable> {
    let iid = number(body, "/object_attributes/iid").map(MrIid).ok_or(Unusable::Malformed("object_attributes.iid is missing"))?;
    let source_branch = text(body, "/object_attributes/source_branch").ok_or(Unusable::Malformed("source_branch is missing"))?;
    let event = Event::MergeRequest {
        at: time(body, "/object_attributes/updated_at").unwrap_or(now),
        iid,
        action: Some(short(body, "/object_attributes/action")).filter(|action| !action.is_empty()).unwrap_or("update".to_owned()),
        head: sha(body, "/object_attributes/last_commit/id"),
        oldrev: sha(body, "/object_attributes/oldrev"),
        user: UserId(number(body, "/user/id").unwrap_or(0)),
    };
    Ok((Subject::MergeRequest { iid, source_branch: source_branch.to_owned() }, event, project(body)?))
}

fn pipeline(body: &Value, now: Timestamp) -> Result<Parts, Unusable> {
    let id = number(body, "/object_attributes/id").map(PipelineId).ok_or(Unusable::Malformed("object_attributes.id is missing"))?;
    let name = text(body, "/object_attributes/ref").ok_or(Unusable::Malformed("object_attributes.ref is missing"))?;
    let event = Event::Pipeline {
        at: time(body, "/object_attributes/finished_at").unwrap_or(now),
        id,
        status: short(body, "/object_attributes/status"),
        sha: sha(body, "/object_attributes/sha").unwrap_or_else(|| Sha::new("")),
    };
    Ok((Subject::Ref(name.to_owned()), event, project(body)?))
}

fn job(body: &Value, now: Timestamp) -> Result<Parts, Unusable> {
    let id = number(body, "/build_id").map(JobId).ok_or(Unusable::Malformed("build_id is missing"))?;
    let name = text(body, "/ref").ok_or(Unusable::Malformed("ref is missing"))?;
    let event = Event::Job {
        at: time(body, "/build_finished_at").unwrap_or(now),
        id,
        pipeline: PipelineId(number(body, "/pipeline_id").ok_or(Unusable::Malformed("pipeline_id is missing"))?),
        name: short(body, "/build_name"),
        stage: short(body, "/build_stage"),
        status: short(body, "/build_status"),
        failure_reason: short(body, "/build_failure_reason"),
    };
    Ok((Subject::Ref(name.to_owned()), event, project(body)?))
}

fn project(body: &Value) -> Result<ProjectId, Unusable> {
    let id = number(body, "/project/id").or_else(|| number(body, "/project_id"));
    id.map(ProjectId).ok_or(Unusable::Malformed("the project's id is missing"))
}

fn text<'a>(body: &'a Value, pointer: &str) -> Option<&'a str> {
    body.pointer(pointer).and_then(Value::as_str)
}

fn short(body: &Value, pointer: &str) -> String {
    text(body, pointer).unwrap_or("").chars().take(80).collect()
}

/// A commit id has 40 or 64 digits; anything longer names no commit and is cut.
fn sha(body: &Value, pointer: &str) -> Option<Sha> {
    text(body, pointer).map(|id| Sha::new(id.chars().take(64).collect::<String>()))
}

fn number(body: &Value, pointer: &str) -> Option<u64> {
    body.pointer(pointer).and_then(Value::as_u64)
}

fn time(body: &Value, pointer: &str) -> Option<Timestamp> {
    text(body, pointer).and_then(Timestamp::parse)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::from_millis(7);

    #[test]
    fn a_pipeline_hook_of_a_merge_request_ref_names_its_merge_request() {
        let body = json!({"object_kind": "pipeline", "project": {"id": 4242},
            "object_attributes": {"id": 90001, "ref": "refs/merge-requests/2/head", "sha": "1149", "status": "success", "finished_at": "2026-01-31 18:06:44 UTC"}});
        let delivery = Delivery::parse(body.to_string().as_bytes(), NOW).unwrap();
        assert_eq!((delivery.project_id, delivery.subject.merge_request()), (ProjectId(4242), Some(MrIid(2))));
        assert_eq!(delivery.subject.branch(), None);
        let at = Timestamp::from_millis(1_769_882_804_000);
        assert_eq!(delivery.event, Event::Pipeline { at, id: PipelineId(90001), status: "success".into(), sha: Sha::new("1149") });
    }

    #[test]
    fn a_job_hook_takes_the_pipeline_from_pipeline_id_and_the_branch_from_ref() {
        let body = json!({"object_kind": "build", "project_id": 1, "ref": "bot/x", "build_id": 5, "pipeline_id": 9, "build_name": "unit",
            "build_stage": "test", "build_status": "failed", "build_failure_reason": "script_failure", "commit": {"id": 9, "sha": "aa"}});
        let delivery = Delivery::parse(body.to_string().as_bytes(), NOW).unwrap();
        assert_eq!(delivery.subject.branch(), Some("bot/x"));
        let Event::Job { at, id, pipeline, .. } = delivery.event else { panic!("not a job") };
        assert_eq!((at, id, pipeline), (NOW, JobId(5), PipelineId(9)));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let cases = [
            ("{", Unusable::Malformed("it is not JSON")),
            ("{}", Unusable::Malformed("object_kind is missing")),
            (r#"{"object_kind":"push"}"#, Unusable::Ignored("push".into())),
            (r#"{"object_kind":"pipeline","object_attributes":{"id":1,"ref":"x"}}"#, Unusable::Malformed("the project's id is missing")),
        ];
        for (body, want) in cases {
            assert_eq!(Delivery::parse(body.as_bytes(), NOW), Err(want), "{body}");
        }
    }

    fn parsed(body: &Value) -> Delivery {
        Delivery::parse(body.to_string().as_bytes(), NOW).unwrap()
    }

    /// A merge request hook after a push, with the fields around those that are used.
    fn push() -> Value {
        json!({"object_kind": "merge_request", "event_type": "merge_request", "user": {"id": 501, "username": "dana"},
            "project": {"id": 4242, "path_with_namespace": "acme/demo"}, "labels": [], "changes": {},
            "object_attributes": {"id": 334_047, "iid": 2, "state": "opened", "source_branch": "feature/oauth", "target_branch": "main",
                "title": "Implement OAuth", "updated_at": "2026-01-31 19:06:12 +0100", "action": "update",
                "oldrev": "11499a581bf88090fa5e0abbf6d73e10e6fb56a7",
                "last_commit": {"id": "7c1d5f0e2b9a4836c5e0f1d2a3b4c5d6e7f80912", "message": "Handle token expiry"}}})
    }

    fn build() -> Value {
        json!({"object_kind": "build", "ref": "feature/oauth", "sha": "1149", "build_id": 700_002, "build_name": "unit",
            "build_stage": "test", "build_status": "failed", "build_finished_at": "2026-01-31 18:06:43 UTC",
            "build_failure_reason": "script_failure", "pipeline_id": 90_001, "project_id": 4242, "project": {"id": 4242},
            "commit": {"id": 90_001, "sha": "1149", "status": "failed"}})
    }

    #[test]
    fn a_merge_request_hook_keeps_who_did_what_to_which_head() {
        let want = Delivery {
            project_id: ProjectId(4242),
            subject: Subject::MergeRequest { iid: MrIid(2), source_branch: "feature/oauth".into() },
            event: Event::MergeRequest {
                at: Timestamp::from_millis(1_769_882_772_000),
                iid: MrIid(2),
                action: "update".into(),
                head: Some(Sha::new("7c1d5f0e2b9a4836c5e0f1d2a3b4c5d6e7f80912")),
                oldrev: Some(Sha::new("11499a581bf88090fa5e0abbf6d73e10e6fb56a7")),
                user: UserId(501),
            },
        };
        assert_eq!(parsed(&push()), want);
        assert_eq!((want.subject.merge_request(), want.subject.branch()), (Some(MrIid(2)), Some("feature/oauth")));
        assert_eq!((want.event.kind(), want.event.at()), ("merge_request", Timestamp::from_millis(1_769_882_772_000)));
    }

    #[test]
    fn a_merge_request_hook_without_action_head_or_user_is_an_update_by_nobody() {
        let body = json!({"object_kind": "merge_request", "project": {"id": 1}, "object_attributes": {"iid": 2, "source_branch": "b",
            "action": null, "last_commit": null, "updated_at": null}});
        let want = Event::MergeRequest { at: NOW, iid: MrIid(2), action: "update".into(), head: None, oldrev: None, user: UserId(0) };
        assert_eq!(parsed(&body).event, want);
    }

    #[test]
    fn a_job_hook_reads_the_same_in_both_formats_of_time() {
        let want = Event::Job {
            at: Timestamp::from_millis(1_769_882_803_000),
            id: JobId(700_002),
            pipeline: PipelineId(90_001),
            name: "unit".into(),
            stage: "test".into(),
            status: "failed".into(),
            failure_reason: "script_failure".into(),
        };
        for finished in ["2026-01-31 18:06:43 UTC", "2026-01-31T18:06:43.000Z"] {
            let mut body = build();
            body["build_finished_at"] = json!(finished);
            let delivery = parsed(&body);
            assert_eq!((delivery.project_id, delivery.event), (ProjectId(4242), want.clone()));
        }
        assert_eq!(want.kind(), "job");
    }

    #[test]
    fn a_running_pipeline_has_the_time_of_its_delivery_and_a_branch_to_be_found_by() {
        let body = json!({"object_kind": "pipeline", "project": {"id": 4242},
            "object_attributes": {"id": 90_001, "ref": "feature/oauth", "sha": "1149", "status": "running", "finished_at": null}});
        let delivery = parsed(&body);
        assert_eq!((delivery.subject.branch(), delivery.subject.merge_request()), (Some("feature/oauth"), None));
        assert_eq!((delivery.event.at(), delivery.event.kind()), (NOW, "pipeline"));
    }

    #[test]
    fn a_ref_names_a_merge_request_only_in_its_own_form() {
        let cases = [
            ("refs/merge-requests/12/head", Some(12), None),
            ("refs/merge-requests/12/merge", Some(12), None),
            ("refs/merge-requests/12/train", Some(12), None),
            ("refs/merge-requests/x/head", None, None),
            ("refs/merge-requests/", None, None),
            ("refs/heads/main", None, None),
            ("main", None, Some("main")),
            ("merge-requests/12/head", None, Some("merge-requests/12/head")),
        ];
        for (name, iid, branch) in cases {
            let subject = Subject::Ref(name.into());
            assert_eq!((subject.merge_request(), subject.branch()), (iid.map(MrIid), branch), "{name}");
        }
    }

    #[test]
    fn each_missing_part_is_named() {
        let cases = [
            (push(), "/object_attributes/iid", "object_attributes.iid is missing"),
            (push(), "/object_attributes/source_branch", "source_branch is missing"),
            (push(), "/project", "the project's id is missing"),
            (build(), "/build_id", "build_id is missing"),
            (build(), "/ref", "ref is missing"),
            (build(), "/pipeline_id", "pipeline_id is missing"),
        ];
        for (mut body, pointer, why) in cases {
            *body.pointer_mut(pointer).unwrap() = Value::Null;
            assert_eq!(Delivery::parse(body.to_string().as_bytes(), NOW), Err(Unusable::Malformed(why)));
        }
        for kind in ["push", "tag_push", "note", "issue", "emoji", "milestone", "wiki_page"] {
            let body = json!({"object_kind": kind, "project": {"id": 1}});
            assert_eq!(Delivery::parse(body.to_string().as_bytes(), NOW), Err(Unusable::Ignored(kind.into())));
        }
        let long = json!({"object_kind": "x".repeat(500)});
        assert_eq!(Delivery::parse(long.to_string().as_bytes(), NOW), Err(Unusable::Ignored("x".repeat(40))));
    }

    #[test]
    fn typical_events_take_at_most_300_bytes_and_come_back_as_they_were() {
        let finished = json!({"object_kind": "pipeline", "project": {"id": 4242}, "object_attributes": {"id": 9_876_543_210_u64,
            "ref": "main", "sha": "7c1d5f0e2b9a4836c5e0f1d2a3b4c5d6e7f80912", "status": "success", "finished_at": "2026-01-31 18:06:44 UTC"}});
        for body in [push(), build(), finished] {
            let event = parsed(&body).event;
            let text = serde_json::to_string(&event).unwrap();
            assert!(text.len() <= 300, "{} bytes: {text}", text.len());
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
        }
    }

    #[test]
    fn no_field_grows_without_bound_however_long_its_text() {
        let long = "x".repeat(100_000);
        let mut job = build();
        for field in ["build_name", "build_stage", "build_status", "build_failure_reason"] {
            job[field] = json!(long);
        }
        let mut mr = push();
        for field in ["action", "oldrev"] {
            mr["object_attributes"][field] = json!(long);
        }
        mr["object_attributes"]["last_commit"]["id"] = json!(long);
        let pipeline = json!({"object_kind": "pipeline", "project": {"id": 1},
            "object_attributes": {"id": 1, "ref": "main", "sha": long, "status": long}});
        for body in [job, mr, pipeline] {
            let text = serde_json::to_string(&parsed(&body).event).unwrap();
            assert!(text.len() <= 600, "{} bytes", text.len());
        }
    }

    proptest! {
        #[test]
        fn parsing_is_total(body in prop::collection::vec(any::<u8>(), 0..64), kind in "merge_request|pipeline|build|push", id in any::<i64>()) {
            let text = json!({"object_kind": kind, "object_attributes": {"iid": id, "id": id, "ref": "r"}, "build_id": id, "project_id": id});
            for body in [body, text.to_string().into_bytes()] {
                let _ = Delivery::parse(&body, NOW).is_ok();
            }
        }
    }
}
