//! Uploads by presigned `PutObject`: the URL signs the key, the checksum, the length and `If-None-Match: *`, so that it puts that
//! content, once, and nothing else.

use crate::archive::Buckets;
use crate::clients::Clients;
use async_trait::async_trait;
use aws_sdk_s3::presigning::PresigningConfig;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use collie_core::error::Failure;
use collie_core::time::Timestamp;
use collie_engine::ports::{Announced, SignedUpload, Uploads};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Uploads to the bucket of content.
#[derive(Debug, Clone)]
pub struct S3Uploads {
    clients: Arc<Clients>,
    buckets: Buckets,
}

impl S3Uploads {
    /// Uploads to these buckets.
    #[must_use]
    pub fn new(clients: Arc<Clients>, buckets: Buckets) -> Self {
        Self { clients, buckets }
    }
}

#[async_trait]
impl Uploads for S3Uploads {
    async fn sign(&self, content: Announced<'_>, now: Timestamp, until: Timestamp) -> Result<SignedUpload, Failure> {
        let digest = hex::decode(content.sha256).map_err(|_| Failure::bug("an announced digest is not hex"))?;
        let size = i64::try_from(content.size).map_err(|_| Failure::bug("an announced size is too large"))?;
        let request = self.clients.s3().put_object().bucket(self.buckets.of(content.key)).key(content.key);
        let request = request.if_none_match("*").content_length(size).checksum_sha256(BASE64_STANDARD.encode(digest));
        let signed = request.presigned(valid(now, until)?).await.map_err(|_| unsigned())?;
        let header = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(SignedUpload { url: signed.uri().to_owned(), headers: signed.headers().map(header).collect() })
    }
}

fn valid(now: Timestamp, until: Timestamp) -> Result<PresigningConfig, Failure> {
    let start = SystemTime::UNIX_EPOCH + Duration::from_millis(now.as_millis());
    let config = PresigningConfig::builder().start_time(start).expires_in(until.since(now));
    config.build().map_err(|_| unsigned())
}

fn unsigned() -> Failure {
    Failure::bug("an upload cannot be signed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Access, Endpoints, Keys};
    use std::collections::BTreeMap;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn uploads() -> S3Uploads {
        let keys = Keys { id: "AKID".into(), secret: "secret".to_owned().into(), session: None };
        let access = Access { region: "eu-central-1".into(), keys, endpoints: Endpoints::default() };
        S3Uploads::new(Arc::new(Clients::new(access)), Buckets { content: "content-bucket".into(), audit: "audit-bucket".into() })
    }

    #[tokio::test]
    async fn a_url_signs_key_checksum_length_and_that_nothing_is_overwritten() {
        let content = Announced { key: "uploads/owner/digest", sha256: EMPTY, size: 7 };
        let (now, until) = (Timestamp::from_millis(1_769_882_640_000), Timestamp::from_millis(1_769_886_240_000));
        let signed = uploads().sign(content, now, until).await.unwrap();
        let (place, query) = signed.url.split_once('?').unwrap();
        assert_eq!(place, "https://content-bucket.s3.eu-central-1.amazonaws.com/uploads/owner/digest");
        let query: BTreeMap<_, _> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        assert_eq!((query["X-Amz-Date"], query["X-Amz-Expires"]), ("20260131T180400Z", "3600"));
        let headers: BTreeMap<_, _> = signed.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!((headers["content-length"], headers["if-none-match"]), ("7", "*"));
        let checksum = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
        assert_eq!(headers["x-amz-checksum-sha256"], checksum);
        for name in ["content-length", "if-none-match", "x-amz-checksum-sha256"] {
            assert!(query["X-Amz-SignedHeaders"].split("%3B").any(|signed| signed == name), "{name} is signed: {query:?}");
        }
        assert!(!signed.url.contains("secret"));
    }
}
