//! Tracked lines of builds: `queues`.

use crate::section::{Problems, Section};
use crate::{ProjectConfig, is_slug};
use collie_core::issue::delivery::Limits;
use collie_core::issue::id::QueueName;
use collie_core::time::duration;
use collie_engine::settings::{Detector, Queue, Repair};
use serde_json::Value;
use std::time::Duration;

/// How long a build may take, at least and at most.
const MAX_HOLD: std::ops::RangeInclusive<Duration> = Duration::from_secs(60)..=Duration::from_secs(7 * 24 * 60 * 60);

/// Reads all queues, in the order of their names.
pub(crate) fn read(value: Option<Value>, projects: &[ProjectConfig], problems: &mut Problems) -> Vec<Queue> {
    let section = Section::of("queues", value.unwrap_or_default(), problems);
    section.into_entries().filter_map(|(name, value)| queue(&name, value, projects, problems)).collect()
}

fn queue(name: &str, value: Value, projects: &[ProjectConfig], problems: &mut Problems) -> Option<Queue> {
    let mut section = Section::of(format!("queues.{name}"), value, problems);
    if !is_slug(name) {
        problems.note(section.place(), "a name is made of lower-case letters, digits and '-'");
    }
    let project: Option<String> = section.required("project", problems);
    if let Some(unknown) = project.as_ref().filter(|path| projects.iter().all(|project| project.path != **path)) {
        problems.note(&section.at("project"), format!("{unknown:?} is not configured under `projects`"));
    }
    let reference: Option<String> = section.required("ref", problems);
    let detector = choice(&mut section, "detector", [("none", Detector::None), ("gitlab", Detector::Gitlab)], problems);
    let repair = choice(&mut section, "repair", [("none", Repair::None), ("work_item", Repair::WorkItem)], problems);
    let limits = limits(&mut section, problems);
    section.finish(&[], problems);
    Some(Queue { name: QueueName::new(name), project: project?, reference: reference?, detector, repair, limits })
}

/// Work items that nobody works on would wait for ever.
pub(crate) fn check_repairs(queues: &[Queue], handled_types: &[String], problems: &mut Problems) {
    let is_handled = handled_types.iter().any(|handled| handled == collie_core::repair::ITEM_TYPE);
    for queue in queues.iter().filter(|queue| queue.repair == Repair::WorkItem && !is_handled) {
        problems.note(&format!("queues.{}.repair", queue.name), "\"work_item\" needs \"issue\" among `handled_types`");
    }
}

/// The first is the default.
fn choice<T: Copy, const N: usize>(section: &mut Section, key: &str, words: [(&str, T); N], problems: &mut Problems) -> T {
    let said: Option<String> = section.optional(key, problems);
    let found = said.as_ref().map(|said| words.iter().find(|(word, _)| word == said));
    if let Some(None) = found {
        let known: Vec<_> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        problems.note(&section.at(key), format!("{:?} is not one of {}", said.unwrap_or_default(), known.join(", ")));
    }
    found.flatten().map_or(words[0].1, |(_, value)| *value)
}

fn limits(section: &mut Section, problems: &mut Problems) -> Limits {
    let usual = Limits::default();
    let Some(text) = section.optional::<String>("max_hold", problems) else { return usual };
    match duration(&text).filter(|hold| MAX_HOLD.contains(hold)) {
        Some(max_hold) => Limits { max_hold, ..usual },
        None => {
            problems.note(&section.at("max_hold"), format!("{text:?} is no time between 1m and 168h, such as 24h"));
            usual
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Configuration;
    use collie_engine::settings::{Detector, Repair};

    const PROJECT: &str = "projects: [{path: group/app}]\n";

    #[test]
    fn a_queue_needs_a_project_and_a_ref_and_waits_for_a_day() {
        let text = format!("{PROJECT}queues: {{app-main: {{project: group/app, ref: main}}}}");
        let queue = Configuration::parse(&text).unwrap().queues.remove(0);
        assert_eq!((queue.name.as_str(), queue.project.as_str(), queue.reference.as_str()), ("app-main", "group/app", "main"));
        assert_eq!((queue.detector, queue.repair, queue.limits.max_hold.as_secs()), (Detector::None, Repair::None, 86_400));
    }

    #[test]
    fn repairs_by_work_items_need_their_type_to_be_handled() {
        let text = format!("{PROJECT}handled_types: [mr]\nqueues: {{a: {{project: group/app, ref: main, repair: work_item}}}}");
        let problems = Configuration::parse(&text).unwrap_err();
        assert_eq!(problems, ["queues.a.repair: \"work_item\" needs \"issue\" among `handled_types`"]);
    }

    #[test]
    fn every_problem_of_a_queue_is_told() {
        let text = format!("{PROJECT}queues: {{App: {{project: group/b, detector: jenkins, repair: hope, max_hold: 30s, branch: main}}}}");
        let problems = Configuration::parse(&text).unwrap_err();
        let told = [
            "queues.App: a name is made of lower-case letters, digits and '-'",
            "queues.App.project: \"group/b\" is not configured under `projects`",
            "queues.App.ref: is missing",
            "queues.App.detector: \"jenkins\" is not one of \"none\", \"gitlab\"",
            "queues.App.repair: \"hope\" is not one of \"none\", \"work_item\"",
            "queues.App.max_hold: \"30s\" is no time between 1m and 168h, such as 24h",
            "queues.App.branch: is no key of the configuration, expected one of `project`, `ref`, `detector`, `repair`, `max_hold`",
        ];
        assert_eq!(problems, told);
    }
}
