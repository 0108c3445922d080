//! What the routes work with.

use collie_auth::Authenticator;
use collie_engine::Engine;
use collie_engine::blobs::Blobs;
use collie_engine::credential::Credential;
use collie_engine::letters::DeadLetters;
use collie_engine::limiter::Limiter;
use collie_engine::ports::Ids;
use collie_engine::tracking::Tracking;
use std::sync::Arc;

/// Everything the routes need.
#[derive(Clone)]
pub struct ApiState {
    /// The use cases.
    pub engine: Engine,
    /// CI issues.
    pub tracking: Tracking,
    /// What queues gave up.
    pub letters: DeadLetters,
    /// Content by reference.
    pub blobs: Blobs,
    /// How many changes one identity may ask for.
    pub limiter: Limiter,
    /// Says who calls.
    pub auth: Arc<dyn Authenticator>,
    /// Whether an OAuth proxy protects `GET /v1/me`, and brings the token of whoever logged in (DDR-27).
    pub oauth_proxy: bool,
    /// Who may bring hooks.
    pub hooks: HookDoor,
    /// Where ids of requests come from: its tokens.
    pub request_ids: Arc<dyn Ids>,
}

/// The connections whose hooks are taken in.
#[derive(Debug, Clone, Default)]
pub struct HookDoor {
    /// The connections.
    pub connections: Vec<HookConnection>,
}

/// A connection to a forge, as its hooks see it.
#[derive(Debug, Clone)]
pub struct HookConnection {
    /// Its name in the configuration; the webhook id of `/v1/hooks/gitlab/{webhook_id}`.
    pub slug: String,
    /// The host that its hooks speak of.
    pub host: String,
    /// What `X-Gitlab-Token` must be.
    pub secret: Credential,
}

impl HookDoor {
    /// The connection with this slug.
    #[must_use]
    pub fn connection(&self, slug: &str) -> Option<&HookConnection> {
        self.connections.iter().find(|c| c.slug == slug)
    }
}
