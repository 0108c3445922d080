//! GitLab, as a model in this process: the demonstration project, ready to be worked on.

use collie_config::ProjectConfig;
use collie_core::ci::RetryRules;
use collie_core::issue::delivery::Limits;
use collie_core::issue::id::QueueName;
use collie_engine::settings::{Detector, Queue, Repair};
use gitlab_sim::{Clock, DEMO_PROJECT_ID, DEMO_PROJECT_PATH, JobRule, Persona, Sim, Timing};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How the simulator behaves.
#[derive(Debug, Clone)]
pub(crate) struct Behaviour {
    /// Where it listens.
    pub(crate) listen: String,
    /// How long a job of a pipeline runs.
    pub(crate) job_ms: u64,
    /// When the reviewer approves, after a merge request is ready for her.
    pub(crate) review_ms: u64,
    /// Whether one job loses its runner the first time.
    pub(crate) flaky: bool,
}

impl Behaviour {
    /// A few seconds for everything, on this address.
    pub(crate) fn usual(listen: String) -> Self {
        Self { listen, job_ms: 3_000, review_ms: 5_000, flaky: false }
    }
}

/// The running simulator.
pub(crate) struct Simulator {
    pub(crate) url: String,
    task: JoinHandle<std::io::Result<()>>,
}

impl Simulator {
    /// Starts it: one approval and a successful pipeline are needed to merge.
    pub(crate) async fn start(behaviour: &Behaviour) -> Result<Self, String> {
        let listener = TcpListener::bind(&behaviour.listen).await.map_err(|error| format!("simulator on {}: {error}", behaviour.listen))?;
        let url = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
        let sim = demo(behaviour);
        Ok(Self { url, task: tokio::spawn(sim.serve(listener)) })
    }

    /// Ends it.
    pub(crate) async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn demo(behaviour: &Behaviour) -> Sim {
    let sim = Sim::demo(Clock::Wall);
    sim.set_timing(|timing| *timing = Timing { job_run_ms: behaviour.job_ms, ..Timing::quick() });
    sim.set_settings(DEMO_PROJECT_ID, |settings| settings.approvals_required = 1);
    sim.clear_personas(DEMO_PROJECT_ID);
    let reviewer = Persona { user: "reviewer".to_owned(), approves_after_ms: behaviour.review_ms, title_contains: None };
    sim.add_persona(DEMO_PROJECT_ID, reviewer);
    if behaviour.flaky {
        sim.add_job_rule(DEMO_PROJECT_ID, JobRule { attempt: Some(1), ..JobRule::failed("unit-tests", "runner_system_failure") });
    }
    sim
}

/// The demonstration project as a configuration would describe it: jobs that lose their runner are retried.
pub(crate) fn project() -> ProjectConfig {
    let rules =
        serde_json::json!([{ "name": "runner-gone", "match": { "failure_reason": ["runner_system_failure"] }, "delays": ["0s", "1m"] }]);
    let ci_retry = RetryRules::parse(&rules).unwrap_or_default();
    ProjectConfig { ci_retry, ..ProjectConfig::plain(DEMO_PROJECT_PATH) }
}

/// A queue of the demonstration project, to which callers report.
pub(crate) fn queue() -> Queue {
    Queue {
        name: QueueName::new("demo"),
        project: DEMO_PROJECT_PATH.to_owned(),
        reference: "main".to_owned(),
        detector: Detector::None,
        repair: Repair::None,
        limits: Limits::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demonstration_project_retries_jobs_that_lost_their_runner() {
        assert!(project().ci_retry.get("runner-gone").is_some());
    }
}
