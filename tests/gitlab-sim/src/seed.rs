//! What a simulator starts with: the demonstration project, or a seed file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::access::Role;
use crate::clock::{Clock, Timing};
use crate::personas::Persona;
use crate::pipelines::JobRule;
use crate::project::{ProjectSettings, ProtectedBranch};
use crate::sim::Sim;

/// Path of the demonstration project.
pub const DEMO_PROJECT_PATH: &str = "demo/app";
/// Id of the demonstration project.
pub const DEMO_PROJECT_ID: u64 = 101;
/// Token of the bot `collie-bot`, a maintainer.
pub const DEMO_BOT_TOKEN: &str = "glpat-demo-bot";
/// Token of the administrator `root`.
pub const DEMO_ADMIN_TOKEN: &str = "glpat-demo-admin";
/// Token of `reviewer`, who approves by herself some time after a merge request was opened.
pub const DEMO_REVIEWER_TOKEN: &str = "glpat-demo-reviewer";
/// How long the reviewer takes.
pub const DEMO_REVIEW_MS: u64 = 5_000;

const CI: &str = "stages:\n  - build\n  - test\n\ncompile:\n  stage: build\n  script: [cargo build]\n\nunit-tests:\n  stage: test\n  script: [cargo test]\n\nlint:\n  stage: test\n  script: [cargo clippy]\n";

const FILES: [(&str, &str); 5] = [
    ("README.md", "# App\n\nA small program.\n"),
    ("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    ("src/main.rs", "fn main() {\n    println!(\"{}\", app::greeting());\n}\n"),
    ("src/lib.rs", "/// Says hello.\npub fn greeting() -> &'static str {\n    \"hello\"\n}\n"),
    (".gitlab-ci.yml", CI),
];

impl Sim {
    /// The demonstration: project `demo/app`, users `root`, `developer`, `reviewer` and `collie-bot`.
    pub fn demo(clock: Clock) -> Self {
        let sim = Self::new(clock);
        sim.add_admin("root", "Administrator");
        sim.add_user("developer", "Dana Developer");
        sim.add_user("reviewer", "Robin Reviewer");
        sim.add_bot("collie-bot", "Collie");
        let id = sim.create_project(DEMO_PROJECT_PATH, &FILES, "root");
        for (user, role) in [("developer", Role::Developer), ("reviewer", Role::Maintainer), ("collie-bot", Role::Maintainer)] {
            sim.set_member(id, user, Some(role));
        }
        sim.add_token("root", DEMO_ADMIN_TOKEN, &["api"], None);
        sim.add_token("collie-bot", DEMO_BOT_TOKEN, &["api"], None);
        sim.add_token("reviewer", DEMO_REVIEWER_TOKEN, &["api"], None);
        sim.add_persona(id, Persona { user: "reviewer".to_owned(), approves_after_ms: DEMO_REVIEW_MS, title_contains: None });
        sim
    }

    /// A simulator from a seed file's text, YAML or JSON.
    pub fn from_seed(clock: Clock, text: &str) -> Result<Self, SeedError> {
        let seed: Seed = serde_norway::from_str(text).map_err(|error| SeedError(error.to_string()))?;
        let sim = Self::new(clock);
        seed.plant(&sim)?;
        Ok(sim)
    }
}

/// Why a seed file was refused.
#[derive(Debug)]
pub struct SeedError(String);

impl std::fmt::Display for SeedError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "seed file: {}", self.0)
    }
}

impl std::error::Error for SeedError {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seed {
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    timing: Option<Timing>,
    users: Vec<SeedUser>,
    projects: Vec<SeedProject>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedUser {
    username: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    admin: bool,
    #[serde(default)]
    bot: bool,
    #[serde(default)]
    tokens: Vec<SeedToken>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedToken {
    token: String,
    #[serde(default = "api_scope")]
    scopes: Vec<String>,
    #[serde(default)]
    expires_at_ms: Option<u64>,
}

fn api_scope() -> Vec<String> {
    vec!["api".to_owned()]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedProject {
    path: String,
    owner: String,
    #[serde(default)]
    public: bool,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    members: BTreeMap<String, Role>,
    #[serde(default)]
    settings: ProjectSettings,
    #[serde(default)]
    protected_branches: Option<Vec<ProtectedBranch>>,
    #[serde(default)]
    job_rules: Vec<JobRule>,
    #[serde(default)]
    personas: Vec<Persona>,
}

impl Seed {
    fn plant(self, sim: &Sim) -> Result<(), SeedError> {
        if let Some(version) = &self.version {
            sim.set_version(version);
        }
        if let Some(timing) = self.timing {
            sim.set_timing(|slot| *slot = timing);
        }
        self.users.iter().for_each(|user| user.plant(sim));
        self.projects.into_iter().try_for_each(|project| project.plant(sim))
    }
}

impl SeedUser {
    fn plant(&self, sim: &Sim) {
        let name = self.name.as_deref().unwrap_or(&self.username);
        match (self.admin, self.bot) {
            (true, _) => sim.add_admin(&self.username, name),
            (false, true) => sim.add_bot(&self.username, name),
            (false, false) => sim.add_user(&self.username, name),
        };
        for token in &self.tokens {
            let scopes: Vec<&str> = token.scopes.iter().map(String::as_str).collect();
            sim.add_token(&self.username, &token.token, &scopes, token.expires_at_ms);
        }
    }
}

impl SeedProject {
    fn plant(self, sim: &Sim) -> Result<(), SeedError> {
        let files: Vec<(&str, &str)> = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let id = sim.create_project(&self.path, &files, &self.owner);
        sim.set_public(id, self.public);
        sim.set_settings(id, |settings| *settings = self.settings);
        for (user, role) in &self.members {
            if !sim.set_member(id, user, Some(*role)) {
                return Err(SeedError(format!("project {}: no user {user}", self.path)));
            }
        }
        if let Some(rules) = self.protected_branches {
            sim.protect(id, rules);
        }
        self.job_rules.into_iter().for_each(|rule| sim.add_job_rule(id, rule));
        self.personas.into_iter().for_each(|persona| sim.add_persona(id, persona));
        Ok(())
    }
}
