//! The archive on S3: every object is put with `If-None-Match: *`, so that none is ever overwritten.

use crate::clients::Clients;
use crate::failure;
use async_trait::async_trait;
use aws_sdk_s3::operation::put_object::builders::PutObjectFluentBuilder;
use collie_core::error::{Class, Failure};
use collie_engine::ports::{Archive, Stored};
use std::sync::Arc;

/// The code of an archive that does not do as it is told.
const FAILED: &str = "archive_failed";

/// Prefixes of what belongs to items; everything else is audit.
const CONTENT_PREFIXES: [&str; 3] = ["content/", "deliveries/", "uploads/"];

/// Where objects lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets {
    /// File content, uploads and raw deliveries, which expire.
    pub content: String,
    /// Audit objects, which are kept.
    pub audit: String,
}

impl Buckets {
    pub(crate) fn of(&self, key: &str) -> &str {
        let is_content = CONTENT_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
        if is_content { &self.content } else { &self.audit }
    }
}

/// How an object says what it is.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    content_type: &'static str,
    content_encoding: Option<&'static str>,
}

impl Form {
    fn of(key: &str) -> Self {
        let gzip = Some("gzip").filter(|_| key.ends_with(".gz"));
        let plain = key.strip_suffix(".gz").unwrap_or(key);
        let content_type = match plain.rsplit_once('.').map(|(_, extension)| extension) {
            Some("ndjson") => "application/x-ndjson",
            Some("json") => "application/json",
            _ => "application/octet-stream",
        };
        Self { content_type, content_encoding: gzip }
    }
}

/// Objects in two buckets.
#[derive(Debug, Clone)]
pub struct S3Archive {
    clients: Arc<Clients>,
    buckets: Buckets,
}

impl S3Archive {
    /// The archive in these buckets.
    #[must_use]
    pub fn new(clients: Arc<Clients>, buckets: Buckets) -> Self {
        Self { clients, buckets }
    }

    fn put(&self, key: &str, bytes: Vec<u8>) -> PutObjectFluentBuilder {
        let form = Form::of(key);
        let request = self.clients.s3().put_object().bucket(self.buckets.of(key)).key(key).if_none_match("*");
        let request = request.content_type(form.content_type).set_content_encoding(form.content_encoding.map(str::to_owned));
        request.body(bytes.into())
    }
}

#[async_trait]
impl Archive for S3Archive {
    async fn put_new(&self, key: &str, bytes: Vec<u8>) -> Result<Stored, Failure> {
        match self.put(key, bytes).send().await {
            Ok(_) => Ok(Stored::Created),
            Err(error) if failure::status(&error) == Some(412) => Ok(Stored::Existed),
            Err(error) => Err(failure::of("S3", FAILED, &error)),
        }
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        let answer = match self.clients.s3().get_object().bucket(self.buckets.of(key)).key(key).send().await {
            Ok(answer) => answer,
            Err(error) if failure::status(&error) == Some(404) => return Ok(None),
            Err(error) => return Err(failure::of("S3", FAILED, &error)),
        };
        let broken = |_| Failure::new(Class::Transient { answered: false }, FAILED, "an object's bytes ended early");
        answer.body.collect().await.map(|bytes| Some(bytes.to_vec())).map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objects_key_says_its_bucket_and_its_form() {
        let buckets = Buckets { content: "content-bucket".into(), audit: "audit-bucket".into() };
        let cases = [
            ("content/0197-a/ab12", "content-bucket", "application/octet-stream", None),
            ("uploads/cd34/ab12", "content-bucket", "application/octet-stream", None),
            ("deliveries/0197-a/ab12.json", "content-bucket", "application/json", None),
            ("2026/01/31/18/04/0197-a-1-2.ndjson.gz", "audit-bucket", "application/x-ndjson", Some("gzip")),
        ];
        for (key, bucket, content_type, content_encoding) in cases {
            assert_eq!((buckets.of(key), Form::of(key)), (bucket, Form { content_type, content_encoding }), "{key}");
        }
    }
}
