//! Users behind opaque tokens: the one cluster that takes them says who they are, asked with their own token (DDR-24).
//!
//! What it says is kept for a while under the token's digest; the token itself is never kept. A failure is kept for less.

use crate::AuthError;
use crate::http::Http;
use crate::jwt::name_is_good;
use crate::source::below;
use collie_core::files::sha256_hex;
use collie_core::time::Timestamp;
use collie_engine::ports::Clock;
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use url::Url;

/// What opaque tokens begin with.
pub(crate) const PREFIX: &str = "sha256~";
/// Where OpenShift says who asks.
const USERS_SELF: &str = "apis/user.openshift.io/v1/users/~";
const KEPT_FOR: Duration = Duration::from_secs(300);
const FAILURE_KEPT_FOR: Duration = Duration::from_secs(30);
/// Answers that are kept at once.
const MAX_KEPT: usize = 4096;
/// Questions that are under way at once, so that a flood of made-up tokens does not become the cluster's.
const MAX_ASKED: usize = 8;
const MAX_TOKEN_BYTES: usize = 256;
const MAX_USER_BYTES: usize = 256 * 1024;
/// Groups of one user that are read.
const MAX_GROUPS: usize = 1000;

/// A user of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

/// The users of the one cluster that takes opaque tokens.
pub(crate) struct Users {
    pub(crate) cluster: String,
    http: Arc<dyn Http>,
    url: Url,
    clock: Arc<dyn Clock>,
    kept: Mutex<HashMap<String, Kept>>,
    asking: Semaphore,
}

struct Kept {
    answer: Result<User, AuthError>,
    until: Timestamp,
}

#[derive(Deserialize)]
struct Answer {
    metadata: Metadata,
    #[serde(default)]
    groups: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

impl Users {
    /// The users of a cluster whose API is here.
    pub(crate) fn new(cluster: String, api: &Url, http: Arc<dyn Http>, clock: Arc<dyn Clock>) -> Self {
        let (url, asking) = (below(api, USERS_SELF), Semaphore::new(MAX_ASKED));
        Self { cluster, http, url, clock, kept: Mutex::default(), asking }
    }

    /// Whose token this is.
    pub(crate) async fn user(&self, token: &str) -> Result<User, AuthError> {
        if !is_opaque(token) {
            return Err(AuthError::Invalid("it begins like an opaque token and is none"));
        }
        let digest = sha256_hex(token.as_bytes());
        if let Some(answer) = self.kept(&digest) {
            return answer;
        }
        let _permit = self.asking.acquire().await.map_err(|_| AuthError::Unavailable)?;
        // While it waited, another request may have asked the same.
        if let Some(answer) = self.kept(&digest) {
            return answer;
        }
        let answer = self.ask(token).await;
        self.keep(digest, answer.clone());
        answer
    }

    async fn ask(&self, token: &str) -> Result<User, AuthError> {
        let reply = self.http.get(&self.url, Some(&SecretString::from(token)), MAX_USER_BYTES).await;
        let reply = reply.map_err(|error| {
            tracing::warn!(cluster = self.cluster, %error, "a cluster does not say who its user is");
            AuthError::Unavailable
        })?;
        match reply.status {
            200 => read_user(&reply.body).ok_or(AuthError::Unavailable),
            401 | 403 => Err(AuthError::Invalid("its cluster does not know it")),
            status => {
                tracing::warn!(cluster = self.cluster, status, "a cluster does not say who its user is");
                Err(AuthError::Unavailable)
            }
        }
    }

    fn kept(&self, digest: &str) -> Option<Result<User, AuthError>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(digest).filter(|kept| self.clock.now() < kept.until).map(|kept| kept.answer.clone())
    }

    fn keep(&self, digest: String, answer: Result<User, AuthError>) {
        let now = self.clock.now();
        let until = now.after(if answer.is_ok() { KEPT_FOR } else { FAILURE_KEPT_FOR });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            make_room(&mut kept, now);
        }
        kept.insert(digest, Kept { answer, until });
    }
}

/// Drops what is too old; where all are good, failures before users, so that made-up tokens do not drive out real ones.
fn make_room(kept: &mut HashMap<String, Kept>, now: Timestamp) {
    kept.retain(|_, kept| now < kept.until);
    if kept.len() >= MAX_KEPT {
        kept.retain(|_, kept| kept.answer.is_ok());
    }
    if kept.len() >= MAX_KEPT {
        kept.clear();
    }
}

fn is_opaque(token: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let rest = token.strip_prefix(PREFIX).unwrap_or_default();
    !rest.is_empty() && token.len() <= MAX_TOKEN_BYTES && rest.chars().all(plain)
}

/// The user of an answer, without the groups that everyone is in.
fn read_user(body: &[u8]) -> Option<User> {
    let Answer { metadata: Metadata { name }, groups } = serde_json::from_slice(body).ok()?;
    let counts = |group: &String| !group.starts_with("system:");
    let groups = groups.unwrap_or_default().into_iter().filter(counts).take(MAX_GROUPS).collect();
    name_is_good(&name).then_some(User { name, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(answer: &Result<User, AuthError>, until: u64) -> HashMap<String, Kept> {
        let entry = |n: usize| (n.to_string(), Kept { answer: answer.clone(), until: Timestamp::from_millis(until) });
        (0..MAX_KEPT).map(entry).collect()
    }

    #[test]
    fn what_is_kept_is_bounded_and_failures_go_first() {
        let now = Timestamp::from_millis(10);
        let (good, bad) = (Ok(User { name: "ann".into(), groups: Vec::new() }), Err(AuthError::Unavailable));
        let mut kept = full(&bad, 20);
        kept.insert("real".into(), Kept { answer: good.clone(), until: Timestamp::from_millis(20) });
        make_room(&mut kept, now);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["real"]);
        let mut kept = full(&good, 20);
        make_room(&mut kept, now);
        assert!(kept.is_empty());
        let mut kept = full(&good, 10);
        kept.insert("young".into(), Kept { answer: good, until: Timestamp::from_millis(20) });
        make_room(&mut kept, now);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["young"]);
    }
}
