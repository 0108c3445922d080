use super::*;
use serde_json::Value;

const NOW: Timestamp = Timestamp::from_millis(1_769_882_644_000);
const TRANSIENT: Class = Class::Transient { answered: false };
const ANSWERED: Class = Class::Transient { answered: true };

fn classified(call: Call, status: u16, body: &str) -> Failure {
    classify(call, status, &ErrorBody::read(body, "glpat-x"), &HeaderMap::new(), NOW)
}

fn message(text: &str) -> String {
    serde_json::json!({ "message": text }).to_string()
}

#[track_caller]
fn assert_is(call: Call, status: u16, body: &str, class: Class, code: &'static str) {
    let failure = classified(call, status, body);
    assert_eq!((failure.class, failure.code), (class, code), "{call} {status} {body}");
}

#[test]
fn a_failure_says_which_call_answered_what() {
    let want = Failure::new(Class::Gone, "forge_gone", "GET …/repository/branches/:branch answered 404: 404 Branch Not Found");
    assert_eq!(classified(Call::Branch, 404, &message("404 Branch Not Found")), want);
    let html = "<html>secret page</html>";
    let want = Failure::new(TRANSIENT, "forge_unavailable", "GET …/repository/tree answered 502: an HTML page");
    assert_eq!(classified(Call::Tree, 502, html), want);
}

#[test]
fn commit_refusals_are_told_apart_by_their_text() {
    let table = [
        ("A file with this name already exists", Class::Rejected, "file_exists"),
        ("A file with this name doesn't exist", Class::Rejected, "file_missing"),
        ("A directory with this name already exists", Class::Rejected, "directory_exists"),
        ("Path cannot include directory traversal", Class::Rejected, "bad_path"),
        ("You must provide a file path", Class::Rejected, "bad_path"),
        ("invalid path: 'a//b'", Class::Rejected, "bad_path"),
        ("The file has changed since you started editing it: a", Class::Conflict, "file_changed"),
        ("Cannot find start_sha 'deadbeef'", Class::Rejected, "stale_start"),
        ("Invalid start_sha 'main'", Class::Rejected, "forge_refused"),
        ("You can only create or edit files when you are on a branch", Class::Rejected, "forge_refused"),
        ("A branch called 'b' already exists. Switch to that branch in order to make changes", Class::Conflict, "branch_exists"),
        ("Something went wrong when we tried to create 'b' for you: Branch already exists", Class::Conflict, "branch_exists"),
        ("Something went wrong when we tried to create 'a b' for you: Branch name is invalid", Class::Rejected, "bad_branch_name"),
        ("Could not update branch b. Please refresh and try again.", Class::Conflict, "branch_moved"),
        ("Could not update refs/heads/b. Please refresh and try again.", Class::Conflict, "branch_moved"),
        ("GitLab: You are not allowed to force push code to a protected branch on this project.", Class::Rejected, "branch_protected"),
        ("GitLab: Commit message does not follow the pattern", Class::Rejected, "forge_refused"),
        ("400 Bad request - actions is required", Class::Rejected, "forge_refused"),
        ("invalid path: 'A file with this name already exists'", Class::Rejected, "bad_path"),
    ];
    for (text, class, code) in table {
        assert_is(Call::CreateCommit, 400, &message(text), class, code);
    }
}

#[test]
fn what_the_merge_call_answers() {
    let sha = "SHA does not match HEAD of source branch: 11499a581bf88090fa5e0abbf6d73e10e6fb56a7";
    let revoked = r#"{"error":"invalid_token","error_description":"Token was revoked."}"#;
    let table = [
        (400, message("400 Bad request - SHA must be provided when merging"), Class::Rejected, "forge_refused"),
        (401, message("401 Unauthorized"), Class::Unauthorized, "may_not_merge"),
        (401, revoked.to_owned(), Class::Unauthorized, "forge_auth"),
        (403, message("403 Forbidden"), Class::Unauthorized, "forge_auth"),
        (404, message("404 Not found"), Class::Gone, "forge_gone"),
        (405, message("405 Method Not Allowed"), Class::Conflict, "not_mergeable"),
        (405, message("Non GET methods are not allowed for moved projects"), Class::Rejected, "redirected"),
        (406, message("406 Not Acceptable"), Class::Conflict, "not_mergeable"),
        (422, message("Branch cannot be merged"), Class::Conflict, "not_mergeable"),
        (409, message(sha), Class::Conflict, "head_moved"),
        (409, message("409 Conflict: Resource lock"), ANSWERED, "forge_busy"),
        (500, message("500 Internal Server Error"), Class::Indeterminate, "forge_unanswered"),
    ];
    for (status, body, class, code) in table {
        assert_is(Call::Merge, status, &body, class, code);
    }
}

#[test]
fn what_joining_a_train_answers() {
    let sha = "SHA does not match HEAD of source branch: 11499a581bf88090fa5e0abbf6d73e10e6fb56a7";
    let table = [
        (400, message("400 Bad request - Failed to merge"), Class::Conflict, "not_mergeable"),
        (401, message("401 Unauthorized"), Class::Unauthorized, "may_not_merge"),
        (403, message("403 Forbidden"), Class::Unauthorized, "forge_auth"),
        (404, message("404 Not found"), Class::Gone, "forge_gone"),
        (405, message("405 Method Not Allowed"), Class::Conflict, "not_mergeable"),
        (409, message(sha), Class::Conflict, "head_moved"),
        (409, message("409 Conflict: Resource lock"), ANSWERED, "forge_busy"),
        (500, message("500 Internal Server Error"), Class::Indeterminate, "forge_unanswered"),
    ];
    for (status, body, class, code) in table {
        assert_is(Call::JoinTrain, status, &body, class, code);
    }
    for (status, text) in [(405, "405 Method Not Allowed"), (406, "406 Not Acceptable")] {
        assert_is(Call::LeaveTrain, status, &message(text), Class::Conflict, "not_mergeable");
    }
    assert_is(Call::TrainCar, 404, &message("404 Merge Train Merge Request Not Found"), Class::Gone, "forge_gone");
}

#[test]
fn what_opening_and_editing_a_merge_request_answers() {
    let exists = r#"{"message":["Another open merge request already exists for this source branch: !7"]}"#;
    let same = r#"{"message":["You can't use same project/branch for source and target"]}"#;
    let invisible = r#"{"message":{"source_branch":["does not exist"]}}"#;
    let table = [
        (Call::OpenMergeRequest, 409, exists, Class::Conflict, "mr_exists"),
        (Call::EditMergeRequest, 409, exists, Class::Conflict, "mr_exists"),
        (Call::OpenMergeRequest, 400, invisible, ANSWERED, "branch_not_visible"),
        (Call::EditMergeRequest, 400, invisible, Class::Rejected, "forge_refused"),
        (Call::OpenMergeRequest, 400, r#"{"error":"source_branch is missing"}"#, Class::Rejected, "forge_refused"),
        (Call::OpenMergeRequest, 422, same, Class::Rejected, "mr_refused"),
        (Call::EditMergeRequest, 422, same, Class::Rejected, "mr_refused"),
        (Call::OpenMergeRequest, 409, r#"{"message":"409 Conflict: Resource lock"}"#, ANSWERED, "forge_busy"),
        (Call::AddNote, 422, same, Class::Rejected, "forge_refused"),
        (Call::AddNote, 409, exists, Class::Bug, "forge_unclassified"),
    ];
    for (call, status, body, class, code) in table {
        assert_is(call, status, body, class, code);
    }
}

#[test]
fn credentials_and_absence() {
    let scope = r#"{"error":"insufficient_scope","error_description":"Higher privileges.","scope":"api"}"#;
    let no_push = message("403 Forbidden - You are not allowed to push into this branch");
    let read_only = message("You cannot perform write operations on a read-only instance");
    let table = [
        (Call::CreateCommit, 403, no_push.clone(), Class::Rejected, "branch_protected"),
        (Call::EditMergeRequest, 403, no_push, Class::Unauthorized, "forge_auth"),
        (Call::CreateCommit, 403, message("403 Forbidden"), Class::Unauthorized, "forge_auth"),
        (Call::CreateCommit, 403, read_only.clone(), TRANSIENT, "forge_read_only"),
        (Call::Branch, 403, read_only, Class::Unauthorized, "forge_auth"),
        (Call::Tree, 403, scope.to_owned(), Class::Unauthorized, "forge_auth"),
        (Call::Tree, 403, "Forbidden".to_owned(), Class::Unauthorized, "forge_auth"),
        (Call::Tree, 401, message("401 Unauthorized"), Class::Unauthorized, "forge_auth"),
        (Call::CreateCommit, 401, message("401 Unauthorized"), Class::Unauthorized, "forge_auth"),
        (Call::MergeRequest, 404, message("404 Project Not Found"), Class::Unauthorized, "forge_auth"),
        (Call::MergeRequest, 404, message("404 Not found"), Class::Gone, "forge_gone"),
        (Call::MergeRequest, 404, r#"{"error":"404 Not Found"}"#.to_owned(), Class::Gone, "forge_gone"),
        (Call::MergeRequest, 404, "<html>404</html>".to_owned(), Class::Bug, "forge_unclassified"),
        (Call::MergeRequest, 404, "no such route".to_owned(), Class::Bug, "forge_unclassified"),
        (Call::DeleteBranch, 405, message("You dont have push access to repo"), Class::Unauthorized, "forge_auth"),
        (Call::DeleteBranch, 400, message("Failed to remove branch"), Class::Rejected, "forge_refused"),
        (Call::Branch, 400, message("The branch refname is invalid"), Class::Rejected, "bad_branch_name"),
        (Call::MergeBase, 400, message("Could not find ref: x"), Class::Gone, "forge_gone"),
        (Call::MergeBase, 400, message("400 Bad request - Could not find refs: x, y"), Class::Gone, "forge_gone"),
        (Call::MergeBase, 400, message("Provide at least 2 refs"), Class::Bug, "forge_unclassified"),
        (Call::Compare, 404, message("404 Ref Not Found"), Class::Gone, "forge_gone"),
        (Call::Compare, 400, r#"{"error":"from is missing"}"#.to_owned(), Class::Bug, "forge_unclassified"),
        (Call::Jobs, 405, r#"{"error":"Offset pagination has a maximum allowed offset"}"#.to_owned(), Class::Rejected, "too_many_pages"),
        (Call::Jobs, 405, message("405 Method Not Allowed"), Class::Bug, "forge_unclassified"),
    ];
    for (call, status, body, class, code) in table {
        assert_is(call, status, &body, class, code);
    }
}

#[test]
fn these_statuses_mean_the_same_for_every_read_and_every_write() {
    for call in Call::ALL {
        let (class, code) = if call.is_write() { (Class::Indeterminate, "forge_unanswered") } else { (TRANSIENT, "forge_unavailable") };
        for status in [408, 500, 502, 503, 504, 520, 524] {
            assert_is(call, status, "<html>", class, code);
        }
        for status in [301, 302, 303, 307, 308] {
            assert_is(call, status, "moved", Class::Rejected, "redirected");
        }
        assert_is(call, 413, "", Class::Rejected, "too_large");
        assert_is(call, 429, "Retry later", Class::Throttled { until: NOW.after(DEFAULT_WAIT) }, "forge_throttled_untimed");
        for status in [304, 402, 410, 412, 418] {
            assert_is(call, status, "", Class::Bug, "forge_unclassified");
        }
    }
}

#[test]
fn the_wait_of_a_throttled_call() {
    let reset = (NOW.as_millis() / 1000 + 56).to_string();
    let table: [(&[(&str, &str)], u64); 9] = [
        (&[], 0),
        (&[("retry-after", "30")], 30),
        (&[("retry-after", "0")], 1),
        (&[("retry-after", "86400")], 3600),
        (&[("retry-after", "soon")], 0),
        (&[("ratelimit-reset", &reset)], 56),
        (&[("ratelimit-reset", "1")], 1),
        (&[("ratelimit-reset", "18446744073709551615")], 3600),
        (&[("retry-after", "30"), ("ratelimit-reset", &reset)], 30),
    ];
    for (pairs, seconds) in table {
        let headers = pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let (seconds, code) = if seconds == 0 { (60, "forge_throttled_untimed") } else { (seconds, "forge_throttled") };
        let want = (Class::Throttled { until: NOW.after(Duration::from_secs(seconds)) }, code);
        assert_eq!(throttled(&headers, NOW), want, "{pairs:?}");
    }
}

/// The answers that GitLab is known to give are all foreseen, on the calls that get them.
#[test]
fn no_sampled_error_is_unclassified() {
    let samples = [
        (include_str!("../../../tests/samples/errors_commits.json"), Call::CreateCommit),
        (include_str!("../../../tests/samples/errors_merge_requests.json"), Call::Merge),
        (include_str!("../../../tests/samples/errors_branches.json"), Call::DeleteBranch),
        (include_str!("../../../tests/samples/errors_general.json"), Call::MergeRequest),
    ];
    for (file, call) in samples {
        let rows: Vec<Value> = serde_json::from_str(file).unwrap();
        for row in rows.iter().filter(|row| row["status"] != 304 && !row["when"].as_str().unwrap().starts_with("POST, PUT, DELETE")) {
            let body = row["body"].as_str().map_or_else(|| row["body"].to_string(), str::to_owned);
            let failure = classified(call, u16::try_from(row["status"].as_u64().unwrap()).unwrap(), &body);
            assert_ne!(failure.class, Class::Bug, "{row}");
        }
    }
}

#[test]
fn the_readme_has_a_row_for_every_code() {
    let readme = include_str!("../../../README.md");
    for code in codes::ALL {
        assert!(readme.contains(&format!("| `{code}` |")), "{code}");
    }
}
