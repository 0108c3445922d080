//! The simulator's demonstration project behind real HTTP, and an adapter for it.

use super::{Still, connection, small_limits};
use collie_core::id::ProjectId;
use collie_engine::credential::Credential;
use collie_engine::ports::ProjectRef;
use collie_gitlab::{GitLab, Limits};
use gitlab_sim::{Clock, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, Sim};
use secrecy::SecretString;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

pub(crate) struct Demo {
    pub(crate) sim: Sim,
    pub(crate) gitlab: GitLab,
    pub(crate) project: ProjectRef,
}

impl Demo {
    pub(crate) async fn start() -> Self {
        Self::with(SecretString::from(DEMO_BOT_TOKEN).into()).await
    }

    /// With another token than the usual one.
    pub(crate) async fn with(token: Credential) -> Self {
        let sim = Sim::demo(Clock::Manual);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        sim.set_base_url(&format!("http://{host}"));
        tokio::spawn(sim.clone().serve(listener));
        let mut connection = connection(&host);
        connection.token = token;
        let limits = Limits { max_answer_bytes: 1 << 20, read_timeout: Duration::from_secs(5), ..small_limits() };
        let limits = Limits { commit_timeout: Duration::from_secs(5), ..limits };
        let gitlab = GitLab::with_limits(vec![connection], Arc::new(Still), limits).unwrap();
        Self { sim, gitlab, project: ProjectRef { host, id: ProjectId(DEMO_PROJECT_ID) } }
    }
}
