//! The content of an item's revision: action list from the store, bytes from the archive, inspected again (INV-1).

use crate::Engine;
use crate::ports::ProjectRef;
use crate::settings::Project;
use collie_core::error::Failure;
use collie_core::files::{ActionRecord, FileAction, sha256_hex};
use collie_core::id::{ItemId, Sha};
use collie_core::item::{Content, Item};
use collie_core::policy::{FileActions, Inspected, Policy, Subject, Violation, can_be_included, local_includes};

/// Where GitLab looks for a project's CI definition unless its settings say otherwise.
const CI_DEFINITION: &str = ".gitlab-ci.yml";
/// Files of a CI definition that are read; GitLab itself stops at 150.
const MAX_INCLUDES: usize = 150;

/// Where the bytes of an item's file lie: under the item's own prefix, by their digest.
pub(crate) fn blob_key(id: &ItemId, sha256: &str) -> String {
    format!("content/{id}/{sha256}")
}

/// Findings that the error of an item names; all of them are in the answer to a submission.
const MOST_NAMED: usize = 3;

/// Content that passed when it was submitted, and does not any more: every finding, as far as they fit.
fn refused(item: &Item, version: &str, violations: &[Violation]) -> Failure {
    let since = if item.policy_version == version { "" } else { ", which has changed since the submission" };
    let named: Vec<_> = violations.iter().take(MOST_NAMED).map(|v| format!("{}: {}", v.path, v.message)).collect();
    let rest = violations.len().saturating_sub(MOST_NAMED);
    let more = if rest == 0 { String::new() } else { format!("; and {rest} more") };
    Failure::rejected("policy", format!("the content no longer passes the policy{since}: {}{more}", named.join("; ")))
}

impl Engine {
    /// Reads the cold part of a revision.
    pub(crate) async fn content(&self, id: &ItemId, rev: u64) -> Result<Content, Failure> {
        let content = self.ports.items.content(id, rev).await?;
        content.ok_or_else(|| Failure::bug(format!("revision {rev} of item {id} has no content")))
    }

    /// The cold part of the newest revision that has one: a retry or a cancel moves `rev` without new content.
    pub(crate) async fn latest_content(&self, item: &Item) -> Result<(u64, Content), Failure> {
        for rev in (1..=item.rev).rev() {
            if let Some(content) = self.ports.items.content(&item.id, rev).await? {
                return Ok((rev, content));
            }
        }
        Err(Failure::bug(format!("item {} has no content", item.id)))
    }

    /// Stores file bytes before the row that names them.
    pub(crate) async fn store_bytes(&self, id: &ItemId, actions: &[FileAction]) -> Result<(), Failure> {
        for bytes in actions.iter().filter_map(|a| a.content.as_ref()) {
            self.ports.archive.put_new(&blob_key(id, &sha256_hex(bytes)), bytes.clone()).await?;
        }
        Ok(())
    }

    /// Copies the bytes of a revision to the next life of its identity.
    pub(crate) async fn copy_bytes(&self, from: &ItemId, to: &ItemId, actions: &[ActionRecord]) -> Result<(), Failure> {
        for sha256 in actions.iter().filter_map(|a| a.sha256.as_deref()) {
            let bytes = self.read_bytes(from, sha256).await?;
            self.ports.archive.put_new(&blob_key(to, sha256), bytes).await?;
        }
        Ok(())
    }

    /// Reads the files of a revision and inspects them again, with what only GitLab knows at the commit they go onto: what is
    /// pushed is what passed.
    pub(crate) async fn inspected(
        &self,
        item: &Item,
        content: &Content,
        project: &Project,
        onto: &Sha,
    ) -> Result<Inspected<FileActions>, Failure> {
        let mut actions = Vec::with_capacity(content.actions.len());
        for record in &content.actions {
            actions.push(self.file_action(&item.id, record).await?);
        }
        let subject = Subject {
            actions: &actions,
            source_branch: &item.branch.source_branch,
            target_branch: &item.target,
            title: &content.title,
            description: &content.description,
            labels: &content.labels,
            commit_message: Some(&content.commit_message),
        };
        let policy = self.policy_at(project, content, onto).await?;
        let inspected = policy.inspect(&subject).map_err(|violations| refused(item, policy.version(), &violations))?;
        if *inspected.content_hash() != item.content_hash {
            return Err(Failure::bug("the stored files are not the ones that were submitted"));
        }
        Ok(inspected)
    }

    /// The project's policy, with the files protected that the CI definition includes at a commit. They are asked for only where
    /// a file could be one of them.
    async fn policy_at(&self, project: &Project, content: &Content, onto: &Sha) -> Result<Policy, Failure> {
        if !content.actions.iter().flat_map(ActionRecord::paths).any(can_be_included) {
            return Ok(project.policy.clone());
        }
        let included = self.ci_includes(&project.at, onto).await?;
        let unusable = |_| Failure::rejected("policy", "the project's CI definition includes paths that cannot be protected");
        project.policy.protecting(&included).map_err(unusable)
    }

    /// Every file of the repository that the CI definition includes at a commit, through included files too.
    async fn ci_includes(&self, at: &ProjectRef, commit: &Sha) -> Result<Vec<String>, Failure> {
        let (mut included, mut todo) = (Vec::new(), vec![CI_DEFINITION.to_owned()]);
        let mut read = 0;
        while let Some(path) = todo.pop() {
            read += 1;
            if read > MAX_INCLUDES {
                return Err(Failure::rejected("policy", format!("the CI definition includes more than {MAX_INCLUDES} files")));
            }
            let definition = self.ports.forge.file(at, commit, &path).await?.unwrap_or_default();
            for found in local_includes(&definition) {
                if !included.contains(&found) {
                    todo.extend((!found.contains('*')).then(|| found.clone()));
                    included.push(found);
                }
            }
        }
        Ok(included)
    }

    async fn file_action(&self, id: &ItemId, record: &ActionRecord) -> Result<FileAction, Failure> {
        let content = match &record.sha256 {
            Some(sha256) => Some(self.read_bytes(id, sha256).await?),
            None => None,
        };
        Ok(FileAction {
            verb: record.action,
            file_path: record.file_path.clone(),
            previous_path: record.previous_path.clone(),
            content,
            execute_filemode: record.execute_filemode,
            expect: record.expect.clone(),
        })
    }

    async fn read_bytes(&self, id: &ItemId, sha256: &str) -> Result<Vec<u8>, Failure> {
        let bytes = self.ports.archive.get(&blob_key(id, sha256)).await?;
        bytes.filter(|b| sha256_hex(b) == sha256).ok_or_else(|| Failure::bug("stored file bytes are missing or damaged"))
    }
}
