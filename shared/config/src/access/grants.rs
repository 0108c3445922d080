//! `grants` of a rule: a list of mappings with one key each.

use crate::section::{Problems, Section};
use collie_core::access::{Globs, Grant, SubmitGrant};
use serde_json::Value;

const KINDS: &str = "submit, read, ci_report, ci_read, integrations, poll and admin";

/// The grants; what is wrong with them is noted.
pub(super) fn read(value: Option<Value>, place: &str, problems: &mut Problems) -> Vec<Grant> {
    let Some(Value::Array(rows)) = value.filter(|value| *value != Value::Array(Vec::new())) else {
        problems.note(place, "a list of grants is needed here");
        return Vec::new();
    };
    rows.into_iter().enumerate().filter_map(|(index, row)| grant(row, &format!("{place}[{index}]"), problems)).collect()
}

fn grant(value: Value, place: &str, problems: &mut Problems) -> Option<Grant> {
    let entries = Section::of(place, value, problems).into_entries();
    let [(kind, value)] = <[_; 1]>::try_from(entries.collect::<Vec<_>>())
        .map_err(|_| problems.note(place, format!("a grant is a mapping with one key, of {KINDS}")))
        .ok()?;
    if kind == "admin" {
        let is_admin = value == Value::Bool(true);
        return if is_admin { Some(Grant::Admin) } else { refuse(place, "admin is true, or is left out", problems) };
    }
    let mut section = Section::of(format!("{place}.{kind}"), value, problems);
    let grant = match kind.as_str() {
        "submit" => Some(Grant::Submit(submit(&mut section, problems))),
        "read" => Some(Grant::Read { projects: globs("projects", &mut section, problems) }),
        "ci_report" => Some(Grant::CiReport { queues: globs("queues", &mut section, problems) }),
        "ci_read" => Some(Grant::CiRead { queues: globs("queues", &mut section, problems) }),
        "integrations" => {
            let (connections, projects) = (globs("connections", &mut section, problems), globs("projects", &mut section, problems));
            Some(Grant::Integrations { connections, projects })
        }
        "poll" => Some(Grant::Poll { projects: globs("projects", &mut section, problems) }),
        _ => return refuse(&format!("{place}.{kind}"), &format!("is no grant; there are {KINDS}"), problems),
    };
    section.finish(&[], problems);
    grant
}

fn submit(section: &mut Section, problems: &mut Problems) -> SubmitGrant {
    let flag = |name, section: &mut Section, problems: &mut Problems| section.optional(name, problems).unwrap_or(false);
    SubmitGrant {
        auto_merge: flag("auto_merge", section, problems),
        overwrite: flag("overwrite", section, problems),
        others: flag("others", section, problems),
        item_types: globs("item_types", section, problems),
        projects: globs("projects", section, problems),
        source_branches: globs("source_branches", section, problems),
        target_branches: globs("target_branches", section, problems),
        labels: Globs::new(section.optional::<Vec<String>>("labels", problems).unwrap_or_default()),
    }
}

/// A list that has to be there and to hold something: an empty one would be a grant of nothing.
fn globs(name: &str, section: &mut Section, problems: &mut Problems) -> Globs {
    let place = section.at(name);
    let texts: Option<Vec<String>> = section.required(name, problems);
    if texts.as_ref().is_some_and(|texts| texts.is_empty() || texts.iter().any(String::is_empty)) {
        problems.note(&place, "texts are needed here; \"**\" is every one");
    }
    Globs::new(texts.unwrap_or_default())
}

fn refuse<T>(place: &str, problem: &str, problems: &mut Problems) -> Option<T> {
    problems.note(place, problem);
    None
}
