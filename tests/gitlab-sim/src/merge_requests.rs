//! Merge requests: what one is, and how it is created, listed, read, closed and reopened.
//! `GET|POST /projects/:id/merge_requests`, `GET /projects/:id/merge_requests/:merge_request_iid`.

use serde_json::Value;

use crate::access::Role;
use crate::approvals::Approval;
use crate::call::Call;
use crate::labels::LabelEvent;
use crate::mr_json::{mr_detail, mr_row};
use crate::notes::Note;
use crate::pagination::{Totals, paginate};
use crate::project::Project;
use crate::reply::{Answer, Reply, field_message, forbidden, messages, no_record};
use crate::state::{State, Task};

/// State of a merge request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MrState {
    Opened,
    Closed,
    Merged,
}

impl MrState {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Closed => "closed",
            Self::Merged => "merged",
        }
    }

    pub(crate) fn id(self) -> u64 {
        match self {
            Self::Opened => 1,
            Self::Closed => 2,
            Self::Merged => 3,
        }
    }
}

/// The internal states of `merge_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckStatus {
    Preparing,
    Unchecked,
    Checking,
    CanBeMerged,
    CannotBeMerged,
    Recheck,
    Rechecking,
}

/// A merge request.
#[derive(Clone, Debug)]
pub(crate) struct MergeRequest {
    pub(crate) id: u64,
    pub(crate) iid: u64,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) author: u64,
    pub(crate) source_branch: String,
    pub(crate) target_branch: String,
    pub(crate) state: MrState,
    pub(crate) check: CheckStatus,
    pub(crate) sha: Option<String>,
    pub(crate) base_sha: Option<String>,
    pub(crate) start_sha: Option<String>,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    pub(crate) prepared_at_ms: Option<u64>,
    pub(crate) merged_at_ms: Option<u64>,
    pub(crate) closed_at_ms: Option<u64>,
    pub(crate) merge_user: Option<u64>,
    pub(crate) closed_by: Option<u64>,
    pub(crate) merge_commit_sha: Option<String>,
    pub(crate) squash_commit_sha: Option<String>,
    pub(crate) merge_error: Option<String>,
    pub(crate) labels: Vec<String>,
    pub(crate) assignees: Vec<u64>,
    pub(crate) reviewers: Vec<u64>,
    pub(crate) squash: bool,
    pub(crate) remove_source_branch: bool,
    pub(crate) auto_merge: bool,
    pub(crate) rebase_in_progress: bool,
    pub(crate) head_pipeline: Option<u64>,
    pub(crate) approvals: Vec<Approval>,
    pub(crate) notes: Vec<Note>,
    pub(crate) label_events: Vec<LabelEvent>,
    /// What lists last showed.
    pub(crate) listed: Option<Listed>,
}

/// A cached `detailed_merge_status` of a list row, and what its cache key is made of.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    key: (u64, CheckStatus, MrState),
    status: &'static str,
    at_ms: u64,
}

const LIST_CACHE_MS: u64 = 8 * 3_600_000;

impl MergeRequest {
    pub(crate) fn is_open(&self) -> bool {
        self.state == MrState::Opened
    }

    pub(crate) fn is_draft(&self) -> bool {
        is_draft_title(&self.title)
    }

    pub(crate) fn has_open_discussions(&self) -> bool {
        self.notes.iter().any(|note| note.resolvable && !note.resolved)
    }
}

/// Whether a title has one of the draft prefixes.
pub(crate) fn is_draft_title(title: &str) -> bool {
    let title = title.trim_start().to_lowercase();
    ["draft:", "[draft]", "(draft)"].iter().any(|prefix| title.starts_with(prefix))
}

/// Cuts a description where GitLab silently does.
pub(crate) fn cut_description(mut text: String) -> String {
    let mut end = text.len().min(1 << 20);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

impl State {
    pub(crate) fn mr(&self, project: u64, iid: u64) -> Option<&MergeRequest> {
        self.project(project)?.mrs.get(&iid)
    }

    pub(crate) fn mr_mut(&mut self, project: u64, iid: u64) -> Option<&mut MergeRequest> {
        self.project_mut(project)?.mrs.get_mut(&iid)
    }

    pub(crate) fn touch_mr(&mut self, project: u64, iid: u64) -> Option<()> {
        let now_ms = self.now_ms;
        self.mr_mut(project, iid)?.updated_at_ms = now_ms;
        Some(())
    }

    /// Computes what the diff is against.
    pub(crate) fn refresh_diff(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project(project)?;
        let mr = row.mrs.get(&iid)?;
        let target = row.head_id(&mr.target_branch);
        let base = target.as_ref().zip(mr.sha.as_ref()).and_then(|(target, sha)| row.repo.merge_base(target, sha));
        let base = base.map(|commit| commit.id.clone());
        let mr = self.mr_mut(project, iid)?;
        mr.base_sha = base;
        mr.start_sha = target;
        Some(())
    }

    /// The background half of creation: diff, pipeline, then the `open` hook.
    pub(crate) fn prepare_mr(&mut self, project: u64, iid: u64) -> Option<()> {
        let (now_ms, starts_check) = (self.now_ms, self.project(project)?.settings.check_after_prepare);
        self.refresh_diff(project, iid)?;
        let mr = self.mr_mut(project, iid)?;
        let (author, previous_update) = (mr.author, mr.updated_at_ms);
        mr.prepared_at_ms = Some(now_ms);
        mr.updated_at_ms = now_ms;
        if mr.check == CheckStatus::Preparing {
            mr.check = CheckStatus::Unchecked;
        }
        if starts_check {
            self.begin_check(project, iid);
        }
        self.adopt_branch_pipeline(project, iid);
        self.emit_mr_open(project, iid, author, previous_update);
        self.plan_personas(project, iid);
        self.plan_mr_pipeline(project, iid, author)
    }

    pub(crate) fn close_mr(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let now_ms = self.now_ms;
        let mr = self.mr_mut(project, iid).filter(|mr| mr.is_open())?;
        let previous_update = mr.updated_at_ms;
        mr.state = MrState::Closed;
        mr.closed_by = Some(user);
        mr.closed_at_ms = Some(now_ms);
        mr.auto_merge = false;
        mr.updated_at_ms = now_ms;
        self.drop_car(project, iid);
        self.emit_mr_state(project, iid, user, "close", (1, 2), previous_update);
        Some(())
    }

    pub(crate) fn reopen_mr(&mut self, project: u64, iid: u64, user: u64) -> Option<()> {
        let (now_ms, head) = (self.now_ms, self.source_head(project, iid));
        let mr = self.mr_mut(project, iid).filter(|mr| mr.state == MrState::Closed)?;
        let previous_update = mr.updated_at_ms;
        mr.state = MrState::Opened;
        mr.closed_by = None;
        mr.closed_at_ms = None;
        mr.updated_at_ms = now_ms;
        mr.sha = head.or_else(|| mr.sha.clone());
        mr.mark_unchecked();
        self.refresh_diff(project, iid);
        self.emit_mr_state(project, iid, user, "reopen", (2, 1), previous_update);
        self.plan_mr_pipeline(project, iid, user)
    }

    pub(crate) fn source_head(&self, project: u64, iid: u64) -> Option<String> {
        self.project(project)?.head_id(&self.mr(project, iid)?.source_branch)
    }
}

/// The open merge request between two branches.
pub(crate) fn open_between(project: &Project, source: &str, target: &str) -> Option<u64> {
    let fits = |mr: &&MergeRequest| mr.is_open() && mr.source_branch == source && mr.target_branch == target;
    project.mrs.values().find(fits).map(|mr| mr.iid)
}

/// 409 for a second merge request between the same branches.
pub(crate) fn duplicate(iid: u64) -> Reply {
    messages(409, format!("Another open merge request already exists for this source branch: !{iid}"))
}

/// `POST …/merge_requests`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let params = &call.params;
    let (title, source) = (params.required("title"), params.required("source_branch")?);
    let (target, title) = (params.required("target_branch")?, title?);
    if !project.settings.merge_requests_enabled || !state.has_role(project, call.user(), Role::Developer) {
        return Err(forbidden(None));
    }
    check_branches(state, project, &source, &target)?;
    if title.trim().is_empty() {
        return Err(field_message(400, "title", "can't be blank"));
    }
    let (project, user) = (project.id, call.user_id()?);
    let iid = state.add_mr(project, user, (source, target), title).ok_or_else(no_record)?;
    state.fill_mr(project, iid, user, params);
    state.schedule(state.timing.mr_preparation_ms, Task::PrepareMr { project, iid });
    let body = mr_detail(state, call, project, iid).ok_or_else(no_record)?;
    Ok(Reply::json(201, &body))
}

fn check_branches(state: &State, project: &Project, source: &str, target: &str) -> Result<(), Reply> {
    if source == target {
        return Err(messages(422, "You can't use same project/branch for source and target"));
    }
    if let Some(iid) = open_between(project, source, target) {
        return Err(duplicate(iid));
    }
    if state.major() >= 19 && !project.cached_branches.contains(source) {
        return Err(field_message(400, "source_branch", "does not exist"));
    }
    Ok(())
}

impl State {
    fn add_mr(&mut self, project: u64, author: u64, (source, target): (String, String), title: String) -> Option<u64> {
        let id = self.ids.next("merge_request");
        let now_ms = self.now_ms;
        let row = self.project_mut(project)?;
        let iid = row.mrs.last_key_value().map_or(0, |(iid, _)| *iid) + 1;
        let squash = matches!(row.settings.squash, crate::project::SquashOption::Always | crate::project::SquashOption::DefaultOn);
        let mr = MergeRequest {
            id,
            iid,
            title,
            description: None,
            author,
            sha: row.head_id(&source),
            source_branch: source,
            target_branch: target,
            state: MrState::Opened,
            check: CheckStatus::Preparing,
            base_sha: None,
            start_sha: None,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            prepared_at_ms: None,
            merged_at_ms: None,
            closed_at_ms: None,
            merge_user: None,
            closed_by: None,
            merge_commit_sha: None,
            squash_commit_sha: None,
            merge_error: None,
            labels: Vec::new(),
            assignees: Vec::new(),
            reviewers: Vec::new(),
            squash,
            remove_source_branch: false,
            auto_merge: false,
            rebase_in_progress: false,
            head_pipeline: None,
            approvals: Vec::new(),
            notes: Vec::new(),
            label_events: Vec::new(),
            listed: None,
        };
        row.mrs.insert(iid, mr);
        Some(iid)
    }
}

/// `GET …/merge_requests/:merge_request_iid`; starts a mergeability check if the caller may update.
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = call.merge_request(state)?;
    let body = mr_detail(state, call, project, iid).ok_or_else(no_record)?;
    if state.may_update(project, iid, call.user()) == Some(true) {
        state.begin_check(project, iid);
    }
    Ok(Reply::json(200, &body))
}

impl State {
    /// Whether the user may update the merge request.
    pub(crate) fn may_update(&self, project: u64, iid: u64, user: Option<u64>) -> Option<bool> {
        let row = self.project(project)?;
        let author = row.mrs.get(&iid)?.author;
        Some(user == Some(author) || self.has_role(row, user, Role::Developer))
    }
}

/// `GET …/merge_requests`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let filter = Filter::read(state, call);
    let mut found: Vec<&MergeRequest> = project.mrs.values().filter(|mr| filter.fits(mr)).collect();
    let updated = call.params.text("order_by").as_deref() == Some("updated_at");
    found.sort_by_key(|mr| (if updated { mr.updated_at_ms } else { mr.created_at_ms }, mr.iid));
    if call.params.text("sort").as_deref() != Some("asc") {
        found.reverse();
    }
    let (id, iids): (u64, Vec<u64>) = (project.id, found.iter().map(|mr| mr.iid).collect());
    let rows: Vec<Value> = found.iter().map(|mr| list_row(state, project, mr)).collect();
    let reply = paginate(state, call, rows, Totals::Sent);
    if call.params.is_set("with_merge_status_recheck") {
        recheck(state, call, id, &iids);
    }
    for iid in iids {
        state.remember_listed(id, iid);
    }
    reply
}

fn list_row(state: &State, project: &Project, mr: &MergeRequest) -> Value {
    let mut row = mr_row(state, project, mr);
    if let Some(listed) = state.fresh_listing(project, mr) {
        row["detailed_merge_status"] = Value::from(listed.status);
    }
    row
}

impl State {
    /// The cached row, if lists go stale here and its key still holds.
    fn fresh_listing<'a>(&self, project: &Project, mr: &'a MergeRequest) -> Option<&'a Listed> {
        let listed = mr.listed.as_ref().filter(|_| project.settings.stale_lists)?;
        let holds = listed.key == (mr.updated_at_ms, mr.check, mr.state) && listed.at_ms + LIST_CACHE_MS > self.now_ms;
        holds.then_some(listed)
    }

    fn remember_listed(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project(project)?;
        let mr = row.mrs.get(&iid)?;
        if self.fresh_listing(row, mr).is_none() {
            let key = (mr.updated_at_ms, mr.check, mr.state);
            let listed = Listed { key, status: self.detailed_status(row, mr), at_ms: self.now_ms };
            self.mr_mut(project, iid)?.listed = Some(listed);
        }
        Some(())
    }
}

fn recheck(state: &mut State, call: &Call, project: u64, iids: &[u64]) {
    for iid in iids {
        if state.may_update(project, *iid, call.user()) == Some(true) {
            state.begin_check(project, *iid);
        }
    }
}

struct Filter {
    state: Option<String>,
    source: Option<String>,
    target: Option<String>,
    labels: Vec<String>,
    iids: Option<Vec<String>>,
    author: Option<String>,
    author_id: Option<u64>,
    updated_after_ms: Option<u64>,
    search: Option<String>,
}

impl Filter {
    fn read(state: &State, call: &Call) -> Self {
        let params = &call.params;
        let author = params.text("author_username");
        Self {
            state: params.text("state").filter(|text| text != "all"),
            source: params.text("source_branch"),
            target: params.text("target_branch"),
            labels: params.list("labels").unwrap_or_default(),
            iids: params.list("iids"),
            author_id: author.as_ref().and_then(|name| state.user_by_name(name)).map(|user| user.id).or(params.number("author_id")),
            author,
            updated_after_ms: params.text("updated_after").and_then(|text| crate::clock::parse_time(&text)),
            search: params.text("search").map(|text| text.to_lowercase()),
        }
    }

    fn fits(&self, mr: &MergeRequest) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        is(&self.state, mr.state.text())
            && is(&self.source, &mr.source_branch)
            && is(&self.target, &mr.target_branch)
            && self.labels.iter().all(|label| mr.labels.contains(label))
            && self.iids.as_ref().is_none_or(|iids| iids.contains(&mr.iid.to_string()))
            && (self.author.is_none() && self.author_id.is_none() || self.author_id == Some(mr.author))
            && self.updated_after_ms.is_none_or(|at| mr.updated_at_ms >= at)
            && self.search.as_ref().is_none_or(|text| self.finds(mr, text))
    }

    fn finds(&self, mr: &MergeRequest, text: &str) -> bool {
        let description = mr.description.as_deref().unwrap_or_default();
        mr.title.to_lowercase().contains(text) || description.to_lowercase().contains(text)
    }
}
