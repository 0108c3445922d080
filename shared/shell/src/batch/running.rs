//! The lines of a batch under way: one task each, none of which outlives the batch.

use super::line::{Asked, Line, Lines};
use super::{Ended, Report, Work};
use crate::disposition::Disposition;
use crate::invocation::Invocation;
use collie_core::error::Failure;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::Instrument as _;

/// Why a line has stopped before its end.
enum Stop {
    Held,
    Failed(Failure),
}

type Joined = Result<(Id, Result<(), Stop>), JoinError>;

/// What a task is for, and how far it has come.
struct Progress {
    message_ids: Vec<Vec<String>>,
    /// How many jobs of the line have been done.
    done: Arc<AtomicUsize>,
}

/// Tasks, and what each of them is for.
#[derive(Default)]
pub(super) struct Running {
    tasks: JoinSet<Result<(), Stop>>,
    progress: HashMap<Id, Progress>,
}

impl Running {
    /// Starts all lines.
    pub(super) fn start<W: Work>(work: &Arc<W>, lines: Lines<W::Job>, invocation: &Invocation) -> Self {
        let mut running = Self::default();
        for line in lines {
            let message_ids = line.jobs.iter().map(|asked| asked.message_ids.clone()).collect();
            let done = Arc::new(AtomicUsize::new(0));
            let task = running.tasks.spawn(run_line(Arc::clone(work), line, invocation.clone(), Arc::clone(&done)));
            running.progress.insert(task.id(), Progress { message_ids, done });
        }
        running
    }

    /// Waits for all jobs; aborts those that still run when time is up, and awaits them too.
    pub(super) async fn finish(mut self, time_left: Duration, report: &mut Report) {
        if tokio::time::timeout(time_left, self.join(report)).await.is_err() {
            self.tasks.abort_all();
            self.join(report).await;
        }
    }

    async fn join(&mut self, report: &mut Report) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.ended(ended, report);
        }
    }

    fn ended(&mut self, joined: Joined, report: &mut Report) {
        let (task, stop) = match joined {
            Ok((_, Ok(()))) => return,
            Ok((task, Err(stop))) => (task, stop),
            Err(error) => (error.id(), Stop::Failed(not_ended(&error))),
        };
        let undone = self.progress.remove(&task).map(Progress::undone).unwrap_or_default();
        match stop {
            Stop::Held => tracing::debug!(message_ids = ?undone, "messages are held"),
            Stop::Failed(failure) => Disposition::of(&failure).log(&undone, &failure),
        }
        undone.into_iter().for_each(|id| report.fail(id));
    }
}

impl Progress {
    /// The messages of the job that failed and of those behind it.
    fn undone(self) -> Vec<String> {
        self.message_ids.into_iter().skip(self.done.load(Ordering::Acquire)).flatten().collect()
    }
}

/// Runs jobs one after the other, up to the first that fails or has to wait.
async fn run_line<W: Work>(work: Arc<W>, line: Line<W::Job>, invocation: Invocation, done: Arc<AtomicUsize>) -> Result<(), Stop> {
    for Asked { job, message_ids } in line.jobs {
        let span = tracing::info_span!("message", request_id = %invocation.request_id, ids = ?message_ids);
        match work.run(job, &invocation).instrument(span).await {
            Ok(Ended::Done) => done.fetch_add(1, Ordering::Release),
            Ok(Ended::Held) => return Err(Stop::Held),
            Err(failure) => return Err(Stop::Failed(failure)),
        };
    }
    Ok(())
}

fn not_ended(error: &JoinError) -> Failure {
    if error.is_panic() {
        Failure::bug("the job panicked")
    } else {
        Failure::new(OUT_OF_TIME, "out_of_time", "the job was aborted: time was up")
    }
}

/// What an aborted job did is not known.
const OUT_OF_TIME: collie_core::error::Class = collie_core::error::Class::Indeterminate;
