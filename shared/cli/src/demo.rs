//! `collie demo`: one change from submission to merge, against the simulator, before one's eyes.

use crate::client::Client;
use crate::client::commands;
use crate::client::progress::{Board, Facts, Look};
use crate::client::render::{self, at, list};
use crate::error::Error;
use crate::output;
use crate::secrets::Secrets;
use crate::serve::{Behaviour, Gitlab, Hooks, Plan, Server, pause};
use clap::Args;
use collie_config::Configuration;
use gitlab_sim::{DEMO_ADMIN_TOKEN, DEMO_PROJECT_ID, DEMO_PROJECT_PATH};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const LOOK_EVERY: Duration = Duration::from_millis(200);
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);
const TOKEN_TTL: Duration = Duration::from_secs(3600);
const WORKERS: usize = 4;

/// What `collie demo` takes.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the system running afterwards, until Ctrl-C, and keep its data directory.
    #[arg(long)]
    keep: bool,
    /// Shorter jobs and a faster reviewer.
    #[arg(long)]
    fast: bool,
}

/// Runs the demonstration.
pub(crate) async fn run(args: DemoArgs) -> Result<(), Error> {
    let directory = tempfile::Builder::new().prefix("collie-demo-").tempdir();
    let directory = directory.map_err(|error| Error::Failed(format!("no temporary directory: {error}")))?;
    let server = Server::start(plan(directory.path(), args.fast)).await.map_err(Error::Failed)?;
    let shown = tokio::select! {
        shown = show(&server) => shown,
        () = crate::stop_signal() => Err(Error::Failed("interrupted".to_owned())),
    };
    if args.keep && shown.is_ok() {
        output::line(server.ready_line().to_string());
        crate::stop_signal().await;
        output::line(format!("data directory: {}", directory.keep().display()));
    }
    server.stop().await;
    shown
}

fn plan(data_dir: &Path, fast: bool) -> Plan {
    let usual = Behaviour { flaky: true, ..Behaviour::usual("127.0.0.1:0".to_owned()) };
    let behaviour = if fast { Behaviour { job_ms: 500, review_ms: 1_500, ..usual } } else { usual };
    Plan {
        listen: "127.0.0.1:0".to_owned(),
        data_dir: data_dir.to_owned(),
        configuration: Configuration::default(),
        secrets: Secrets::default(),
        gitlab: Gitlab::Simulated(behaviour),
        hooks: Hooks::OnMain,
        workers: WORKERS,
        take_over_after: Duration::ZERO,
        look_every: LOOK_EVERY,
    }
}

async fn show(server: &Server) -> Result<(), Error> {
    let token = server.token("demo", TOKEN_TTL).map_err(Error::Failed)?;
    let client = Client::new(&server.api, token)?;
    introduce(server);
    let answer = client.post("work-items", submission().to_string().into_bytes()).await?;
    let id = at(&answer, "/work_item/id");
    output::line(format!("submitted: {} work item {id}\n", at(&answer, "/outcome")));
    let look = follow(server, &client, &id).await?;
    conclude(&client, &id, &look).await
}

fn introduce(server: &Server) {
    output::line(format!("Collie serves at {}, a simulated GitLab at {}.", server.api, server.gitlab()));
    output::line(format!("Project {DEMO_PROJECT_PATH} merges with one approval and a successful pipeline."));
    output::line(
        "Submitting a change of two files; Collie commits, opens the merge request, retries the job that loses its runner, and merges.",
    );
}

fn submission() -> Value {
    json!({
        "item_type": "mr", "project": DEMO_PROJECT_PATH, "source_branch": "bot/say-good-morning", "target_branch": "main",
        "title": "Say good morning", "description": "A greeting that fits the time of day.", "labels": ["demo"],
        "commit_message": "Say good morning", "auto_merge": true,
        "file_actions": [
            { "action": "update", "file_path": "src/lib.rs",
              "content": "/// Says hello.\npub fn greeting() -> &'static str {\n    \"good morning\"\n}\n" },
            { "action": "create", "file_path": "docs/greeting.md", "content": "# Greeting\n\nThe program says good morning.\n" },
        ],
    })
}

async fn follow(server: &Server, client: &Client, id: &str) -> Result<Look, Error> {
    let mut board = Board::new();
    let forge = Forge::new(server.gitlab())?;
    loop {
        let look = Look::take(client, id).await?;
        let mut facts = forge.facts(&look.item).await;
        facts.extend(look.facts.clone());
        board.show(&facts);
        if look.is_over() {
            return Ok(look);
        }
        if board.elapsed() > GIVE_UP_AFTER {
            return Err(Error::Failed(format!("not merged after {} s", GIVE_UP_AFTER.as_secs())));
        }
        pause(LOOK_EVERY).await;
    }
}

async fn conclude(client: &Client, id: &str, look: &Look) -> Result<(), Error> {
    output::line("\nWhat was done, and what it cost:");
    let entries = commands::timeline(client, id).await?;
    render::timeline(&entries).iter().for_each(output::line);
    if at(&look.item, "/result") != "merged" {
        return Err(Error::Failed(format!("the work item is {}", render::phase(&look.item))));
    }
    output::line(format!("\nmerged: {}", at(&look.item, "/detail/mr_url")));
    Ok(())
}

/// GitLab, as a person would look at it.
struct Forge {
    http: reqwest::Client,
    root: String,
}

impl Forge {
    fn new(gitlab: &str) -> Result<Self, Error> {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build();
        let http = http.map_err(|error| Error::Failed(error.to_string()))?;
        Ok(Self { http, root: format!("{gitlab}/api/v4/projects/{DEMO_PROJECT_ID}") })
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}/{path}", self.root)).header("private-token", DEMO_ADMIN_TOKEN);
        let Ok(response) = request.send().await else { return Value::Null };
        response.json().await.unwrap_or_default()
    }

    /// The merge request's pipeline, jobs and approvals. Nothing before there is one.
    async fn facts(&self, item: &Value) -> Facts {
        let iid = at(item, "/detail/mr_iid");
        if iid.is_empty() {
            return Vec::new();
        }
        let mr = self.get(&format!("merge_requests/{iid}")).await;
        let approvals = self.get(&format!("merge_requests/{iid}/approvals")).await;
        let by = |approval: &Value| at(approval, "/user/username");
        let approved: Vec<_> = list(&approvals, "/approved_by").iter().map(by).collect();
        let status = at(&mr, "/detailed_merge_status");
        vec![("pipeline", self.pipeline(&mr).await), ("approved by", approved.join(", ")), ("GitLab says", status)]
    }

    async fn pipeline(&self, mr: &Value) -> String {
        let id = at(mr, "/head_pipeline/id");
        if id.is_empty() {
            return String::new();
        }
        let jobs = self.get(&format!("pipelines/{id}/jobs")).await;
        let job = |job: &Value| format!("{} {}", at(job, "/name"), at(job, "/status"));
        let jobs: Vec<_> = jobs.as_array().map_or(&[][..], Vec::as_slice).iter().map(job).collect();
        format!("{} ({})", at(mr, "/head_pipeline/status"), jobs.join(", "))
    }
}
