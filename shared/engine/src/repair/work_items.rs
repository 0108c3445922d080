//! The executor `work_item`: openings become work items of the type `issue`, one for each task; a closing makes its item look again.

use crate::Engine;
use crate::access::Caller;
use crate::lifecycle::{self, caller_audit};
use crate::ports::Created;
use crate::settings::{Project, Queue};
use crate::tracking::repair::Executor;
use async_trait::async_trait;
use collie_core::error::{Class, Failure};
use collie_core::files::ContentHash;
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::Issue;
use collie_core::item::{Birth, BranchHead, Content, Document, Item, Phase};
use collie_core::queue::Creation;
use collie_core::repair::{self, Facts, ITEM_TYPE, Wanted, text};
use std::collections::BTreeSet;
use std::time::Duration;

/// Times a task whose item others move is read again.
const ROUNDS: u32 = 5;
/// Who submits these items.
const IDENTITY: &str = "collie|repair";

/// The executor.
#[derive(Clone)]
pub struct WorkItems {
    engine: Engine,
}

impl WorkItems {
    /// The executor over an engine that knows the type.
    #[must_use]
    pub const fn new(engine: Engine) -> Self {
        Self { engine }
    }

    fn project(&self, queue: &Queue) -> Result<&Project, Failure> {
        let missing =
            || Failure::rejected("unknown_project", format!("project {:?} of queue {} is not configured", queue.project, queue.name));
        self.engine.settings().project(&queue.project).ok_or_else(missing)
    }

    /// Makes the task's item look at what is open; where there is none, or it has ended, a new life begins.
    async fn keep(&self, queue: &Queue, task: &str) -> Result<(), Failure> {
        let project = self.project(queue)?;
        for _ in 0..ROUNDS {
            let done = match self.current(queue, project, task).await? {
                Some((_, item)) if item.phase == Phase::Active => self.engine.look_again(&item).await?,
                Some((_, item)) if item.phase == Phase::Failed => self.revive(&item).await?,
                found => self.create(queue, project, task, found.map(|(head, _)| head)).await?,
            };
            if done {
                return Ok(());
            }
        }
        Err(Failure::new(Class::Conflict, "store_contended", "others keep moving the work item of this task"))
    }

    async fn current(&self, queue: &Queue, project: &Project, task: &str) -> Result<Option<(BranchHead, Item)>, Failure> {
        self.engine.current_life(&repair::identity(&project.at.host, project.at.id, &queue.name, task)).await
    }

    async fn revive(&self, item: &Item) -> Result<bool, Failure> {
        match self.engine.retry(&Caller::admin(IDENTITY), &item.id, false).await {
            Ok(_) => Ok(true),
            Err(lifecycle::Error::Failed(failure)) => Err(failure),
            Err(_) => Ok(false),
        }
    }

    async fn create(&self, queue: &Queue, project: &Project, task: &str, replaces: Option<BranchHead>) -> Result<bool, Failure> {
        let creation = self.creation(queue, project, task, replaces);
        let is_new = self.engine.create_surely(&creation).await? == Created::Yes;
        if is_new {
            self.engine.ring(&creation.item.id, Duration::ZERO).await;
        }
        Ok(is_new)
    }

    fn creation(&self, queue: &Queue, project: &Project, task: &str, replaces: Option<BranchHead>) -> Creation {
        let now = self.engine.ports.clock.now();
        let id = self.engine.ports.ids.item_id(now);
        let wanted = Wanted { queue: queue.name.clone(), task: task.to_owned(), reference: queue.reference.clone() };
        let title = text::title(&wanted);
        let birth = Birth {
            audit: caller_audit(&id, 1, "submitted", IDENTITY, Phase::Active, now),
            id,
            item_type: ITEM_TYPE.to_owned(),
            branch: repair::identity(&project.at.host, project.at.id, &queue.name, task),
            project: project.path.clone(),
            caller_identity: IDENTITY.to_owned(),
            generation: replaces.as_ref().map_or(1, |head| head.generation + 1),
            previous_item_id: replaces.as_ref().map(|head| head.item_id.clone()),
            at: now,
            token: self.engine.ports.ids.token(),
            dims: repair::decide::seed(),
            content_hash: ContentHash::of(&[]),
            metadata_hash: String::new(),
            target: queue.reference.clone(),
            policy_version: String::new(),
            wanted: Document::of(&wanted),
            facts: Facts::default().document(),
        };
        let content = Content { title, description: String::new(), labels: Vec::new(), commit_message: String::new(), actions: Vec::new() };
        Creation { item: birth.item(), content, replaces }
    }
}

#[async_trait]
impl Executor for WorkItems {
    fn name(&self) -> &'static str {
        "work_item"
    }

    async fn opened(&self, queue: &Queue, openings: &[Issue]) -> Result<(), Failure> {
        let tasks: BTreeSet<&str> = openings.iter().map(|issue| issue.key.task()).collect();
        for task in tasks {
            self.keep(queue, task).await?;
        }
        Ok(())
    }

    /// An item that has ended already has nothing to close.
    async fn closed(&self, queue: &Queue, key: &IssueKey) -> Result<(), Failure> {
        let project = self.project(queue)?;
        if let Some((_, item)) = self.current(queue, project, key.task()).await? {
            self.engine.look_again(&item).await?;
        }
        Ok(())
    }
}
