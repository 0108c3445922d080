//! Takes a submission in: inspect, decide what it does to the current life of its branch, store, wake (DDR-9, 39, 40).
//!
//! Nothing is written before every check passed. A loser of a race reads again and takes the row for what it finds. Repeating
//! a submission is safe: the same one makes one item, and an unchanged one writes nothing (INV-9).

use crate::Engine;
use crate::access::Caller;
use crate::item_type::ItemType;
use crate::lifecycle::caller_audit;
use crate::ports::{ChangeError, Created};
use crate::settings::Project;
use collie_core::access::{Denied, Labels, Work};
use collie_core::error::Failure;
use collie_core::files::{ContentHash, FileAction};
use collie_core::id::BranchIdentity;
use collie_core::item::{Birth, BranchHead, Content, Dimension, Document, Item, Phase};
use collie_core::mr::dims;
use collie_core::mr::facts::Facts;
use collie_core::mr::wanted::{OnConflict, Wanted, metadata_hash};
use collie_core::policy::{Subject, Violation};
use collie_core::queue::{Change, Creation, Enqueue, Update};
use collie_core::time::Timestamp;
use collie_core::upsert::{self, Desired, Upsert};
use std::time::Duration;

/// Times a submission that lost a race reads again.
const ROUNDS: u32 = 5;

/// What a caller submits, decoded.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The item type.
    pub item_type: String,
    /// The project's path.
    pub project: String,
    /// The branch Collie is to push to.
    pub source_branch: String,
    /// The branch to merge into.
    pub target_branch: String,
    /// The title.
    pub title: String,
    /// The description.
    pub description: String,
    /// Labels.
    pub labels: Vec<String>,
    /// The commit message; the title where there is none.
    pub commit_message: Option<String>,
    /// Flags.
    pub wanted: Wanted,
    /// The files.
    pub file_actions: Vec<FileAction>,
}

impl Submission {
    /// What it asks for, as grants look at it.
    fn work(&self) -> Work<'_> {
        Work {
            item_type: &self.item_type,
            project: &self.project,
            source_branch: &self.source_branch,
            target_branch: &self.target_branch,
            labels: Labels::Known(&self.labels),
            auto_merge: self.wanted.auto_merge,
            overwrite: self.wanted.overwrite || self.wanted.on_conflict == OnConflict::Overwrite,
            of_others: false,
        }
    }
}

impl Submission {
    /// What the policy looks at.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            actions: &self.file_actions,
            source_branch: &self.source_branch,
            target_branch: &self.target_branch,
            title: &self.title,
            description: &self.description,
            labels: &self.labels,
            commit_message: self.commit_message.as_deref(),
        }
    }
}

/// What a submission did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A new item.
    Created,
    /// Nothing.
    Unchanged,
    /// The current item wants something else now.
    Updated,
    /// A failed item is active again.
    Retried,
}

impl Outcome {
    /// The word of the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Unchanged => "unchanged",
            Self::Updated => "updated",
            Self::Retried => "retried",
        }
    }
}

/// A stored submission.
#[derive(Debug, Clone, PartialEq)]
pub struct Submitted {
    /// What it did.
    pub outcome: Outcome,
    /// The item as it is.
    pub item: Item,
    /// Its content.
    pub content: Content,
}

/// Why a submission was not stored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such project is configured.
    #[error("the project is not configured")]
    UnknownProject,
    /// This deployment does not handle the type.
    #[error("items of type {0:?} are not handled here")]
    UnhandledType(String),
    /// No grant of the caller covers it.
    #[error(transparent)]
    Forbidden(Denied),
    /// It breaks rules; all of them.
    #[error("the submission breaks {} rule(s)", .0.len())]
    Policy(Vec<Violation>),
    /// The current item is about to be cancelled.
    #[error("the work item is being cancelled")]
    CancelPending,
    /// Others kept moving the item.
    #[error("others are changing this work item")]
    Contended,
    /// The row would grow beyond its limit.
    #[error("the work item's row is full")]
    TooLarge,
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// A submission that passed inspection, in the form rows have.
struct Passed<'a> {
    caller: &'a Caller,
    project: &'a Project,
    submission: &'a Submission,
    branch: BranchIdentity,
    content: Content,
    content_hash: ContentHash,
    metadata_hash: String,
    policy_version: String,
}

/// What a round came to.
enum Round {
    Done(Box<Submitted>),
    LostRace,
}

impl Engine {
    /// Stores a submission.
    ///
    /// # Errors
    /// [`Error`] says what to change, or to try again.
    pub async fn submit(&self, caller: &Caller, submission: &Submission) -> Result<Submitted, Error> {
        let passed = self.inspect(caller, submission)?;
        for _ in 0..ROUNDS {
            if let Round::Done(submitted) = self.submit_round(&passed).await? {
                if submitted.outcome != Outcome::Unchanged {
                    self.ring(&submitted.item.id, Duration::ZERO).await;
                }
                return Ok(*submitted);
            }
        }
        Err(Error::Contended)
    }

    /// Checks a submission and says what storing it would do; writes nothing.
    ///
    /// # Errors
    /// The same that [`Engine::submit`] gives.
    pub async fn validate(&self, caller: &Caller, submission: &Submission) -> Result<Outcome, Error> {
        let passed = self.inspect(caller, submission)?;
        let found = self.current_life(&passed.branch).await?;
        match self.decide(&passed, found.as_ref().map(|(_, item)| item)).await? {
            Upsert::Create => Ok(Outcome::Created),
            Upsert::Unchanged => Ok(Outcome::Unchanged),
            Upsert::UpdateContent | Upsert::UpdateMetadata => Ok(Outcome::Updated),
            Upsert::Revive => Ok(Outcome::Retried),
            Upsert::CancelPending => Err(Error::CancelPending),
        }
    }

    fn inspect<'a>(&'a self, caller: &'a Caller, submission: &'a Submission) -> Result<Passed<'a>, Error> {
        if let Some(denied) = caller.grants.deny(&submission.work()) {
            return Err(Error::Forbidden(denied));
        }
        let takes = self.types.get(&submission.item_type).is_some_and(ItemType::takes_submissions);
        if !takes || !self.settings.handles(&submission.item_type) {
            return Err(Error::UnhandledType(submission.item_type.clone()));
        }
        let project = self.settings.project(&submission.project).ok_or(Error::UnknownProject)?;
        let inspected = project.policy.inspect(&submission.subject()).map_err(Error::Policy)?;
        let content = Content {
            title: submission.title.clone(),
            description: submission.description.clone(),
            labels: submission.labels.clone(),
            commit_message: submission.commit_message.clone().unwrap_or_else(|| submission.title.clone()),
            actions: inspected.get().records(),
        };
        Ok(Passed {
            caller,
            project,
            submission,
            branch: BranchIdentity {
                host: project.at.host.clone(),
                project_id: project.at.id,
                source_branch: submission.source_branch.clone(),
            },
            content_hash: inspected.content_hash().clone(),
            metadata_hash: metadata_hash(&content, &submission.wanted),
            policy_version: inspected.policy_version().to_owned(),
            content,
        })
    }

    pub(crate) async fn current_life(&self, branch: &BranchIdentity) -> Result<Option<(BranchHead, Item)>, Failure> {
        let Some(head) = self.ports.items.head(branch).await? else { return Ok(None) };
        let item = self.ports.items.item(&head.item_id).await?;
        let item = item.ok_or_else(|| Failure::bug(format!("the branch head names item {}, which is missing", head.item_id)))?;
        Ok(Some((head, item)))
    }

    async fn submit_round(&self, passed: &Passed<'_>) -> Result<Round, Error> {
        let found = self.current_life(&passed.branch).await?;
        let upsert = self.decide(passed, found.as_ref().map(|(_, item)| item)).await?;
        match (upsert, found) {
            (Upsert::CancelPending, _) => Err(Error::CancelPending),
            (Upsert::Unchanged, Some((_, item))) => Ok(passed.done(Outcome::Unchanged, item)),
            (Upsert::UpdateContent | Upsert::UpdateMetadata, Some((_, item))) => self.update(passed, item, upsert).await,
            (Upsert::Revive, Some((_, item))) => self.update(passed, item, upsert).await,
            (_, found) => self.create(passed, found).await,
        }
    }

    /// What the submission does to the life that was found, where the caller may do that.
    async fn decide(&self, passed: &Passed<'_>, found: Option<&Item>) -> Result<Upsert, Error> {
        let of_others = found.filter(|item| !item.phase.is_over() && item.caller_identity != passed.caller.identity);
        if let Some(item) = of_others
            && !self.may_take_over(passed.caller, item, &passed.submission.work()).await?
        {
            return Err(Error::Forbidden(Denied::Others));
        }
        Ok(upsert::decide(found, &passed.desired()))
    }

    async fn create(&self, passed: &Passed<'_>, found: Option<(BranchHead, Item)>) -> Result<Round, Error> {
        let now = self.ports.clock.now();
        let item = self.new_item(passed, found.as_ref().map(|(head, _)| head), now);
        self.store_bytes(&item.id, &passed.submission.file_actions).await?;
        let creation = Creation { item, content: passed.content.clone(), replaces: found.map(|(head, _)| head) };
        match self.create_surely(&creation).await? {
            Created::Yes => Ok(passed.done(Outcome::Created, creation.item)),
            Created::LostRace => Ok(Round::LostRace),
        }
    }

    /// Sends a creation until the store says what became of it; the item's id makes repeating it safe.
    pub(crate) async fn create_surely(&self, creation: &Creation) -> Result<Created, Failure> {
        let mut last = self.ports.items.create(creation).await;
        for _ in 1..crate::STORE_TRIES {
            match last {
                Err(f) if crate::may_be_sent_again(&f) => last = self.ports.items.create(creation).await,
                done => return done,
            }
        }
        last
    }

    fn new_item(&self, passed: &Passed<'_>, replaces: Option<&BranchHead>, now: Timestamp) -> Item {
        let id = self.ports.ids.item_id(now);
        let generation = replaces.map_or(1, |head| head.generation + 1);
        let seed = self.types.get(&passed.submission.item_type).map(|t| t.seed(now)).unwrap_or_default();
        let audit = caller_audit(&id, 1, "submitted", &passed.caller.identity, Phase::Active, now);
        let birth = Birth {
            id,
            item_type: passed.submission.item_type.clone(),
            branch: passed.branch.clone(),
            project: passed.project.path.clone(),
            caller_identity: passed.caller.identity.clone(),
            generation,
            previous_item_id: replaces.map(|head| head.item_id.clone()),
            at: now,
            token: self.ports.ids.token(),
            dims: seed,
            audit,
            content_hash: passed.content_hash.clone(),
            metadata_hash: passed.metadata_hash.clone(),
            target: passed.submission.target_branch.clone(),
            policy_version: passed.policy_version.clone(),
            wanted: Document::of(&passed.submission.wanted),
            facts: Facts::default().document(),
        };
        birth.item()
    }

    async fn update(&self, passed: &Passed<'_>, item: Item, upsert: Upsert) -> Result<Round, Error> {
        self.store_bytes(&item.id, &passed.submission.file_actions).await?;
        let now = self.ports.clock.now();
        let revives = upsert == Upsert::Revive;
        let kind = if revives { "retried" } else { "updated" };
        let change = Update {
            rev: item.rev,
            token: self.ports.ids.token(),
            content: passed.content.clone(),
            content_hash: passed.content_hash.clone(),
            metadata_hash: passed.metadata_hash.clone(),
            target: passed.submission.target_branch.clone(),
            policy_version: passed.policy_version.clone(),
            wanted: Document::of(&passed.submission.wanted),
            revives,
            enqueue: Enqueue { dims: dimensions_of(upsert, item.blocked.is_some()), now },
            audit: caller_audit(&item.id, item.rev + 1, kind, &passed.caller.identity, Phase::Active, now),
        };
        match self.change(&item.id, &Change::Update(Box::new(change))).await {
            Ok(item) => Ok(passed.done(if revives { Outcome::Retried } else { Outcome::Updated }, item)),
            Err(ChangeError::Refused(_)) => Ok(Round::LostRace),
            Err(ChangeError::TooLarge) => Err(Error::TooLarge),
            Err(ChangeError::Failed(failure)) => Err(failure.into()),
        }
    }
}

impl Passed<'_> {
    fn desired(&self) -> Desired<'_> {
        Desired { content_hash: &self.content_hash, metadata_hash: &self.metadata_hash, target: &self.submission.target_branch }
    }

    fn done(&self, outcome: Outcome, item: Item) -> Round {
        Round::Done(Box::new(Submitted { outcome, item, content: self.content.clone() }))
    }
}

/// What an update asks for: metadata is reconciled without a commit, everything else is built. Deferrals are cleared. A blocked item
/// builds nothing; it looks at once whether what blocks it concerns the new content.
fn dimensions_of(upsert: Upsert, blocked: bool) -> Vec<(collie_core::item::DimensionKey, Dimension)> {
    let (build, look) = (upsert != Upsert::UpdateMetadata, upsert == Upsert::UpdateMetadata || blocked);
    let wanted = [(dims::mr(), build), (dims::reconcile(), look)];
    wanted.into_iter().filter(|(_, needed)| *needed).map(|(key, _)| (key, Dimension::needed())).collect()
}

/// The row of the next life, where content arrived that the merged one did not hold.
pub(crate) fn successor(engine: &Engine, item: &Item, content: Content, head: BranchHead, now: Timestamp) -> Creation {
    let id = engine.ports.ids.item_id(now);
    let seed = engine.types.get(&item.item_type).map(|t| t.seed(now)).unwrap_or_default();
    let audit = caller_audit(&id, 1, "submitted", &item.caller_identity, Phase::Active, now);
    let birth = Birth {
        id,
        item_type: item.item_type.clone(),
        branch: item.branch.clone(),
        project: item.project.clone(),
        caller_identity: item.caller_identity.clone(),
        generation: head.generation + 1,
        previous_item_id: Some(item.id.clone()),
        at: now,
        token: engine.ports.ids.token(),
        dims: seed,
        audit,
        content_hash: item.content_hash.clone(),
        metadata_hash: item.metadata_hash.clone(),
        target: item.target.clone(),
        policy_version: item.policy_version.clone(),
        wanted: item.wanted.clone(),
        facts: Facts::default().document(),
    };
    Creation { item: birth.item(), content, replaces: Some(head) }
}
