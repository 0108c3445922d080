//! Programs of the core, run on the store: one effect at a time, each answer told before the next. A failure drops the program; whoever
//! comes next starts from the rows.

use super::Tracking;
use crate::metric;
use crate::ports::Written;
use collie_core::error::Failure;
use collie_core::issue::id::QueueName;
use collie_core::issue::program::{Answer, Effect, Program};
use collie_core::issue::table::Edit;

impl Tracking {
    /// Runs a program to its end.
    pub(super) async fn run<P: Program>(&self, queue: &QueueName, mut program: P) -> Result<P::Done, Failure> {
        let mut alarm = None;
        loop {
            let answer = match program.effect(self.ports.clock.now()) {
                Effect::Read(key) => Answer::Row(self.ports.rows.read(queue, &key).await?.map(Box::new)),
                Effect::Range(range) => Answer::Page(self.ports.rows.range(queue, &range).await?),
                Effect::Write(edits) => self.write(queue, &edits).await?,
                Effect::Publish(notice) => {
                    self.ports.notices.publish(queue, &notice).await?;
                    Answer::Published
                }
                Effect::Done(done) => return Ok(done),
            };
            program.resume(answer, self.ports.clock.now());
            if program.alarm() != alarm {
                alarm = program.alarm();
                alarm.into_iter().for_each(|alarm| raise(queue, alarm.as_str()));
            }
        }
    }

    async fn write(&self, queue: &QueueName, edits: &[Edit]) -> Result<Answer, Failure> {
        match edits {
            [] => Ok(Answer::Written),
            [first, ..] => Ok(match self.ports.rows.write(queue, edits).await? {
                Written::Yes => Answer::Written,
                Written::Refused => {
                    metric::conflict(first.key().set.name());
                    Answer::Refused
                }
            }),
        }
    }
}

/// Tells operators of what must not happen.
pub(super) fn raise(queue: &QueueName, alarm: &'static str) {
    metric::tracking_alarm(alarm);
    tracing::error!(%queue, alarm, "issue tracking met what must not happen; its rows tell more");
}
