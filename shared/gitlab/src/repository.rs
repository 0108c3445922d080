//! Branches, trees and commits.

use crate::call::Call;
use crate::gitlab::GitLab;
use crate::scope::optional;
use crate::wire;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use collie_core::error::{Class, Failure};
use collie_core::files::{FileAction, Verb};
use collie_core::id::Sha;
use collie_core::mr::view::{Branch, ChangedPaths, Commit};
use collie_engine::ports::{NewCommit, ProjectRef, Tree};
use serde::Serialize;
use std::borrow::Cow;

impl GitLab {
    pub(crate) async fn get_branch(&self, project: &ProjectRef, name: &str) -> Result<Option<Branch>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["repository", "branches", name], &[])?;
        let found = optional(scope.read::<wire::Branch>(Call::Branch, url).await)?;
        Ok(found.map(Into::into))
    }

    /// Newer versions answer 404 for a missing directory, older ones an empty list; a commit's root is never missing.
    pub(crate) async fn list_tree(&self, project: &ProjectRef, at: &Sha, directory: &str) -> Result<Tree, Failure> {
        let scope = self.project(project)?;
        let mut query = vec![("ref", at.as_str()), ("pagination", "keyset")];
        if !directory.is_empty() {
            query.push(("path", directory));
        }
        let url = scope.url(&["repository", "tree"], &query)?;
        let rows = optional(scope.rows::<wire::TreeEntry>(Call::Tree, url).await)?;
        let there = rows.filter(|rows| directory.is_empty() || !rows.is_empty());
        Ok(there.map(|rows| rows.into_iter().map(Into::into).collect()))
    }

    pub(crate) async fn get_commit(&self, project: &ProjectRef, sha: &Sha) -> Result<Option<Commit>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["repository", "commits", sha.as_str()], &[("stats", "false")])?;
        let found = optional(scope.read::<wire::Commit>(Call::Commit, url).await)?;
        Ok(found.map(Into::into))
    }

    pub(crate) async fn get_file_sha256(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<String>, Failure> {
        Ok(self.read_file(project, at, path).await?.map(|file| file.content_sha256))
    }

    pub(crate) async fn get_file(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        let Some(file) = self.read_file(project, at, path).await? else { return Ok(None) };
        let bytes = BASE64.decode(file.content.as_bytes());
        bytes.map(Some).map_err(|_| Failure::bug("GitLab sent a file whose content is not base64"))
    }

    async fn read_file(&self, project: &ProjectRef, at: &Sha, path: &str) -> Result<Option<wire::File>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["repository", "files", path], &[("ref", at.as_str())])?;
        optional(scope.read::<wire::File>(Call::File, url).await)
    }

    pub(crate) async fn get_merge_base(&self, project: &ProjectRef, a: &Sha, b: &Sha) -> Result<Option<Sha>, Failure> {
        let scope = self.project(project)?;
        let query = [("refs[]", a.as_str()), ("refs[]", b.as_str())];
        let url = scope.url(&["repository", "merge_base"], &query)?;
        let found = scope.read::<wire::Id>(Call::MergeBase, url).await;
        match found {
            Err(failure) if failure.class == Class::Gone && !failure.message.contains(NO_COMMON_ANCESTOR) => Err(failure),
            found => Ok(optional(found)?.map(|commit| commit.id)),
        }
    }

    pub(crate) async fn compare(&self, project: &ProjectRef, from: &Sha, to: &Sha) -> Result<ChangedPaths, Failure> {
        let scope = self.project(project)?;
        let query = [("from", from.as_str()), ("to", to.as_str()), ("straight", "true")];
        let url = scope.url(&["repository", "compare"], &query)?;
        Ok(scope.read::<wire::Compare>(Call::Compare, url).await?.into())
    }

    pub(crate) async fn post_commit(&self, project: &ProjectRef, commit: &NewCommit<'_>) -> Result<Sha, Failure> {
        let scope = self.project(project)?;
        let body = CommitBody::of(commit)?;
        let url = scope.url(&["repository", "commits"], &[])?;
        let made: wire::Id = scope.write(Call::CreateCommit, url, &body).await?;
        Ok(made.id)
    }

    /// The newest page of pushes; a push of many branches at once has no commits there.
    pub(crate) async fn push_before(&self, project: &ProjectRef, branch: &str, head: &Sha) -> Result<Option<Sha>, Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["events"], &[("action", "pushed"), ("per_page", "100")])?;
        let events: Vec<wire::Event> = scope.read(Call::Pushes, url).await?;
        Ok(events.into_iter().filter_map(|event| event.push_data).find_map(|push| push.replaced_by(branch, head)))
    }

    pub(crate) async fn remove_branch(&self, project: &ProjectRef, name: &str) -> Result<(), Failure> {
        let scope = self.project(project)?;
        let url = scope.url(&["repository", "branches", name], &[])?;
        optional(scope.send(Call::DeleteBranch, url, None).await)?;
        Ok(())
    }
}

/// The text that tells "these have nothing in common" from "one of these does not exist".
const NO_COMMON_ANCESTOR: &str = "404 Merge Base Not Found";

#[derive(Debug, Serialize)]
struct CommitBody<'a> {
    branch: &'a str,
    start_sha: &'a str,
    commit_message: &'a str,
    actions: Vec<ActionBody<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    force: bool,
    stats: bool,
}

#[derive(Debug, Serialize)]
struct ActionBody<'a> {
    action: Verb,
    file_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    execute_filemode: Option<bool>,
}

impl<'a> CommitBody<'a> {
    fn of(commit: &NewCommit<'a>) -> Result<Self, Failure> {
        Ok(Self {
            branch: commit.branch,
            start_sha: commit.start_sha.as_str(),
            commit_message: commit.message,
            actions: pending(commit.actions.get().actions(), commit.pending)?,
            force: commit.force,
            stats: false,
        })
    }
}

/// The actions still to be done, in their order.
fn pending<'a>(actions: &'a [FileAction], pending: &[usize]) -> Result<Vec<ActionBody<'a>>, Failure> {
    let of_index = |index: &usize| actions.get(*index).map(ActionBody::of);
    let bodies: Option<Vec<_>> = pending.iter().map(of_index).collect();
    bodies.ok_or_else(|| Failure::bug("a commit names an action that it does not have"))
}

impl<'a> ActionBody<'a> {
    fn of(action: &'a FileAction) -> Self {
        let content = action.content.as_deref().map(encode);
        Self {
            action: action.verb,
            file_path: &action.file_path,
            previous_path: action.previous_path.as_deref(),
            encoding: content.as_ref().map(|(encoding, _)| *encoding),
            content: content.map(|(_, content)| content),
            execute_filemode: action.execute_filemode,
        }
    }
}

/// Text where JSON carries it unharmed: base64 would take a third more of the size at which GitLab limits the rate.
fn encode(bytes: &[u8]) -> (&'static str, Cow<'_, str>) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => ("text", text.into()),
        _ => ("base64", BASE64.encode(bytes).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn action(verb: Verb, content: Option<&[u8]>) -> FileAction {
        FileAction {
            verb,
            file_path: "a/b".into(),
            previous_path: None,
            content: content.map(<[u8]>::to_vec),
            execute_filemode: None,
            expect: None,
        }
    }

    fn body(action: FileAction) -> serde_json::Value {
        json!(pending(&[action], &[0]).unwrap()[0])
    }

    #[test]
    fn every_verb_has_its_body() {
        let from = FileAction { previous_path: Some("c".into()), ..action(Verb::Move, None) };
        let chmod = FileAction { execute_filemode: Some(false), ..action(Verb::Chmod, None) };
        let table = [
            (action(Verb::Create, Some(b"x\r\n")), json!({"action":"create","file_path":"a/b","encoding":"text","content":"x\r\n"})),
            (action(Verb::Create, Some(b"")), json!({"action":"create","file_path":"a/b","encoding":"text","content":""})),
            (action(Verb::Update, Some(b"\xff")), json!({"action":"update","file_path":"a/b","encoding":"base64","content":"/w=="})),
            (action(Verb::Update, Some(b"a\0")), json!({"action":"update","file_path":"a/b","encoding":"base64","content":"YQA="})),
            (action(Verb::Delete, None), json!({"action":"delete","file_path":"a/b"})),
            (from, json!({"action":"move","file_path":"a/b","previous_path":"c"})),
            (chmod, json!({"action":"chmod","file_path":"a/b","execute_filemode":false})),
        ];
        for (action, want) in table {
            assert_eq!(body(action), want);
        }
    }

    #[test]
    fn only_pending_actions_go_out_and_an_unknown_index_is_a_bug() {
        let actions = [action(Verb::Delete, None), action(Verb::Create, Some(b"x"))];
        let verbs = |indices: &[usize]| pending(&actions, indices).map(|bodies| bodies.iter().map(|b| b.action).collect::<Vec<_>>());
        assert_eq!(verbs(&[1]), Ok(vec![Verb::Create]));
        assert_eq!(verbs(&[]), Ok(vec![]));
        assert_eq!(verbs(&[2]), Err(Failure::bug("a commit names an action that it does not have")));
    }
}
