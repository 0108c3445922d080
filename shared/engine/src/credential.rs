//! A secret in use, which is read anew where its other side no longer takes it: a rotated token works without a restart.
//!
//! Nothing is read on a schedule: a secret that still works is the right one. After a refusal it is read again, at most once in
//! [`PAUSE`] however often it is refused, and all whom the old one failed share what was read. Where it has not changed, the refusal
//! stands. It never shows in a log or a failure (INV-12).

use crate::ports::{Clock, Secrets};
use collie_core::time::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;

/// The least time between two readings of one secret.
const PAUSE: Duration = Duration::from_secs(60);

/// A secret in use. Clones share it.
#[derive(Clone)]
pub struct Credential(Arc<Inner>);

struct Inner {
    secret: RwLock<SecretString>,
    origin: Option<Origin>,
    /// When it may be read again; held while it is read, so that others wait for the answer.
    not_before: Mutex<Timestamp>,
}

/// Where it can be read again.
struct Origin {
    name: String,
    secrets: Arc<dyn Secrets>,
    clock: Arc<dyn Clock>,
}

impl Credential {
    /// A secret that can be read again under this name.
    pub fn named(name: impl Into<String>, secret: SecretString, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> Self {
        Self::new(secret, Some(Origin { name: name.into(), secrets, clock }))
    }

    fn new(secret: SecretString, origin: Option<Origin>) -> Self {
        Self(Arc::new(Inner { secret: RwLock::new(secret), origin, not_before: Mutex::default() }))
    }

    /// The secret as it is known.
    #[must_use]
    pub fn get(&self) -> SecretString {
        self.0.secret.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another secret than the one that was just refused; none where there is none.
    pub async fn instead_of(&self, refused: &SecretString) -> Option<SecretString> {
        let origin = self.0.origin.as_ref()?;
        let mut not_before = self.0.not_before.lock().await;
        let known = self.get();
        if !is_same(&known, refused) {
            return Some(known);
        }
        let now = origin.clock.now();
        if now < *not_before {
            return None;
        }
        *not_before = now.after(PAUSE);
        let read = origin.read().await.filter(|read| !is_same(read, refused))?;
        tracing::info!(secret = origin.name, "a secret was refused and has changed; the new one is used");
        *self.0.secret.write().unwrap_or_else(PoisonError::into_inner) = read.clone();
        Some(read)
    }
}

impl Origin {
    /// The secret, if it can be read and sent.
    async fn read(&self) -> Option<SecretString> {
        match self.secrets.secret(&self.name).await {
            Ok(secret) if is_sendable(&secret) => return Some(secret),
            Ok(_) => tracing::warn!(secret = self.name, "a secret was refused, and holds now what no header can carry"),
            Err(failure) => tracing::warn!(secret = self.name, code = failure.code, "a secret was refused and cannot be read again"),
        }
        None
    }
}

/// A secret that stays.
impl From<SecretString> for Credential {
    fn from(secret: SecretString) -> Self {
        Self::new(secret, None)
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.0.origin.as_ref().map(|origin| origin.name.as_str());
        f.debug_struct("Credential").field("name", &name).finish_non_exhaustive()
    }
}

fn is_same(a: &SecretString, b: &SecretString) -> bool {
    a.expose_secret() == b.expose_secret()
}

fn is_sendable(secret: &SecretString) -> bool {
    let text = secret.expose_secret();
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use collie_core::error::Failure;
    use std::sync::Mutex as StdMutex;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    #[derive(Default)]
    struct Store {
        now_ms: AtomicU64,
        held: StdMutex<Option<&'static str>>,
        reads: AtomicUsize,
    }

    #[async_trait]
    impl Secrets for Store {
        async fn secret(&self, name: &str) -> Result<SecretString, Failure> {
            assert_eq!(name, "gitlab/main");
            self.reads.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.held.lock().unwrap().map(SecretString::from).ok_or_else(|| Failure::rejected("secret_unreadable", "gone"))
        }
    }

    #[async_trait]
    impl Clock for Store {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst))
        }

        async fn sleep(&self, _: Duration) {}
    }

    impl Store {
        fn hold(&self, secret: Option<&'static str>) {
            *self.held.lock().unwrap() = secret;
        }

        fn reads(&self) -> usize {
            self.reads.load(Ordering::SeqCst)
        }
    }

    fn world() -> (Arc<Store>, Credential) {
        let store = Arc::new(Store::default());
        let (secrets, clock): (Arc<dyn Secrets>, Arc<dyn Clock>) = (store.clone(), store.clone());
        (store, Credential::named("gitlab/main", "old".into(), secrets, clock))
    }

    async fn instead_of(credential: &Credential, refused: &str) -> Option<String> {
        credential.instead_of(&refused.into()).await.map(|secret| secret.expose_secret().to_owned())
    }

    #[tokio::test]
    async fn a_secret_that_was_refused_is_read_again_once_a_minute() {
        let (store, credential) = world();
        store.hold(Some("old"));
        assert_eq!((instead_of(&credential, "old").await, store.reads()), (None, 1));
        store.hold(Some("new"));
        assert_eq!((instead_of(&credential, "old").await, store.reads()), (None, 1), "the minute runs");
        store.now_ms.store(60_000, Ordering::SeqCst);
        assert_eq!((instead_of(&credential, "old").await.as_deref(), store.reads()), (Some("new"), 2));
        assert_eq!(credential.get().expose_secret(), "new");
        assert_eq!((instead_of(&credential, "old").await.as_deref(), store.reads()), (Some("new"), 2), "known by now");
        assert_eq!((instead_of(&credential, "new").await, store.reads()), (None, 2));
    }

    #[tokio::test]
    async fn all_whom_the_old_one_failed_share_one_reading() {
        let (store, credential) = world();
        store.hold(Some("new"));
        let answers = futures::future::join_all((0..20).map(|_| instead_of(&credential, "old"))).await;
        assert!(answers.iter().all(|answer| answer.as_deref() == Some("new")), "{answers:?}");
        assert_eq!(store.reads(), 1);
    }

    #[tokio::test]
    async fn what_cannot_be_read_or_sent_changes_nothing() {
        for held in [None, Some(""), Some("a b"), Some("a\nb"), Some("é")] {
            let (store, credential) = world();
            store.hold(held);
            assert_eq!(instead_of(&credential, "old").await, None, "{held:?}");
            assert_eq!(credential.get().expose_secret(), "old");
        }
        assert_eq!(instead_of(&Credential::from(SecretString::from("old")), "old").await, None);
    }

    #[test]
    fn it_is_not_shown() {
        assert_eq!(format!("{:?}", world().1), r#"Credential { name: Some("gitlab/main"), .. }"#);
    }
}
