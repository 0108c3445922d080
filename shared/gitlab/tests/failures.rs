//! Silence, oversize, redirects and bad configuration; and that no credential is ever shown.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test helper that fails fails its test")]

mod support;

use collie_core::error::{Class, Failure};
use collie_core::id::{MrIid, PipelineId, ProjectId, Sha};
use collie_engine::ports::{Forge, MrEdit};
use collie_gitlab::{GitLab, Problem};
use secrecy::SecretString;
use std::fmt::Debug;
use std::sync::Arc;
use support::{CANARY, Canned, Still, Stub, answer, connection, gitlab, project, refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const TRANSIENT: Class = Class::Transient { answered: false };

async fn read(host: &str) -> Failure {
    gitlab(host).branch(&project(host), "b").await.unwrap_err()
}

async fn write(host: &str) -> Failure {
    gitlab(host).add_note(&project(host), MrIid(2), "x").await.unwrap_err()
}

/// A server that reads a request, writes these bytes and hangs up, twice.
async fn raw(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    host
}

#[tokio::test]
async fn where_nobody_listens_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    drop(listener);
    for failure in [read(&host).await, write(&host).await] {
        assert_eq!((failure.class, failure.code), (TRANSIENT, "forge_unreachable"), "{failure}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_leaves_a_write_in_doubt() {
    let stub = Stub::start([]).await;
    let want = Failure::new(TRANSIENT, "forge_unreachable", "GET …/repository/branches/:branch: no answer in time");
    assert_eq!(read(&stub.host).await, want);
    let want = Failure::new(Class::Indeterminate, "forge_unanswered", "POST …/merge_requests/:iid/notes: no answer in time");
    assert_eq!(write(&stub.host).await, want);
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_a_write_in_doubt() {
    let cut = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"commit\":";
    for bytes in [&b""[..], b"HTTP/1.1 200", cut, b"nonsense\r\n\r\n"] {
        let host = raw(bytes).await;
        let (read, write) = (read(&host).await, write(&host).await);
        assert_eq!((read.class, read.code), (TRANSIENT, "forge_unreachable"), "{read}");
        assert_eq!((write.class, write.code), (Class::Indeterminate, "forge_unanswered"), "{write}");
    }
}

#[tokio::test]
async fn a_cut_refusal_is_still_a_refusal() {
    let host = raw(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 500\r\n\r\n{\"message\":").await;
    assert_eq!(read(&host).await.code, "forge_auth");
}

#[tokio::test]
async fn a_success_that_cannot_be_read_is_a_bug_for_a_read_and_doubt_for_a_write() {
    for body in ["<html>sign in</html>", "{\"commit\": {\"id\": 7}}", ""] {
        let stub = Stub::start([answer(200, body), answer(201, body)]).await;
        let (read, write) = (read(&stub.host).await, write(&stub.host).await);
        assert_eq!((read.class, read.code), (Class::Bug, "forge_unclassified"), "{read}");
        assert_eq!((write.class, write.code), (Class::Indeterminate, "forge_unanswered"), "{write}");
        assert!(!read.message.contains("sign in"), "{read}");
    }
}

#[tokio::test]
async fn an_answer_over_the_bound_is_not_read() {
    let stub = Stub::start([answer(200, " ".repeat((8 << 10) + 1))]).await;
    let want = Failure::rejected("answer_too_large", "GET …/repository/branches/:branch: the answer has more than 8192 bytes");
    assert_eq!(read(&stub.host).await, want);
}

#[tokio::test]
async fn a_listing_without_end_is_an_error_and_not_cut_short() {
    for (pages, reason) in [([2, 3, 4], "more than 3 pages"), ([2, 3, 2], "the pages go in a circle")] {
        let stub = Stub::start(pages.map(|next| answer(200, "[]").with("x-next-page", next.to_string()))).await;
        let failure = stub.gitlab().jobs(&stub.project(), PipelineId(1)).await.unwrap_err();
        assert_eq!(failure, Failure::rejected("too_many_pages", format!("GET …/pipelines/:id/jobs: {reason}")));
        assert_eq!(stub.asked().len(), 3);
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Stub::start([]).await;
        let away = || answer(status, "moved").with("location", format!("http://{}/x", elsewhere.host));
        let stub = Stub::start([away(), away()]).await;
        for failure in [read(&stub.host).await, write(&stub.host).await] {
            assert_eq!((failure.class, failure.code), (Class::Rejected, "redirected"));
        }
        assert_eq!(elsewhere.asked(), []);
    }
}

#[tokio::test]
async fn the_wait_of_the_header_counts_from_the_clock() {
    let stub = Stub::start([answer(429, "Retry later\n").with("retry-after", "30")]).await;
    let until = support::NOW.after(std::time::Duration::from_secs(30));
    let want = Failure::new(Class::Throttled { until }, "forge_throttled", "GET …/repository/branches/:branch answered 429: Retry later");
    assert_eq!(read(&stub.host).await, want);
}

#[tokio::test]
async fn an_unknown_host_is_asked_nothing() {
    let stub = Stub::start([]).await;
    let failure = stub.gitlab().branch(&project("other.example"), "b").await.unwrap_err();
    assert_eq!(failure, Failure::rejected("forge_unknown_host", "no connection to other.example is configured"));
}

#[tokio::test]
async fn a_projects_own_token_goes_before_the_hosts() {
    let stub = Stub::start([refusal(404, "404 Branch Not Found"), refusal(404, "404 Branch Not Found")]).await;
    let mut connection = connection(&stub.host);
    connection.project_tokens.insert(ProjectId(1), SecretString::from("glpat-own").into());
    let gitlab = GitLab::new(vec![connection], Arc::new(Still)).unwrap();
    for id in [1, support::PROJECT] {
        let project = collie_engine::ports::ProjectRef { host: stub.host.clone(), id: ProjectId(id) };
        assert_eq!(gitlab.branch(&project, "b").await, Ok(None));
    }
    let tokens: Vec<_> = stub.asked().into_iter().map(|asked| asked.token).collect();
    assert_eq!(tokens, ["glpat-own", CANARY]);
}

#[tokio::test]
async fn an_instance_below_a_path_is_asked_there() {
    let stub = Stub::start([refusal(404, "404 Branch Not Found"), refusal(404, "404 Branch Not Found")]).await;
    for path in ["gitlab", "gitlab/"] {
        let mut connection = connection(&stub.host);
        connection.base_url = format!("http://{}/{path}", stub.host).parse().unwrap();
        let gitlab = GitLab::new(vec![connection], Arc::new(Still)).unwrap();
        assert_eq!(gitlab.branch(&stub.project(), "b").await, Ok(None));
    }
    for asked in stub.asked() {
        assert_eq!(asked.line, "GET /gitlab/api/v4/projects/4242/repository/branches/b");
    }
}

#[tokio::test]
async fn no_more_requests_are_under_way_than_allowed() {
    let stub = Stub::start([]).await;
    let mut connection = connection(&stub.host);
    connection.concurrency = 1;
    let gitlab = GitLab::with_limits(vec![connection], Arc::new(Still), support::small_limits()).unwrap();
    let project = stub.project();
    let ask = gitlab.branch(&project, "a");
    let other = async {
        let mut waiting = gitlab.branch(&project, "b");
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("went past the bound"),
            () = stub.until_asked(1) => {}
        }
        assert_eq!(stub.asked().len(), 1);
    };
    let (first, ()) = tokio::join!(ask, other);
    assert_eq!(first.unwrap_err().code, "forge_unreachable");
}

#[test]
fn every_problem_of_the_configuration_is_reported_at_once() {
    let mut bad = connection("a");
    bad.base_url = "https://user:pw@a.example/?q".parse().unwrap();
    bad.token = SecretString::from("line\nbreak").into();
    bad.concurrency = 0;
    let mut odd = connection("b");
    odd.base_url = "ftp://b.example".parse().unwrap();
    odd.project_tokens.insert(ProjectId(1), SecretString::from(" ").into());
    let error = GitLab::new(vec![bad, odd, connection("b")], Arc::new(Still)).unwrap_err();
    let (a, b) = ("a".to_owned(), "b".to_owned());
    let want = [
        Problem::BaseUrl(a.clone()),
        Problem::Token(a.clone()),
        Problem::Concurrency(a),
        Problem::BaseUrl(b.clone()),
        Problem::Token(b.clone()),
        Problem::DuplicateHost(b),
    ];
    assert_eq!(error.problems, want);
    assert!(!error.to_string().contains("break") && !error.to_string().contains("pw"), "{error}");
}

fn assert_hidden(shown: &impl Debug) {
    let shown = format!("{shown:?} {shown:#?}");
    assert!(!shown.contains(CANARY), "{shown}");
}

/// Every way in which a call can fail, with a server that sends the credential back in all it says.
fn hostile() -> Vec<Canned> {
    let statuses = [200, 201, 301, 400, 401, 403, 404, 405, 409, 413, 418, 422, 429, 500, 503];
    let bodies = [
        format!("{{\"message\":\"{CANARY}\"}}"),
        format!("{{\"message\":{{\"{CANARY}\":[\"{CANARY}\"]}}}}"),
        format!("{{\"error\":\"invalid_token\",\"error_description\":\"{CANARY}\"}}"),
        CANARY.to_owned(),
        format!("<p>{CANARY}"),
    ];
    let answers = statuses.iter().flat_map(|&status| bodies.iter().map(move |body| answer(status, body.as_str())));
    answers.map(|canned| canned.with("location", format!("http://{CANARY}.example/"))).collect()
}

#[tokio::test]
async fn no_failure_and_no_debug_output_shows_a_credential() {
    let count = hostile().len();
    let stub = Stub::start(hostile().into_iter().chain(hostile()).chain(hostile())).await;
    let (gitlab, project) = (stub.gitlab(), stub.project());
    assert_hidden(&gitlab);
    assert_hidden(&connection(&stub.host));
    let edit = MrEdit { title: Some("t".into()), ..MrEdit::default() };
    for _ in 0..count {
        let failures = [
            gitlab.commit(&project, &Sha::new("a")).await.err(),
            gitlab.edit_merge_request(&project, MrIid(1), &edit).await.err(),
            gitlab.resolve_project(&stub.host, "a/b").await.err(),
        ];
        assert_hidden(&failures);
        for failure in failures.iter().flatten() {
            assert!(!failure.to_string().contains(CANARY), "{failure}");
        }
    }
    assert_eq!(stub.asked().len(), 3 * count);
    drop(stub);
    assert_hidden(&read("127.0.0.1:1").await);
}
