//! Content by reference: what is too large for a request is announced, uploaded, and then named by its digest.
//!
//! An upload belongs to the identity that announced it: nobody reads, by knowing a digest, what someone else uploaded. Its bytes
//! are hashed again at each reading; a submission copies them to its item, so that an upload may expire after a day.

use crate::ports::{Announced, Archive, Clock, SignedUpload, Uploads};
use collie_core::error::Failure;
use collie_core::files::sha256_hex;
use collie_core::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The longest content that may be uploaded, in bytes: as long as a commit may be by default.
pub const MAX_BLOB: u64 = 20 << 20;
/// How long an upload may be started after it was announced.
const UPLOAD_WITHIN: Duration = Duration::from_secs(3600);

/// Uploads, and where they lie.
#[derive(Clone)]
pub struct Blobs {
    uploads: Arc<dyn Uploads>,
    archive: Arc<dyn Archive>,
    clock: Arc<dyn Clock>,
}

/// An upload that may now be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The request that makes it.
    pub upload: SignedUpload,
    /// Until when.
    pub expires_at: Timestamp,
}

impl Blobs {
    /// Blobs in an archive, uploaded by requests signed here.
    pub fn new(uploads: Arc<dyn Uploads>, archive: Arc<dyn Archive>, clock: Arc<dyn Clock>) -> Self {
        Self { uploads, archive, clock }
    }

    /// Lets an identity upload content of this digest (64 lower-case hex digits) and length.
    ///
    /// # Errors
    /// The signer's.
    pub async fn announce(&self, identity: &str, sha256: &str, size: u64) -> Result<Offer, Failure> {
        let (key, now) = (upload_key(identity, sha256), self.clock.now());
        let expires_at = now.after(UPLOAD_WITHIN);
        let upload = self.uploads.sign(Announced { key: &key, sha256, size }, now, expires_at).await?;
        Ok(Offer { upload, expires_at })
    }

    /// The bytes that an identity uploaded; none where they are not there, or are not what their digest says.
    ///
    /// # Errors
    /// The archive's.
    pub async fn read(&self, identity: &str, sha256: &str) -> Result<Option<Vec<u8>>, Failure> {
        let bytes = self.archive.get(&upload_key(identity, sha256)).await?;
        Ok(bytes.filter(|bytes| sha256_hex(bytes) == sha256))
    }
}

/// An identity is any text, so its digest stands for it.
fn upload_key(identity: &str, sha256: &str) -> String {
    format!("uploads/{}/{sha256}", sha256_hex(identity.as_bytes()))
}
