//! The Commits API: `POST /projects/:id/repository/commits`.
//!
//! The order of checks is GitLab's: right to push (403) before the shape of the body (400 with
//! prefix) before the service's own errors (400 without prefix and without the path).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::call::Call;
use crate::commits::commit_detail;
use crate::git::{Entry, Mode, Signature, Tree, is_branch_name, is_directory, is_full_id};
use crate::params::Params;
use crate::project::Project;
use crate::pushes::Via;
use crate::reply::{Answer, Reply, bad_request, forbidden, message, not_found};
use crate::repo::{CommitDraft, Repo};
use crate::state::State;

const ACTIONS: [&str; 5] = ["create", "update", "move", "delete", "chmod"];

/// One file action, checked for shape.
#[derive(Debug)]
struct Action {
    verb: String,
    path: String,
    previous_path: Option<String>,
    content: Option<Bytes>,
    last_commit_id: Option<String>,
    executable: Option<bool>,
}

/// A commit request, checked for shape.
#[derive(Debug)]
struct Request {
    branch: String,
    message: String,
    actions: Vec<Action>,
    start_sha: Option<String>,
    start_branch: Option<String>,
    force: bool,
}

/// `POST …/commits`
pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let id = call.project_id(state)?;
    state.check_large_body(call.user_id()?, call.request.body.len())?;
    let project = state.project(id).ok_or_else(|| not_found("Project"))?;
    check_push(state, project, call)?;
    let request = Request::read(&call.params)?;
    let base = request.base(project)?;
    let user = call.user_id()?;
    let draft = draft(state, call, user, &request.message);
    let project = state.project_mut(id).ok_or_else(|| not_found("Project"))?;
    let tree = request.tree(&mut project.repo, base.as_deref())?;
    let sha = project.repo.put_commit(tree, base.into_iter().collect(), draft);
    state.update_branch(id, &request.branch, Some(sha.clone()), user, Via::Api);
    let project = call.project(state)?;
    let commit = project.repo.commit(&sha).ok_or_else(|| not_found("Commit"))?;
    let stats = call.params.flag("stats") != Some(false);
    Ok(Reply::json(201, &commit_detail(state, project, commit, stats)))
}

fn check_push(state: &State, project: &Project, call: &Call) -> Result<(), Reply> {
    let branch = call.params.text("branch").unwrap_or_default();
    if !state.may_push(project, call.user(), &branch) {
        return Err(forbidden(Some("You are not allowed to push into this branch")));
    }
    Ok(())
}

fn draft(state: &State, call: &Call, user: u64, message: &str) -> CommitDraft {
    let committer = state.signature(user);
    let author = Signature {
        name: call.params.text("author_name").unwrap_or_else(|| committer.name.clone()),
        email: call.params.text("author_email").unwrap_or_else(|| committer.email.clone()),
        at_ms: committer.at_ms,
    };
    let author_user = state.users.get(&user).map(|user| user.username.clone());
    CommitDraft { message: message.to_owned(), author, committer, author_user }
}

impl State {
    /// The user as author of a commit made now.
    pub(crate) fn signature(&self, user: u64) -> Signature {
        let found = self.users.get(&user);
        Signature {
            name: found.map(|user| user.name.clone()).unwrap_or_default(),
            email: found.map(crate::access::User::email).unwrap_or_default(),
            at_ms: self.now_ms,
        }
    }
}

fn required(params: &Params, name: &str) -> Result<String, Reply> {
    let text = params.text(name).filter(|text| !text.is_empty());
    text.ok_or_else(|| bad_request(&format!("{name} is required")))
}

impl Request {
    fn read(params: &Params) -> Result<Self, Reply> {
        let branch = required(params, "branch")?;
        let message = required(params, "commit_message")?;
        let rows = params.value("actions").and_then(Value::as_array).filter(|rows| !rows.is_empty());
        let rows = rows.ok_or_else(|| bad_request("actions is required"))?;
        let (start_branch, start_sha) = (params.text("start_branch"), params.text("start_sha"));
        if start_branch.is_some() && start_sha.is_some() {
            return Err(bad_request("start_branch, start_sha are mutually exclusive"));
        }
        let actions = rows.iter().enumerate().map(|(index, row)| Action::read(index, row)).collect::<Result<_, _>>()?;
        Ok(Self { branch, message, actions, start_sha, start_branch, force: params.is_set("force") })
    }

    /// The commit to build on (none in an empty repository), after the checks on branches.
    fn base(&self, project: &Project) -> Result<Option<String>, Reply> {
        let base = self.start(project)?;
        self.check_branch(project)?;
        match project.settings.push_refused.as_deref() {
            Some(text) => Err(message(400, text)),
            None => Ok(base),
        }
    }

    fn start(&self, project: &Project) -> Result<Option<String>, Reply> {
        if let Some(sha) = &self.start_sha {
            return start_commit(project, sha).map(Some);
        }
        let name = self.start_branch.as_ref().unwrap_or(&self.branch);
        match project.head_id(name) {
            Some(id) => Ok(Some(id)),
            None if project.repo.is_empty() => Ok(None),
            None => Err(message(400, "You can only create or edit files when you are on a branch")),
        }
    }

    fn differs(&self) -> bool {
        self.start_sha.is_some() || self.start_branch.as_ref().is_some_and(|start| *start != self.branch)
    }

    fn check_branch(&self, project: &Project) -> Result<(), Reply> {
        let branch = &self.branch;
        let exists = project.repo.branches.contains_key(branch);
        if exists && self.differs() && !self.force {
            let text = format!("A branch called '{branch}' already exists. Switch to that branch in order to make changes");
            return Err(message(400, text));
        }
        if exists && self.force && !project.may_force_push(branch) {
            return Err(message(400, "You are not allowed to force push code to a protected branch on this project."));
        }
        if !exists && !is_branch_name(branch) {
            let text = format!("Something went wrong when we tried to create '{branch}' for you: Branch name is invalid");
            return Err(message(400, text));
        }
        Ok(())
    }

    fn tree(&self, repo: &mut Repo, base: Option<&str>) -> Result<Tree, Reply> {
        for action in &self.actions {
            action.check_path()?;
        }
        for action in &self.actions {
            action.check_unchanged(repo, base)?;
        }
        let start = base.and_then(|id| repo.commit(id)).map(|commit| Tree::clone(&commit.tree)).unwrap_or_default();
        self.actions.iter().try_fold(start, |tree, action| action.apply(repo, tree))
    }
}

fn start_commit(project: &Project, sha: &str) -> Result<String, Reply> {
    if !is_full_id(sha) {
        return Err(message(400, format!("Invalid start_sha '{sha}'")));
    }
    let commit = project.repo.commit(sha).ok_or_else(|| message(400, format!("Cannot find start_sha '{sha}'")))?;
    Ok(commit.id.clone())
}

fn text(row: &Map<String, Value>, name: &str, index: usize) -> Result<Option<String>, Reply> {
    match row.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(bad_request(&format!("actions[{index}][{name}] must be a string"))),
    }
}

impl Action {
    fn read(index: usize, row: &Value) -> Result<Self, Reply> {
        let refuse = |text: &str| bad_request(&format!("actions[{index}]{text}"));
        let empty = Map::new();
        let row = row.as_object().unwrap_or(&empty);
        let verb = text(row, "action", index)?.ok_or_else(|| refuse("[action] is required"))?;
        let path = text(row, "file_path", index)?.ok_or_else(|| refuse("[file_path] is required"))?;
        if !ACTIONS.contains(&verb.as_str()) {
            return Err(refuse("[action] must be one of: create, update, move, delete, chmod"));
        }
        let content = read_content(row, index)?;
        let previous_path = text(row, "previous_path", index)?;
        let executable = match row.get("execute_filemode") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(flag)) => Some(*flag),
            Some(_) => return Err(refuse("[execute_filemode] must be a boolean")),
        };
        match verb.as_str() {
            "update" if content.is_none() => return Err(refuse("[content] is required for update action")),
            "move" if previous_path.is_none() => return Err(refuse("[previous_path] is required for move action")),
            "chmod" if executable.is_none() => return Err(refuse("[execute_filemode] is required for chmod action")),
            _ => {}
        }
        Ok(Self { verb, path, previous_path, content, last_commit_id: text(row, "last_commit_id", index)?, executable })
    }

    fn check_path(&self) -> Result<(), Reply> {
        self.previous_path.iter().chain([&self.path]).try_for_each(|path| check_path(path))
    }

    /// The path whose last commit `last_commit_id` guards.
    fn guarded_path(&self) -> &str {
        self.previous_path.as_ref().filter(|_| self.verb == "move").unwrap_or(&self.path)
    }

    fn check_unchanged(&self, repo: &Repo, base: Option<&str>) -> Result<(), Reply> {
        let Some(expected) = self.last_commit_id.as_ref().filter(|_| self.verb != "create") else { return Ok(()) };
        let Some(head) = base.and_then(|id| repo.commit(id)) else { return Ok(()) };
        let path = self.guarded_path();
        if !head.tree.contains_key(path) || repo.last_commit_for(head, path).id == *expected {
            return Ok(());
        }
        Err(message(400, format!("The file has changed since you started editing it: {path}")))
    }

    fn apply(&self, repo: &mut Repo, tree: Tree) -> Result<Tree, Reply> {
        match self.verb.as_str() {
            "create" => self.create(repo, tree),
            "update" => self.update(repo, tree),
            "move" => self.relocate(repo, tree),
            "delete" => self.delete(tree),
            _ => self.chmod(tree),
        }
    }

    fn mode(&self, otherwise: Mode) -> Mode {
        match self.executable {
            Some(true) => Mode::Executable,
            Some(false) => Mode::File,
            None => otherwise,
        }
    }

    fn create(&self, repo: &mut Repo, mut tree: Tree) -> Result<Tree, Reply> {
        check_free(&tree, &self.path)?;
        let id = repo.put_blob(self.content.clone().unwrap_or_default());
        tree.insert(self.path.clone(), Entry { mode: self.mode(Mode::File), id });
        Ok(tree)
    }

    fn update(&self, repo: &mut Repo, mut tree: Tree) -> Result<Tree, Reply> {
        let mode = tree.get(&self.path).ok_or_else(absent)?.mode;
        let id = repo.put_blob(self.content.clone().unwrap_or_default());
        tree.insert(self.path.clone(), Entry { mode: self.mode(mode), id });
        Ok(tree)
    }

    fn relocate(&self, repo: &mut Repo, mut tree: Tree) -> Result<Tree, Reply> {
        let previous = self.previous_path.as_deref().unwrap_or_default();
        let mut entry = tree.get(previous).cloned().ok_or_else(absent)?;
        check_free(&tree, &self.path)?;
        tree.remove(previous);
        if let Some(content) = &self.content {
            entry.id = repo.put_blob(content.clone());
        }
        entry.mode = self.mode(entry.mode);
        tree.insert(self.path.clone(), entry);
        Ok(tree)
    }

    fn delete(&self, mut tree: Tree) -> Result<Tree, Reply> {
        tree.remove(&self.path).ok_or_else(absent)?;
        Ok(tree)
    }

    fn chmod(&self, mut tree: Tree) -> Result<Tree, Reply> {
        let entry = tree.get_mut(&self.path).ok_or_else(absent)?;
        entry.mode = self.mode(entry.mode);
        Ok(tree)
    }
}

fn read_content(row: &Map<String, Value>, index: usize) -> Result<Option<Bytes>, Reply> {
    let encoding = text(row, "encoding", index)?.unwrap_or_else(|| "text".to_owned());
    let content = text(row, "content", index)?;
    match encoding.as_str() {
        "text" => Ok(content.map(Bytes::from)),
        "base64" => Ok(content.map(|text| decode_base64(&text))),
        _ => Err(bad_request(&format!("actions[{index}][encoding] must be text or base64"))),
    }
}

fn decode_base64(text: &str) -> Bytes {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    STANDARD.decode(compact).unwrap_or_default().into()
}

fn check_path(path: &str) -> Result<(), Reply> {
    if path.is_empty() {
        return Err(message(400, "You must provide a file path"));
    }
    let mut parts = path.split('/');
    if parts.clone().any(|part| part == "..") {
        return Err(message(400, "Path cannot include directory traversal"));
    }
    if parts.any(|part| part.is_empty() || part == "." || part.eq_ignore_ascii_case(".git")) {
        return Err(message(400, format!("invalid path: '{path}'")));
    }
    Ok(())
}

/// Refuses a path that is taken, by a file, a directory, or a file where it needs a directory.
fn check_free(tree: &Tree, path: &str) -> Result<(), Reply> {
    if tree.contains_key(path) {
        return Err(message(400, "A file with this name already exists"));
    }
    if is_directory(tree, path) {
        return Err(message(400, "A directory with this name already exists"));
    }
    let mut above = path;
    while let Some((parent, _)) = above.rsplit_once('/') {
        if tree.contains_key(parent) {
            return Err(message(400, "A file with this name already exists"));
        }
        above = parent;
    }
    Ok(())
}

fn absent() -> Reply {
    message(400, "A file with this name doesn't exist")
}
