//! The pages of codes, as callers read them.

use crate::support::World;

#[tokio::test]
async fn the_type_of_a_problem_leads_to_its_page() {
    let world = World::new();
    let problem = world.get("alice", "/v1/nothing").await.json();
    let page = world.get("", problem["type"].as_str().unwrap()).await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/markdown; charset=utf-8")));
    assert!(page.text.starts_with("# `route_not_found`\n"), "{}", page.text);
    assert_eq!(world.get("", "/errors/route_not_found.md").await.text, page.text);
}

#[tokio::test]
async fn a_code_without_a_page_is_a_problem() {
    let world = World::new();
    for path in ["/errors/no_such_code", "/errors/README", "/errors/..%2fREADME", "/errors/", "/errors"] {
        assert_eq!(world.get("", path).await.refusal(), (404, "route_not_found".into()), "{path}");
    }
}
