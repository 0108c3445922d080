//! What must hold at the end of every story, whatever went wrong on the way. Each check names its invariant.

use crate::world::{CANARY, World};
use collie_core::item::Item;
use collie_core::mr::facts::Facts;
use collie_core::mr::trailer::Trailer;
use gitlab_sim::{DEMO_BOT_TOKEN, DEMO_PROJECT_ID};
use std::collections::BTreeMap;
use std::io::Read as _;

/// Writes to GitLab that one story may make at most; the longest one needs fewer than a third of them.
const MAX_FORGE_WRITES: usize = 60;

impl World {
    /// Checks every invariant.
    ///
    /// # Panics
    /// Where one is broken, with what one would see.
    pub async fn finish(&self) {
        let items = self.all_items().await;
        for item in &items {
            self.has_a_next_look(item);
            self.is_audited(item);
        }
        self.decisions_can_be_made_again();
        self.made_each_commit_once();
        self.made_one_merge_request_per_life(&items);
        self.merged_only_what_was_validated();
        self.wrote_boundedly(items.len());
        self.kept_secrets(&items);
    }

    /// INV-10: an active item is to be looked at again; a settled terminal one is not.
    fn has_a_next_look(&self, item: &Item) {
        if item.is_active() {
            assert!(item.due_at.is_some(), "INV-10: an active item without a next look: {item:?}");
        } else {
            assert!(!item.actionable && item.leased_until.is_none(), "INV-10: a terminal item is still held: {item:?}");
        }
    }

    /// INV-8: every API write and every holder write that recorded something is in the archive.
    fn is_audited(&self, item: &Item) {
        let shipped = self.shipped_entries();
        for rev in 1..=item.rev {
            let id = format!("{}/rev/{rev}", item.id);
            assert!(shipped.contains_key(&id) || item.outbox.iter().any(|e| e.id == id), "INV-8: no audit entry {id}");
        }
        if !item.is_active() && item.due_at.is_none() {
            assert!(item.outbox.is_empty(), "INV-8: a settled item keeps entries: {:?}", item.outbox);
            let ended = |entry: &&serde_json::Value| entry["new_state"]["phase"] == item.phase.as_str();
            assert!(shipped.values().filter(|e| e["id"].as_str().is_some_and(|id| id.starts_with(item.id.as_str()))).any(|e| ended(&e)));
        }
    }

    fn shipped_entries(&self) -> BTreeMap<String, serde_json::Value> {
        let mut entries = BTreeMap::new();
        for (key, bytes) in self.archive().objects() {
            if key.ends_with(".ndjson.gz") {
                let mut text = String::new();
                flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
                for line in text.lines() {
                    let entry: serde_json::Value = serde_json::from_str(line).unwrap();
                    entries.insert(entry["id"].as_str().unwrap().to_owned(), entry);
                }
            }
        }
        entries
    }

    /// INV-8: an archived decision names its snapshot, and comes out the same when it is made again. One that a crash loses changed
    /// nothing.
    fn decisions_can_be_made_again(&self) {
        let entries = self.shipped_entries();
        let decisions: Vec<_> = entries.values().filter(|entry| entry["event_type"] == "decision").collect();
        assert!(!decisions.is_empty() || self.deaths() > 0, "INV-8: no decision is archived");
        for entry in decisions {
            let item: Item = serde_json::from_value(entry["snapshot"].clone()).unwrap();
            let at = serde_json::from_value(entry["ts"].clone()).unwrap();
            let again = collie_core::mr::decide::decide(&item, at).unwrap();
            assert_eq!(serde_json::to_value(&again.next).unwrap(), entry["next"], "INV-8: {}", entry["id"]);
            assert_eq!(serde_json::to_value(&again.report).unwrap(), entry["report"], "INV-8: {}", entry["id"]);
        }
    }

    /// INV-9: one commit for each build, whatever its branch became.
    fn made_each_commit_once(&self) {
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut refs = self.sim().branches(DEMO_PROJECT_ID);
        refs.push("main".into());
        for name in refs {
            for commit in self.sim().commits(DEMO_PROJECT_ID, &name) {
                let Some(trailer) = Trailer::find(&commit.message) else { continue };
                let shas = seen.entry(format!("{}/{}/{}", trailer.identity, trailer.generation, trailer.build)).or_default();
                if !shas.contains(&commit.sha) {
                    shas.push(commit.sha);
                }
            }
        }
        for (build, shas) in seen {
            assert_eq!(shas.len(), 1, "INV-9: build {build} was committed more than once: {shas:?}");
        }
    }

    /// INV-9: one merge request per life (a retried one may have to leave a closed one behind), and one note on each. GitLab knows no idempotency key for notes: one that a proxy
    /// sends twice is there twice.
    fn made_one_merge_request_per_life(&self, items: &[Item]) {
        let mrs = self.sim().merge_requests(DEMO_PROJECT_ID);
        let with_mr = items.iter().filter(|item| Facts::of(item).unwrap().mr.is_some()).count();
        let lives = items.len() + items.iter().filter(|item| item.retried_at.is_some()).count();
        assert!(mrs.len() <= lives && with_mr <= mrs.len(), "INV-9: {} merge requests for {lives} lives", mrs.len());
        for mr in &mrs {
            let notes = self.sim().notes(DEMO_PROJECT_ID, mr.iid);
            let dashboards = notes.iter().filter(|note| note.body.contains("collie:dashboard:")).count();
            let most = 1 + usize::from(self.effects().was_doubled("forge.add_note"));
            assert!(dashboards <= most, "INV-9: {dashboards} dashboard notes on !{}", mr.iid);
        }
    }

    /// INV-2: what Collie merged had a successful pipeline of its own head.
    fn merged_only_what_was_validated(&self) {
        for mr in self.sim().merge_requests(DEMO_PROJECT_ID).iter().filter(|mr| mr.merge_user.as_deref() == Some("collie-bot")) {
            let sha = mr.sha.as_deref().unwrap_or_default();
            let pipelines = self.sim().pipelines(DEMO_PROJECT_ID);
            let green = pipelines.iter().any(|p| p.source_sha == sha && p.status == gitlab_sim::Status::Success);
            assert!(green, "INV-2: !{} was merged at {sha} without a green pipeline", mr.iid);
        }
    }

    /// INV-11: no schedule makes unbounded writes.
    fn wrote_boundedly(&self, lives: usize) {
        let writes = self.sim().journal().iter().filter(|call| call.write && call.applied && call.path.contains("/projects/")).count();
        assert!(writes <= MAX_FORGE_WRITES * lives.max(1), "INV-11: {writes} writes to GitLab");
    }

    /// INV-12: no file content and no token in rows, notes, timeline or audit.
    fn kept_secrets(&self, items: &[Item]) {
        let mut texts: Vec<String> = items.iter().map(|item| serde_json::to_string(item).unwrap()).collect();
        texts.extend(self.shipped_entries().values().map(ToString::to_string));
        for mr in self.sim().merge_requests(DEMO_PROJECT_ID) {
            texts.extend(self.sim().notes(DEMO_PROJECT_ID, mr.iid).into_iter().map(|note| note.body));
        }
        for text in texts {
            assert!(!text.contains(CANARY) && !text.contains(DEMO_BOT_TOKEN), "INV-12: a secret or file content in {text}");
        }
    }
}
