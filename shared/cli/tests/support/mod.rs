//! Runs the program as people do, beside a simulated GitLab of the test's own.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test helper that fails fails its test")]

use gitlab_sim::{Clock, DEMO_BOT_TOKEN, DEMO_PROJECT_ID, DEMO_PROJECT_PATH, Persona, Sim, Timing};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdout, Command};

/// What anything may take; the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The program, without what the tester's environment says to it.
pub(crate) fn collie(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collie"));
    command.args(args).kill_on_drop(true).stdin(Stdio::null());
    for variable in ["COLLIE_ENDPOINT", "COLLIE_TOKEN", "COLLIE_LOG"] {
        command.env_remove(variable);
    }
    command
}

/// Runs the program to its end.
pub(crate) async fn run(args: &[&str]) -> Output {
    tokio::time::timeout(PATIENCE, collie(args).output()).await.expect("the program ends").unwrap()
}

/// The exit code and both outputs.
pub(crate) async fn outcome(args: &[&str]) -> (i32, String, String) {
    let output = run(args).await;
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Looks until something is so.
pub(crate) async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let mut ticks = tokio::time::interval(LOOK_EVERY);
    let looking = async {
        while !so() {
            ticks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never came: {what}"));
}

/// A running `collie serve`.
pub(crate) struct Server {
    pub(crate) child: Child,
    _stdout: BufReader<ChildStdout>,
    pub(crate) ready: Value,
    data_dir: PathBuf,
}

impl Server {
    /// Starts it and waits for its ready line.
    pub(crate) async fn start(data_dir: &Path, args: &[&str]) -> Self {
        let mut command = collie(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir.to_str().unwrap(), "--log", "warn"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        tokio::time::timeout(PATIENCE, stdout.read_line(&mut line)).await.expect("a ready line").unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no ready line: {line:?}"));
        Self { child, _stdout: stdout, ready, data_dir: data_dir.to_owned() }
    }

    pub(crate) fn api(&self) -> &str {
        self.ready["api"].as_str().unwrap()
    }

    /// A token, made by the command that the ready line names.
    pub(crate) async fn token(&self) -> String {
        let (code, token, _) = outcome(&["token", "--data-dir", self.data_dir.to_str().unwrap()]).await;
        assert_eq!(code, 0);
        token.trim().to_owned()
    }

    /// Runs a client command against this server.
    pub(crate) async fn client(&self, token: &str, args: &[&str]) -> (i32, String, String) {
        let access = ["--endpoint", self.api(), "--token", token];
        outcome(&[args, &access].concat()).await
    }

    /// Ends it as a crash does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Ends it as a service manager does.
    pub(crate) async fn terminate(mut self) -> ExitStatus {
        let pid = self.child.id().expect("it runs").to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap()
    }
}

/// A simulated GitLab in the test's process, which outlives every server.
pub(crate) struct Forge {
    pub(crate) sim: Sim,
    pub(crate) url: String,
    directory: TempDir,
}

impl Forge {
    /// The demonstration project: one approval and a successful pipeline, both after a moment.
    pub(crate) async fn start() -> Self {
        let sim = Sim::demo(Clock::Wall);
        sim.set_timing(|timing| *timing = Timing { job_run_ms: 200, ..Timing::quick() });
        sim.set_settings(DEMO_PROJECT_ID, |settings| settings.approvals_required = 1);
        sim.clear_personas(DEMO_PROJECT_ID);
        sim.add_persona(DEMO_PROJECT_ID, Persona { user: "reviewer".into(), approves_after_ms: 300, title_contains: None });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(sim.clone().serve(listener));
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("token"), DEMO_BOT_TOKEN).unwrap();
        std::fs::write(directory.path().join("submission.json"), submission().to_string()).unwrap();
        Self { sim, url, directory }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts a server that works on this GitLab, always on the same data directory.
    pub(crate) async fn serve(&self, args: &[&str]) -> Server {
        let (token, data) = (self.path("token"), self.directory.path().join("data"));
        let place = ["--gitlab-url", &self.url, "--gitlab-token-file", &token, "--project", DEMO_PROJECT_PATH];
        Server::start(&data, &[&place, args].concat()).await
    }

    /// How many calls were made so far.
    pub(crate) fn calls(&self) -> usize {
        self.sim.journal().len()
    }
}

/// A change that everything allows.
pub(crate) fn submission() -> Value {
    json!({
        "item_type": "mr", "project": DEMO_PROJECT_PATH, "source_branch": "bot/greet", "target_branch": "main",
        "title": "Greet", "auto_merge": true,
        "file_actions": [
            { "action": "update", "file_path": "README.md", "content": "# App\n\nIt greets.\n" },
            { "action": "create", "file_path": "docs/greeting.md", "content": "Hello.\n" },
        ],
    })
}
