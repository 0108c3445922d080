//! The demonstration, as a person sees it where the output is no terminal.

mod support;

use support::outcome;

#[tokio::test]
async fn the_demonstration_merges_one_change_and_shows_what_it_cost() {
    let (code, shown, errors) = outcome(&["demo", "--fast"]).await;
    assert_eq!(code, 0, "{shown}{errors}");
    let lines: Vec<&str> = shown.lines().collect();
    let last = lines.last().copied().unwrap_or_default();
    assert!(last.starts_with("merged: http://127.0.0.1:") && last.ends_with("/demo/app/-/merge_requests/1"), "{shown}");
    for part in ["ensure_mr", "retry_ci_jobs", "reconcile_mr", "approved by     reviewer", "phase           completed: merged", "total: "] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    assert_eq!(errors, "");
}
