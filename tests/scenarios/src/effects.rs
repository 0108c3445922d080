//! Every effect of Collie passes here: counted, and struck by a fault where a story asks for it.
//!
//! A process is what a crash kills: its futures are dropped, its memory is gone, what it stored stays. [`Process`] wraps the
//! ports of one; a crash never resumes.

mod tracking;

use crate::schedule;
use async_trait::async_trait;
use collie_core::error::{Class, Failure};
use collie_core::id::{BranchIdentity, ItemId, JobId, MrIid, NoteId, PipelineId, ProjectId, Sha};
use collie_core::item::{BranchHead, Content, HostWait, Item, MrLink, TimelineEntry};
use collie_core::mr::ticket::MergeTicket;
use collie_core::mr::train::CarState;
use collie_core::mr::view::{Branch, ChangedPaths, Commit, Job, MergeRequest, Note};
use collie_core::policy::{FileActions, Inspected};
use collie_core::queue::{Change, Creation};
use collie_core::time::Timestamp;
use collie_engine::ports::{
    Archive, ChangeError, Created, DueItem, Forge, Items, JobRetry, ListFilter, ListPage, MergeOptions, MrEdit, NewCommit, NewMergeRequest,
    ProjectRef, Stored, TimelinePage, TraceTail, Tree,
};
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::Notify;

/// How an effect goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies before it.
    CrashBefore,
    /// The process dies after it, before it hears the answer.
    CrashAfter,
    /// It happens twice; the second answer is heard.
    Duplicate,
    /// It happens, and the answer is lost.
    TimedOutButApplied,
}

impl Fault {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::CrashBefore, Self::CrashAfter, Self::Duplicate, Self::TimedOutButApplied];
}

/// Whether an interjection comes before or after the effect it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Before it.
    Before,
    /// After it.
    After,
}

struct Interjection {
    on: String,
    when: When,
    act: BoxFuture<'static, ()>,
}

#[derive(Default)]
struct Plan {
    log: Vec<String>,
    strike: Option<(usize, Fault)>,
    struck: bool,
    deadly: Option<String>,
    hold: Option<String>,
    held: Vec<HeldCommit>,
    interjections: Vec<Interjection>,
    items: Vec<ItemId>,
    claims_under_way: u32,
    next: Option<(String, Fault)>,
    merges: Vec<Sha>,
    gullible: bool,
    pushed: Option<Sha>,
    judged: Option<Sha>,
}

/// A push that left its process and has not reached GitLab.
#[derive(Debug, Clone)]
struct HeldCommit {
    project: ProjectRef,
    branch: String,
    start_sha: Sha,
    message: String,
    actions: Inspected<FileActions>,
    pending: Vec<usize>,
    force: bool,
}

/// The effects of one story.
#[derive(Clone, Default)]
pub struct Effects(Arc<Mutex<Plan>>);

/// What happens to the next effect.
enum Fate {
    Go,
    Strike(Fault),
    Hold,
}

impl Effects {
    /// Effects of which the `at`th, from 0, is struck.
    #[must_use]
    pub fn striking(at: usize, fault: Fault) -> Self {
        let effects = Self::default();
        effects.plan().strike = Some((at, fault));
        effects
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap()
    }

    /// The effects so far, by name.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.plan().log.clone()
    }

    /// Whether the fault struck.
    #[must_use]
    pub fn has_struck(&self) -> bool {
        self.plan().struck
    }

    /// Whether a process, or a proxy before GitLab, sent this effect twice.
    #[must_use]
    pub fn was_doubled(&self, name: &str) -> bool {
        let plan = self.plan();
        matches!(plan.strike, Some((at, Fault::Duplicate)) if plan.struck && plan.log[at] == name)
    }

    /// Every item that was created.
    #[must_use]
    pub fn items(&self) -> Vec<ItemId> {
        self.plan().items.clone()
    }

    /// The next effect of this name is struck.
    pub fn strike_next(&self, name: &str, fault: Fault) {
        self.plan().next = Some((name.to_owned(), fault));
    }

    /// Claims that have left their process and not arrived.
    #[must_use]
    pub fn claims_under_way(&self) -> u32 {
        self.plan().claims_under_way
    }

    /// The commits that merge calls named, in order.
    #[must_use]
    pub fn merges(&self) -> Vec<Sha> {
        self.plan().merges.clone()
    }

    /// From now on a head counts as Collie's by its trailer alone: whatever tree it has, the forge shows the last one that Collie pushed.
    pub fn trust_trailers(&self) {
        self.plan().gullible = true;
    }

    /// The commit whose tree is shown where this one's is asked for.
    fn shown_for(&self, at: &Sha) -> Sha {
        let plan = self.plan();
        let lies = plan.gullible && plan.judged.as_ref() == Some(at);
        plan.pushed.clone().filter(|_| lies).unwrap_or_else(|| at.clone())
    }

    /// From now on, every effect of this name kills its process.
    pub fn kill_at(&self, name: &str) {
        self.plan().deadly = Some(name.to_owned());
    }

    /// The next push is held: it has not happened, its process hears nothing, and it happens when it is released.
    pub fn hold_next_push(&self) {
        self.plan().hold = Some("forge.create_commit".to_owned());
    }

    /// Lets something happen once, before or after the next effect of this name.
    pub fn interject(&self, on: &str, when: When, act: BoxFuture<'static, ()>) {
        self.plan().interjections.push(Interjection { on: on.to_owned(), when, act });
    }

    async fn interjections(&self, name: &str, when: When) {
        loop {
            let act = {
                let mut plan = self.plan();
                let at = plan.interjections.iter().position(|i| i.on == name && i.when == when);
                at.map(|at| plan.interjections.remove(at).act)
            };
            let Some(act) = act else { return };
            act.await;
        }
    }

    fn fate(&self, name: &str) -> Fate {
        let mut plan = self.plan();
        let index = plan.log.len();
        plan.log.push(name.to_owned());
        if plan.deadly.as_deref() == Some(name) {
            return Fate::Strike(Fault::CrashBefore);
        }
        if let Some((_, fault)) = plan.next.take_if(|(next, _)| next == name) {
            plan.struck = true;
            return Fate::Strike(fault);
        }
        match plan.strike {
            Some((at, fault)) if at == index => {
                plan.struck = true;
                Fate::Strike(fault)
            }
            _ if plan.hold.as_deref() == Some(name) => {
                plan.hold = None;
                Fate::Hold
            }
            _ => Fate::Go,
        }
    }

    fn holds_next(&self) -> bool {
        let plan = self.plan();
        plan.hold.is_some() && plan.strike.is_none_or(|(at, _)| at != plan.log.len())
    }

    fn remember(&self, id: &ItemId) {
        let mut plan = self.plan();
        if !plan.items.contains(id) {
            plan.items.push(id.clone());
        }
    }

    /// Lets held pushes reach GitLab; nobody hears the answers.
    pub async fn release_held(&self, forge: &dyn Forge) {
        let held = std::mem::take(&mut self.plan().held);
        for push in held {
            let commit = NewCommit {
                branch: &push.branch,
                start_sha: &push.start_sha,
                message: &push.message,
                actions: &push.actions,
                pending: &push.pending,
                force: push.force,
            };
            forge.create_commit(&push.project, commit).await.ok();
        }
    }
}

/// One process: the ports it uses, and its death.
#[derive(Clone)]
pub struct Process<P: ?Sized> {
    effects: Effects,
    death: Arc<Notify>,
    inner: Arc<P>,
}

impl<P: ?Sized> Process<P> {
    /// A port of the process that dies by `death`.
    pub fn new(effects: &Effects, death: &Arc<Notify>, inner: Arc<P>) -> Self {
        Self { effects: effects.clone(), death: Arc::clone(death), inner }
    }

    async fn die<T>(&self) -> T {
        self.death.notify_one();
        futures::future::pending().await
    }

    /// Performs an effect, or what its fate makes of it; `lost` is what a caller hears whose answer is lost.
    async fn effect<T, F: Future<Output = T>>(&self, name: &str, perform: impl Fn() -> F, lost: impl FnOnce() -> T) -> T {
        schedule::turn().await;
        self.effects.interjections(name, When::Before).await;
        let heard = match self.effects.fate(name) {
            Fate::Go => perform().await,
            Fate::Hold => lost(),
            Fate::Strike(Fault::CrashBefore) => self.die().await,
            Fate::Strike(Fault::CrashAfter) => {
                perform().await;
                self.effects.interjections(name, When::After).await;
                self.die().await
            }
            Fate::Strike(Fault::Duplicate) => {
                perform().await;
                perform().await
            }
            Fate::Strike(Fault::TimedOutButApplied) => {
                perform().await;
                lost()
            }
        };
        self.effects.interjections(name, When::After).await;
        heard
    }
}

/// A claim that has left its process: where time passes before it arrives, its lease may have run out by then.
struct ClaimUnderWay(Effects);

impl ClaimUnderWay {
    fn of(effects: &Effects) -> Self {
        effects.plan().claims_under_way += 1;
        Self(effects.clone())
    }
}

impl Drop for ClaimUnderWay {
    fn drop(&mut self) {
        self.0.plan().claims_under_way -= 1;
    }
}

fn unheard_read<T>() -> Result<T, Failure> {
    Err(Failure::new(Class::Transient { answered: false }, "timed_out", "the answer was lost"))
}

fn unheard_write<T>() -> Result<T, Failure> {
    Err(unheard())
}

fn unheard() -> Failure {
    Failure::new(Class::Indeterminate, "timed_out", "the answer was lost")
}

#[async_trait]
impl Items for Process<dyn Items> {
    async fn create(&self, creation: &Creation) -> Result<Created, Failure> {
        self.effects.remember(&creation.item.id);
        self.effect("items.create", || self.inner.create(creation), unheard_write).await
    }

    async fn change(&self, id: &ItemId, change: &Change) -> Result<Item, ChangeError> {
        if let Change::Commit(commit) = change
            && let Some(successor) = &commit.successor
        {
            self.effects.remember(&successor.item.id);
        }
        let _under_way = matches!(change, Change::Claim { .. }).then(|| ClaimUnderWay::of(&self.effects));
        let name = format!("items.{}", change.name());
        self.effect(&name, || self.inner.change(id, change), || Err(ChangeError::Failed(unheard()))).await
    }

    async fn item(&self, id: &ItemId) -> Result<Option<Item>, Failure> {
        schedule::turn().await;
        self.inner.item(id).await
    }

    async fn content(&self, id: &ItemId, rev: u64) -> Result<Option<Content>, Failure> {
        schedule::turn().await;
        self.inner.content(id, rev).await
    }

    async fn head(&self, branch: &BranchIdentity) -> Result<Option<BranchHead>, Failure> {
        schedule::turn().await;
        self.inner.head(branch).await
    }

    async fn link_mr(&self, branch: &BranchIdentity, iid: MrIid, link: &MrLink) -> Result<(), Failure> {
        self.effect("items.link_mr", || self.inner.link_mr(branch, iid, link), unheard_write).await
    }

    async fn mr_link(&self, host: &str, project: ProjectId, iid: MrIid) -> Result<Option<MrLink>, Failure> {
        schedule::turn().await;
        self.inner.mr_link(host, project, iid).await
    }

    async fn due(&self, shard: u8, until: Timestamp, limit: usize) -> Result<Vec<DueItem>, Failure> {
        self.inner.due(shard, until, limit).await
    }

    async fn list(&self, filter: &ListFilter, before: Option<&ItemId>, limit: usize) -> Result<ListPage, Failure> {
        self.inner.list(filter, before, limit).await
    }

    async fn append_timeline(&self, id: &ItemId, entry: &TimelineEntry) -> Result<(), Failure> {
        self.effect("items.append_timeline", || self.inner.append_timeline(id, entry), unheard_write).await
    }

    async fn timeline(&self, id: &ItemId, after: Option<&str>, limit: usize) -> Result<TimelinePage, Failure> {
        self.inner.timeline(id, after, limit).await
    }

    async fn host_wait(&self, host: &str) -> Result<Option<HostWait>, Failure> {
        schedule::turn().await;
        self.inner.host_wait(host).await
    }

    async fn set_host_wait(&self, host: &str, wait: &HostWait) -> Result<(), Failure> {
        self.effect("items.set_host_wait", || self.inner.set_host_wait(host, wait), unheard_write).await
    }
}

#[async_trait]
impl Archive for Process<dyn Archive> {
    async fn put_new(&self, key: &str, bytes: Vec<u8>) -> Result<Stored, Failure> {
        self.effect("archive.put_new", || self.inner.put_new(key, bytes.clone()), unheard_write).await
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        schedule::turn().await;
        self.inner.get(key).await
    }
}

#[async_trait]
impl Forge for Process<dyn Forge> {
    async fn branch(&self, project: &ProjectRef, name: &str) -> Result<Option<Branch>, Failure> {
        self.effect("forge.branch", || self.inner.branch(project, name), unheard_read).await
    }

    async fn tree(&self, project: &ProjectRef, at: &Sha, directory: &str) -> Result<Tree, Failure> {
        let at = self.effects.shown_for(at);
        self.effect("forge.tree", || self.inner.tree(project, &at, directory), unheard_read).await
    }

    async fn commit(&self, project: &ProjectRef, sha: &Sha) -> Result<Option<Commit>, Failure> {
        self.effects.plan().judged = Some(sha.clone());
        self.effect("forge.commit", || self.inner.commit(project, sha), unheard_read).await
    }

    async fn file_sha256(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<String>, Failure> {
        self.effect("forge.file_sha256", || self.inner.file_sha256(project, at, path), unheard_read).await
    }

    async fn file(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        self.effect("forge.file", || self.inner.file(project, at, path), unheard_read).await
    }

    async fn merge_base(&self, project: &ProjectRef, a: &Sha, b: &Sha) -> Result<Option<Sha>, Failure> {
        self.effect("forge.merge_base", || self.inner.merge_base(project, a, b), unheard_read).await
    }

    async fn changed_paths(&self, project: &ProjectRef, from: &Sha, to: &Sha) -> Result<ChangedPaths, Failure> {
        if self.effects.plan().gullible {
            return Ok(ChangedPaths::Complete(Vec::new()));
        }
        self.effect("forge.changed_paths", || self.inner.changed_paths(project, from, to), unheard_read).await
    }

    async fn create_commit(&self, project: &ProjectRef, c: NewCommit<'_>) -> Result<Sha, Failure> {
        let again = || NewCommit {
            branch: c.branch,
            start_sha: c.start_sha,
            message: c.message,
            actions: c.actions,
            pending: c.pending,
            force: c.force,
        };
        if self.effects.holds_next() {
            let held = HeldCommit {
                project: project.clone(),
                branch: c.branch.to_owned(),
                start_sha: c.start_sha.clone(),
                message: c.message.to_owned(),
                actions: c.actions.clone(),
                pending: c.pending.to_vec(),
                force: c.force,
            };
            self.effects.plan().held.push(held);
        }
        let made = self.effect("forge.create_commit", || self.inner.create_commit(project, again()), unheard_write).await;
        if let Ok(sha) = &made {
            self.effects.plan().pushed = Some(sha.clone());
        }
        made
    }

    async fn replaced_by(&self, project: &ProjectRef, branch: &str, head: &Sha) -> Result<Option<Sha>, Failure> {
        self.effect("forge.replaced_by", || self.inner.replaced_by(project, branch, head), unheard_read).await
    }

    async fn delete_branch(&self, project: &ProjectRef, name: &str) -> Result<(), Failure> {
        self.effect("forge.delete_branch", || self.inner.delete_branch(project, name), unheard_write).await
    }

    async fn merge_request(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<MergeRequest>, Failure> {
        self.effect("forge.merge_request", || self.inner.merge_request(project, iid), unheard_read).await
    }

    async fn open_merge_requests(&self, project: &ProjectRef, source_branch: &str) -> Result<Vec<MergeRequest>, Failure> {
        self.effect("forge.open_merge_requests", || self.inner.open_merge_requests(project, source_branch), unheard_read).await
    }

    async fn open_merge_request(&self, project: &ProjectRef, mr: &NewMergeRequest) -> Result<MergeRequest, Failure> {
        self.effect("forge.open_merge_request", || self.inner.open_merge_request(project, mr), unheard_write).await
    }

    async fn edit_merge_request(&self, project: &ProjectRef, iid: MrIid, edit: &MrEdit) -> Result<MergeRequest, Failure> {
        self.effect("forge.edit_merge_request", || self.inner.edit_merge_request(project, iid, edit), unheard_write).await
    }

    async fn merge(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, options: MergeOptions) -> Result<MergeRequest, Failure> {
        self.effects.plan().merges.push(ticket.sha().clone());
        self.effect("forge.merge", || self.inner.merge(project, iid, ticket, options), unheard_write).await
    }

    async fn join_merge_train(&self, project: &ProjectRef, iid: MrIid, ticket: &MergeTicket, squash: bool) -> Result<(), Failure> {
        self.effects.plan().merges.push(ticket.sha().clone());
        self.effect("forge.join_merge_train", || self.inner.join_merge_train(project, iid, ticket, squash), unheard_write).await
    }

    async fn leave_merge_train(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure> {
        self.effect("forge.leave_merge_train", || self.inner.leave_merge_train(project, iid), unheard_write).await
    }

    async fn merge_train_car(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<CarState>, Failure> {
        self.effect("forge.merge_train_car", || self.inner.merge_train_car(project, iid), unheard_read).await
    }

    async fn merges_by_train(&self, project: &ProjectRef) -> Result<bool, Failure> {
        self.effect("forge.merges_by_train", || self.inner.merges_by_train(project), unheard_read).await
    }

    async fn start_merge_request_pipeline(&self, project: &ProjectRef, iid: MrIid) -> Result<(), Failure> {
        let start = || self.inner.start_merge_request_pipeline(project, iid);
        self.effect("forge.start_merge_request_pipeline", start, unheard_write).await
    }

    async fn approvals_left(&self, project: &ProjectRef, iid: MrIid) -> Result<Option<u64>, Failure> {
        self.effect("forge.approvals_left", || self.inner.approvals_left(project, iid), unheard_read).await
    }

    async fn notes(&self, project: &ProjectRef, iid: MrIid) -> Result<Vec<Note>, Failure> {
        self.effect("forge.notes", || self.inner.notes(project, iid), unheard_read).await
    }

    async fn add_note(&self, project: &ProjectRef, iid: MrIid, body: &str) -> Result<Note, Failure> {
        self.effect("forge.add_note", || self.inner.add_note(project, iid, body), unheard_write).await
    }

    async fn edit_note(&self, project: &ProjectRef, iid: MrIid, note: NoteId, body: &str) -> Result<(), Failure> {
        self.effect("forge.edit_note", || self.inner.edit_note(project, iid, note, body), unheard_write).await
    }

    async fn jobs(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        self.effect("forge.jobs", || self.inner.jobs(project, pipeline), unheard_read).await
    }

    async fn jobs_with_retried(&self, project: &ProjectRef, pipeline: PipelineId) -> Result<Vec<Job>, Failure> {
        self.effect("forge.jobs_with_retried", || self.inner.jobs_with_retried(project, pipeline), unheard_read).await
    }

    async fn retry_job(&self, project: &ProjectRef, job: JobId) -> Result<JobRetry, Failure> {
        self.effect("forge.retry_job", || self.inner.retry_job(project, job), unheard_write).await
    }

    async fn trace_tail(&self, project: &ProjectRef, job: JobId, max_bytes: usize) -> Result<Option<TraceTail>, Failure> {
        self.effect("forge.trace_tail", || self.inner.trace_tail(project, job, max_bytes), unheard_read).await
    }
}
