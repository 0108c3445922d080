//! Rate limits: 429 in the two shapes GitLab has, counted per user and minute.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::call::ApiRequest;
use crate::clock::http_date;
use crate::reply::Reply;
use crate::state::State;

/// Which limiter answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitShape {
    /// Plain text `Retry later`, with `RateLimit-*` headers.
    RackAttack,
    /// JSON `{"message":{"error":…}}`.
    Application,
}

/// A limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Calls a user may make a minute.
    pub per_minute: u64,
    /// Which limiter answers.
    pub shape: LimitShape,
    /// Whether `Retry-After` is sent.
    #[serde(default)]
    pub retry_after: bool,
    /// Only calls whose path has this part.
    #[serde(default)]
    pub path: Option<String>,
}

/// The limit in force and what was counted.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    pub(crate) limit: Option<RateLimit>,
    counts: BTreeMap<(Option<u64>, u64), u64>,
    large: Vec<(u64, u64)>,
}

impl State {
    pub(crate) fn check_rate(&mut self, request: &ApiRequest, user: Option<u64>) -> Result<(), Reply> {
        let Some(limit) = self.limiter.limit.clone() else { return Ok(()) };
        if limit.path.as_deref().is_some_and(|part| !request.uri.contains(part)) {
            return Ok(());
        }
        let minute = self.now_ms / 60_000;
        let count = self.limiter.counts.entry((user, minute)).or_default();
        *count += 1;
        if *count <= limit.per_minute { Ok(()) } else { Err(refusal(&limit, *count, self.now_ms)) }
    }
}

const LARGE_BODY: usize = 20 << 20;
const LARGE_WINDOW_MS: u64 = 30_000;

impl State {
    /// Bodies over 20 MB: three in 30 s a user.
    pub(crate) fn check_large_body(&mut self, user: u64, bytes: usize) -> Result<(), Reply> {
        if bytes <= LARGE_BODY {
            return Ok(());
        }
        let now_ms = self.now_ms;
        let large = &mut self.limiter.large;
        large.retain(|(_, at_ms)| at_ms + LARGE_WINDOW_MS > now_ms);
        large.push((user, now_ms));
        let count = large.iter().filter(|(who, _)| *who == user).count();
        if count > 3 { Err(too_many().with_header("Retry-After", "30")) } else { Ok(()) }
    }
}

/// 429 of the application's own limiter.
pub(crate) fn too_many() -> Reply {
    let text = "This endpoint has been requested too many times. Try again later.";
    Reply::json(429, &json!({ "message": { "error": text } }))
}

fn refusal(limit: &RateLimit, observed: u64, now_ms: u64) -> Reply {
    let reset_ms = (now_ms / 60_000 + 1) * 60_000;
    let wait = (reset_ms - now_ms).div_ceil(1_000);
    let reply = match limit.shape {
        LimitShape::RackAttack => Reply::text(429, "Retry later\n")
            .with_header("RateLimit-Name", "throttle_authenticated_api")
            .with_header("RateLimit-Limit", limit.per_minute.to_string())
            .with_header("RateLimit-Observed", observed.to_string())
            .with_header("RateLimit-Remaining", "0")
            .with_header("RateLimit-Reset", (reset_ms / 1_000).to_string())
            .with_header("RateLimit-ResetTime", http_date(reset_ms)),
        LimitShape::Application => too_many(),
    };
    if limit.retry_after { reply.with_header("Retry-After", wait.to_string()) } else { reply }
}
