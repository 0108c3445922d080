//! Failing builds of the world's project: CI reports them, issue tracking follows them, and those who repair hear of it.

use crate::World;
use async_trait::async_trait;
use collie_core::error::Failure;
use collie_core::issue::delivery::{Limits, Reason};
use collie_core::issue::hook::{Notice, Repair as Offer};
use collie_core::issue::id::{BuildId, QueueName, RequestId};
use collie_core::issue::key::IssueKey;
use collie_core::issue::row::{Analysis, Event, Outcome};
use collie_engine::ports::{Jobs, Notices};
use collie_engine::settings::{Detector, Queue, Repair};
use collie_engine::tracking::work::Turn;
use gitlab_sim::DEMO_PROJECT_PATH;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

/// The tracked queue of the world's project.
pub(crate) fn queue() -> Queue {
    Queue {
        name: QueueName::new("app-main"),
        project: DEMO_PROJECT_PATH.to_owned(),
        reference: "main".to_owned(),
        detector: Detector::None,
        repair: Repair::WorkItem,
        limits: Limits::default(),
    }
}

/// What is to be told to those who repair.
#[derive(Debug, Clone)]
enum Item {
    Opened(Offer),
    Closed(IssueKey),
}

/// News that wait to be heard; each is heard at least once.
#[derive(Default)]
pub(crate) struct News(Mutex<VecDeque<Item>>);

#[async_trait]
impl Notices for News {
    async fn publish(&self, _: &QueueName, notice: &Notice) -> Result<(), Failure> {
        let item = match notice {
            Notice::Repair(offer) => Item::Opened(offer.clone()),
            Notice::Hook(hook) if hook.event == Event::Closed => Item::Closed(hook.key.clone()),
            Notice::Hook(_) => return Ok(()),
        };
        self.0.lock().unwrap().push_back(item);
        Ok(())
    }
}

#[async_trait]
impl Jobs for News {
    async fn ring(&self, _: &QueueName, _: RequestId, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn dead_letter(&self, _: &QueueName, job: RequestId, _: u32, reason: Reason) -> Result<(), Failure> {
        panic!("request {job} is given up: {}", reason.as_str())
    }
}

impl World {
    /// A whole build of the project's queue, reported past every fault: what it reports is `task/unit`, or a whole task.
    pub async fn ci_build(&self, name: &str, keys: &[&str]) {
        let (tracking, queue) = (self.quiet_tracking(), queue().name);
        let id = tracking.admit(&queue, name).await.unwrap().id;
        let build = BuildId::new(name);
        tracking.associate(&queue, id, &build).await.unwrap();
        let key = |text: &&str| text.split_once('/').map_or(IssueKey::new(*text, ""), |(task, unit)| IssueKey::new(task, unit));
        tracking.report(&queue, &build, &keys.iter().map(|text| (key(text), None)).collect()).await.unwrap();
        tracking.end_analysis(&queue, &build, Analysis::Completed, None).await.unwrap();
        tracking.conclude(&queue, id, if keys.is_empty() { Outcome::Succeeded } else { Outcome::Failed }).await.unwrap();
    }

    /// Everything that was reported is tracked, and those who repair hear of it; processes that die are started again.
    pub async fn track(&self) {
        let queue = queue();
        for _ in 0..200 {
            let (tracking, death) = self.tracker();
            let until = collie_core::time::Timestamp::from_millis(self.sim().now_ms()).after(Duration::from_secs(40));
            if let Some(Ok(Turn::Done)) = self.live(&death, tracking.work(&queue, None, until)).await {
                break;
            }
        }
        while let Some(item) = self.next_news() {
            let (tracking, death) = self.tracker();
            let heard = match &item {
                Item::Opened(offer) => self.live(&death, tracking.repair(&queue, offer)).await.map(|told| told.map(drop)),
                Item::Closed(key) => self.live(&death, tracking.repaired(&queue, key)).await,
            };
            if !matches!(heard, Some(Ok(()))) {
                self.news().0.lock().unwrap().push_back(item);
            }
        }
    }

    fn next_news(&self) -> Option<Item> {
        self.news().0.lock().unwrap().pop_front()
    }
}
