//! Every [`Change`] as one conditional update of the item's row; means what `judge` and `apply` of `collie_core::queue` say.

use super::Write;
use crate::row;
use collie_core::id::Token;
use collie_core::item::{Dimension, DimensionKey, INBOX_LIMIT, InboxEntry, LEASE, Phase, RECENT_LIMIT, ResultKind};
use collie_core::queue::{Belief, Cancel, Change, Commit, Ending, Enqueue, Retry, Update};
use collie_core::time::{SKEW, Timestamp};
use std::collections::BTreeMap;

/// What a commit takes from the holder's row.
const COMMITTED: [&str; 14] = [
    "phase",
    "result",
    "blocked",
    "last_error",
    "attempts",
    "outage",
    "cancel_requested",
    "last_event_at",
    "updated_at",
    "dims",
    "inbox",
    "recent",
    "outbox",
    "facts",
];

/// The update of the item's row. `seen` is the phase the row was seen in, by which a cancel is a request or an end.
pub(crate) fn of_change(change: &Change, seen: Phase) -> Write {
    let mut w = Write::default();
    match change {
        Change::Claim { now, token } => claim(&mut w, *now, token),
        Change::Heartbeat { epoch, until } => heartbeat(&mut w, *epoch, *until),
        Change::Commit(c) => commit(&mut w, c),
        Change::Exit { belief, token, due_at, outbox } => {
            believe(&mut w, belief);
            w.set("outbox", &outbox.iter().map(row::audit_entry).collect::<Vec<_>>());
            exit(&mut w, belief.commit_seq, token, *due_at);
        }
        Change::Release { epoch, commit_seq, token, now, died } => {
            release(&mut w, *epoch, *commit_seq, token, *now);
            if !died {
                w.set("claims", &0);
            }
        }
        Change::Update(u) => update(&mut w, u),
        Change::Retry(r) => retry(&mut w, r),
        Change::Cancel(c) => cancel(&mut w, c, seen),
        Change::Append { entry, now } => append(&mut w, entry, *now),
        Change::Overflow { digest, enqueue: e } => {
            w.require_equal("phase", &Phase::Active);
            unless_seen(&mut w, digest);
            enqueue(&mut w, e);
        }
    }
    w
}

fn claim(w: &mut Write, now: Timestamp, token: &Token) {
    let (until, limit) = (w.name("leased_until"), w.value(&now.before(SKEW)));
    w.require("attribute_exists(pk)");
    w.require(format!("attribute_not_exists({until}) OR {until} < {limit}"));
    let (actionable, yes, due, soon) = (w.name("actionable"), w.value(&true), w.name("due_at"), w.value(&now.after(SKEW)));
    w.require(format!("{actionable} = {yes} OR {due} <= {soon}"));
    w.set("leased_until", &now.after(LEASE));
    w.set("lease_token", token);
    w.increase("lease_epoch");
    w.increase("claims");
}

fn heartbeat(w: &mut Write, epoch: u64, until: Timestamp) {
    w.require_equal("lease_epoch", &epoch);
    let (name, new) = (w.name("leased_until"), w.value(&until));
    w.require(format!("{name} < {new}"));
    w.set("leased_until", &until);
}

fn believe(w: &mut Write, belief: &Belief) {
    w.require_equal("lease_epoch", &belief.epoch);
    w.require_equal("wake_seq", &belief.wake_seq);
    w.require_equal("commit_seq", &belief.commit_seq);
}

fn commit(w: &mut Write, c: &Commit) {
    believe(w, &c.belief);
    w.require_equal("phase", &Phase::Active);
    let next = row::of_item(&c.next);
    for field in COMMITTED {
        w.set_or_remove(field, next.get(row::attribute(field)));
    }
    match c.ending {
        Ending::Exit { due_at } => exit(w, c.belief.commit_seq, &c.token, due_at),
        Ending::Stay => {
            mark_commit(w, c.belief.commit_seq, &c.token);
            if c.progress {
                w.set("claims", &0);
            }
        }
    }
}

fn mark_commit(w: &mut Write, seen: u64, token: &Token) {
    w.set("commit_seq", &(seen + 1));
    w.set("commit_token", token);
}

fn exit(w: &mut Write, seen: u64, token: &Token, due_at: Option<Timestamp>) {
    w.set("actionable", &false);
    w.set_or_remove("due_at", due_at.map(|due| row::json(&due)).as_ref());
    w.set("claims", &0);
    drop_lease(w, seen, token);
}

fn release(w: &mut Write, epoch: u64, commit_seq: u64, token: &Token, now: Timestamp) {
    w.require_equal("lease_epoch", &epoch);
    w.require_equal("commit_seq", &commit_seq);
    w.set("due_at", &now);
    drop_lease(w, commit_seq, token);
}

fn drop_lease(w: &mut Write, seen: u64, token: &Token) {
    w.remove("leased_until");
    w.remove("lease_token");
    mark_commit(w, seen, token);
}

fn update(w: &mut Write, u: &Update) {
    w.require_equal("phase", if u.revives { &Phase::Failed } else { &Phase::Active });
    w.set("content_hash", &u.content_hash);
    w.set("metadata_hash", &u.metadata_hash);
    w.set("target", &u.target);
    w.set("policy_version", &u.policy_version);
    if u.revives {
        revive(w, u.enqueue.now);
    } else {
        w.require_absent("cancel_requested");
    }
    w.set("wanted", &u.wanted);
    start_afresh(w);
    write_of_caller(w, u.rev, &u.token, &row::audit_entry(&u.audit), u.enqueue.now);
    enqueue(w, &u.enqueue);
}

fn retry(w: &mut Write, r: &Retry) {
    let (phase, failed, cancelled) = (w.name("phase"), w.value(&Phase::Failed), w.value(&Phase::Cancelled));
    let (active, blocked, cancel) = (w.value(&Phase::Active), w.name("blocked"), w.name("cancel_requested"));
    w.require(format!(
        "{phase} IN ({failed}, {cancelled}) OR ({phase} = {active} AND attribute_exists({blocked}) AND attribute_not_exists({cancel}))"
    ));
    w.set("wanted", &r.wanted);
    revive(w, r.enqueue.now);
    start_afresh(w);
    write_of_caller(w, r.rev, &r.token, &row::audit_entry(&r.audit), r.enqueue.now);
    enqueue(w, &r.enqueue);
}

fn revive(w: &mut Write, now: Timestamp) {
    w.set("phase", &Phase::Active);
    w.set("retried_at", &now);
    w.set("claims", &0);
    for field in ["result", "blocked", "cancel_requested", "outage"] {
        w.remove(field);
    }
}

fn start_afresh(w: &mut Write) {
    w.set("attempts", &0);
    w.remove("last_error");
}

fn cancel(w: &mut Write, c: &Cancel, seen: Phase) {
    if seen == Phase::Failed {
        w.require_equal("phase", &Phase::Failed);
        w.set("phase", &Phase::Cancelled);
        w.set("result", &ResultKind::Cancelled);
    } else {
        w.require_equal("phase", &Phase::Active);
        w.require_absent("cancel_requested");
        w.set("cancel_requested", &c.request);
    }
    write_of_caller(w, c.rev, &c.token, &row::audit_entry(&c.audit), c.now);
    enqueue(w, &Enqueue { dims: Vec::new(), now: c.now });
}

fn write_of_caller(w: &mut Write, seen: u64, token: &Token, audit: &serde_json::Value, now: Timestamp) {
    w.require_equal("rev", &seen);
    w.set("rev", &(seen + 1));
    w.set("write_token", token);
    w.set("updated_at", &now);
    w.append("outbox", audit.clone());
}

fn append(w: &mut Write, entry: &InboxEntry, now: Timestamp) {
    w.require_equal("phase", &Phase::Active);
    unless_seen(w, &entry.digest);
    for (list, limit) in [("inbox", INBOX_LIMIT), ("recent", RECENT_LIMIT)] {
        let (name, limit) = (w.name(list), w.value(&limit));
        w.require(format!("size({name}) < {limit}"));
    }
    w.append("inbox", row::inbox_entry(entry));
    w.append("recent", row::json(&entry.digest));
    enqueue(w, &Enqueue { dims: Vec::new(), now });
}

fn unless_seen(w: &mut Write, digest: &collie_core::id::Digest) {
    let (name, value) = (w.name("recent"), w.value(digest));
    w.require(format!("NOT contains({name}, {value})"));
}

fn enqueue(w: &mut Write, e: &Enqueue) {
    w.increase("wake_seq");
    w.set("actionable", &true);
    w.set("due_at", &e.now);
    let latest: BTreeMap<&DimensionKey, &Dimension> = e.dims.iter().map(|(key, dimension)| (key, dimension)).collect();
    let (dims, dim_seq, wake_seq) = ("dims", "dim_seq", w.name("wake_seq"));
    for (key, dimension) in latest {
        let (name, value, one) = (w.data_name(key.as_str()), w.value(&row::dimension(dimension)), w.value(&1));
        let (dims, dim_seq) = (w.name(dims), w.name(dim_seq));
        w.sets.push(format!("{dims}.{name} = {value}"));
        w.sets.push(format!("{dim_seq}.{name} = {wake_seq} + {one}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_reads_as_the_protocol_says() {
        let change = Change::Claim { now: Timestamp::from_millis(100_000), token: Token::new("t") };
        let w = of_change(&change, Phase::Active);
        assert_eq!(
            w.condition_expression(),
            "(attribute_exists(pk)) AND (attribute_not_exists(#lu) OR #lu < :v0) AND (#act = :v1 OR #due_at <= :v2)"
        );
        assert_eq!(w.update_expression(), "SET #lu = :v3, #lt = :v4, #le = #le + :v5, #cl = #cl + :v6");
        let number = |name: &str| w.values().unwrap()[name].as_n().unwrap().clone();
        assert_eq!([number(":v0"), number(":v2"), number(":v3")], ["95000", "105000", "190000"]);
    }
}
