//! `collie config`: the file's schema, and every problem with a file before it is deployed.

use crate::error::Error;
use crate::output;
use crate::secrets::{Secrets, credential_in};
use clap::Args;
use collie_config::{Configuration, ConnectionConfig, MAIN, ProjectConfig};
use collie_gitlab::{Connection, GitLab};
use collie_system::SystemClock;
use reqwest::Url;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What `collie config` takes.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the file's JSON Schema.
    Schema,
    /// Report every problem with a file; exits with 1 where there is one.
    Check(Check),
}

#[derive(Debug, Args)]
struct Check {
    /// The file.
    file: PathBuf,
    /// Ask GitLab for each project, and compare its id or tell it.
    #[arg(long)]
    resolve: bool,
    /// GitLab's address: the connection `main`, in place of what the file says.
    #[arg(long, requires_all = ["resolve", "gitlab_token_file"])]
    gitlab_url: Option<Url>,
    /// The file with the token for it.
    #[arg(long, requires = "gitlab_url")]
    gitlab_token_file: Option<PathBuf>,
    /// The directory of files that `secret:` names mean; without it, the variables `COLLIE_SECRET_<NAME>`.
    #[arg(long)]
    secrets_dir: Option<PathBuf>,
    /// Print one document.
    #[arg(long)]
    json: bool,
}

/// What a look at a file came to.
#[derive(Default)]
struct Report {
    problems: Vec<String>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

/// Runs a configuration command.
pub(crate) async fn run(args: ConfigArgs) -> Result<(), Error> {
    match args.command {
        Command::Schema => output::document(&collie_config::schema()),
        Command::Check(check) => return report(&check, look(&check).await?),
    }
    Ok(())
}

fn report(check: &Check, Report { problems, warnings, notes }: Report) -> Result<(), Error> {
    if check.json {
        output::document(&json!({"ok": problems.is_empty(), "problems": problems, "warnings": warnings, "notes": notes}));
    } else {
        let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
        problems.iter().cloned().chain(warnings).chain(notes).for_each(output::line);
    }
    match problems.len() {
        0 => Ok(()),
        count => Err(Error::Failed(format!("{}: {count} problem(s)", check.file.display()))),
    }
}

async fn look(check: &Check) -> Result<Report, Error> {
    let text = std::fs::read_to_string(&check.file).map_err(|error| Error::Usage(format!("{}: {error}", check.file.display())))?;
    let mut configuration = match Configuration::parse(&text) {
        Ok(configuration) => configuration,
        Err(problems) => return Ok(Report { problems, ..Report::default() }),
    };
    let warnings = configuration.warnings();
    if !check.resolve {
        let notes = configuration.settings().err().unwrap_or_default();
        let count = (configuration.connections.len(), configuration.projects.len());
        let fine = format!("the file can be used: {} connection(s), {} project(s)", count.0, count.1);
        let on_aws = notes.into_iter().map(|note| format!("on AWS: {note}"));
        return Ok(Report { problems: vec![], warnings, notes: std::iter::once(fine).chain(on_aws).collect() });
    }
    if let Some(url) = &check.gitlab_url {
        configuration.connections.entry(MAIN.to_owned()).or_default().url = Some(url.clone());
    }
    Ok(Report { warnings, ..resolve(check, &configuration).await })
}

async fn resolve(check: &Check, configuration: &Configuration) -> Report {
    let mut report = Report::default();
    let (mut connections, mut hosts) = (Vec::new(), HashMap::new());
    for (slug, config) in &configuration.connections {
        match connection(check, slug, config) {
            Ok(connection) => {
                hosts.insert(slug.as_str(), connection.host.clone());
                connections.push(connection);
            }
            Err(problem) => report.problems.push(format!("connections.{slug}: {problem}")),
        }
    }
    let gitlab = match GitLab::new(connections, Arc::new(SystemClock)) {
        Ok(gitlab) => gitlab,
        Err(error) => return Report { problems: vec![error.to_string()], ..report },
    };
    for project in &configuration.projects {
        if let Some(host) = hosts.get(project.connection.as_str()) {
            ask(&gitlab, host, project, &mut report).await;
        }
    }
    report
}

fn connection(check: &Check, slug: &str, config: &ConnectionConfig) -> Result<Connection, String> {
    let base_url = config.url.clone().ok_or("url is missing")?;
    let host = config.host().ok_or("the URL has no host")?;
    let given = check.gitlab_token_file.as_deref().filter(|_| slug == MAIN);
    let secrets = Secrets { directory: check.secrets_dir.clone() };
    let token = match (given, &config.token) {
        (Some(file), _) => credential_in(file)?,
        (None, Some(name)) => secrets.credential(name)?,
        (None, None) => return Err("token is missing".to_owned()),
    };
    Ok(Connection { host, base_url, token, project_tokens: HashMap::new(), concurrency: config.concurrency })
}

async fn ask(gitlab: &GitLab, host: &str, project: &ProjectConfig, report: &mut Report) {
    let place = format!("projects: {}", project.path);
    match (gitlab.resolve_project(host, &project.path).await, project.id) {
        (Err(failure), _) => report.problems.push(format!("{place}: {failure}")),
        (Ok(found), Some(id)) if found.id.0 != id => report.problems.push(format!("{place}: id is {id}, and GitLab says {}", found.id)),
        (Ok(found), _) if found.path != project.path => report.problems.push(format!("{place}: GitLab calls it {}", found.path)),
        (Ok(found), _) => report.notes.push(format!("{place}: id: {}", found.id)),
    }
}
