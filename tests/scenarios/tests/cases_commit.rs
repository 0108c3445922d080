//! Field reports about commits: what a refusal means, what arrives on the branch, and what is never written.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "whatever a story does not expect is a failed test")]

use collie_core::files::{Expect, FileAction, Verb, sha256_hex};
use collie_core::item::{Phase, ResultKind};
use collie_core::time::Timestamp;
use collie_engine::execute::WRITE_TIMEOUT;
use collie_engine::submit::{Error, Outcome, Submission};
use collie_scenarios::world::{BRANCH, CANARY, submission};
use collie_scenarios::{Effects, World};
use gitlab_sim::{DEMO_PROJECT_ID, Fault, FaultAction, JournalEntry};
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
const COMMITS: &str = "/projects/:id/repository/commits";
const OPEN: &str = "/projects/:id/merge_requests";
const README: &str = "# App\n\nA small program.\n";

fn file(verb: Verb, path: &str, bytes: &[u8]) -> FileAction {
    let content = (verb != Verb::Delete).then(|| bytes.to_vec());
    FileAction { verb, file_path: path.into(), previous_path: None, content, execute_filemode: None, expect: None }
}

fn of(actions: Vec<FileAction>) -> Submission {
    Submission { file_actions: actions, ..submission("hello") }
}

async fn told(submission: &Submission) -> (World, collie_core::id::ItemId) {
    let world = World::new(Effects::default()).await;
    let id = world.submit(submission).await.item.id;
    (world, id)
}

fn no_trace_of_it(world: &World) {
    assert_eq!((world.commit_calls(), world.sim().branch_head(DEMO_PROJECT_ID, BRANCH)), (0, None));
    assert_eq!(world.sim().merge_requests(DEMO_PROJECT_ID), []);
}

/// GitLab does not see the branch for some seconds: only the merge request is tried again.
#[tokio::test]
async fn cmt_02() {
    let (world, id) = told(&submission("hello")).await;
    world.gitlab_answers("POST", OPEN, 2, 400, r#"{"message":{"source_branch":["does not exist"]}}"#);
    world.until_mr(&id).await;
    assert_eq!(world.item(&id).await.attempts, 0);
    world.expect_merged(&id).await;
    assert_eq!((world.commit_calls(), world.calls("POST", "/merge_requests"), world.the_mr().iid), (1, 3, 1));
}

/// The same for ever is bounded and ends with its name; the commit is made once.
#[tokio::test]
async fn cmt_02_bounded() {
    let (world, id) = told(&submission("hello")).await;
    world.gitlab_answers("POST", OPEN, 1000, 400, r#"{"message":{"source_branch":["does not exist"]}}"#);
    world.expect_failed(&id, "branch_not_visible").await;
    assert_eq!((world.commit_calls(), world.calls("POST", "/merge_requests")), (1, 6 + 5));
}

/// Any other 400 is final.
#[tokio::test]
async fn cmt_02_other_refusals() {
    let (world, id) = told(&submission("hello")).await;
    world.gitlab_answers("POST", OPEN, 1, 400, r#"{"message":{"title":["is too long"]}}"#);
    world.expect_failed(&id, "forge_refused").await;
    assert_eq!(world.calls("POST", "/merge_requests"), 1);
}

/// A start commit that another replica does not have yet: a short retry from the target's head.
#[tokio::test]
async fn cmt_03_transient() {
    let (world, id) = told(&submission("hello")).await;
    world.gitlab_answers("POST", COMMITS, 1, 400, r#"{"message":"Cannot find start_sha 'b27018d3e0f8765e20451a9fd7cf50ef91d2d1d4'"}"#);
    world.until_mr(&id).await;
    assert!(world.sim().now_ms() - world.item(&id).await.created_at.as_millis() < 60_000);
    world.expect_merged(&id).await;
    assert_eq!(world.commit_calls(), 2);
}

/// A target that does not exist: failed at once, with its name.
#[tokio::test]
async fn cmt_03_permanent() {
    let (world, id) = told(&Submission { target_branch: "release".into(), ..submission("hello") }).await;
    world.expect_failed(&id, "target_branch_missing").await;
    assert!(world.item(&id).await.last_error.unwrap().message.contains("\"release\""));
    no_trace_of_it(&world);
}

/// A start commit that vanished between the intent and the push, with the process that intended it.
#[tokio::test]
async fn cmt_03_intent_on_a_vanished_commit() {
    let (world, id) = told(&submission("hello")).await;
    world.effects().strike_next("forge.create_commit", collie_scenarios::Fault::CrashBefore);
    world.work(&id).await;
    let gone = world.facts(&id).await.builds[0].start_sha.clone();
    world.push_to_main("NEWS", "rewritten\n");
    let path = format!("{}?", gone.as_str());
    world.gitlab_answers("GET", &format!("ref={}", gone.as_str()), 1000, 404, r#"{"message":"404 Tree Not Found"}"#);
    world.gitlab_answers("GET", &format!("commits/{path}"), 1000, 404, r#"{"message":"404 Commit Not Found"}"#);
    world.expect_merged(&id).await;
    assert_eq!((world.commit_calls(), world.facts(&id).await.builds.len()), (1, 2));
}

/// `create` of a file that is there already: the same bytes are nothing to do, other bytes fail once.
#[tokio::test]
async fn cmt_04() {
    let (world, id) = told(&of(vec![file(Verb::Create, "README.md", README.as_bytes())])).await;
    world.until_all_ended(HOUR).await;
    assert_eq!(world.end_of(&id).await, (Phase::Completed, Some(ResultKind::NoChange), None));
    no_trace_of_it(&world);
    let (world, id) = told(&of(vec![file(Verb::Create, "README.md", b"other\n")])).await;
    world.expect_failed(&id, "file_action_impossible").await;
    let message = world.item(&id).await.last_error.unwrap().message;
    assert_eq!(message, "cannot create \"README.md\": a file with this name already exists. Submit actions that fit the target branch.");
    assert_eq!(world.timeline(&id).await.len(), 1);
    no_trace_of_it(&world);
}

/// What the caller expects is compared with what Collie reads itself, before any write.
#[tokio::test]
async fn cmt_05() {
    let expecting = |sha256: String| {
        let mut submission = submission("hello");
        submission.file_actions[0].expect = Some(Expect::Sha256(sha256));
        submission.file_actions[1].expect = Some(Expect::Absent);
        submission
    };
    let (world, id) = told(&expecting(sha256_hex(b"something else"))).await;
    world.expect_failed(&id, "expectation_not_met").await;
    let message = world.item(&id).await.last_error.unwrap().message;
    assert_eq!(message, "\"README.md\" is not what the submission expects: the file holds something else");
    no_trace_of_it(&world);
    let (world, id) = told(&expecting(sha256_hex(README.as_bytes()))).await;
    world.expect_merged(&id).await;
    assert_eq!((world.commit_calls(), world.calls("GET", "/repository/files/:file_path")), (1, 1));
}

/// A rebuild expects the same of the target as it is then.
#[tokio::test]
async fn cmt_05_on_a_rebuild() {
    let mut expecting = submission("hello");
    expecting.file_actions[0].expect = Some(Expect::Sha256(sha256_hex(README.as_bytes())));
    expecting.wanted.on_conflict = collie_core::mr::wanted::OnConflict::Overwrite;
    let (world, id) = told(&expecting).await;
    world.until_mr(&id).await;
    world.push_to_main("README.md", "# App\n\nRewritten.\n");
    world.expect_failed(&id, "expectation_not_met").await;
    assert_eq!((world.commit_calls(), world.the_mr().state.as_str()), (1, "opened"));
}

/// 500 means that it may have happened: the branch is read; a commit that is there is found by its marker and its tree.
#[tokio::test]
async fn cmt_07_and_cmt_08() {
    for (action, commits) in [(FaultAction::FailAfterApplying { status: 500 }, 1), (FaultAction::FailBefore { status: 500, body: None }, 2)]
    {
        let (world, id) = told(&submission("hello")).await;
        world.sim().add_fault(Fault::once("POST", COMMITS, action));
        world.expect_merged(&id).await;
        assert_eq!((world.commit_calls(), world.item(&id).await.attempts), (commits, 0));
    }
    assert!(collie_gitlab::COMMIT_TIMEOUT <= WRITE_TIMEOUT, "a lease outlasts the longest write");
}

/// Too much is refused at the door, in numbers and in bytes; nothing is stored.
#[tokio::test]
async fn cmt_08_limits() {
    let world = World::new(Effects::default()).await;
    let many: Vec<_> = (0..1001).map(|n| file(Verb::Create, &format!("many/{n}"), b"x")).collect();
    let large = vec![file(Verb::Create, "large", &vec![b'x'; (20 << 20) + 1])];
    for (actions, code) in [(many, "too_many_actions"), (large, "request_too_large")] {
        let Err(Error::Policy(found)) = world.try_submit(&of(actions)).await else { panic!("not refused") };
        assert_eq!(found.iter().map(|v| v.code).collect::<Vec<_>>(), [code]);
    }
    assert_eq!(world.effects().log(), [""; 0]);
    let many = (0..666).map(|n| file(Verb::Create, &format!("many/{n}"), format!("{CANARY} {n}").as_bytes())).collect();
    let id = world.submit(&of(many)).await.item.id;
    world.expect_merged(&id).await;
    assert_eq!(world.commit_calls(), 1);
}

/// Bytes are bytes: BOM, CRLF and a missing last newline arrive, and the same bytes again are the same submission.
#[tokio::test]
async fn cmt_09() {
    let bytes = b"\xEF\xBB\xBFa\r\nb";
    let change = of(vec![file(Verb::Create, "windows.txt", bytes), file(Verb::Create, "binary", b"\xff\x00\xfe")]);
    let (world, id) = told(&change).await;
    world.until_mr(&id).await;
    assert_eq!(world.submit(&change).await.outcome, Outcome::Unchanged);
    world.expect_merged(&id).await;
    assert!(world.main_has("windows.txt", bytes) && world.main_has("binary", b"\xff\x00\xfe"));
    assert_eq!(world.commit_calls(), 1);
}

/// Nothing is written through a symbolic link or a submodule.
#[tokio::test]
async fn cmt_11() {
    let through = [
        (file(Verb::Update, "docs/readme", b".gitlab-ci.yml"), "cannot update \"docs/readme\": it is a symbolic link"),
        (
            file(Verb::Create, "vendor/lib/x.c", b"x"),
            "cannot create \"vendor/lib/x.c\": a directory of its path is a file, a symbolic link or a submodule",
        ),
    ];
    for (action, why) in through {
        let world = World::new(Effects::default()).await;
        let links = [("docs/readme", "120000", "../README.md"), ("vendor/lib", "160000", "b27018d3e0f8765e20451a9fd7cf50ef91d2d1d4")];
        world.sim().push_modes(DEMO_PROJECT_ID, "main", &links, "Links", "reviewer");
        let id = world.submit(&of(vec![action])).await.item.id;
        world.expect_failed(&id, "file_action_impossible").await;
        let message = world.item(&id).await.last_error.unwrap().message;
        assert!(message.starts_with(why), "{message}");
        no_trace_of_it(&world);
    }
}

/// A tag may have a branch's name: whatever compares or lists names a commit, never a name.
#[tokio::test]
async fn cmt_13() {
    let (world, id) = told(&submission("hello")).await;
    world.until_mr(&id).await;
    world.push_to_main("NEWS", "moved\n");
    world.amend(&[]);
    world.sim().set_settings(DEMO_PROJECT_ID, |settings| settings.merge_method = gitlab_sim::MergeMethod::Ff);
    world.expect_merged(&id).await;
    let named = |call: &JournalEntry| {
        let query = call.path.split_once('?').map_or("", |(_, query)| query).to_owned();
        query.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect::<Vec<_>>()
    };
    let calls = world.sim().journal();
    let refs: Vec<_> =
        calls.iter().flat_map(named).filter(|(key, _)| ["ref", "from", "to", "refs%5B%5D", "refs[]"].contains(&key.as_str())).collect();
    assert!(refs.len() > 5, "{refs:?}");
    assert!(refs.iter().all(|(_, sha)| sha.len() == 40 && sha.bytes().all(|b| b.is_ascii_hexdigit())), "{refs:?}");
}

type Headers = &'static [(&'static str, &'static str)];

async fn throttled(headers: Headers, body: &str) -> (World, collie_core::id::ItemId, u64) {
    let (world, id) = told(&submission("hello")).await;
    let headers: BTreeMap<_, _> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let answer = FaultAction::Answer { status: 429, headers, body: body.into() };
    world.sim().add_fault(Fault { times: Some(1), ..Fault::always("POST", COMMITS, answer) });
    world.work(&id).await;
    let item = world.item(&id).await;
    assert_eq!((item.attempts, item.outage, item.phase), (0, None, Phase::Active));
    let host = world.items().host_wait(&item.branch.host).await.unwrap().unwrap();
    let shared = host.until.since(Timestamp::from_millis(world.sim().now_ms())).as_secs();
    let own = item.due_at.unwrap().since(host.until);
    assert!(own <= Duration::from_secs(10), "the item comes back soon after its host may be called: {own:?}");
    (world, id, shared)
}

/// 429 in its shapes: the wait is stored, with the item and for the host, and counts as no attempt.
#[tokio::test]
async fn cmt_16() {
    let cases: [(Headers, &str, u64); 4] = [
        (&[("Retry-After", "600")], "Retry later\n", 600),
        (&[], r#"{"message":{"error":"This endpoint has been requested too many times. Try again later."}}"#, 60),
        (&[("Retry-After", "99999999")], "Retry later\n", 3600),
        (&[("Retry-After", "600")], "<html><body>Too many requests</body></html>", 600),
    ];
    for (headers, body, seconds) in cases {
        let (world, id, wait) = throttled(headers, body).await;
        assert_eq!(wait, seconds, "{headers:?}");
        world.expect_merged(&id).await;
        assert_eq!(world.commit_calls(), 2);
    }
}

/// Without a word on how long, waits grow beyond ten minutes.
#[tokio::test]
async fn cmt_16_growing() {
    let (world, id) = told(&submission("hello")).await;
    world.gitlab_answers("POST", COMMITS, 7, 429, "Retry later\n");
    world.expect_merged(&id).await;
    let at: Vec<_> =
        world.sim().journal().iter().filter(|c| c.method == "POST" && c.path.ends_with("/commits")).map(|c| c.at_ms / 1000).collect();
    let gaps: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.is_sorted() && gaps[0] >= 60 && *gaps.last().unwrap() >= 600 && gaps.len() == 7, "{gaps:?}");
}

/// While one item waits for its host, another does not call it.
#[tokio::test]
async fn cmt_16_all_items_of_the_host_wait() {
    let (world, _, _) = throttled(&[("Retry-After", "600")], "Retry later\n").await;
    let calls = world.sim().journal().len();
    let mut other = submission("hi");
    other.source_branch = "bot/other".into();
    other.file_actions.remove(0);
    let other = world.submit(&other).await.item.id;
    world.work(&other).await;
    assert_eq!((world.sim().journal().len(), world.item(&other).await.attempts), (calls, 0));
}
