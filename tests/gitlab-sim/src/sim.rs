//! The handle: one simulator, cheap to clone, and what tests do to it behind the API's back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::access::{Role, Token, User};
use crate::call::ApiRequest;
use crate::clock::{Clock, Timing};
use crate::deliveries::{Delivery, HookHabits};
use crate::faults::{Fault, Step};
use crate::git::{Mode, Tree};
use crate::journal::JournalEntry;
use crate::personas::Persona;
use crate::pipelines::JobRule;
use crate::project::{Project, ProjectSettings, ProtectedBranch};
use crate::pushes::Via;
use crate::rate_limits::RateLimit;
use crate::reply::Reply;
use crate::repo::{CommitDraft, Write};
use crate::state::State;

/// A model of GitLab. Clones share one state.
#[derive(Clone, Debug)]
pub struct Sim {
    state: Arc<Mutex<State>>,
}

impl Sim {
    /// An empty simulator.
    pub fn new(clock: Clock) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(clock))) }
    }

    /// The state, with all work done that the wall clock makes due.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.tick();
        state
    }

    // Time.

    /// Now, in ms since the epoch.
    pub fn now_ms(&self) -> u64 {
        self.lock().now_ms
    }

    /// Moves a manual clock to a time and runs what is due by then, in order. Never backwards.
    pub fn advance_to(&self, ms: u64) {
        self.lock().run_until(ms);
    }

    /// Moves a manual clock on.
    pub fn advance_by(&self, ms: u64) {
        let mut state = self.lock();
        let until_ms = state.now_ms + ms;
        state.run_until(until_ms);
    }

    /// When the next background work is due.
    pub fn next_event_at(&self) -> Option<u64> {
        self.lock().next_task_at()
    }

    /// Runs background work, jumping from one to the next, until none is left or `limit_ms` has passed.
    pub fn settle(&self, limit_ms: u64) {
        let mut state = self.lock();
        let end_ms = state.now_ms + limit_ms;
        while let Some(at) = state.next_task_at().filter(|at| *at <= end_ms) {
            state.run_until(at);
        }
    }

    /// Changes the delays of background work.
    pub fn set_timing(&self, change: impl FnOnce(&mut Timing)) {
        change(&mut self.lock().timing);
    }

    /// Sets the version modelled, such as `18.11.0-ee`; some answers differ by it.
    pub fn set_version(&self, version: &str) {
        self.lock().version = version.to_owned();
    }

    /// Sets the URL that links in answers start with.
    pub fn set_base_url(&self, url: &str) {
        self.lock().base_url = url.trim_end_matches('/').to_owned();
    }

    /// The URL that links in answers start with.
    pub fn base_url(&self) -> String {
        self.lock().base_url.clone()
    }

    // Calls.

    /// Makes an API call in process, with faults. `None`: the connection was dropped or the call is held.
    pub fn call(&self, request: ApiRequest) -> Option<Reply> {
        match self.begin(request) {
            Step::Reply(reply) => Some(reply),
            Step::Drop | Step::Wait(_) => None,
        }
    }

    pub(crate) fn begin(&self, request: ApiRequest) -> Step {
        self.lock().begin(request)
    }

    // Users and tokens.

    /// A token to begin with: an administrator's, if there is one.
    pub fn any_token(&self) -> Option<String> {
        let state = self.lock();
        let of_admin = |token: &&Token| state.users.get(&token.user).is_some_and(|user| user.admin);
        let mut tokens = state.tokens.iter();
        let found = tokens.find(|(_, token)| of_admin(token)).or_else(|| state.tokens.iter().next());
        found.map(|(text, _)| text.clone())
    }

    /// Adds a user, or finds the one of that name; the answer is the id.
    pub fn add_user(&self, username: &str, name: &str) -> u64 {
        self.lock().add_user(username, name, false)
    }

    /// Adds a bot user.
    pub fn add_bot(&self, username: &str, name: &str) -> u64 {
        let id = self.add_user(username, name);
        if let Some(user) = self.lock().users.get_mut(&id) {
            user.bot = true;
        }
        id
    }

    /// Adds an administrator.
    pub fn add_admin(&self, username: &str, name: &str) -> u64 {
        self.lock().add_user(username, name, true)
    }

    /// Gives a user a token with scopes such as `api` or `read_api`; false for an unknown user.
    pub fn add_token(&self, username: &str, token: &str, scopes: &[&str], expires_at_ms: Option<u64>) -> bool {
        let mut state = self.lock();
        let Some(user) = state.user_by_name(username).map(|user| user.id) else { return false };
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        state.tokens.insert(token.to_owned(), Token { user, scopes, expires_at_ms, revoked: false });
        true
    }

    /// Revokes a token; false for an unknown one.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.lock().tokens.get_mut(token).map(|token| token.revoked = true).is_some()
    }

    /// Gives a user a role in a project, or takes it.
    pub fn set_member(&self, project_id: u64, username: &str, role: Option<Role>) -> bool {
        let mut state = self.lock();
        let user = state.user_by_name(username).map(|user| user.id);
        let Some((user, project)) = user.zip(state.project_mut(project_id)) else { return false };
        match role {
            Some(role) => drop(project.members.insert(user, role)),
            None => drop(project.members.remove(&user)),
        }
        true
    }

    // Projects.

    /// Creates a private project whose default branch has one commit with these files; the answer is its id.
    pub fn create_project(&self, path: &str, files: &[(&str, &str)], user: &str) -> u64 {
        self.lock().create_project(path, files, user)
    }

    /// The id of the project of that path.
    pub fn project_id(&self, path: &str) -> Option<u64> {
        self.lock().projects.values().find(|project| project.path == path).map(|project| project.id)
    }

    /// Changes a project's settings.
    pub fn set_settings(&self, project_id: u64, change: impl FnOnce(&mut ProjectSettings)) {
        if let Some(project) = self.lock().project_mut(project_id) {
            change(&mut project.settings);
        }
    }

    /// A project's settings.
    pub fn settings(&self, project_id: u64) -> Option<ProjectSettings> {
        self.lock().project(project_id).map(|project| project.settings.clone())
    }

    /// Makes a project visible to all, or to members only.
    pub fn set_public(&self, project_id: u64, public: bool) {
        use crate::project::Visibility::{Private, Public};
        if let Some(project) = self.lock().project_mut(project_id) {
            project.visibility = if public { Public } else { Private };
        }
    }

    /// Replaces the protection rules.
    pub fn protect(&self, project_id: u64, rules: Vec<ProtectedBranch>) {
        if let Some(project) = self.lock().project_mut(project_id) {
            project.protected = rules;
        }
    }

    /// Renames a project: the old path answers 301 or 405 from now on.
    pub fn rename_project(&self, project_id: u64, path: &str) {
        let mut state = self.lock();
        let Some(project) = state.project_mut(project_id) else { return };
        let old = std::mem::replace(&mut project.path, path.to_owned());
        state.renamed.remove(path);
        state.renamed.insert(old, project_id);
    }

    // Git behind the API's back.

    /// Commits onto a branch (made from the default branch if missing) as `git push` would.
    /// `None` as content deletes. The answer is the new head; empty for an unknown project or user.
    pub fn push(&self, project_id: u64, branch: &str, changes: &[(&str, Option<&str>)], message: &str, user: &str) -> String {
        let writes = writes(changes);
        self.lock().push_writes(project_id, branch, &writes, message, user, Base::Head).unwrap_or_default()
    }

    /// As `push`, with a git mode such as `100755`, `120000` or `160000` for each path.
    pub fn push_modes(&self, project_id: u64, branch: &str, changes: &[(&str, &str, &str)], message: &str, user: &str) -> String {
        let write = |(path, mode, text): &(&str, &str, &str)| {
            ((*path).to_owned(), Some((Mode::parse(mode).unwrap_or(Mode::File), Bytes::from((*text).to_owned()))))
        };
        let writes: Vec<Write> = changes.iter().map(write).collect();
        self.lock().push_writes(project_id, branch, &writes, message, user, Base::Head).unwrap_or_default()
    }

    /// Replaces the branch's last commit: a force push.
    pub fn amend(&self, project_id: u64, branch: &str, changes: &[(&str, Option<&str>)], message: &str, user: &str) -> String {
        let writes = writes(changes);
        self.lock().push_writes(project_id, branch, &writes, message, user, Base::Parent).unwrap_or_default()
    }

    /// Points a branch at a commit: a force push. False if there is no such commit.
    pub fn force_push(&self, project_id: u64, branch: &str, sha: &str, user: &str) -> bool {
        let mut state = self.lock();
        let known = state.project(project_id).is_some_and(|project| project.repo.commit(sha).is_some());
        let user = state.user_by_name(user).map(|user| user.id).filter(|_| known);
        user.and_then(|user| state.update_branch(project_id, branch, Some(sha.to_owned()), user, Via::Git)).is_some()
    }

    /// Deletes a branch by `git push`.
    pub fn delete_branch(&self, project_id: u64, branch: &str, user: &str) {
        let mut state = self.lock();
        if let Some(user) = state.user_by_name(user).map(|user| user.id) {
            state.update_branch(project_id, branch, None, user, Via::Git);
        }
    }

    /// The head of a branch.
    pub fn branch_head(&self, project_id: u64, branch: &str) -> Option<String> {
        self.lock().project(project_id)?.head_id(branch)
    }

    /// All branch names.
    pub fn branches(&self, project_id: u64) -> Vec<String> {
        self.lock().project(project_id).map(|project| project.repo.branches.keys().cloned().collect()).unwrap_or_default()
    }

    /// A file's content at a branch or commit.
    pub fn file_at(&self, project_id: u64, reference: &str, path: &str) -> Option<Vec<u8>> {
        self.lock().project(project_id)?.repo.file(reference, path).map(|content| content.to_vec())
    }

    // Merge requests.

    /// Approves as a user; false if unknown or already approved.
    pub fn approve(&self, project_id: u64, iid: u64, user: &str) -> bool {
        self.as_user(user, |state, user| state.add_approval(project_id, iid, user))
    }

    /// Takes an approval back.
    pub fn unapprove(&self, project_id: u64, iid: u64, user: &str) -> bool {
        self.as_user(user, |state, user| state.remove_approval(project_id, iid, user))
    }

    /// Closes a merge request as its author.
    pub fn close_mr(&self, project_id: u64, iid: u64) -> bool {
        let mut state = self.lock();
        let author = state.mr(project_id, iid).map(|mr| mr.author);
        author.and_then(|author| state.close_mr(project_id, iid, author)).is_some()
    }

    /// Reopens a merge request as its author.
    pub fn reopen_mr(&self, project_id: u64, iid: u64) -> bool {
        let mut state = self.lock();
        let author = state.mr(project_id, iid).map(|mr| mr.author);
        author.and_then(|author| state.reopen_mr(project_id, iid, author)).is_some()
    }

    /// Opens a thread that can be resolved; the answer is its id.
    pub fn open_discussion(&self, project_id: u64, iid: u64, user: &str, body: &str) -> Option<String> {
        let mut state = self.lock();
        let user = state.user_by_name(user)?.id;
        state.open_discussion(project_id, iid, user, body.to_owned())
    }

    /// Resolves or unresolves a thread.
    pub fn resolve_discussion(&self, project_id: u64, iid: u64, id: &str, user: &str, resolved: bool) -> bool {
        self.as_user(user, |state, user| state.resolve_discussion(project_id, iid, id, user, resolved))
    }

    /// Adds a note as a user.
    pub fn add_note(&self, project_id: u64, iid: u64, user: &str, body: &str) -> Option<u64> {
        let mut state = self.lock();
        let user = state.user_by_name(user)?.id;
        state.add_note(project_id, iid, user, body.to_owned(), false)
    }

    fn as_user<T>(&self, user: &str, act: impl FnOnce(&mut State, u64) -> Option<T>) -> bool {
        let mut state = self.lock();
        let user = state.user_by_name(user).map(|user| user.id);
        user.and_then(|user| act(&mut state, user)).is_some()
    }

    // Scripts.

    /// Adds a rule for jobs; the one added last wins.
    pub fn add_job_rule(&self, project_id: u64, rule: JobRule) {
        if let Some(project) = self.lock().project_mut(project_id) {
            project.rules.push(rule);
        }
    }

    /// Forgets all job rules.
    pub fn clear_job_rules(&self, project_id: u64) {
        if let Some(project) = self.lock().project_mut(project_id) {
            project.rules.clear();
        }
    }

    /// Adds a persona.
    pub fn add_persona(&self, project_id: u64, persona: Persona) {
        if let Some(project) = self.lock().project_mut(project_id) {
            project.personas.push(persona);
        }
    }

    /// Forgets all personas.
    pub fn clear_personas(&self, project_id: u64) {
        if let Some(project) = self.lock().project_mut(project_id) {
            project.personas.clear();
        }
    }

    // Hooks.

    /// Keeps deliveries for `take_deliveries` instead of sending them.
    pub fn capture_hooks(&self, capture: bool) {
        self.lock().deliveries.habits.capture = capture;
    }

    /// Sets how deliveries misbehave.
    pub fn set_hook_habits(&self, change: impl FnOnce(&mut HookHabits)) {
        change(&mut self.lock().deliveries.habits);
    }

    /// Deliveries that are due and not sent, in order.
    pub fn take_deliveries(&self) -> Vec<Delivery> {
        self.lock().deliveries.outbox.drain(..).collect()
    }

    pub(crate) fn outgoing(&self) -> Vec<Delivery> {
        let mut state = self.lock();
        if state.deliveries.habits.capture { Vec::new() } else { state.deliveries.outbox.drain(..).collect() }
    }

    /// Tells how a delivery went, which may disable its hook.
    pub fn note_delivery(&self, delivery: &Delivery, ok: bool) {
        self.lock().note_delivery(delivery.project_id, delivery.hook_id, ok);
    }

    // Faults, limits, journal.

    /// Adds a fault; of several that match, the first strikes.
    pub fn add_fault(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// Forgets all faults; held calls stay held.
    pub fn clear_faults(&self) {
        self.lock().faults.clear();
    }

    /// Applies all held calls in order; the answer is how many.
    pub fn release_holds(&self) -> usize {
        let mut state = self.lock();
        let ids = state.faults.hold_ids();
        for id in &ids {
            state.release_hold(*id);
        }
        ids.len()
    }

    /// How many calls are held.
    pub fn held_calls(&self) -> usize {
        self.lock().faults.hold_ids().len()
    }

    /// Sets or lifts the rate limit.
    pub fn set_rate_limit(&self, limit: Option<RateLimit>) {
        self.lock().limiter.limit = limit;
    }

    /// Every API call so far.
    pub fn journal(&self) -> Vec<JournalEntry> {
        self.lock().journal.clone()
    }

    /// Forgets the journal.
    pub fn clear_journal(&self) {
        self.lock().journal.clear();
    }
}

/// What a push builds on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Head,
    Parent,
}

fn writes(changes: &[(&str, Option<&str>)]) -> Vec<Write> {
    let write =
        |(path, content): &(&str, Option<&str>)| ((*path).to_owned(), content.map(|text| (Mode::File, Bytes::from(text.to_owned()))));
    changes.iter().map(write).collect()
}

impl State {
    pub(crate) fn add_user(&mut self, username: &str, name: &str, admin: bool) -> u64 {
        if let Some(user) = self.user_by_name(username) {
            return user.id;
        }
        let id = self.ids.next("user");
        self.users.insert(id, User { id, username: username.to_owned(), name: name.to_owned(), bot: false, admin });
        id
    }

    pub(crate) fn create_project(&mut self, path: &str, files: &[(&str, &str)], user: &str) -> u64 {
        let id = self.ids.next("project");
        let owner = self.add_user(user, user, false);
        let signature = self.signature(owner);
        let mut project = Project::new(id, path, self.now_ms);
        project.members.insert(owner, Role::Owner);
        if !files.is_empty() {
            let changes: Vec<(&str, Option<&str>)> = files.iter().map(|(path, text)| (*path, Some(*text))).collect();
            let tree = project.repo.apply(&Tree::new(), &writes(&changes));
            let draft = CommitDraft {
                message: "Initial commit".to_owned(),
                author: signature.clone(),
                committer: signature,
                author_user: Some(user.to_owned()),
            };
            let sha = project.repo.put_commit(tree, Vec::new(), draft);
            project.repo.branches.insert("main".to_owned(), sha);
            project.cached_branches.insert("main".to_owned());
        }
        self.projects.insert(id, project);
        id
    }

    pub(crate) fn push_writes(
        &mut self,
        project: u64,
        branch: &str,
        writes: &[Write],
        message: &str,
        user: &str,
        base: Base,
    ) -> Option<String> {
        let user = self.user_by_name(user)?;
        let (user, author_user) = (user.id, Some(user.username.clone()));
        let signature = self.signature(user);
        let row = self.project_mut(project)?;
        let head = row.head_id(branch).or_else(|| row.head_id(&row.default_branch));
        let commit = head.as_deref().and_then(|id| row.repo.commit(id)).cloned();
        let start = commit.as_ref().map(|commit| Tree::clone(&commit.tree)).unwrap_or_default();
        let parents = match base {
            Base::Head => head.into_iter().collect(),
            Base::Parent => commit.map(|commit| commit.parents).unwrap_or_default(),
        };
        let tree = row.repo.apply(&start, writes);
        let draft = CommitDraft { message: message.to_owned(), author: signature.clone(), committer: signature, author_user };
        let sha = row.repo.put_commit(tree, parents, draft);
        self.update_branch(project, branch, Some(sha.clone()), user, Via::Git)?;
        Some(sha)
    }

    pub(crate) fn username(&self, id: u64) -> String {
        self.users.get(&id).map(|user| user.username.clone()).unwrap_or_default()
    }
}
