//! Uploads of content, served by this process: what a presigned URL of S3 is on AWS is an unguessable address here.
//!
//! An address is good for one announced content: its digest and its length. It ends with the process, or when its time is up.

use super::{SystemClock, archive::FileArchive};
use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use collie_core::error::{Class, Failure};
use collie_core::files::sha256_hex;
use collie_core::time::Timestamp;
use collie_engine::blobs::MAX_BLOB;
use collie_engine::ports::{Announced, Archive, Clock, SignedUpload, Stored, Uploads};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Uploads that may be announced and not yet made.
const MAX_PENDING: usize = 10_000;
/// How long uploads stay, unless a submission takes them over.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// Announced uploads, and the archive that they end in.
#[derive(Debug, Clone)]
pub(crate) struct LocalUploads {
    api: String,
    archive: FileArchive,
    pending: Arc<Mutex<HashMap<String, Pending>>>,
}

#[derive(Debug, Clone)]
struct Pending {
    key: String,
    sha256: String,
    size: u64,
    until: Timestamp,
}

impl LocalUploads {
    /// Uploads to the API at this address.
    pub(crate) fn new(api: &str, archive: FileArchive) -> Self {
        Self { api: api.to_owned(), archive, pending: Arc::default() }
    }

    /// The route that takes them.
    pub(crate) fn router(&self) -> Router {
        let limit = DefaultBodyLimit::max(usize::try_from(MAX_BLOB).unwrap_or(usize::MAX));
        Router::new().route("/uploads/{id}", put(take)).layer(limit).with_state(self.clone())
    }

    /// Removes uploads that nobody took over in time.
    pub(crate) async fn sweep(&self) -> Result<usize, Failure> {
        self.archive.remove_older("uploads", KEEP).await
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<String, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announced(&self, id: &str, now: Timestamp) -> Option<Pending> {
        self.pending().get(id).filter(|pending| pending.until > now).cloned()
    }
}

#[async_trait]
impl Uploads for LocalUploads {
    async fn sign(&self, content: Announced<'_>, now: Timestamp, until: Timestamp) -> Result<SignedUpload, Failure> {
        let mut pending = self.pending();
        pending.retain(|_, upload| upload.until > now);
        if pending.len() >= MAX_PENDING {
            return Err(Failure::new(Class::Throttled { until: now.after(KEEP) }, "throttled", "too many uploads are announced"));
        }
        let id = Uuid::new_v4().simple().to_string();
        let url = format!("{}/uploads/{id}", self.api);
        pending.insert(id, Pending { key: content.key.to_owned(), sha256: content.sha256.to_owned(), size: content.size, until });
        let headers = [("content-length", content.size.to_string()), ("if-none-match", "*".to_owned())];
        Ok(SignedUpload { url, headers: headers.map(|(name, value)| (name.to_owned(), value)).to_vec() })
    }
}

/// Answers as S3 does: 200, or 412 where the content is there already.
async fn take(State(uploads): State<LocalUploads>, Path(id): Path<String>, body: Bytes) -> Result<StatusCode, (StatusCode, &'static str)> {
    let gone = (StatusCode::FORBIDDEN, "this upload was not announced, or its time is up\n");
    let announced = uploads.announced(&id, SystemClock.now()).ok_or(gone)?;
    if body.len() as u64 != announced.size || sha256_hex(&body) != announced.sha256 {
        return Err((StatusCode::BAD_REQUEST, "these are not the bytes that were announced\n"));
    }
    match uploads.archive.put_new(&announced.key, body.to_vec()).await {
        Ok(Stored::Created) => Ok(StatusCode::OK),
        Ok(Stored::Existed) => Ok(StatusCode::PRECONDITION_FAILED),
        Err(failure) => {
            tracing::error!(code = failure.code, "an upload cannot be stored");
            Err((StatusCode::SERVICE_UNAVAILABLE, "the upload cannot be stored now; send it again\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt as _;

    fn uploads() -> (tempfile::TempDir, LocalUploads) {
        let directory = tempfile::tempdir().unwrap();
        let archive = FileArchive::open(&directory.path().join("objects")).unwrap();
        (directory, LocalUploads::new("http://collie.example", archive))
    }

    async fn put(uploads: &LocalUploads, url: &str, bytes: &'static str) -> u16 {
        let path = url.strip_prefix("http://collie.example").unwrap();
        let request = Request::put(path).body(Body::from(bytes)).unwrap();
        uploads.router().oneshot(request).await.unwrap().status().as_u16()
    }

    async fn announce(uploads: &LocalUploads, bytes: &str) -> String {
        let (sha256, now) = (sha256_hex(bytes.as_bytes()), SystemClock.now());
        let content = Announced { key: "uploads/owner/x", sha256: &sha256, size: bytes.len() as u64 };
        uploads.sign(content, now, now.after(Duration::from_secs(60))).await.unwrap().url
    }

    #[tokio::test]
    async fn exactly_what_was_announced_is_taken_once() {
        let (_directory, uploads) = uploads();
        let url = announce(&uploads, "hello").await;
        assert_eq!(put(&uploads, &url, "hell0").await, 400);
        assert_eq!(put(&uploads, &url, "hello, and more").await, 400);
        assert_eq!(put(&uploads, &url, "hello").await, 200);
        assert_eq!(put(&uploads, &url, "hello").await, 412);
        assert_eq!(uploads.archive.get("uploads/owner/x").await.unwrap(), Some(b"hello".to_vec()));
    }

    #[tokio::test]
    async fn an_address_that_was_not_given_or_is_too_old_takes_nothing() {
        let (_directory, uploads) = uploads();
        assert_eq!(put(&uploads, "http://collie.example/uploads/guessed", "x").await, 403);
        let url = announce(&uploads, "hello").await;
        uploads.pending().values_mut().for_each(|pending| pending.until = Timestamp::from_millis(0));
        assert_eq!(put(&uploads, &url, "hello").await, 403);
    }

    #[tokio::test]
    async fn what_nobody_takes_over_is_removed_after_a_day() {
        let (_directory, uploads) = uploads();
        let url = announce(&uploads, "hello").await;
        put(&uploads, &url, "hello").await;
        assert_eq!(uploads.sweep().await.unwrap(), 0);
        assert_eq!(uploads.archive.remove_older("uploads", Duration::ZERO).await.unwrap(), 1);
        assert_eq!(uploads.archive.get("uploads/owner/x").await.unwrap(), None);
    }
}
