//! The jobs of a batch under way: one task each, none of which outlives the batch.

use super::{Asked, Report, Work};
use crate::disposition::Disposition;
use crate::invocation::Invocation;
use collie_core::error::Failure;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::Instrument as _;

type Ended = Result<(Id, Result<(), Failure>), JoinError>;

/// Tasks, and the messages each of them is for.
#[derive(Default)]
pub(super) struct Running {
    tasks: JoinSet<Result<(), Failure>>,
    message_ids: HashMap<Id, Vec<String>>,
}

impl Running {
    /// Starts all jobs.
    pub(super) fn start<W: Work>(work: &Arc<W>, jobs: Vec<Asked<W::Job>>, invocation: &Invocation) -> Self {
        let mut running = Self::default();
        for Asked { job, message_ids } in jobs {
            let (work, invocation) = (Arc::clone(work), invocation.clone());
            let span = tracing::info_span!("message", request_id = %invocation.request_id, ids = ?message_ids);
            let task = running.tasks.spawn(async move { work.run(job, &invocation).await }.instrument(span));
            running.message_ids.insert(task.id(), message_ids);
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

    fn ended(&mut self, ended: Ended, report: &mut Report) {
        let (task, failure) = match ended {
            Ok((_, Ok(()))) => return,
            Ok((task, Err(failure))) => (task, failure),
            Err(error) => (error.id(), not_ended(&error)),
        };
        let message_ids = self.message_ids.remove(&task).unwrap_or_default();
        Disposition::of(&failure).log(&message_ids, &failure);
        message_ids.into_iter().for_each(|id| report.fail(id));
    }
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
