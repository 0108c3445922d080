//! Trees, files and blobs: `/projects/:id/repository/tree`, `…/files/:file_path[/raw]`, `…/blobs/:sha/raw`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::call::Call;
use crate::git::{Child, Commit, Entry, Mode, Tree, children, is_directory};
use crate::pagination::{Totals, keyset, paginate};
use crate::project::Project;
use crate::reply::{Answer, Reply, missing, not_found};
use crate::state::State;

fn reference(project: &Project, call: &Call) -> String {
    let name = call.params.text("ref").filter(|name| name != "HEAD");
    name.unwrap_or_else(|| project.default_branch.clone())
}

/// `GET …/tree`
pub(crate) fn tree(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let commit = project.repo.resolve(&reference(project, call)).ok_or_else(|| not_found("Tree"))?;
    let path = call.params.text("path").unwrap_or_default();
    let path = path.trim_matches('/');
    if !path.is_empty() && !is_directory(&commit.tree, path) {
        return if state.major() >= 17 { Err(not_found("invalid revision or path")) } else { Ok(Reply::json(200, &json!([]))) };
    }
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let mut rows = Vec::new();
    add_rows(&commit.tree, &prefix, call.params.is_set("recursive"), &mut rows);
    if call.params.text("pagination").as_deref() == Some("keyset") {
        return keyset(state, call, rows, "id");
    }
    paginate(state, call, rows, Totals::Sent)
}

/// Directories first, then files, each by name; a recursive listing goes on below.
fn add_rows(tree: &Tree, prefix: &str, recursive: bool, rows: &mut Vec<Value>) {
    let (directories, files): (Vec<Child>, Vec<Child>) = children(tree, prefix).into_iter().partition(|child| child.mode.is_none());
    for child in directories.iter().chain(&files) {
        rows.push(row(prefix, child));
    }
    for child in directories.iter().filter(|_| recursive) {
        add_rows(tree, &format!("{prefix}{}/", child.name), true, rows);
    }
}

fn row(prefix: &str, child: &Child) -> Value {
    let kind = match child.mode {
        None => "tree",
        Some(Mode::Submodule) => "commit",
        Some(_) => "blob",
    };
    let mode = child.mode.map_or("040000", Mode::text);
    json!({ "id": child.id, "name": child.name, "type": kind, "path": format!("{prefix}{}", child.name), "mode": mode })
}

struct Found<'a> {
    commit: &'a Commit,
    path: String,
    entry: &'a Entry,
    content: Bytes,
    last_commit: String,
    reference: String,
}

impl<'a> Found<'a> {
    fn find(project: &'a Project, call: &Call) -> Result<Self, Reply> {
        let reference = reference(project, call);
        let commit = project.repo.resolve(&reference).ok_or_else(|| not_found("Commit"))?;
        let path = call.capture("file_path").to_owned();
        let entry = commit.tree.get(&path).ok_or_else(|| not_found("File"))?;
        let content = project.repo.blob(&entry.id).cloned().unwrap_or_default();
        let last_commit = project.repo.last_commit_for(commit, &path).id.clone();
        Ok(Self { commit, path, entry, content, last_commit, reference })
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    fn json(&self) -> Value {
        json!({
            "file_name": self.name(), "file_path": self.path, "size": self.content.len(), "encoding": "base64",
            "content_sha256": hex::encode(Sha256::digest(&self.content)), "ref": self.reference, "blob_id": self.entry.id,
            "commit_id": self.commit.id, "last_commit_id": self.last_commit,
            "execute_filemode": self.entry.mode == Mode::Executable, "content": STANDARD.encode(&self.content),
        })
    }

    fn with_headers(&self, reply: Reply) -> Reply {
        reply
            .with_header("X-Gitlab-Blob-Id", &*self.entry.id)
            .with_header("X-Gitlab-Commit-Id", &*self.commit.id)
            .with_header("X-Gitlab-Last-Commit-Id", &*self.last_commit)
            .with_header("X-Gitlab-Content-Sha256", hex::encode(Sha256::digest(&self.content)))
            .with_header("X-Gitlab-Encoding", "base64")
            .with_header("X-Gitlab-Execute-Filemode", (self.entry.mode == Mode::Executable).to_string())
            .with_header("X-Gitlab-File-Name", self.name())
            .with_header("X-Gitlab-File-Path", &*self.path)
            .with_header("X-Gitlab-Ref", &*self.reference)
            .with_header("X-Gitlab-Size", self.content.len().to_string())
    }
}

/// `GET …/files/:file_path`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    if !call.params.has("ref") {
        return Err(missing("ref"));
    }
    let found = Found::find(project, call)?;
    Ok(found.with_headers(Reply::json(200, &found.json())))
}

/// `HEAD …/files/:file_path`
pub(crate) fn head(state: &mut State, call: &Call) -> Answer {
    let found = Found::find(call.project(state)?, call)?;
    Ok(found.with_headers(Reply::empty(200)))
}

/// `GET …/files/:file_path/raw`
pub(crate) fn raw(state: &mut State, call: &Call) -> Answer {
    let found = Found::find(call.project(state)?, call)?;
    Ok(found.with_headers(Reply::text(200, found.content.clone())))
}

/// `GET …/blobs/:sha/raw`
pub(crate) fn blob_raw(state: &mut State, call: &Call) -> Answer {
    let project = call.project(state)?;
    let content = project.repo.blob(call.capture("sha")).ok_or_else(|| not_found("Blob"))?;
    Ok(Reply::typed(200, "application/octet-stream", content.clone()))
}
