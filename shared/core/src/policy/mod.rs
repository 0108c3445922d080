//! Whether a change may be made at all, whoever asks.
//!
//! [`Policy::inspect`] looks at one submission and decides, in this order and reporting everything it finds:
//! 1. the number and total size of the file actions; for each action its paths (form, patterns, collisions), the fields
//!    its verb needs, and its content (`path`, `patterns`, `protected`, `content`);
//! 2. the branches (`branch`);
//! 3. title, description, labels and commit message (`text`).
//!
//! Upholds INV-1: [`Inspected`] is made here and nowhere else, holds the hash of what was inspected, and is the only
//! thing that can be pushed. Upholds INV-12: violations hold no file content and no secret.
//!
//! Pure, total and linear in the submission. Deliberately left out: who may ask (grants), and what only GitLab knows
//! (existing files, symlinks, submodules, CI includes, protected branches). For the last two the same rules run again
//! with more facts: [`Policy::protecting`], [`BranchRules::inspect`].

mod branch;
mod chars;
mod codes;
mod config;
mod content;
mod includes;
mod inspected;
mod path;
mod patterns;
mod protected;
mod secrets;
mod shape;
mod text;
mod violation;

#[cfg(test)]
mod tests;

pub use branch::{BranchRules, MAX_BRANCH_BYTES};
pub use codes::codes;
pub use config::{ByteSize, Config, ConfigError, Forbidden, Rule, SecretsAllow};
pub use includes::{can_be_included, local_includes};
pub use inspected::{FileActions, Inspected};
pub use path::{Key, MAX_PATH_BYTES, MAX_SEGMENT_BYTES, Reject, check_form, check_previous, parse_verb};
pub use patterns::{Error as PatternError, Pattern};
pub use protected::{DEFAULTS as PROTECTED_DEFAULTS, PathRules, Verdict};
pub use text::{
    MAX_DESCRIPTION_BYTES, MAX_LABEL_CHARS, MAX_LABELS, MAX_MENTIONS, MAX_MESSAGE_BYTES, MAX_TITLE_CHARS, neutralise_quick_actions,
};
pub use violation::Violation;

use crate::files::{FileAction, sha256_hex};
use content::Scanner;
use shape::ActionRules;
use text::Texts;

/// Raised with every change of the rules in this module, so that stored verdicts of older rules are seen as old.
const RULES_VERSION: u32 = 2;

/// What one submission asks for, as far as the policy looks at it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The file actions, contents decoded.
    pub actions: &'a [FileAction],
    /// The branch to write.
    pub source_branch: &'a str,
    /// The branch to merge into.
    pub target_branch: &'a str,
    /// The merge request's title.
    pub title: &'a str,
    /// The merge request's description.
    pub description: &'a str,
    /// The merge request's labels.
    pub labels: &'a [String],
    /// The commit message; absent: the title is used, and held to the rules of both.
    pub commit_message: Option<&'a str>,
}

/// The rules of one project, ready to use.
#[derive(Debug, Clone)]
pub struct Policy {
    config: Config,
    paths: PathRules,
    scanner: Scanner,
    version: String,
}

impl Policy {
    /// Builds the policy a configuration describes.
    ///
    /// # Errors
    /// Every pattern that cannot work, together.
    pub fn new(config: Config) -> Result<Self, Vec<ConfigError>> {
        let paths = PathRules::new(&config.protect, &config.allow);
        let scanner = Scanner::new(&config);
        let version = version_of(&config);
        match (paths, scanner) {
            (Ok(paths), Ok(scanner)) => Ok(Self { config, paths, scanner, version }),
            (paths, scanner) => {
                let patterns = paths.err().into_iter().flatten().map(ConfigError::Pattern);
                Err(patterns.chain(scanner.err().into_iter().flatten()).collect())
            }
        }
    }

    /// This policy with more protected paths: the files a project's CI includes, as GitLab knows them just before a
    /// push. The version stays, because the configuration did not change.
    ///
    /// # Errors
    /// Every path that cannot work as a pattern.
    pub fn protecting<S: AsRef<str>>(&self, paths: &[S]) -> Result<Self, Vec<PatternError>> {
        let paths = self.paths.protecting(paths)?;
        Ok(Self { paths, ..self.clone() })
    }

    /// Identifies the rules and the configuration; recorded with everything that was inspected.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// What the policy was built from.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The path rules alone, for trying a path out.
    #[must_use]
    pub const fn paths(&self) -> &PathRules {
        &self.paths
    }

    /// Inspects a submission.
    ///
    /// # Errors
    /// Every violation, in the order of the module's list.
    pub fn inspect(&self, subject: &Subject<'_>) -> Result<Inspected<FileActions>, Vec<Violation>> {
        let violations = self.violations(subject);
        if violations.is_empty() { Ok(Inspected::new(FileActions(subject.actions.to_vec()), &self.version)) } else { Err(violations) }
    }

    fn violations(&self, subject: &Subject<'_>) -> Vec<Violation> {
        let mut out = vec![];
        let rules = ActionRules { config: &self.config, paths: &self.paths, scanner: &self.scanner };
        rules.inspect(subject.actions, &mut out);
        out.extend(self.config.branches.inspect(subject.source_branch, subject.target_branch));
        let texts = Texts {
            title: subject.title,
            description: subject.description,
            labels: subject.labels,
            commit_message: subject.commit_message,
        };
        text::inspect(texts, &self.scanner, &mut out);
        out
    }
}

/// The policy of a project that configures nothing.
impl Default for Policy {
    fn default() -> Self {
        let config = Config::default();
        let version = version_of(&config);
        Self { config, paths: PathRules::default(), scanner: Scanner::default(), version }
    }
}

/// A configuration of plain values always has JSON; its digest tells two of them apart. The rules for secrets are data, so that they
/// are part of it.
fn version_of(config: &Config) -> String {
    let written = serde_json::to_string(config).unwrap_or_default();
    let digest = sha256_hex((written + secrets::rules_digest()).as_bytes());
    format!("{RULES_VERSION}-{}", digest.get(..12).unwrap_or_default())
}
