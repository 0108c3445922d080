//! A project: its repository, members, protection, settings and everything hung on it.
//! `GET /projects/:id`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::clock::iso;
use crate::events::ProjectEvent;
use crate::hooks::Hook;
use crate::issues::Issue;
use crate::labels::Label;
use crate::merge_requests::MergeRequest;
use crate::merge_trains::Car;
use crate::personas::Persona;
use crate::pipelines::{Job, JobRule, Pipeline};
use crate::reply::{Answer, Reply};
use crate::repo::Repo;
use crate::state::State;

/// Which pipelines a project runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PipelineMode {
    /// One per pushed branch.
    Branch,
    /// One per merge request on its head; branch pipelines on the default branch only.
    Detached,
    /// As detached, on the result of merging source and target.
    MergedResults,
    /// None.
    None,
}

/// How a merge writes history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeMethod {
    /// Always a merge commit.
    Merge,
    /// A merge commit, only where a fast-forward is possible.
    RebaseMerge,
    /// Fast-forward only.
    Ff,
}

/// The project's squash setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SquashOption {
    /// Never squash.
    Never,
    /// Always squash.
    Always,
    /// Squash unless asked not to.
    DefaultOn,
    /// Squash only when asked to.
    DefaultOff,
}

/// Settings of a project; unknown names are refused where they are read from JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectSettings {
    /// Which pipelines run.
    pub pipelines: PipelineMode,
    /// Merge needs a successful head pipeline (also when the project has no CI at all).
    pub only_allow_merge_if_pipeline_succeeds: bool,
    /// Merge needs all discussions resolved.
    pub only_allow_merge_if_all_discussions_are_resolved: bool,
    /// Approvals a merge request needs.
    pub approvals_required: u32,
    /// A push to the source branch takes approvals back.
    pub reset_approvals_on_push: bool,
    /// The author may approve.
    pub author_may_approve: bool,
    /// How a merge writes history.
    pub merge_method: MergeMethod,
    /// Squash setting.
    pub squash: SquashOption,
    /// New merge requests remove their source branch on merge.
    pub remove_source_branch_after_merge: bool,
    /// Merge requests are switched on.
    pub merge_requests_enabled: bool,
    /// Issues are switched on.
    pub issues_enabled: bool,
    /// A merge must name the sha.
    pub require_sha_on_merge: bool,
    /// Preparation starts a mergeability check by itself; without it a GET must.
    pub check_after_prepare: bool,
    /// Text of a pre-receive hook that refuses every push through the API.
    pub push_refused: Option<String>,
    /// Text of a pre-receive hook that refuses every merge.
    pub merge_refused: Option<String>,
    /// Every nth note is invisible to readers, so note pages come short.
    pub hidden_note_every: Option<u64>,
    /// Lists of merge requests show a cached `detailed_merge_status` until the row itself changes.
    pub stale_lists: bool,
    /// Merges go by train.
    pub merge_trains: bool,
    /// A retry of a successful or failed job is allowed.
    pub jobs_retryable: bool,
}

impl Default for ProjectSettings {
    fn default() -> Self {
        Self {
            pipelines: PipelineMode::Branch,
            only_allow_merge_if_pipeline_succeeds: true,
            only_allow_merge_if_all_discussions_are_resolved: false,
            approvals_required: 0,
            reset_approvals_on_push: false,
            author_may_approve: false,
            merge_method: MergeMethod::Merge,
            squash: SquashOption::DefaultOff,
            remove_source_branch_after_merge: true,
            merge_requests_enabled: true,
            issues_enabled: true,
            require_sha_on_merge: false,
            check_after_prepare: false,
            push_refused: None,
            merge_refused: None,
            hidden_note_every: None,
            stale_lists: true,
            merge_trains: false,
            jobs_retryable: true,
        }
    }
}

/// Who may act on a protected branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessLevel {
    /// Nobody.
    NoOne,
    /// Developers and above.
    Developer,
    /// Maintainers and above.
    Maintainer,
}

impl AccessLevel {
    pub(crate) fn allows(self, role: Role) -> bool {
        match self {
            Self::NoOne => false,
            Self::Developer => role >= Role::Developer,
            Self::Maintainer => role >= Role::Maintainer,
        }
    }

    fn laxity(self) -> u8 {
        match self {
            Self::NoOne => 0,
            Self::Maintainer => 1,
            Self::Developer => 2,
        }
    }
}

/// A protection rule; `pattern` may hold `*`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtectedBranch {
    /// Branch name or wildcard.
    pub pattern: String,
    /// Who may push.
    pub push: AccessLevel,
    /// Who may merge.
    pub merge: AccessLevel,
    /// Force pushes are allowed.
    #[serde(default)]
    pub allow_force_push: bool,
}

/// Who sees a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// Members only.
    Private,
    /// Everyone.
    Public,
}

/// A project and everything in it.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) id: u64,
    pub(crate) path: String,
    pub(crate) visibility: Visibility,
    pub(crate) default_branch: String,
    pub(crate) created_at_ms: u64,
    pub(crate) repo: Repo,
    pub(crate) cached_branches: BTreeSet<String>,
    pub(crate) members: BTreeMap<u64, Role>,
    pub(crate) protected: Vec<ProtectedBranch>,
    pub(crate) settings: ProjectSettings,
    pub(crate) mrs: BTreeMap<u64, MergeRequest>,
    pub(crate) issues: BTreeMap<u64, Issue>,
    pub(crate) pipelines: BTreeMap<u64, Pipeline>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) hooks: BTreeMap<u64, Hook>,
    pub(crate) labels: BTreeMap<String, Label>,
    pub(crate) events: Vec<ProjectEvent>,
    pub(crate) rules: Vec<JobRule>,
    pub(crate) personas: Vec<Persona>,
    /// Merge trains, in the order of joining; merged ones stay.
    pub(crate) cars: Vec<Car>,
}

impl Project {
    pub(crate) fn new(id: u64, path: &str, now_ms: u64) -> Self {
        Self {
            id,
            path: path.to_owned(),
            visibility: Visibility::Private,
            default_branch: "main".to_owned(),
            created_at_ms: now_ms,
            repo: Repo::default(),
            cached_branches: BTreeSet::new(),
            members: BTreeMap::new(),
            protected: vec![ProtectedBranch {
                pattern: "main".to_owned(),
                push: AccessLevel::Maintainer,
                merge: AccessLevel::Maintainer,
                allow_force_push: false,
            }],
            settings: ProjectSettings::default(),
            mrs: BTreeMap::new(),
            issues: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            jobs: BTreeMap::new(),
            hooks: BTreeMap::new(),
            labels: BTreeMap::new(),
            events: Vec::new(),
            rules: Vec::new(),
            personas: Vec::new(),
            cars: Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(namespace, _)| namespace)
    }

    fn rules_for<'a>(&'a self, branch: &'a str) -> impl Iterator<Item = &'a ProtectedBranch> {
        self.protected.iter().filter(move |rule| matches(&rule.pattern, branch))
    }

    pub(crate) fn is_protected(&self, branch: &str) -> bool {
        self.rules_for(branch).next().is_some()
    }

    /// Who may push, by the most permissive rule; `None` if unprotected.
    pub(crate) fn push_level(&self, branch: &str) -> Option<AccessLevel> {
        self.rules_for(branch).map(|rule| rule.push).max_by_key(|level| level.laxity())
    }

    /// Who may merge, by the most permissive rule; `None` if unprotected.
    pub(crate) fn merge_level(&self, branch: &str) -> Option<AccessLevel> {
        self.rules_for(branch).map(|rule| rule.merge).max_by_key(|level| level.laxity())
    }

    pub(crate) fn may_force_push(&self, branch: &str) -> bool {
        !self.is_protected(branch) || self.rules_for(branch).any(|rule| rule.allow_force_push)
    }

    pub(crate) fn head_id(&self, branch: &str) -> Option<String> {
        self.repo.branches.get(branch).cloned()
    }
}

/// Whether a branch name fits a pattern with `*`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => {
            name.strip_prefix(head).is_some_and(|tail| (0..=tail.len()).any(|at| tail.get(at..).is_some_and(|tail| matches(rest, tail))))
        }
    }
}

impl State {
    pub(crate) fn web_url(&self, project: &Project) -> String {
        format!("{}/{}", self.base_url, project.path)
    }
}

/// `GET /projects/:id`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    Ok(Reply::json(200, &project_json(state, project, call.user())))
}

/// A project as the API shows it.
pub(crate) fn project_json(state: &State, project: &Project, user: Option<u64>) -> Value {
    let url = state.web_url(project);
    let settings = &project.settings;
    let level = state.role(project, user).map(Role::level);
    let mut body = json!({
        "id": project.id, "name": project.name(), "path": project.name(), "description": null,
        "name_with_namespace": project.path.replace('/', " / "), "path_with_namespace": project.path,
        "created_at": iso(project.created_at_ms), "default_branch": project.default_branch,
        "ssh_url_to_repo": format!("git@gitlab.sim:{}.git", project.path), "http_url_to_repo": format!("{url}.git"),
        "web_url": url, "visibility": project.visibility, "archived": false, "empty_repo": project.repo.is_empty(),
        "namespace": { "id": 1, "name": project.namespace(), "path": project.namespace(), "kind": "group", "full_path": project.namespace() },
        "merge_requests_enabled": settings.merge_requests_enabled,
        "issues_enabled": settings.issues_enabled, "issues_access_level": if settings.issues_enabled { "enabled" } else { "disabled" },
        "merge_requests_access_level": if settings.merge_requests_enabled { "enabled" } else { "disabled" },
        "permissions": { "project_access": level.map(|level| json!({ "access_level": level, "notification_level": 3 })), "group_access": null },
    });
    merge_settings(&mut body, settings);
    body
}

fn merge_settings(body: &mut Value, settings: &ProjectSettings) {
    body["merge_method"] = json!(settings.merge_method);
    body["squash_option"] = json!(settings.squash);
    body["only_allow_merge_if_pipeline_succeeds"] = json!(settings.only_allow_merge_if_pipeline_succeeds);
    body["only_allow_merge_if_all_discussions_are_resolved"] = json!(settings.only_allow_merge_if_all_discussions_are_resolved);
    body["remove_source_branch_after_merge"] = json!(settings.remove_source_branch_after_merge);
    body["approvals_before_merge"] = json!(settings.approvals_required);
    body["merge_pipelines_enabled"] = json!(settings.pipelines == PipelineMode::MergedResults);
    body["merge_trains_enabled"] = json!(settings.merge_trains);
    body["allow_merge_on_skipped_pipeline"] = json!(false);
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn wildcards() {
        assert!(matches("release/*", "release/1.2"));
        assert!(matches("*-stable", "1-2-stable"));
        assert!(!matches("release/*", "releases"));
        assert!(matches("main", "main"));
    }
}
