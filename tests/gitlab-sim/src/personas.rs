//! Personas: users who act on their own, by script.

use serde::{Deserialize, Serialize};

use crate::state::{State, Task};

/// A user who approves merge requests some time after they were opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persona {
    /// Username.
    pub user: String,
    /// Delay after the merge request was prepared.
    pub approves_after_ms: u64,
    /// Only merge requests whose title has this part.
    #[serde(default)]
    pub title_contains: Option<String>,
}

impl State {
    /// Plans what the project's personas do with a new merge request.
    pub(crate) fn plan_personas(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project(project)?;
        let title = &row.mrs.get(&iid)?.title;
        let wanted = row.personas.iter().filter(|persona| persona.title_contains.as_ref().is_none_or(|part| title.contains(part)));
        let plans: Vec<(u64, u64)> =
            wanted.filter_map(|persona| Some((persona.approves_after_ms, self.user_by_name(&persona.user)?.id))).collect();
        for (after_ms, user) in plans {
            self.schedule(after_ms, Task::PersonaApproves { project, iid, user });
        }
        Some(())
    }
}
