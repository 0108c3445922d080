//! `collie serve`: from flags and a file to a plan, then until a signal comes.

use crate::error::Error;
use crate::secrets::{Secrets, credential_in};
use crate::serve::{Behaviour, Gitlab, Hooks, MainConnection, Plan, Server};
use crate::{output, stop_signal, text};
use clap::{ArgGroup, Args};
use collie_config::{Configuration, MAIN, ProjectConfig};
use reqwest::Url;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What `collie serve` takes.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("where").args(["simulator", "gitlab_url", "config"]).required(true).multiple(true))]
pub(crate) struct ServeArgs {
    /// The API's address; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: String,
    /// Where everything that lasts is kept.
    #[arg(long, default_value = ".collie")]
    data_dir: PathBuf,
    /// The configuration file.
    #[arg(long)]
    config: Option<PathBuf>,
    /// The directory of files that `secret:` names mean; without it, the variables `COLLIE_SECRET_<NAME>`.
    #[arg(long)]
    secrets_dir: Option<PathBuf>,
    /// Serve a simulated GitLab too, with a demonstration project.
    #[arg(long, conflicts_with = "gitlab_url")]
    simulator: bool,
    /// The simulator's address; port 0 picks a free one.
    #[arg(long, default_value = "127.0.0.1:0", requires = "simulator")]
    simulator_listen: String,
    /// GitLab's address: the connection `main`.
    #[arg(long, requires = "gitlab_token_file")]
    gitlab_url: Option<Url>,
    /// The file with the token for it.
    #[arg(long, requires = "gitlab_url")]
    gitlab_token_file: Option<PathBuf>,
    /// A project's path on the connection `main`, with default settings; may be repeated.
    #[arg(long)]
    project: Vec<String>,
    /// Register the hooks of all projects on GitLab; the tokens need the role Maintainer. The simulator's always are.
    #[arg(long)]
    register_hook: bool,
    /// The address by which GitLab reaches this API, for hooks; the listener's where it is not given.
    #[arg(long, requires = "register_hook")]
    public_url: Option<String>,
    /// Work items that are worked on at once.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    workers: u16,
    /// After the process was killed: how long its last requests to GitLab may still be under way before its work items
    /// are taken over.
    #[arg(long, default_value = "10s", value_parser = text::duration)]
    take_over_after: Duration,
    /// Where no hooks are registered: how often open merge requests are looked at.
    #[arg(long, default_value = "30s", value_parser = text::interval)]
    look_every: Duration,
}

/// Serves until a signal comes.
pub(crate) async fn run(args: ServeArgs) -> Result<(), Error> {
    let server = tokio::select! {
        server = Server::start(plan(args)?) => server.map_err(Error::Failed)?,
        () = stop_signal() => return Ok(()),
    };
    output::line(server.ready_line().to_string());
    stop_signal().await;
    tracing::info!("stopping");
    tokio::select! {
        () = server.stop() => Ok(()),
        () = stop_signal() => Err(Error::Failed("told to stop twice: what was under way is left as it is".to_owned())),
    }
}

fn plan(args: ServeArgs) -> Result<Plan, Error> {
    let mut configuration = args.config.as_deref().map(read_configuration).transpose()?.unwrap_or_default();
    for path in &args.project {
        add_project(&mut configuration, path)?;
    }
    let hooks = match (args.public_url, args.register_hook, args.simulator) {
        (Some(url), ..) => Hooks::RegisterAt(url),
        (None, true, _) => Hooks::Register,
        (None, false, true) => Hooks::OnMain,
        (None, false, false) => Hooks::Leave,
    };
    let gitlab = match (args.simulator, args.gitlab_url, args.gitlab_token_file) {
        (true, ..) => Gitlab::Simulated(Behaviour::usual(args.simulator_listen)),
        (false, Some(url), Some(file)) => Gitlab::At(MainConnection { url, token: credential_in(&file).map_err(Error::Usage)? }),
        _ => Gitlab::Configured,
    };
    Ok(Plan {
        listen: args.listen,
        data_dir: args.data_dir,
        configuration,
        secrets: Secrets { directory: args.secrets_dir },
        gitlab,
        hooks,
        workers: usize::from(args.workers),
        take_over_after: args.take_over_after,
        look_every: args.look_every,
    })
}

fn read_configuration(file: &Path) -> Result<Configuration, Error> {
    let text = std::fs::read_to_string(file).map_err(|error| Error::Usage(format!("{}: {error}", file.display())))?;
    let listed = |problems: Vec<String>| problems.iter().map(|problem| format!("\n  {problem}")).collect::<String>();
    let configuration = Configuration::parse(&text).map_err(|problems| Error::Usage(format!("{}:{}", file.display(), listed(problems))))?;
    configuration.warnings().iter().for_each(|warning| tracing::warn!(file = %file.display(), "{warning}"));
    Ok(configuration)
}

fn add_project(configuration: &mut Configuration, path: &str) -> Result<(), Error> {
    if !collie_config::is_project_path(path) {
        return Err(Error::Usage(format!("--project {path:?}: a path is written as group/project, without '~'")));
    }
    let known = configuration.projects.iter().any(|project| project.path == path && project.connection == MAIN);
    if !known {
        configuration.projects.push(ProjectConfig::plain(path));
    }
    Ok(())
}
