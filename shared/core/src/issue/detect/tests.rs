use super::*;
use crate::id::{JobId, PipelineId, ProjectId};
use proptest::prelude::*;

fn job(name: &str, standing: Standing) -> CiJob {
    CiJob { id: JobId(7), name: name.into(), standing, allow_failure: false, has_report: false }
}

fn reporting(name: &str, standing: Standing) -> CiJob {
    CiJob { has_report: true, ..job(name, standing) }
}

fn allowed(job: CiJob) -> CiJob {
    CiJob { allow_failure: true, ..job }
}

fn pipeline(id: u64, standing: Standing) -> Pipeline {
    Pipeline { project: ProjectId(1), id: PipelineId(id), source: "parent_pipeline".into(), standing }
}

fn bridge(name: &str, standing: Standing, downstream: Option<Pipeline>) -> Bridge {
    Bridge { id: JobId(8), name: name.into(), standing, allow_failure: false, downstream }
}

fn run(standing: Standing, jobs: Vec<CiJob>) -> Run {
    Run { prefix: String::new(), standing, parts: Some(Parts { jobs, bridges: vec![] }) }
}

fn bridging(standing: Standing, bridges: Vec<Bridge>) -> Run {
    Run { prefix: String::new(), standing, parts: Some(Parts { jobs: vec![], bridges }) }
}

fn case(class: &str, name: &str) -> FailingCase {
    FailingCase { class: class.into(), name: name.into(), file: None }
}

fn suite(name: &str, failing: impl IntoIterator<Item = FailingCase>) -> Suite {
    Suite { name: name.into(), is_broken: false, failing: failing.into_iter().collect() }
}

fn read(suites: impl IntoIterator<Item = Suite>) -> Option<TestReport> {
    Some(TestReport::Read(suites.into_iter().collect()))
}

/// Issues as `task / unit`, and covered tasks.
fn found(runs: &[(Run, Option<TestReport>)]) -> (Vec<String>, Vec<String>) {
    let findings = findings(runs).unwrap();
    (findings.issues.keys().map(ToString::to_string).collect(), findings.covered.into_iter().collect())
}

fn of(jobs: Vec<CiJob>, report: Option<TestReport>) -> (Vec<String>, Vec<String>) {
    found(&[(run(Standing::Failed, jobs), report)])
}

fn texts(issues: &[&str], covered: &[&str]) -> (Vec<String>, Vec<String>) {
    let owned = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect();
    (owned(issues), owned(covered))
}

use Standing::{Active, Canceled, Created, Failed, Manual, Skipped, Success};

#[test]
fn a_failing_case_is_an_issue_and_its_task_is_spoken_of() {
    let report = read([suite("unit", [case("C", "a"), case("", "b"), case("D", "")])]);
    let found = of(vec![reporting("unit", Failed), job("lint", Success)], report);
    assert_eq!(found, texts(&["unit / C::a", "unit / D", "unit / b"], &["lint", "unit"]));
}

#[test]
fn a_failing_case_of_a_job_that_went_well_is_an_issue_too() {
    assert_eq!(of(vec![reporting("unit", Success)], read([suite("unit", [case("C", "a")])])), texts(&["unit / C::a"], &["unit"]));
}

#[test]
fn a_job_that_failed_without_a_report_or_a_failing_case_is_the_whole_tasks() {
    assert_eq!(of(vec![job("lint", Failed)], None), texts(&["lint"], &[]));
    assert_eq!(of(vec![reporting("lint", Failed)], None), texts(&["lint"], &[]), "its report is gone");
    assert_eq!(of(vec![reporting("lint", Failed)], read([suite("lint", [])])), texts(&["lint"], &["lint"]));
}

#[test]
fn a_task_is_spoken_of_only_where_every_part_of_it_ended_well_or_with_a_report() {
    let report = || read([suite("unit", [case("C", "a")])]);
    let part = |standing| of(vec![reporting("unit 1/2", Failed), job("unit 2/2", standing)], report());
    assert_eq!(part(Success), texts(&["unit / C::a"], &["unit"]));
    assert_eq!(part(Failed), texts(&["unit", "unit / C::a"], &[]), "nothing is known of the second part");
    for standing in [Canceled, Skipped, Manual, Created] {
        assert_eq!(part(standing), texts(&["unit / C::a"], &[]), "{standing:?}");
    }
}

#[test]
fn skipped_stopped_and_manual_jobs_are_not_spoken_of() {
    let jobs = vec![job("a", Skipped), job("b", Canceled), job("c", Manual), job("d", Created), job("e", Success)];
    assert_eq!(of(jobs, None), texts(&[], &["e"]));
}

#[test]
fn an_allowed_failure_is_no_issue_and_speaks_of_nothing() {
    let report = || read([suite("unit", [case("C", "a")])]);
    assert_eq!(of(vec![allowed(reporting("unit", Failed)), allowed(job("lint", Failed))], report()), texts(&[], &[]));
    assert_eq!(of(vec![allowed(job("lint", Success))], None), texts(&[], &["lint"]));
    let mixed = vec![allowed(reporting("unit 1/2", Failed)), reporting("unit 2/2", Failed)];
    assert_eq!(of(mixed, report()), texts(&["unit / C::a"], &["unit"]), "the case may be the second part's");
    let broken = Suite { is_broken: true, ..suite("unit", []) };
    assert_eq!(of(vec![allowed(reporting("unit", Failed))], read([broken])), texts(&[], &[]));
}

#[test]
fn what_cannot_be_read_gives_the_analysis_up() {
    let broken = Suite { is_broken: true, ..suite("unit", []) };
    let jobs = || vec![reporting("unit", Failed), job("lint", Success)];
    assert_eq!(findings(&[(run(Failed, jobs()), read([broken]))]), Err(Unknown::ReportBroken));
    assert_eq!(findings(&[(run(Failed, jobs()), Some(TestReport::TooLarge))]), Err(Unknown::ReportTooLarge));
}

#[test]
fn tasks_of_children_are_named_after_the_bridges_that_lead_to_them() {
    let root = bridging(Failed, vec![bridge("child", Failed, Some(pipeline(2, Failed))), bridge("other", Success, None)]);
    let children: Vec<_> = root.children().map(|(prefix, child)| (prefix, child.id.0)).collect();
    assert_eq!(children, [("child > ".to_owned(), 2)]);
    let inner = Run { prefix: "child > ".into(), ..bridging(Failed, vec![bridge("deep", Failed, Some(pipeline(3, Failed)))]) };
    assert_eq!(inner.children().map(|(prefix, _)| prefix).collect::<Vec<_>>(), ["child > deep > "]);
    let deepest = Run { prefix: "child > deep > ".into(), ..run(Failed, vec![reporting("unit 1/1", Failed)]) };
    let runs = [(root, None), (inner, None), (deepest, read([suite("unit", [case("C", "a")])]))];
    assert_eq!(found(&runs), texts(&["child > deep > unit / C::a"], &["child > deep > unit", "other"]));
}

#[test]
fn a_bridge_that_started_nothing_is_the_whole_tasks_and_so_is_one_whose_pipeline_cannot_be_read() {
    let lost = bridging(Failed, vec![bridge("deploy", Failed, None)]);
    assert_eq!(found(&[(lost, None)]), texts(&["deploy"], &[]));
    let hidden = |standing, waits| {
        let root = bridging(Failed, vec![bridge("deploy", waits, Some(pipeline(2, standing)))]);
        found(&[(root, None), (Run { prefix: "deploy > ".into(), standing, parts: None }, None)])
    };
    assert_eq!(hidden(Failed, Failed), texts(&["deploy"], &[]));
    assert_eq!(hidden(Failed, Success), texts(&[], &["deploy"]), "the bridge does not depend on it");
    assert_eq!(hidden(Success, Success), texts(&[], &["deploy"]));
}

#[test]
fn a_pipeline_is_over_when_nothing_goes_on_by_itself() {
    let table = [
        (Success, Success, true),
        (Failed, Skipped, true),
        (Failed, Manual, true),
        (Active, Success, false),
        (Created, Created, false),
        (Failed, Active, false),
        (Success, Created, false),
        (Manual, Created, true),
        (Manual, Active, false),
        (Canceled, Canceled, true),
    ];
    for (of_pipeline, of_job, over) in table {
        assert_eq!(run(of_pipeline, vec![job("a", of_job)]).is_over(), over, "{of_pipeline:?} with {of_job:?}");
        assert_eq!(bridging(of_pipeline, vec![bridge("a", of_job, None)]).is_over(), over, "{of_pipeline:?} with a bridge {of_job:?}");
    }
    for word in ["pending", "running", "preparing", "waiting_for_resource", "waiting_for_callback", "canceling", "scheduled", "odd"] {
        assert!(!Standing::parse(word).is_over(), "{word}");
    }
}

#[test]
fn a_build_ends_as_its_pipeline_and_one_that_waits_for_a_person_as_its_jobs() {
    let of = |standing, jobs| outcome(&run(standing, jobs));
    assert_eq!(of(Success, vec![]), Outcome::Succeeded);
    assert_eq!(of(Failed, vec![]), Outcome::Failed);
    assert_eq!(of(Canceled, vec![job("a", Failed)]), Outcome::Cancelled);
    assert_eq!(of(Skipped, vec![]), Outcome::Cancelled);
    assert_eq!(of(Manual, vec![job("a", Success), allowed(job("b", Failed))]), Outcome::Succeeded);
    assert_eq!(of(Manual, vec![job("a", Failed)]), Outcome::Failed);
    assert_eq!(outcome(&bridging(Manual, vec![bridge("a", Failed, None)])), Outcome::Failed);
}

#[test]
fn a_uri_names_one_pipeline_of_one_project() {
    let text = uri("gitlab.example:8443", ProjectId(42), PipelineId(9001));
    assert_eq!(text, "gitlab:gitlab.example:8443/42/pipelines/9001");
    let read = |text: &str| pipeline_of(text, "gitlab.example:8443", ProjectId(42));
    assert_eq!(read(&text), Some(PipelineId(9001)));
    for other in ["gitlab:gitlab.example/42/pipelines/9001", "gitlab:gitlab.example:8443/4/pipelines/2", "commit 7"] {
        assert_eq!(read(other), None, "{other}");
    }
    for number in ["", "09001", "+1", "9001/jobs", "99999999999999999999"] {
        assert_eq!(read(&format!("gitlab:gitlab.example:8443/42/pipelines/{number}")), None, "{number}");
    }
}

#[test]
fn names_of_parts_are_cut_and_others_are_not() {
    let table = [
        ("unit 1/3", "unit"),
        ("unit tests 12/30", "unit tests"),
        ("unit: [a, 1/2]", "unit: [a, 1/2]"),
        ("unit 1/x", "unit 1/x"),
        ("1/3", "1/3"),
        (" 1/3", " 1/3"),
        ("unit 1/", "unit 1/"),
        ("", ""),
    ];
    for (name, whole) in table {
        assert_eq!(whole_name(name), whole, "{name:?}");
    }
}

#[test]
fn a_unit_is_never_the_whole_task_and_a_long_one_stays_its_own() {
    assert_eq!(unit(&case("", "")), "(unnamed)");
    let long = |name: &str| unit(&case("C", &("ä".repeat(600) + name)));
    assert_ne!(long("1"), long("2"));
    assert_eq!(long("1").chars().count(), MAX_UNIT);
    assert_eq!(detail(&FailingCase { file: Some("f".repeat(300)), ..case("C", "a") }).map(|file| file.len()), Some(MAX_FILE));
}

fn any_standing() -> impl Strategy<Value = Standing> {
    prop_oneof![Just(Active), Just(Created), Just(Manual), Just(Success), Just(Failed), Just(Canceled), Just(Skipped)]
}

fn any_job() -> impl Strategy<Value = CiJob> {
    let name = prop_oneof![Just("a"), Just("b 1/2"), Just("b 2/2"), Just("c: [x]")];
    (name, any_standing(), any::<bool>(), any::<bool>()).prop_map(|(name, standing, allow_failure, has_report)| CiJob {
        id: JobId(7),
        name: name.into(),
        standing,
        allow_failure,
        has_report,
    })
}

fn any_report() -> impl Strategy<Value = Option<TestReport>> {
    let suite = (prop_oneof![Just("a"), Just("b"), Just("c: [x]"), Just("z")], prop::collection::btree_set("[a-c]{0,2}", 0..3));
    let suites = prop::collection::vec(suite, 0..4).prop_map(|rows| {
        let suites: BTreeMap<_, _> = rows.into_iter().collect();
        read(suites.into_iter().map(|(name, cases)| suite_of(name, cases)))
    });
    prop_oneof![Just(None), suites]
}

fn suite_of(name: &str, cases: BTreeSet<String>) -> Suite {
    suite(name, cases.iter().map(|name| case("C", name)))
}

proptest! {
    #[test]
    fn a_failure_that_counts_is_never_silent_and_what_did_not_run_is_never_spoken_of(
        jobs in prop::collection::vec(any_job(), 0..6), report in any_report()
    ) {
        let found = findings(&[(run(Failed, jobs.clone()), report)]).unwrap();
        for job in &jobs {
            let task = whole_name(&job.name);
            let is_seen = found.issues.keys().any(|key| key.task() == task);
            if job.standing == Failed && !job.allow_failure {
                prop_assert!(is_seen, "{job:?} is silent");
            }
            if !matches!(job.standing, Success | Failed) {
                prop_assert!(!found.covered.contains(task), "{job:?} is spoken of");
            }
        }
        let names: BTreeSet<_> = jobs.iter().map(|job| whole_name(&job.name)).collect();
        prop_assert!(found.covered.iter().all(|task| names.contains(task.as_str())));
        prop_assert!(found.issues.keys().all(|key| names.contains(key.task())));
    }

    #[test]
    fn the_order_of_jobs_means_nothing(jobs in prop::collection::vec(any_job(), 0..6), report in any_report()) {
        let backwards: Vec<_> = jobs.iter().rev().cloned().collect();
        let one = findings(&[(run(Failed, jobs), report.clone())]).unwrap();
        prop_assert_eq!(one, findings(&[(run(Failed, backwards), report)]).unwrap());
    }
}

#[test]
fn a_uri_that_people_can_follow_is_a_link() {
    let of = |uri: &str, host: &str| link(uri, host, ProjectId(7), "group/app");
    let cases = [
        ("gitlab:gitlab.example.com/7/pipelines/812", "gitlab.example.com", Some("https://gitlab.example.com/group/app/-/pipelines/812")),
        ("gitlab:127.0.0.1:80/7/pipelines/812", "127.0.0.1:80", Some("http://127.0.0.1:80/group/app/-/pipelines/812")),
        ("https://ci.example.com/1", "gitlab.example.com", Some("https://ci.example.com/1")),
        ("gitlab:gitlab.example.com/8/pipelines/812", "gitlab.example.com", None),
        ("git:4f2a", "gitlab.example.com", None),
        ("javascript:alert(1)", "gitlab.example.com", None),
    ];
    for (uri, host, want) in cases {
        assert_eq!(of(uri, host).as_deref(), want, "{uri}");
    }
}
