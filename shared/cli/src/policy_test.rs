//! `collie policy test`: cases and expected verdicts that people keep beside their rules.

use crate::error::Error;
use crate::{output, text};
use clap::Args;
use collie_api::FieldError;
use collie_config::Configuration;
use collie_core::policy::{self, Config, Policy};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What `collie policy` takes.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Try a file of cases; exits with 1 where a verdict is another than the expected one.
    Test {
        /// The file.
        file: PathBuf,
        /// Print one document.
        #[arg(long)]
        json: bool,
    },
}

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    /// The rules themselves.
    policy: Option<Config>,
    /// Or the configuration file that holds them, beside this one.
    config: Option<PathBuf>,
    /// The project whose rules they are.
    project: Option<String>,
    cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Fields of a submission; what is left out is harmless.
    submission: Map<String, Value>,
    expect: Expected,
}

/// `allow`, or the codes of all findings.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Expected {
    Word(Allow),
    Codes(BTreeSet<String>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Allow {
    Allow,
}

/// A case that was tried.
struct Tried<'c> {
    case: &'c Case,
    found: Vec<FieldError>,
}

/// Runs a policy command.
pub(crate) fn run(args: &PolicyArgs) -> Result<(), Error> {
    let Command::Test { file, json } = &args.command;
    let cases = read(file).map_err(|problem| Error::Usage(format!("{}: {problem}", file.display())))?;
    let policy = rules(&cases, file).map_err(|problem| Error::Usage(format!("{}: {problem}", file.display())))?;
    let tried: Vec<_> = cases.cases.iter().map(|case| Tried { case, found: verdict(case, &policy) }).collect();
    let failed = tried.iter().filter(|tried| !tried.is_as_expected()).count();
    if *json {
        output::document(&json!({"ok": failed == 0, "cases": tried.iter().map(Tried::document).collect::<Vec<_>>()}));
    } else {
        tried.iter().flat_map(Tried::lines).for_each(output::line);
        output::line(format!("{} cases, {failed} failed", tried.len()));
    }
    if failed == 0 { Ok(()) } else { Err(Error::Failed(format!("{failed} of {} cases failed", tried.len()))) }
}

fn read(file: &Path) -> Result<Cases, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let cases: Cases = serde_norway::from_str(&text).map_err(|error| error.to_string())?;
    let known: BTreeSet<&str> = policy::codes().collect();
    let expected = cases.cases.iter().flat_map(|case| case.expect.codes().into_iter().map(|code| (&case.name, code)));
    match expected.into_iter().find(|(_, code)| !known.contains(code.as_str())) {
        Some((name, code)) => Err(format!("case {name:?}: {code:?} is the code of no finding")),
        None => Ok(cases),
    }
}

/// The rules that the file holds or names.
fn rules(cases: &Cases, file: &Path) -> Result<Policy, String> {
    let listed = |problems: Vec<String>| problems.join("; ");
    match (&cases.policy, &cases.config, &cases.project) {
        (Some(config), None, None) => {
            Policy::new(config.clone()).map_err(|errors| listed(errors.iter().map(ToString::to_string).collect()))
        }
        (None, Some(config), Some(project)) => {
            let config = file.parent().unwrap_or(Path::new("")).join(config);
            let text = std::fs::read_to_string(&config).map_err(|error| format!("{}: {error}", config.display()))?;
            let read = Configuration::parse(&text).map_err(|problems| format!("{}: {}", config.display(), listed(problems)))?;
            let found = read.projects.into_iter().find(|known| known.path == *project);
            found.map(|known| known.policy).ok_or_else(|| format!("{}: there is no project {project:?}", config.display()))
        }
        (None, None, None) => Ok(Policy::default()),
        _ => Err("either `policy`, or `config` and `project`".to_owned()),
    }
}

/// Every finding, as an answer to the submission would list them.
fn verdict(case: &Case, policy: &Policy) -> Vec<FieldError> {
    let mut whole = json!({
        "item_type": "mr", "project": "group/app", "source_branch": "bot/case", "target_branch": "main", "title": "Case",
        "file_actions": [{"action": "create", "file_path": "case.txt", "content": ""}],
    });
    for (key, value) in &case.submission {
        whole[key.as_str()] = value.clone();
    }
    let submission = match collie_api::submission::parse(&whole) {
        Ok(submission) => submission,
        Err(problem) => return problem.errors,
    };
    policy.inspect(&submission.subject()).map_or_else(|violations| violations.into_iter().map(FieldError::from).collect(), |_| Vec::new())
}

impl Expected {
    fn codes(&self) -> BTreeSet<String> {
        match self {
            Self::Word(Allow::Allow) => BTreeSet::new(),
            Self::Codes(codes) => codes.clone(),
        }
    }
}

impl Tried<'_> {
    fn codes(&self) -> BTreeSet<String> {
        self.found.iter().map(|finding| finding.code.to_owned()).collect()
    }

    fn is_as_expected(&self) -> bool {
        self.codes() == self.case.expect.codes()
    }

    fn document(&self) -> Value {
        json!({"name": self.case.name, "ok": self.is_as_expected(), "expected": self.case.expect.codes(), "found": self.found})
    }

    fn lines(&self) -> Vec<String> {
        let name = text::plain(&self.case.name);
        if self.is_as_expected() {
            return vec![format!("ok    {name}")];
        }
        let first = format!("FAIL  {name}: expected {}, got {}", word(&self.case.expect.codes()), word(&self.codes()));
        let findings = self.found.iter().map(|f| text::plain(&format!("{}: {} ({}): {}", f.path, f.message, f.code, f.hint)));
        std::iter::once(first).chain(findings.map(|finding| format!("        {finding}"))).collect()
    }
}

fn word(codes: &BTreeSet<String>) -> String {
    if codes.is_empty() { "allow".to_owned() } else { codes.iter().cloned().collect::<Vec<_>>().join(" + ") }
}
