"""Drives a freshly started simulator with python-gitlab, a client that was written against the real GitLab.

    check_client.py path/to/gitlab-sim

Plain asserts; exits with 0 where all of them hold, and says how many calls it made and which routes they met.
"""

import contextlib
import http.server
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request

import gitlab
from gitlab.exceptions import GitlabAuthenticationError, GitlabError

PROJECT = "demo/app"
ADMIN, BOT, REVIEWER = "glpat-demo-admin", "glpat-demo-bot", "glpat-demo-reviewer"

calls = []


class Caught:
    """The error that a refused call raised."""

    error = None


@contextlib.contextmanager
def refused(status, text=""):
    """Expects the block to be answered with this status, and a message that has this text."""
    caught = Caught()
    try:
        yield caught
    except GitlabError as error:
        caught.error = error
        assert error.response_code == status, f"{error.response_code}, not {status}: {error.error_message}"
        assert text in str(error.error_message), f"{error.error_message!r} does not have {text!r}"
        return
    raise AssertionError(f"not refused with {status}")


def eventually(look, what):
    """Looks again until there is something to see."""
    end = time.monotonic() + 15
    while time.monotonic() < end:
        if seen := look():
            return seen
        time.sleep(0.1)
    raise AssertionError(f"never: {what}")


class Control:
    """The simulator's own control API."""

    def __init__(self, url):
        self.url = url

    def __call__(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


def client(url, token):
    """A client whose calls are counted."""
    made = gitlab.Gitlab(url, private_token=token, retry_transient_errors=False)
    made.session.hooks["response"].append(lambda answer, **_: calls.append((answer.request.method, answer.request.path_url)))
    return made


class World:
    """The simulator with its demonstration project, as its users see it."""

    def __init__(self, url, control):
        self.url, self.control = url, Control(control)
        self.bot, self.root, self.reviewer = (client(url, token) for token in (BOT, ADMIN, REVIEWER))
        self.project = self.bot.projects.get(PROJECT)

    def settings(self, **changed):
        self.control("PUT", f"/projects/{self.project.id}/settings", changed)

    def file(self, branch, path, text, action="create"):
        """One commit with one file, on a branch that is made from `main` if it is new."""
        data = {"branch": branch, "commit_message": f"{action} {path}", "actions": [{"action": action, "file_path": path, "content": text}]}
        known = any(row.name == branch for row in self.project.branches.list(search=branch, get_all=True))
        return self.project.commits.create(data if known else {**data, "start_branch": "main"})

    def open(self, branch, title, **more):
        """A merge request into `main`, once GitLab's cached list of branches has the branch."""
        data = {"source_branch": branch, "target_branch": "main", "title": title, **more}

        def try_it():
            try:
                return self.project.mergerequests.create(data)
            except GitlabError as error:
                assert error.response_code == 400 and "source_branch" in str(error.error_message), error
                return None

        return eventually(try_it, f"{branch} is visible")

    def read(self, mr):
        return self.project.mergerequests.get(mr.iid)

    def mergeable(self, mr):
        def look():
            read = self.read(mr)
            return read if read.detailed_merge_status == "mergeable" else None

        return eventually(look, f"!{mr.iid} is mergeable")

    def finished(self, pipeline_id):
        def look():
            read = self.project.pipelines.get(pipeline_id)
            return read if read.status in ("success", "failed", "canceled") else None

        return eventually(look, f"pipeline {pipeline_id} has finished")

    def pipeline_of(self, sha):
        return eventually(lambda: self.project.pipelines.list(sha=sha, get_all=True), f"a pipeline of {sha}")[0]


def check_instance(world):
    version, revision = world.bot.version()
    assert version[0].isdigit() and revision
    assert world.bot.http_get("/metadata")["version"] == version
    world.bot.auth()
    assert world.bot.user.username == "collie-bot" and world.bot.user.bot


def check_users_and_tokens(world):
    assert {user.username for user in world.bot.users.list(get_all=True)} >= {"root", "developer", "reviewer", "collie-bot"}
    (dana,) = world.bot.users.list(username="developer", get_all=True)
    members = world.project.members_all.list(get_all=True)
    assert {member.username: member.access_level for member in members}["collie-bot"] == 40
    assert world.project.members_all.get(dana.id).access_level == 30
    try:
        client(world.url, "glpat-nobody").auth()
    except GitlabAuthenticationError as error:
        assert error.response_code == 401
    else:
        raise AssertionError("an unknown token got in")
    check_scopes(world)
    check_rotation(world)


def check_scopes(world):
    world.control("POST", "/tokens", {"user": "collie-bot", "token": "glpat-reader", "scopes": ["read_api"]})
    reader = client(world.url, "glpat-reader").projects.get(PROJECT)
    with refused(403, "insufficient_scope"):
        reader.branches.create({"branch": "by-reader", "ref": "main"})


def check_rotation(world):
    world.control("POST", "/tokens", {"user": "collie-bot", "token": "glpat-old", "scopes": ["api"]})
    old = client(world.url, "glpat-old")
    new = old.personal_access_tokens.rotate("self")["token"]
    assert client(world.url, new).projects.get(PROJECT).id == world.project.id
    with refused(401):
        old.projects.get(PROJECT)


def check_projects(world):
    assert world.project.path_with_namespace == PROJECT and world.project.default_branch == "main"
    assert world.bot.projects.get(world.project.id).path_with_namespace == PROJECT
    assert [row.id for row in world.bot.projects.list(search="demo", membership=True, get_all=True)] == [world.project.id]
    with refused(404, "404 Project Not Found"):
        world.bot.projects.get("demo/none")


def check_branches(world):
    branches = world.project.branches
    made = branches.create({"branch": "topic/a", "ref": "main"})
    assert made.name == "topic/a" and not made.protected and branches.get("main").protected
    assert made.commit["id"] == branches.get("topic/a").commit["id"]
    eventually(lambda: has_branch(world, "topic/a"), "the cached list has the branch")
    with refused(400, "already exists"):
        branches.create({"branch": "topic/a", "ref": "main"})
    with refused(400, "invalid reference name"):
        branches.create({"branch": "topic/b", "ref": "none"})
    with refused(404, "404 Branch Not Found"):
        branches.get("none")
    branches.delete("topic/a")
    with refused(404):
        branches.delete("topic/a")
    with refused(400):
        branches.delete("main")


def has_branch(world, name):
    try:
        world.bot.http_head(f"/projects/{world.project.id}/repository/branches/{name.replace('/', '%2F')}")
    except GitlabError as error:
        assert error.response_code == 404
        return False
    return True


def check_pagination(world):
    for number in range(25):
        world.project.branches.create({"branch": f"page/{number:02}", "ref": "main"})
    names = [f"page/{number:02}" for number in range(25)]
    first = world.project.branches.list(search="page/", iterator=True, per_page=10)
    assert (first.total, first.total_pages, first.per_page, first.next_page) == (25, 3, 10, 2)
    assert [row.name for row in first] == names
    second = world.project.branches.list(search="page/", page=2, per_page=10, get_all=False)
    assert [row.name for row in second] == names[10:20]
    keyset = world.project.branches.list(search="page/", pagination="keyset", per_page=10, iterator=True)
    assert keyset.total is None and [row.name for row in keyset] == names
    with refused(400):
        world.project.branches.list(page=0, get_all=False)
    with refused(405, "Offset pagination"):
        world.project.branches.list(page=100_000, per_page=100, get_all=False)
    for name in names:
        world.project.branches.delete(name)


def check_commits(world):
    commits = world.project.commits
    main = world.project.branches.get("main").commit["id"]
    actions = [
        {"action": "create", "file_path": "docs/a.txt", "content": "one\ntwo\n"},
        {"action": "create", "file_path": "bin/run", "content": "IyEvYmluL3NoCg==", "encoding": "base64", "execute_filemode": True},
        {"action": "update", "file_path": "README.md", "content": "# App\n"},
        {"action": "move", "file_path": "src/start.rs", "previous_path": "src/main.rs"},
        {"action": "chmod", "file_path": "Cargo.toml", "execute_filemode": True},
    ]
    made = commits.create({"branch": "work", "start_sha": main, "commit_message": "Work\n\nBody", "actions": actions})
    assert made.parent_ids == [main] and made.title == "Work" and made.stats["additions"] > 0
    assert commits.get(made.id).message.startswith("Work") and commits.get("work", stats=False).id == made.id
    assert [row.id for row in commits.list(ref_name="work", get_all=True)][:2] == [made.id, main]
    changed = {row["new_path"]: row for row in commits.get(made.id).diff(get_all=True)}
    assert changed["docs/a.txt"]["new_file"] and changed["src/start.rs"]["renamed_file"] and changed["Cargo.toml"]["b_mode"] == "100755"
    assert commits.get(made.id).merge_requests(get_all=True) == []
    with refused(404, "404 Commit Not Found"):
        commits.get("0" * 40)
    check_refused_commits(world, main)


def check_refused_commits(world, main):
    def commit(actions, branch="work", **more):
        world.project.commits.create({"branch": branch, "commit_message": "x", "actions": actions, **more})

    create = {"action": "create", "file_path": "README.md", "content": "x"}
    new = {"action": "create", "file_path": "new.txt", "content": "x"}
    cases = [
        ("A file with this name already exists", [create], {}),
        ("A file with this name doesn't exist", [{"action": "update", "file_path": "none", "content": "x"}], {}),
        ("A directory with this name already exists", [{**create, "file_path": "docs"}], {}),
        ("already exists", [new], {"start_sha": main}),
        ("Cannot find start_sha", [new], {"start_sha": "1" * 40, "branch": "other"}),
        ("mutually exclusive", [new], {"start_sha": main, "start_branch": "main"}),
        ("Branch name is invalid", [new], {"start_sha": main, "branch": "a..b"}),
        ("on a branch", [new], {"branch": "unborn"}),
        ("traversal", [{**create, "file_path": "../x"}], {}),
        ("actions is required", [], {}),
        ("must be one of", [{"action": "rename", "file_path": "a"}], {}),
    ]
    for text, actions, more in cases:
        with refused(400, text):
            commit(actions, **more)
    world.project.commits.create({"branch": "work", "start_sha": main, "force": True, "commit_message": "Anew", "actions": [new]})
    world.settings(push_refused="PUSH DENIED by the server")
    with refused(400, "PUSH DENIED"):
        commit([{**new, "file_path": "newer.txt"}])
    world.settings(push_refused=None)


def check_files_and_trees(world):
    files = world.project.files
    made = files.create({"file_path": "notes/a b.txt", "branch": "work", "content": "hello\n", "commit_message": "Notes"})
    read = files.get("notes/a b.txt", ref="work")
    assert made.file_path == "notes/a b.txt" and read.decode() == b"hello\n" and read.size == 6
    assert files.head("notes/a b.txt", ref="work")["X-Gitlab-Content-Sha256"] == read.content_sha256
    assert files.raw("notes/a b.txt", ref="work") == b"hello\n" == world.project.repository_raw_blob(read.blob_id)
    read.content = "changed\n"
    read.save(branch="work", commit_message="Change")
    files.update("notes/a b.txt", {"branch": "work", "content": "again\n", "commit_message": "Again"})
    assert files.get("notes/a b.txt", ref="work").decode() == b"again\n"
    tree = world.project.repository_tree(ref="work", path="notes", get_all=True)
    assert [(row["name"], row["type"], row["mode"]) for row in tree] == [("a b.txt", "blob", "100644")]
    paths = [row["path"] for row in world.project.repository_tree(ref="main", recursive=True, per_page=2, iterator=True)]
    keyset = world.project.repository_tree(ref="main", recursive=True, pagination="keyset", per_page=2, iterator=True)
    assert {"src", "src/lib.rs", "README.md"} <= set(paths) and [row["path"] for row in keyset] == paths
    files.delete("notes/a b.txt", branch="work", commit_message="Gone")
    for missing in (lambda: files.get("notes/a b.txt", ref="work"), lambda: world.project.repository_tree(path="notes", get_all=True)):
        with refused(404):
            missing()


def check_compare(world):
    project = world.project
    compared = project.repository_compare("main", "work")
    assert [row["new_path"] for row in compared["diffs"]] == ["new.txt"] and not compared["compare_same_ref"]
    assert project.repository_compare("main", "main", straight=True)["compare_same_ref"]
    assert project.repository_merge_base(["main", "work"])["id"] == project.branches.get("main").commit["id"]
    with refused(404, "404 Ref Not Found"):
        project.repository_compare("main", "none")
    with refused(400, "at least 2 refs"):
        project.repository_merge_base(["main"])
    with refused(400, "Could not find ref"):
        project.repository_merge_base(["main", "none"])


def check_labels_and_events(world):
    labels = world.project.labels
    made = labels.create({"name": "kind::bug", "color": "#ff0000"})
    assert made.color == "#ff0000" and "kind::bug" in [row.name for row in labels.list(get_all=True)]
    with refused(409, "Label already exists"):
        labels.create({"name": "kind::bug", "color": "#ff0000"})

    def pushes():
        return {event.action_name for event in world.project.events.list(action="pushed", sort="asc", get_all=True)}

    eventually(lambda: pushes() >= {"pushed new", "pushed to", "deleted"}, "each kind of push is in the feed")
    assert world.project.events.list(after="2999-01-01", get_all=True) == []


def check_merge_requests(world):
    world.file("feature", "feature.txt", "1\n")
    mr = world.open("feature", "Add a feature", labels="kind::bug,deps", remove_source_branch=True, description="Text")
    assert mr.state == "opened" and sorted(mr.labels) == ["deps", "kind::bug"] and mr.author["username"] == "collie-bot"
    with refused(409, "Another open merge request already exists"):
        world.project.mergerequests.create({"source_branch": "feature", "target_branch": "main", "title": "Again"})
    with refused(400):
        world.project.mergerequests.create({"source_branch": "none", "target_branch": "main", "title": "None"})
    with refused(404):
        world.project.mergerequests.get(999)
    listed = world.project.mergerequests.list(state="opened", source_branch="feature", get_all=True)
    assert [row.iid for row in listed] == [mr.iid]
    check_updates(world, mr)
    assert [row.title for row in mr.commits(get_all=True)] == ["create feature.txt"]
    assert [row["new_path"] for row in world.bot.http_list(f"{mr_path(world, mr)}/diffs", get_all=True)] == ["feature.txt"]
    assert [row["iid"] for row in world.project.commits.get(world.read(mr).sha).merge_requests(get_all=True)] == [mr.iid]
    return mr


def mr_path(world, mr):
    return f"/projects/{world.project.id}/merge_requests/{mr.iid}"


def check_updates(world, mr):
    mr.title, mr.description = "Draft: Add a feature", "Other text"
    mr.save()
    assert world.read(mr).draft
    updates = world.project.mergerequests
    updates.update(mr.iid, {"title": "Add a feature", "add_labels": "kind::feature"})
    read = world.read(mr)
    assert not read.draft and read.description == "Other text" and sorted(read.labels) == ["deps", "kind::feature"]
    events = [(row.action, row.label["name"]) for row in read.resourcelabelevents.list(get_all=True)]
    assert ("remove", "kind::bug") in events and ("add", "kind::feature") in events
    updates.update(mr.iid, {"state_event": "close"})
    assert world.read(mr).state == "closed"
    updates.update(mr.iid, {"state_event": "reopen"})
    assert world.read(mr).state == "opened"


def check_notes(world, mr):
    note = mr.notes.create({"body": "First"})
    assert mr.notes.get(note.id).body == "First" and note.author["username"] == "collie-bot"
    note.body = "Edited"
    note.save()
    mr.notes.create({"body": "Second"})
    bodies = [row.body for row in mr.notes.list(order_by="created_at", sort="asc", activity_filter="only_comments", get_all=True)]
    assert bodies == ["Edited", "Second"]
    note.delete()
    with refused(404):
        mr.notes.get(note.id)
    thread = mr.discussions.create({"body": "Why?"})
    assert thread.attributes["notes"][0]["resolvable"]
    assert thread.id in [row.id for row in mr.discussions.list(get_all=True)]
    mr.discussions.update(thread.id, {"resolved": True})


def check_approvals(world, mr):
    world.settings(approvals_required=1)
    assert mr.approvals.get().approvals_left >= 0
    with refused(401):
        mr.approve()
    theirs = world.reviewer.projects.get(PROJECT).mergerequests.get(mr.iid)
    with refused(409, "SHA does not match"):
        theirs.approve(sha="0" * 40)
    if mr.approvals.get().approvals_left:
        theirs.approve(sha=world.read(mr).sha)
    assert [row["user"]["username"] for row in mr.approvals.get().approved_by] == ["reviewer"]
    theirs.unapprove()
    assert mr.approvals.get().approvals_left == 1
    theirs.approve()
    # Not by `reset_approvals()`, which wants JSON where nothing is answered.
    assert world.bot.http_request("put", f"{mr_path(world, mr)}/reset_approvals").status_code == 202
    assert mr.approvals.get().approvals_left == 1
    world.settings(approvals_required=0)


def check_merge(world, mr):
    sha = world.read(mr).sha
    world.finished(world.pipeline_of(sha).id)
    updates = world.project.mergerequests
    updates.update(mr.iid, {"title": "Draft: Add a feature"})
    with refused(405, "405 Method Not Allowed"):
        world.read(mr).merge(sha=sha)
    updates.update(mr.iid, {"title": "Add a feature"})
    ready = world.mergeable(mr)
    with refused(409, "SHA does not match HEAD"):
        ready.merge(sha="0" * 40)
    world.control("PUT", f"/projects/{world.project.id}/members", {"user": "collie-bot", "role": "reporter"})
    with refused(401):
        ready.merge(sha=sha)
    world.control("PUT", f"/projects/{world.project.id}/members", {"user": "collie-bot", "role": "maintainer"})
    assert ready.merge_ref()["commit_id"]
    ready.merge(sha=sha, should_remove_source_branch=True)
    merged = world.read(mr)
    assert merged.state == "merged" and merged.merge_commit_sha == world.project.branches.get("main").commit["id"]
    with refused(405):
        merged.merge(sha=sha)
    eventually(lambda: not has_branch(world, "feature"), "the source branch is removed")


def check_auto_merge(world):
    sha = world.file("auto", "auto.txt", "1\n").id
    mr = world.open("auto", "Merge it when the pipeline succeeds")
    eventually(lambda: (world.read(mr).head_pipeline or {}).get("status") in ("created", "pending", "running"), "its pipeline runs")
    with refused(406):
        mr.cancel_merge_when_pipeline_succeeds()
    mr.merge(sha=sha, merge_when_pipeline_succeeds=True)
    mr.cancel_merge_when_pipeline_succeeds()
    mr.merge(sha=sha, merge_when_pipeline_succeeds=True)
    eventually(lambda: world.read(mr).state == "merged", "auto merge")


def check_rebase(world):
    world.settings(merge_method="ff")
    world.file("behind", "behind.txt", "1\n")
    mr = world.open("behind", "Behind its target")
    world.file("main", "ahead.txt", "1\n")
    before = world.read(mr).sha
    assert mr.rebase() == {"rebase_in_progress": True}
    with refused(409, "Resource lock"):
        mr.rebase()
    rebased = eventually(lambda: (read := world.read(mr)).sha != before and read, "the rebase is done")
    head = world.project.branches.get("main").commit["id"]
    assert rebased.merge_error is None and world.project.commits.get(rebased.sha).parent_ids == [head]
    world.settings(merge_method="merge")
    world.project.mergerequests.update(mr.iid, {"state_event": "close"})


def check_merge_trains(world):
    trains = world.project.merge_trains
    with refused(403):
        trains.list(get_all=True)
    world.settings(merge_trains=True)
    sha = world.file("train", "train.txt", "1\n").id
    mr = world.open("train", "By train")
    world.finished(world.pipeline_of(sha).id)
    world.mergeable(mr)
    path = f"/projects/{world.project.id}/merge_trains/merge_requests/{mr.iid}"
    world.bot.http_post(path, post_data={"sha": sha})
    assert world.bot.http_get(path)["merge_request"]["iid"] == mr.iid
    assert [row.merge_request["iid"] for row in trains.list(scope="active", get_all=True)] == [mr.iid]
    eventually(lambda: world.read(mr).state == "merged", "the train arrives")
    world.settings(merge_trains=False)


def check_pipelines(world):
    project = world.project
    rule = {"job": "unit-tests", "outcome": "failed", "failure_reason": "script_failure", "trace": "ERROR: it broke\n"}
    world.control("POST", f"/projects/{project.id}/job_rules", rule)
    sha = world.file("ci", "ci.txt", "1\n").id
    pipeline = world.finished(world.pipeline_of(sha).id)
    assert pipeline.status == "failed" and project.pipelines.latest(ref="ci").id == pipeline.id
    assert [row.id for row in project.pipelines.list(ref="ci", status="failed", get_all=True)] == [pipeline.id]
    jobs = {job.name: job for job in pipeline.jobs.list(get_all=True)}
    assert jobs["compile"].status == "success" and jobs["unit-tests"].failure_reason == "script_failure"
    check_jobs(world, pipeline, jobs["unit-tests"].id)
    made = project.pipelines.create({"ref": "ci"})
    made.cancel()
    assert project.pipelines.get(made.id).status in ("canceled", "canceling")
    made.retry()
    with refused(400, "Reference not found"):
        project.pipelines.create({"ref": "none"})
    with refused(404):
        project.pipelines.get(999_999)
    mr = world.open("ci", "With pipelines of its own")
    assert pipeline.id in [row.id for row in mr.pipelines.list(get_all=True)]
    assert mr.pipelines.create().id
    project.mergerequests.update(mr.iid, {"state_event": "close"})


def check_jobs(world, pipeline, job_id):
    jobs = world.project.jobs
    job = jobs.get(job_id)
    assert b"ERROR: it broke" in job.trace() and job.pipeline["id"] == pipeline.id
    assert job_id in [row.id for row in jobs.list(scope=["failed"], get_all=True)]
    with refused(400, "does not have a valid value"):
        jobs.list(scope=["none"], get_all=True)
    world.control("DELETE", f"/projects/{world.project.id}/job_rules")
    again = job.retry()["id"]
    with refused(403, "not retryable"):
        job.retry()
    assert again != job_id and world.finished(pipeline.id).status == "success"
    assert job_id in [row.id for row in pipeline.jobs.list(include_retried=True, get_all=True)]
    with refused(400, "Unplayable Job"):
        jobs.get(again).play()
    jobs.get(again).cancel()
    with refused(404):
        jobs.get(999_999)


def check_ci_reports(world):
    project = world.project
    config = (
        "stages: [build, test]\nunit: {stage: build, script: x, parallel: 2, retry: 1}\n"
        "child: {stage: test, trigger: {include: ci/child.yml, strategy: depend}}\n"
    )
    cases = [{"classname": "C", "name": "a", "status": "failed", "file": "c_test.rs", "system_output": "boom"}, {"name": "b"}]
    rules = [{"job": "unit 1/2", "report": {"cases": cases}}, {"job": "inner", "report": {"suite_error": "JUnit XML parsing failed"}}]
    for rule in rules:
        world.control("POST", f"/projects/{project.id}/job_rules", {"seconds": 0.1, **rule})
    world.file("reports", "ci/child.yml", "inner: {script: x}\n")
    sha = world.file("reports", ".gitlab-ci.yml", config, "update").id
    pipeline = world.finished(world.pipeline_of(sha).id)
    (bridge,) = pipeline.bridges.list(get_all=True)
    child = project.pipelines.get(bridge.downstream_pipeline["id"])
    assert (bridge.name, bridge.status, child.source) == ("child", "success", "parent_pipeline")
    report = pipeline.test_report.get()
    (suite,) = report.test_suites
    assert (report.total_count, report.failed_count, suite["name"], suite["suite_error"]) == (2, 1, "unit", None)
    assert [(case["status"], case["name"]) for case in suite["test_cases"]] == [("failed", "a"), ("success", "b")]
    summary = pipeline.test_report_summary.get()
    assert summary.total["count"] == 2 and len(summary.test_suites[0]["build_ids"]) == 1
    assert child.test_report.get().test_suites[0]["suite_error"] == "JUnit XML parsing failed"
    listed = {row.id: row.source for row in project.pipelines.list(ref="reports", order_by="id", sort="asc", get_all=True)}
    assert list(listed)[-1] == pipeline.id and "parent_pipeline" not in listed.values()
    assert [row.id for row in project.pipelines.list(ref="reports", source="parent_pipeline", get_all=True)] == [child.id]
    assert project.pipelines.list(ref="reports", updated_after="2199-01-01T00:00:00Z", get_all=True) == []
    with refused(400, "source does not have a valid value"):
        project.pipelines.list(source="nowhere", get_all=True)
    with refused(403):
        child.delete()
    world.root.projects.get(project.id).pipelines.delete(child.id)
    with refused(404):
        child.test_report.get()
    world.control("DELETE", f"/projects/{project.id}/job_rules")


def check_issues(world):
    issues = world.project.issues
    issue = issues.create({"title": "unit-tests fails", "description": "Since today.\n/label ~ci", "labels": ["bug"]})
    assert (issue.state, issue.description, issue.labels) == ("opened", "Since today.", ["bug", "ci"])
    issue.title, issue.labels = "unit-tests failed", ["ci"]
    issue.save()
    assert issues.get(issue.iid).title == "unit-tests failed" and issues.get(issue.iid).labels == ["ci"]
    note = issue.notes.create({"body": "It is over.\n/close"})
    assert (note.body, note.noteable_type, issues.get(issue.iid).state) == ("It is over.", "Issue", "closed")
    note.body = "It was over."
    note.save()
    assert [row.body for row in issue.notes.list(get_all=True)] == ["It was over."] and issue.notes.get(note.id).body == "It was over."
    issue.state_event = "reopen"
    issue.save()
    found = issues.list(scope="created_by_me", state="opened", labels=["ci"], search="failed", get_all=True)
    assert [row.iid for row in found] == [issue.iid] and issues.list(state="closed", get_all=True) == []
    note.delete()
    with refused(400, "title is missing"):
        world.bot.http_post(f"/projects/{world.project.id}/issues", post_data={})
    with refused(404):
        issues.get(999)


class Ear(http.server.BaseHTTPRequestHandler):
    """Hears hooks."""

    heard = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Ear.heard.append((self.headers["x-gitlab-event"], self.headers["x-gitlab-token"], json.loads(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def check_hooks(world):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ear)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    hooks = world.project.hooks
    hook = hooks.create({"url": url, "token": "s3cret", "push_events": True, "merge_requests_events": False})
    assert hook.push_events and not hasattr(hook, "token") and [row.id for row in hooks.list(get_all=True)] == [hook.id]
    hook.merge_requests_events = True
    hook.save()
    assert hooks.get(hook.id).merge_requests_events and hooks.get(hook.id).url == url
    world.file("heard", "heard.txt", "1\n")
    kind, token, body = eventually(lambda: Ear.heard, "the push is heard")[0]
    assert (kind, token, body["ref"]) == ("Push Hook", "s3cret", "refs/heads/heard")
    hook.test("push_events")
    eventually(lambda: len(Ear.heard) > 1, "the test is heard")
    with refused(422, "Invalid url given"):
        hooks.create({"url": "gopher://x"})
    hook.delete()
    with refused(404):
        hooks.get(hook.id)
    server.shutdown()


def check_all(world):
    check_instance(world)
    check_projects(world)
    check_branches(world)
    check_commits(world)
    check_files_and_trees(world)
    check_compare(world)
    check_labels_and_events(world)
    mr = check_merge_requests(world)
    check_notes(world, mr)
    check_approvals(world, mr)
    check_merge(world, mr)
    check_auto_merge(world)
    check_rebase(world)
    check_merge_trains(world)
    check_pipelines(world)
    check_ci_reports(world)
    check_issues(world)
    check_hooks(world)
    check_pagination(world)
    check_users_and_tokens(world)


def routes():
    """The distinct calls: method and path with what varies left out."""
    shapes = [
        (r"\?.*", ""),
        (r"/projects/[^/]+", "/projects/:id"),
        (r"(branches|commits|files|blobs|discussions)/[^/]+", r"\1/:name"),
        (r"/test/\w+", "/test/:trigger"),
        (r"/\d+(?=/|$)", "/:n"),
    ]
    seen = set()
    for method, path in calls:
        for shape, name in shapes:
            path = re.sub(shape, name, path)
        seen.add(f"{method} {path}")
    return seen


def main(program):
    started = time.monotonic()
    with subprocess.Popen([program, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as simulator:
        try:
            ready = json.loads(simulator.stdout.readline())
            check_all(World(ready["gitlab"], ready["control"]))
        finally:
            simulator.terminate()
    seconds = time.monotonic() - started
    print(f"python-gitlab {gitlab.__version__}: {len(calls)} calls over {len(routes())} routes in {seconds:.0f} s, all as expected")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
