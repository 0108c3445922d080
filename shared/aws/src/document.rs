//! One object on S3 that operators replace: the configuration file, with its versions.

use crate::clients::Clients;
use crate::failure;
use collie_core::error::{Class, Failure};
use std::sync::Arc;

/// The code of a document that cannot be read.
const UNREADABLE: &str = "configuration_unreadable";
/// Versions that are looked at, newest first.
const MOST_VERSIONS: i32 = 20;

/// An object, read again only where it has changed.
#[derive(Debug, Clone)]
pub struct S3Document {
    clients: Arc<Clients>,
    bucket: String,
    key: String,
}

/// A version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its text.
    pub text: String,
    /// Its entity tag.
    pub etag: String,
}

impl S3Document {
    /// The object of this key.
    #[must_use]
    pub const fn new(clients: Arc<Clients>, bucket: String, key: String) -> Self {
        Self { clients, bucket, key }
    }

    /// The object as it is; none where it is still the one with this entity tag.
    ///
    /// # Errors
    /// Where there is none, or S3 does not give it.
    pub async fn read(&self, known: Option<&str>) -> Result<Option<Version>, Failure> {
        match self.get(known, None).await {
            Err(failure) if failure.status == Some(304) => Ok(None),
            read => read.map(Some).map_err(|failed| failed.failure),
        }
    }

    /// The ids of its versions, newest first; needs a bucket that keeps versions.
    ///
    /// # Errors
    /// Where S3 does not list them.
    pub async fn versions(&self) -> Result<Vec<String>, Failure> {
        let request = self.clients.s3().list_object_versions().bucket(&self.bucket).prefix(&self.key).max_keys(MOST_VERSIONS);
        let listed = request.send().await.map_err(|error| failure::of("S3", UNREADABLE, &error))?;
        let versions = listed.versions.unwrap_or_default().into_iter().filter(|version| version.key() == Some(&self.key));
        Ok(versions.filter_map(|version| version.version_id).collect())
    }

    /// The text of one version.
    ///
    /// # Errors
    /// Where there is none, or S3 does not give it.
    pub async fn version(&self, id: &str) -> Result<Version, Failure> {
        self.get(None, Some(id)).await.map_err(|failed| failed.failure)
    }

    async fn get(&self, known: Option<&str>, version: Option<&str>) -> Result<Version, Failed> {
        let request = self.clients.s3().get_object().bucket(&self.bucket).key(&self.key);
        let request = request.set_if_none_match(known.map(str::to_owned)).set_version_id(version.map(str::to_owned));
        let answer = request
            .send()
            .await
            .map_err(|error| Failed { status: failure::status(&error), failure: failure::of("S3", UNREADABLE, &error) })?;
        let etag = answer.e_tag.clone().unwrap_or_default();
        let broken = |what: &str| Failed { status: None, failure: Failure::new(Class::Transient { answered: false }, UNREADABLE, what) };
        let bytes = answer.body.collect().await.map_err(|_| broken("the configuration's bytes ended early"))?;
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| broken("the configuration is no text"))?;
        Ok(Version { text, etag })
    }
}

/// A read that did not work.
struct Failed {
    status: Option<u16>,
    failure: Failure,
}
