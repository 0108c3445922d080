//! Merge trains: who is aboard, the pipeline of each car, and the merge of the first.
//! `GET /projects/:id/merge_trains`, `GET|POST /projects/:id/merge_trains/merge_requests/:merge_request_iid`.
//!
//! A car's pipeline runs on its source merged into what the car before it makes of the target. Its success merges the car once
//! it is the first; its failure drops the car, and the cars behind it start anew. A push to the source drops the car too. A car
//! that is dropped is gone; one that is merged stays to be read.
//!
//! UNCONFIRMED: the text of the 400 for what cannot join, 405 for a merge past the train without `skip_merge_train`, and that a dropped car leaves its failed pipeline as the head pipeline.

use serde_json::{Value, json};

use crate::access::Role;
use crate::call::Call;
use crate::merge::{MergeOptions, check_sha};
use crate::mr_json::time;
use crate::pagination::{Totals, paginate};
use crate::pipelines::{PipelinePlan, Status, pipeline_row};
use crate::project::Project;
use crate::pushes::Push;
use crate::reply::{Answer, Reply, bad_request, forbidden, no_record, not_found, unauthorized};
use crate::repo::CommitDraft;
use crate::state::{State, Task};

/// Where a car is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CarStatus {
    Idle,
    Stale,
    Fresh,
    Merging,
    Merged,
    SkipMerged,
}

impl CarStatus {
    const fn text(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Stale => "stale",
            Self::Fresh => "fresh",
            Self::Merging => "merging",
            Self::Merged => "merged",
            Self::SkipMerged => "skip_merged",
        }
    }

    const fn is_aboard(self) -> bool {
        !matches!(self, Self::Merged | Self::SkipMerged)
    }
}

/// A merge request on a train.
#[derive(Clone, Debug)]
pub(crate) struct Car {
    id: u64,
    mr: u64,
    user: u64,
    target: String,
    squash: Option<bool>,
    status: CarStatus,
    pipeline: Option<u64>,
    /// What its pipeline runs on.
    commit: Option<String>,
    created_at_ms: u64,
    updated_at_ms: u64,
    merged_at_ms: Option<u64>,
}

impl Car {
    const fn is_aboard(&self) -> bool {
        self.status.is_aboard()
    }
}

impl Project {
    /// The car of a merge request that is still on its way.
    pub(crate) fn car(&self, mr: u64) -> Option<&Car> {
        self.cars.iter().find(|car| car.mr == mr && car.is_aboard())
    }

    fn car_mut(&mut self, mr: u64) -> Option<&mut Car> {
        self.cars.iter_mut().find(|car| car.mr == mr && car.is_aboard())
    }

    fn train(&self, target: &str) -> Vec<Car> {
        self.cars.iter().filter(|car| car.is_aboard() && car.target == target).cloned().collect()
    }
}

/// `POST …/merge_trains/merge_requests/:merge_request_iid`
pub(crate) fn join(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = readable(state, call)?;
    let user = call.user_id()?;
    if state.may_merge_mr(project, iid, user) != Some(true) {
        return Err(unauthorized());
    }
    check_sha(state, project, iid, call.params.text("sha").as_deref())?;
    let refused = || bad_request("Failed to add the merge request to the merge train");
    if state.project(project).is_some_and(|row| row.car(iid).is_some()) || state.merge_obstacle(project, iid).is_some() {
        return Err(refused());
    }
    state.board(project, iid, user, call.params.flag("squash")).ok_or_else(refused)?;
    let row = state.project(project).ok_or_else(no_record)?;
    let target = row.car(iid).map(|car| car.target.clone()).unwrap_or_default();
    let cars: Vec<_> = row.train(&target).iter().map(|car| car_json(state, row, car)).collect();
    Ok(Reply::json(201, &Value::Array(cars)))
}

/// `GET …/merge_trains`
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let project = with_trains(call.project_as(state, Role::Developer)?)?;
    let scope = call.params.text("scope");
    let fits = |car: &&Car| match scope.as_deref() {
        Some("active") => car.is_aboard(),
        Some("complete") => !car.is_aboard(),
        _ => true,
    };
    let rows = project.cars.iter().rev().filter(fits).map(|car| car_json(state, project, car)).collect();
    paginate(state, call, rows, Totals::Sent)
}

/// `GET …/merge_trains/merge_requests/:merge_request_iid`
pub(crate) fn get(state: &mut State, call: &Call) -> Answer {
    let (project, iid) = readable(state, call)?;
    let row = state.project(project).ok_or_else(no_record)?;
    let car = row.cars.iter().rev().find(|car| car.mr == iid).ok_or_else(|| not_found("Merge Train Merge Request"))?;
    Ok(Reply::json(200, &car_json(state, row, car)))
}

fn readable(state: &State, call: &Call) -> Result<(u64, u64), Reply> {
    with_trains(call.project_as(state, Role::Developer)?)?;
    call.merge_request(state)
}

fn with_trains(project: &Project) -> Result<&Project, Reply> {
    if project.settings.merge_trains { Ok(project) } else { Err(forbidden(None)) }
}

fn car_json(state: &State, project: &Project, car: &Car) -> Value {
    let pipeline = car.pipeline.and_then(|id| project.pipelines.get(&id));
    let mr = project.mrs.get(&car.mr).map(|mr| {
        json!({ "id": mr.id, "iid": mr.iid, "project_id": project.id, "title": mr.title, "description": mr.description,
            "state": mr.state.text(), "created_at": time(Some(mr.created_at_ms)), "updated_at": time(Some(mr.updated_at_ms)),
            "web_url": format!("{}/-/merge_requests/{}", state.web_url(project), mr.iid) })
    });
    json!({
        "id": car.id, "merge_request": mr, "user": state.user_json(Some(car.user)),
        "pipeline": pipeline.map(|pipeline| pipeline_row(state, project, pipeline)),
        "created_at": time(Some(car.created_at_ms)), "updated_at": time(Some(car.updated_at_ms)), "target_branch": car.target,
        "status": car.status.text(), "merged_at": time(car.merged_at_ms),
        "duration": car.merged_at_ms.map(|at| at.saturating_sub(car.created_at_ms) / 1000),
    })
}

impl State {
    fn board(&mut self, project: u64, iid: u64, user: u64, squash: Option<bool>) -> Option<()> {
        let (id, now_ms) = (self.ids.next("merge_train_car"), self.now_ms);
        let row = self.project_mut(project)?;
        let mr = row.mrs.get_mut(&iid)?;
        mr.auto_merge = true;
        mr.merge_user = Some(user);
        let target = mr.target_branch.clone();
        row.cars.push(Car {
            id,
            mr: iid,
            user,
            target: target.clone(),
            squash,
            status: CarStatus::Idle,
            pipeline: None,
            commit: None,
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            merged_at_ms: None,
        });
        self.plan_train(project, target)
    }

    fn plan_train(&mut self, project: u64, target: String) -> Option<()> {
        self.schedule(self.timing.pipeline_creation_ms, Task::RefreshTrain { project, target });
        Some(())
    }

    /// Gives every car that has none its pipeline, in order; one that does not merge cleanly is dropped.
    pub(crate) fn refresh_train(&mut self, project: u64, target: &str) -> Option<()> {
        let mut base = self.project(project)?.head_id(target)?;
        for car in self.project(project)?.train(target) {
            let made = match car.status {
                CarStatus::Idle | CarStatus::Stale => self.start_car(project, &car, &base),
                _ => car.commit.clone(),
            };
            match made {
                Some(commit) => base = commit,
                None => drop(self.drop_car(project, car.mr)),
            }
        }
        Some(())
    }

    fn start_car(&mut self, project: u64, car: &Car, base: &str) -> Option<String> {
        let commit = self.car_commit(project, car, base)?;
        let mr = self.mr(project, car.mr)?;
        let plan = PipelinePlan {
            branch: mr.source_branch.clone(),
            sha: mr.sha.clone()?,
            mr: Some(car.mr),
            source: "merge_request_event",
            user: car.user,
            upstream: None,
        };
        let reference = format!("refs/merge-requests/{}/train", car.mr);
        let pipeline = self.create_pipeline_on(project, &plan, commit.clone(), reference)?;
        let now_ms = self.now_ms;
        let car = self.project_mut(project)?.car_mut(car.mr)?;
        (car.status, car.pipeline, car.commit) = (CarStatus::Fresh, Some(pipeline), Some(commit.clone()));
        car.updated_at_ms = now_ms;
        Some(commit)
    }

    fn car_commit(&mut self, project: u64, car: &Car, base: &str) -> Option<String> {
        let signature = self.signature(car.user);
        let row = self.project_mut(project)?;
        let source = row.mrs.get(&car.mr)?.sha.clone()?;
        let tree = row.repo.merge(base, &source).ok()?;
        let message = format!("Merge {source} into {base}");
        let draft = CommitDraft { message, author: signature.clone(), committer: signature, author_user: None };
        Some(row.repo.put_commit(tree, vec![base.to_owned(), source], draft))
    }

    /// What the end of a pipeline means for the car it ran for, if any.
    pub(crate) fn train_pipeline_ended(&mut self, project: u64, pipeline: u64, status: Status) -> Option<()> {
        let car = self.project(project)?.cars.iter().find(|car| car.is_aboard() && car.pipeline == Some(pipeline))?.clone();
        match status {
            Status::Success => self.advance_train(project, &car.target),
            _ if status.is_finished() => self.drop_car(project, car.mr),
            _ => None,
        }
    }

    /// Lets the first car merge, if its pipeline is green.
    fn advance_train(&mut self, project: u64, target: &str) -> Option<()> {
        let row = self.project(project)?;
        let first = row.train(target).into_iter().next().filter(|car| car.status == CarStatus::Fresh)?;
        row.pipelines.get(&first.pipeline?).filter(|pipeline| pipeline.status == Status::Success)?;
        self.set_car(project, first.mr, CarStatus::Merging)?;
        self.schedule(self.timing.mergeability_check_ms, Task::MergeCar { project, iid: first.mr });
        Some(())
    }

    pub(crate) fn merge_car(&mut self, project: u64, iid: u64) -> Option<()> {
        let car = self.project(project)?.car(iid).filter(|car| car.status == CarStatus::Merging)?.clone();
        if self.merge_obstacle(project, iid).is_some() {
            return self.drop_car(project, iid);
        }
        // Set before the merge, so that it is not taken for one past the train.
        self.set_car(project, iid, CarStatus::Merged);
        if let Err(reason) = self.merge_mr(project, iid, car.user, &MergeOptions::squashing(car.squash)) {
            let row = self.project_mut(project)?;
            row.cars.iter_mut().filter(|other| other.id == car.id).for_each(|car| car.status = CarStatus::Merging);
            self.set_merge_error(project, iid, &reason);
            return self.drop_car(project, iid);
        }
        self.advance_train(project, &car.target)
    }

    fn set_car(&mut self, project: u64, iid: u64, status: CarStatus) -> Option<()> {
        let now_ms = self.now_ms;
        let car = self.project_mut(project)?.car_mut(iid)?;
        car.status = status;
        car.updated_at_ms = now_ms;
        car.merged_at_ms = (!status.is_aboard()).then_some(now_ms);
        Some(())
    }

    /// Takes a car off its train; the cars behind it start anew.
    pub(crate) fn drop_car(&mut self, project: u64, iid: u64) -> Option<()> {
        let row = self.project_mut(project)?;
        let at = row.cars.iter().position(|car| car.mr == iid && car.is_aboard())?;
        let target = row.cars.remove(at).target;
        row.cars.iter_mut().skip(at).filter(|car| car.target == target).for_each(restart);
        let mr = row.mrs.get_mut(&iid)?;
        mr.auto_merge = false;
        mr.merge_user = None;
        self.touch_mr(project, iid);
        self.plan_train(project, target)
    }

    /// A merge request that was merged past its train.
    pub(crate) fn skip_train(&mut self, project: u64, iid: u64) -> Option<()> {
        self.set_car(project, iid, CarStatus::SkipMerged)
    }

    /// A push to the target that is no merge of the train makes every car start anew.
    pub(crate) fn train_target_moved(&mut self, project: u64, push: &Push) -> Option<()> {
        let row = self.project_mut(project)?;
        let merged =
            |car: &Car| car.status == CarStatus::Merged && row.mrs.get(&car.mr).is_some_and(|mr| mr.brought(push.after.as_deref()));
        if row.cars.iter().any(merged) || row.train(&push.branch).is_empty() {
            return None;
        }
        row.cars.iter_mut().filter(|car| car.target == push.branch).for_each(restart);
        self.plan_train(project, push.branch.clone())
    }
}

fn restart(car: &mut Car) {
    if car.status.is_aboard() && car.status != CarStatus::Merging {
        car.status = CarStatus::Stale;
    }
}

impl crate::merge_requests::MergeRequest {
    /// Whether its merge made this the target's head.
    fn brought(&self, head: Option<&str>) -> bool {
        head.is_some() && [&self.merge_commit_sha, &self.squash_commit_sha, &self.sha].iter().any(|sha| sha.as_deref() == head)
    }
}
