//! The `issue` work item: one GitLab issue for each failing task, open while something of it is.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "stories: whatever they do not expect is a failed test"
)]

use collie_core::item::{Phase, ResultKind};
use collie_scenarios::{Effects, World, survives_crash_at_every_effect};
use gitlab_sim::DEMO_PROJECT_ID;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Title, state and the units of each issue of the project, oldest first.
fn issues(world: &World) -> Vec<(String, String, Vec<String>)> {
    let units = |text: &str| {
        let rows = text.lines().filter(|line| line.starts_with("| ") && !line.contains("Failing since build"));
        rows.map(|row| row.split('|').nth(1).unwrap().trim().replace("<code>", "").replace("</code>", "")).collect()
    };
    let mut issues = world.sim().issues(DEMO_PROJECT_ID);
    issues.sort_by_key(|issue| issue.iid);
    issues.into_iter().map(|issue| (issue.title, issue.state, units(&issue.description.unwrap_or_default()))).collect()
}

/// Lets the world go on until every active item waits for its regular look.
async fn settled(world: &World) {
    world
        .until(HOUR, || async {
            let now = world.sim().now_ms();
            let items = world.all_items().await;
            items.iter().all(|item| {
                if item.is_active() {
                    item.due_at.is_some_and(|at| at.as_millis() > now) && !item.actionable
                } else {
                    item.due_at.is_none()
                }
            })
        })
        .await;
}

fn issue(title: &str, state: &str, units: &[&str]) -> (String, String, Vec<String>) {
    (title.to_owned(), state.to_owned(), units.iter().map(|unit| (*unit).to_owned()).collect())
}

async fn build(world: &World, name: &str, keys: &[&str]) {
    world.ci_build(name, keys).await;
    world.track().await;
    settled(world).await;
}

/// The whole life: two tasks fail, one grows and shrinks, both are fixed, one fails again.
async fn tell(world: &World) {
    build(world, "b1", &["unit/a", "lint"]).await;
    let lint = issue("CI: lint fails on main", "opened", &["the whole job"]);
    assert_eq!(issues(world), [lint.clone(), issue("CI: unit fails on main", "opened", &["a"])]);
    build(world, "b2", &["unit/a", "unit/b", "lint"]).await;
    assert_eq!(issues(world), [lint, issue("CI: unit fails on main", "opened", &["a", "b"])]);
    build(world, "b3", &["unit/b"]).await;
    let closed_lint = issue("CI: lint fails on main", "closed", &[]);
    assert_eq!(issues(world), [closed_lint.clone(), issue("CI: unit fails on main", "opened", &["b"])]);
    build(world, "b4", &[]).await;
    let closed_unit = issue("CI: unit fails on main", "closed", &[]);
    assert_eq!(issues(world), [closed_lint.clone(), closed_unit.clone()]);
    build(world, "b5", &["unit/c"]).await;
    assert_eq!(issues(world), [closed_lint, closed_unit, issue("CI: unit fails on main", "opened", &["c"])]);
}

#[tokio::test]
async fn a_task_has_one_issue_while_something_of_it_is_open() {
    let world = World::new(Effects::default()).await;
    tell(&world).await;
    let mut items: Vec<_> =
        world.all_items().await.into_iter().map(|item| (item.item_type, item.generation, item.phase, item.result)).collect();
    items.sort_by_key(|(_, generation, ..)| *generation);
    let resolved = ("issue".to_owned(), 1, Phase::Completed, Some(ResultKind::Resolved));
    assert_eq!(items, [resolved.clone(), resolved, ("issue".to_owned(), 2, Phase::Active, None)]);
    let made = world.sim().issues(DEMO_PROJECT_ID);
    assert!(made.iter().all(|issue| issue.labels.contains(&"managed-by::collie".to_owned())), "{made:?}");
}

#[tokio::test]
async fn an_issue_that_someone_closed_is_opened_again_at_the_next_look() {
    let world = World::new(Effects::default()).await;
    build(&world, "b1", &["unit/a"]).await;
    world.close_issue(1);
    world.until(HOUR, || async { world.sim().issues(DEMO_PROJECT_ID)[0].state == "opened" }).await;
    let waited = world.all_items().await.remove(0);
    assert!(waited.is_active(), "{waited:?}");
}

#[test]
fn no_crash_makes_a_second_issue_or_loses_one() {
    let crashed = survives_crash_at_every_effect(|effects| async move {
        let world = World::new(effects).await;
        build(&world, "b1", &["unit/a"]).await;
        build(&world, "b2", &["unit/a", "unit/b"]).await;
        build(&world, "b3", &[]).await;
        world.until_all_ended(HOUR).await;
        let shown = issues(&world);
        let doubled = world.effects().was_doubled("tracker.open_issue");
        assert!(shown.len() == 1 || doubled, "{shown:?}");
        let closed = shown.iter().filter(|(_, state, _)| state == "closed").count();
        assert!(closed == 1 || doubled && closed >= 1, "{shown:?}");
        assert!(world.all_items().await.iter().all(|item| item.result == Some(ResultKind::Resolved)));
    });
    println!("an issue's life: {} effects, {} faults survived", crashed.effects, crashed.runs);
}
