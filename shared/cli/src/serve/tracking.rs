//! Issue tracking in process: what FIFO queues, their dead letters and an event bus do on AWS.
//!
//! One worker at a time looks at a queue; what waits is looked at again by time. What opened, and what closed, is brought to those who repair.
//! Openings and closings are lines of `events.jsonl` in the
//! data directory, for whoever wants to follow them.

use super::SystemClock;
use super::doorbell::{Doorbell, Rings, doorbell};
use super::lock::DataDir;
use super::stop::Stop;
use super::store::Store;
use super::workers::{Pool, Run};
use async_trait::async_trait;
use collie_core::error::{Class, Failure};
use collie_core::issue::delivery::Reason;
use collie_core::issue::hook::{HookEvent, Notice, Repair as Offer};
use collie_core::issue::id::{QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::Event;
use collie_engine::ports::{Clock as _, Jobs, Notices};
use collie_engine::settings::{Queue, Settings};
use collie_engine::tracking::work::Turn;
use collie_engine::tracking::{Tracking, TrackingPorts};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Queues that are worked for at once.
const AT_ONCE: usize = 4;
/// How long one look at a queue goes on before others have their turn.
const LOOK: Duration = Duration::from_secs(30);
/// When a dead letter whose recovery failed is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// A job that recovery is to give up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Letter {
    queue: QueueName,
    job: RequestId,
}

impl fmt::Display for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.job)
    }
}

/// What those who repair are to hear.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum News {
    /// A pass may have opened issues.
    Opened(QueueName, Offer),
    /// An issue has closed.
    Closed(QueueName, IssueKey),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened(queue, offer) => write!(f, "{queue}: openings of build {}", offer.build_id),
            Self::Closed(queue, key) => write!(f, "{queue}: {key} has closed"),
        }
    }
}

/// The lines of jobs, of dead letters and of repairs.
pub(crate) struct Line {
    bells: Bells,
    jobs: Rings<QueueName>,
    letters: Rings<Letter>,
    news: Rings<News>,
}

#[derive(Clone)]
struct Bells {
    jobs: Doorbell<QueueName>,
    letters: Doorbell<Letter>,
    news: Doorbell<News>,
    events: PathBuf,
}

impl Line {
    /// Lines that tell openings and closings in this data directory.
    pub(crate) fn new(data_dir: &DataDir) -> Self {
        let ((job_bell, jobs), (letter_bell, letters), (news_bell, news)) = (doorbell(), doorbell(), doorbell());
        let bells = Bells { jobs: job_bell, letters: letter_bell, news: news_bell, events: data_dir.join("events.jsonl") };
        Self { bells, jobs, letters, news }
    }

    /// The use cases over the store and these lines.
    pub(crate) fn tracking(&self, store: &Store, settings: Arc<Settings>) -> Tracking {
        let bells = Arc::new(self.bells.clone());
        let (rows, clock) = (Arc::new(store.tracking.clone()), Arc::new(SystemClock));
        Tracking::new(TrackingPorts { rows, jobs: Arc::clone(&bells) as Arc<dyn Jobs>, notices: bells, clock }, settings)
    }

    /// Works for all queues, for dead letters and for those who repair, until told to stop. What a process before left is looked at first.
    pub(crate) fn work(self, tracking: Tracking, stop: Stop) -> JoinSet<()> {
        let Self { bells, jobs, letters, news } = self;
        tracking.queues().iter().for_each(|queue| bells.jobs.ring(queue.name.clone(), Duration::ZERO));
        let mut pools = JoinSet::new();
        let (recovery, repairs) = (tracking.clone(), tracking.clone());
        let work = move |queue: QueueName| -> Run {
            let tracking = tracking.clone();
            Box::pin(async move { look(&tracking, &queue).await })
        };
        let recover = move |letter: Letter| -> Run {
            let tracking = recovery.clone();
            Box::pin(async move { recover(&tracking, &letter).await })
        };
        let tell = move |news: News| -> Run {
            let tracking = repairs.clone();
            Box::pin(async move { tell(&tracking, &news).await })
        };
        pools.spawn(Pool::new(work, jobs, AT_ONCE).work(stop.clone()));
        pools.spawn(Pool::new(recover, letters, AT_ONCE).work(stop.clone()));
        pools.spawn(Pool::new(tell, news, AT_ONCE).work(stop));
        pools
    }
}

async fn look(tracking: &Tracking, name: &QueueName) -> Option<Duration> {
    let queue: Queue = tracking.queue(name.as_str())?.clone();
    match tracking.work(&queue, None, SystemClock.now().after(LOOK)).await {
        Ok(Turn::Done) => None,
        Ok(Turn::Hold(after)) => Some(after),
        Err(setback) => {
            let failure = setback.failure;
            tracing::warn!(queue = %name, code = failure.code, message = failure.message, "a queue's issues cannot be tracked; trying again");
            Some(setback.after)
        }
    }
}

async fn recover(tracking: &Tracking, letter: &Letter) -> Option<Duration> {
    match tracking.recover(&letter.queue, letter.job).await {
        Ok(Turn::Done) => None,
        Ok(Turn::Hold(after)) => Some(after),
        Err(failure) => {
            tracing::warn!(job = %letter, code = failure.code, message = failure.message, "a job cannot be given up; trying again");
            Some(TRY_AGAIN)
        }
    }
}

async fn tell(tracking: &Tracking, news: &News) -> Option<Duration> {
    let told = match news {
        News::Opened(queue, offer) => tracking.repair(tracking.queue(queue.as_str())?, offer).await.map(drop),
        News::Closed(queue, key) => tracking.repaired(tracking.queue(queue.as_str())?, key).await,
    };
    let failure = told.err()?;
    tracing::warn!(%news, code = failure.code, message = failure.message, "those who repair did not hear; telling them again");
    Some(TRY_AGAIN)
}

#[async_trait]
impl Jobs for Bells {
    async fn ring(&self, queue: &QueueName, _job: RequestId, _occasion: &str) -> Result<(), Failure> {
        self.jobs.ring(queue.clone(), Duration::ZERO);
        Ok(())
    }

    fn hurry(&self, queue: &QueueName) {
        self.jobs.ring(queue.clone(), Duration::ZERO);
    }

    async fn dead_letter(&self, queue: &QueueName, job: RequestId, _attempt: u32, _reason: Reason) -> Result<(), Failure> {
        self.letters.ring(Letter { queue: queue.clone(), job }, Duration::ZERO);
        Ok(())
    }
}

#[async_trait]
impl Notices for Bells {
    async fn publish(&self, queue: &QueueName, notice: &Notice) -> Result<(), Failure> {
        match notice {
            Notice::Hook(hook) => {
                if hook.event == Event::Closed {
                    self.news.ring(News::Closed(queue.clone(), hook.key.clone()), Duration::ZERO);
                }
                self.append(&hook.event_of(queue))
            }
            Notice::Repair(offer) => {
                self.news.ring(News::Opened(queue.clone(), offer.clone()), Duration::ZERO);
                Ok(())
            }
        }
    }
}

impl Bells {
    /// One line for each, so that a reader sees whole ones.
    fn append(&self, event: &HookEvent) -> Result<(), Failure> {
        let line = serde_json::to_string(event).map_err(|error| Failure::bug(error.to_string()))? + "\n";
        let written = OpenOptions::new().create(true).append(true).open(&self.events).and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| Failure::new(Class::Indeterminate, "event_not_told", format!("events.jsonl: {error}")))
    }
}
