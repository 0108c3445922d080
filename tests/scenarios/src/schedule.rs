//! Interleavings: several actors at once, one step at a time, in an order that a seed decides.
//!
//! A step is one call to a port. An actor arrives before each of its calls and goes on when the schedule grants it; only one
//! runs at a time, so a seed always gives the same run. An actor that is stopped between two steps is a process that died.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

tokio::task_local! {
    static GATE: Gate;
}

#[derive(Clone)]
struct Gate {
    actor: usize,
    arrivals: mpsc::UnboundedSender<Event>,
}

enum Event {
    Arrived(usize, oneshot::Sender<()>),
    Finished(usize),
}

/// Waits for the schedule's grant; outside a schedule, goes on at once.
pub async fn turn() {
    let Ok(gate) = GATE.try_with(Clone::clone) else { return };
    let (grant, granted) = oneshot::channel();
    if gate.arrivals.send(Event::Arrived(gate.actor, grant)).is_ok() {
        granted.await.ok();
    }
}

/// What an actor does.
pub type Act = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Actors in their places.
pub struct Schedule {
    events: mpsc::UnboundedReceiver<Event>,
    arrivals: mpsc::UnboundedSender<Event>,
    waiting: BTreeMap<usize, oneshot::Sender<()>>,
    tasks: BTreeMap<usize, JoinHandle<()>>,
}

impl Default for Schedule {
    fn default() -> Self {
        let (arrivals, events) = mpsc::unbounded_channel();
        Self { events, arrivals, waiting: BTreeMap::new(), tasks: BTreeMap::new() }
    }
}

impl Schedule {
    /// Puts an actor in its place and lets it come to its first step.
    pub async fn enter(&mut self, actor: usize, act: Act) {
        let gate = Gate { actor, arrivals: self.arrivals.clone() };
        let arrivals = self.arrivals.clone();
        let task = tokio::spawn(async move {
            GATE.scope(gate, async {
                turn().await;
                act.await;
            })
            .await;
            arrivals.send(Event::Finished(actor)).ok();
        });
        self.tasks.insert(actor, task);
        self.hear().await;
    }

    /// Actors that can take a step.
    #[must_use]
    pub fn waiting(&self) -> Vec<usize> {
        self.waiting.keys().copied().collect()
    }

    /// Lets an actor take one step; where it finishes, it leaves.
    ///
    /// # Panics
    /// Where the actor panics.
    pub async fn step(&mut self, actor: usize) {
        let Some(grant) = self.waiting.remove(&actor) else { return };
        grant.send(()).ok();
        self.hear().await;
    }

    /// Stops an actor where it stands, as a crash would.
    pub async fn kill(&mut self, actor: usize) {
        self.waiting.remove(&actor);
        if let Some(task) = self.tasks.remove(&actor) {
            task.abort();
            task.await.ok();
        }
    }

    /// Waits until the one actor that runs has arrived or finished.
    async fn hear(&mut self) {
        match self.events.recv().await {
            Some(Event::Arrived(actor, grant)) => {
                self.waiting.insert(actor, grant);
            }
            Some(Event::Finished(actor)) => {
                if let Some(task) = self.tasks.remove(&actor) {
                    task.await.expect("the actor came to its end");
                }
            }
            None => {}
        }
    }
}
