//! The due index, lists, timelines, waits and links.

use crate::fixture::{
    HOST, NOW, append, applies, at, born, born_as, branch, cancel, claim, commit, committed, ended, exit, held, id, new_item, release, sha,
};
use crate::stores::Store;
use collie_core::id::{BranchIdentity, ItemId, MrIid, ProjectId};
use collie_core::item::{HostWait, Item, MrLink, Phase, Step, TimelineEntry};
use collie_core::queue::{Change, Ending};
use collie_core::rate::Bucket;
use collie_core::time::Timestamp;
use collie_engine::ports::{DueItem, ListFilter};

async fn due_ids(store: &Store, shard: u8, until: Timestamp, limit: usize) -> Vec<(ItemId, Timestamp)> {
    store.due(shard, until, limit).await.unwrap().into_iter().map(|DueItem { id, due_at }| (id, due_at)).collect()
}

async fn waiting(store: &Store, n: u64, shard: u8, due_at: Option<Timestamp>) -> Item {
    let mut item = new_item(n);
    (item.due_shard, item.due_at) = (shard, due_at);
    born_as(store, item).await
}

pub(crate) async fn due_items_come_oldest_first_up_to_time_and_limit(store: Store) {
    for (n, due) in [(1, Some(at(30))), (2, Some(at(10))), (3, None), (4, Some(at(20))), (5, Some(at(40)))] {
        waiting(&store, n, 0, due).await;
    }
    let all = [(id(2), at(10)), (id(4), at(20)), (id(1), at(30))];
    assert_eq!(due_ids(&store, 0, at(30), 10).await, all);
    assert_eq!(due_ids(&store, 0, at(30), 2).await, all[..2]);
    assert_eq!(due_ids(&store, 0, at(9), 10).await, []);
}

pub(crate) async fn shards_are_apart(store: Store) {
    waiting(&store, 1, 0, Some(NOW)).await;
    waiting(&store, 2, 1, Some(NOW)).await;
    assert_eq!(due_ids(&store, 0, NOW, 10).await, [(id(1), NOW)]);
    assert_eq!(due_ids(&store, 1, NOW, 10).await, [(id(2), NOW)]);
    assert_eq!(due_ids(&store, 2, NOW, 10).await, []);
}

pub(crate) async fn only_enqueue_exit_and_release_move_due_at(store: Store) {
    let far = at(10_000);
    let row = waiting(&store, 1, 0, Some(NOW)).await;
    let row = applies(&store, &row, &claim(9, at(1))).await;
    let row = applies(&store, &row, &Change::Heartbeat { epoch: 1, until: at(200) }).await;
    let row = applies(&store, &row, &committed(commit(&row, 5))).await;
    assert_eq!(due_ids(&store, 0, far, 10).await, [(id(1), NOW)]);
    let row = applies(&store, &row, &append(3)).await;
    assert_eq!(due_ids(&store, 0, far, 10).await, [(id(1), at(3))]);
    let row = applies(&store, &row, &release(&row, 6, at(50))).await;
    assert_eq!(due_ids(&store, 0, far, 10).await, [(id(1), at(50))]);
    let row = applies(&store, &row, &claim(10, at(51))).await;
    let row = applies(&store, &row, &exit(&row, 7, Some(at(60)))).await;
    assert_eq!(due_ids(&store, 0, far, 10).await, [(id(1), at(60))]);
    let row = applies(&store, &row, &cancel(&row, 11)).await;
    assert_eq!(due_ids(&store, 0, far, 10).await, [(id(1), at(4))]);
    let row = applies(&store, &row, &claim(12, at(61))).await;
    let mut last = commit(&row, 8);
    (last.next.phase, last.ending) = (Phase::Cancelled, Ending::Exit { due_at: None });
    applies(&store, &row, &committed(last)).await;
    assert_eq!(due_ids(&store, 0, far, 10).await, []);
}

fn project(id: u64) -> (String, ProjectId) {
    (HOST.into(), ProjectId(id))
}

async fn in_project(store: &Store, n: u64, project: u64) -> Item {
    let mut item = new_item(n);
    item.branch.project_id = ProjectId(project);
    born_as(store, item).await
}

async fn listed(store: &Store, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> (Vec<ItemId>, Option<ItemId>) {
    let page = store.list(filter, before, limit).await.unwrap();
    (page.items.into_iter().map(|item| item.id).collect(), page.next)
}

pub(crate) async fn lists_page_newest_first_over_projects(store: Store) {
    for (n, project) in [(1, 1), (2, 2), (3, 1), (4, 3), (5, 2)] {
        in_project(&store, n, project).await;
    }
    let filter = ListFilter { projects: vec![project(1), project(2), project(1)], ..ListFilter::default() };
    assert_eq!(listed(&store, &filter, None, 3).await, (vec![id(5), id(3), id(2)], Some(id(2))));
    assert_eq!(listed(&store, &filter, Some(&id(2)), 3).await, (vec![id(1)], None));
    assert_eq!(listed(&store, &filter, None, 4).await, (vec![id(5), id(3), id(2), id(1)], None));
    assert_eq!(listed(&store, &ListFilter::default(), None, 3).await, (vec![], None));
    let elsewhere = ListFilter { projects: vec![("other".into(), ProjectId(1))], ..ListFilter::default() };
    assert_eq!(listed(&store, &elsewhere, None, 3).await, (vec![], None));
}

pub(crate) async fn lists_filter_by_every_field(store: Store) {
    born(&store, 1).await;
    ended(&store, 2, Phase::Failed).await;
    let mut other = new_item(3);
    (other.item_type, other.caller_identity) = ("issue".into(), "alice".into());
    born_as(&store, other).await;
    let mut hex = new_item(4);
    hex.branch.source_branch = "0123456789abcdef".into();
    born_as(&store, hex).await;
    let all = ListFilter { projects: vec![project(4242)], ..ListFilter::default() };
    let cases = [
        (ListFilter { phase: Some(Phase::Active), ..all.clone() }, vec![id(4), id(3), id(1)]),
        (ListFilter { phase: Some(Phase::Failed), ..all.clone() }, vec![id(2)]),
        (ListFilter { item_type: Some("issue".into()), ..all.clone() }, vec![id(3)]),
        (ListFilter { caller: Some("ci-bot".into()), ..all.clone() }, vec![id(4), id(2), id(1)]),
        (ListFilter { source_branch: Some(branch(2).source_branch), ..all.clone() }, vec![id(2)]),
        (ListFilter { source_branch: Some("0123456789abcdef".into()), ..all.clone() }, vec![id(4)]),
        (ListFilter { caller: Some("alice".into()), phase: Some(Phase::Failed), ..all.clone() }, vec![]),
    ];
    for (filter, ids) in cases {
        assert_eq!(listed(&store, &filter, None, 10).await, (ids, None), "{filter:?}");
    }
    let active = ListFilter { phase: Some(Phase::Active), ..all };
    assert_eq!(listed(&store, &active, None, 2).await, (vec![id(4), id(3)], Some(id(3))));
    assert_eq!(listed(&store, &active, Some(&id(3)), 2).await, (vec![id(1)], None));
}

pub(crate) async fn a_list_shows_the_item_as_it_is_now(store: Store) {
    let row = held(&store, 1).await;
    let after = applies(&store, &row, &append(3)).await;
    let filter = ListFilter { projects: vec![project(4242)], ..ListFilter::default() };
    assert_eq!(store.list(&filter, None, 10).await.unwrap().items, [after]);
}

fn entry(seconds: u64, epoch: u64) -> TimelineEntry {
    TimelineEntry {
        at: at(seconds),
        epoch,
        actor: "execute".into(),
        steps: vec![Step { action: "ensure_mr".into(), outcome: "opened !7".into(), gitlab_calls: 4, sha: Some(sha(1)) }],
        waits_for: "pipeline".into(),
        gitlab_calls: 4,
        write_units: 12,
    }
}

pub(crate) async fn timelines_page_oldest_first(store: Store) {
    born(&store, 1).await;
    for (seconds, epoch) in [(20, 3), (10, 2), (10, 1), (30, 10)] {
        store.append_timeline(&id(1), &entry(seconds, epoch)).await.unwrap();
    }
    store.append_timeline(&id(2), &entry(1, 1)).await.unwrap();
    let first = store.timeline(&id(1), None, 3).await.unwrap();
    assert_eq!(first.entries, [entry(10, 1), entry(10, 2), entry(20, 3)]);
    let rest = store.timeline(&id(1), first.next.as_deref(), 3).await.unwrap();
    assert_eq!((rest.entries, rest.next), (vec![entry(30, 10)], None));
    assert_eq!(store.timeline(&id(1), Some("zzz"), 3).await.unwrap().entries, []);
    assert_eq!(store.timeline(&id(1), Some(""), 9).await.unwrap().entries.len(), 4);
    assert_eq!(store.timeline(&id(9), None, 3).await.unwrap().entries, []);
}

pub(crate) async fn a_timeline_keeps_the_first_of_one_run(store: Store) {
    store.append_timeline(&id(1), &entry(10, 1)).await.unwrap();
    store.append_timeline(&id(1), &entry(10, 1)).await.unwrap();
    store.append_timeline(&id(1), &TimelineEntry { waits_for: "approval".into(), ..entry(10, 1) }).await.unwrap();
    assert_eq!(store.timeline(&id(1), None, 9).await.unwrap().entries, [entry(10, 1)]);
}

pub(crate) async fn a_host_keeps_the_longer_wait(store: Store) {
    let wait = |seconds: u64| HostWait { until: at(seconds), reason: format!("{seconds} s") };
    for (set, kept) in [(20, 20), (10, 20), (20, 20), (30, 30)] {
        store.set_host_wait(HOST, &wait(set)).await.unwrap();
        assert_eq!(store.host_wait(HOST).await, Ok(Some(wait(kept))));
    }
    assert_eq!(store.host_wait("other").await, Ok(None));
}

pub(crate) async fn a_bucket_is_replaced_only_where_it_is_as_it_was_read(store: Store) {
    let bucket = |parts: u64, seconds: u64| Bucket { parts, at: at(seconds) };
    assert_eq!(store.bucket("a").await, Ok(None));
    assert_eq!(store.replace_bucket("a", None, bucket(5_000, 1)).await, Ok(true));
    assert_eq!(store.replace_bucket("a", None, bucket(9_000, 1)).await, Ok(false));
    assert_eq!(store.replace_bucket("a", Some(bucket(5_000, 2)), bucket(9_000, 2)).await, Ok(false));
    assert_eq!(store.replace_bucket("a", Some(bucket(5_000, 1)), bucket(4_000, 2)).await, Ok(true));
    assert_eq!((store.bucket("a").await, store.bucket("b").await), (Ok(Some(bucket(4_000, 2))), Ok(None)));
}

pub(crate) async fn a_merge_request_belongs_to_the_latest_generation(store: Store) {
    let link = |n: u64, generation: u64| MrLink { item_id: id(n), generation };
    let steps =
        [(link(1, 2), link(1, 2)), (link(2, 1), link(1, 2)), (link(2, 2), link(1, 2)), (link(2, 3), link(2, 3)), (link(2, 1), link(2, 1))];
    for (set, kept) in steps {
        store.link_mr(&branch(1), MrIid(7), &set).await.unwrap();
        assert_eq!(store.mr_link(HOST, ProjectId(4242), MrIid(7)).await, Ok(Some(kept)));
    }
    assert_eq!(store.mr_link(HOST, ProjectId(4242), MrIid(8)).await, Ok(None));
}

pub(crate) async fn names_with_separators_stay_apart(store: Store) {
    let names = ["a#b", "a%23b", "a%b", "a%25b", "a/b"];
    for (n, name) in (1..).zip(names) {
        let mut item = new_item(n);
        item.branch = BranchIdentity { host: format!("{name}:8443"), source_branch: name.into(), ..item.branch };
        born_as(&store, item).await;
    }
    for (n, name) in (1..).zip(names) {
        let branch = BranchIdentity { host: format!("{name}:8443"), source_branch: name.into(), ..branch(n) };
        assert_eq!(store.head(&branch).await.unwrap().unwrap().item_id, id(n));
        let filter = ListFilter { projects: vec![(branch.host, branch.project_id)], ..ListFilter::default() };
        assert_eq!(listed(&store, &filter, None, 9).await, (vec![id(n)], None));
    }
}

pub(crate) async fn what_is_absent_reads_as_none(store: Store) {
    assert_eq!(store.item(&id(1)).await, Ok(None));
    assert_eq!(store.content(&id(1), 1).await, Ok(None));
    assert_eq!(store.head(&branch(1)).await, Ok(None));
    assert_eq!(store.due(0, at(1), 5).await, Ok(vec![]));
}
