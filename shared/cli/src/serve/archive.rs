//! The archive as files: one object, one file, written once.
//!
//! An object appears whole or not at all: its bytes are written and flushed under another name, then linked to its own,
//! which fails where an object is there. A key names no file outside the archive.

use async_trait::async_trait;
use collie_core::error::{Class, Failure};
use collie_engine::ports::{Archive, Stored};
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// Where objects are before they have their name.
const UNNAMED: &str = ".unnamed";
/// The longest key, as in S3.
const MAX_KEY_BYTES: usize = 1024;
/// The longest part of a key: a file name.
const MAX_PART_BYTES: usize = 255;

/// Objects below one directory.
#[derive(Debug, Clone)]
pub(crate) struct FileArchive {
    root: PathBuf,
}

impl FileArchive {
    /// Opens the archive, and removes what a process that died left unnamed. The caller is the directory's only user.
    pub(crate) fn open(root: &Path) -> std::io::Result<Self> {
        let unnamed = root.join(UNNAMED);
        match std::fs::remove_dir_all(&unnamed) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => std::fs::create_dir_all(&unnamed)?,
        }
        Ok(Self { root: root.to_owned() })
    }

    fn path(&self, key: &str) -> Result<PathBuf, Failure> {
        let good = !key.is_empty() && key.len() <= MAX_KEY_BYTES && key.split('/').all(is_part);
        good.then(|| self.root.join(key)).ok_or_else(|| Failure::bug(format!("{key:?} is no key of an object")))
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> std::io::Result<Stored> {
        if path.exists() {
            return Ok(Stored::Existed);
        }
        let directory = path.parent().unwrap_or(&self.root);
        create_directories(&self.root, directory)?;
        let unnamed = self.root.join(UNNAMED).join(Uuid::new_v4().simple().to_string());
        let written = write_flushed(&unnamed, bytes).and_then(|()| link(&unnamed, path));
        std::fs::remove_file(&unnamed)?;
        File::open(directory)?.sync_all()?;
        written
    }

    /// Removes objects below a prefix that are older than that; says how many.
    pub(crate) async fn remove_older(&self, prefix: &'static str, age: Duration) -> Result<usize, Failure> {
        let root = self.root.join(prefix);
        blocking(move || remove_older(&root, age)).await
    }
}

fn remove_older(directory: &Path, age: Duration) -> std::io::Result<usize> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            removed += remove_older(&entry.path(), age)?;
        } else if metadata.modified()?.elapsed().is_ok_and(|old| old >= age) {
            std::fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// A part of a key: plain characters, and not a name that directories have for themselves or that this archive uses.
fn is_part(part: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '=' | '+' | '@');
    !part.is_empty() && part.len() <= MAX_PART_BYTES && !part.starts_with('.') && part.chars().all(plain)
}

/// Makes the directories down to `directory`, each flushed into the one above it.
fn create_directories(root: &Path, directory: &Path) -> std::io::Result<()> {
    if directory == root || directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().unwrap_or(root);
    create_directories(root, above)?;
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(above)?.sync_all(),
    }
}

fn write_flushed(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn link(unnamed: &Path, path: &Path) -> std::io::Result<Stored> {
    match std::fs::hard_link(unnamed, path) {
        Ok(()) => Ok(Stored::Created),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Stored::Existed),
        Err(error) => Err(error),
    }
}

/// A put that failed may have happened; objects are written once, so it can be repeated.
fn failed(error: &std::io::Error) -> Failure {
    Failure::new(Class::Transient { answered: false }, "archive_failed", format!("the archive's files: {}", error.kind()))
}

/// Runs file work where it may block.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T, Failure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failure::bug("work on the archive's files panicked"))?.map_err(|error| failed(&error))
}

#[async_trait]
impl Archive for FileArchive {
    async fn put_new(&self, key: &str, bytes: Vec<u8>) -> Result<Stored, Failure> {
        let (archive, path) = (self.clone(), self.path(key)?);
        blocking(move || archive.put(&path, &bytes)).await
    }

    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        let path = self.path(key)?;
        blocking(move || match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> (tempfile::TempDir, FileArchive) {
        let directory = tempfile::tempdir().unwrap();
        let archive = FileArchive::open(&directory.path().join("objects")).unwrap();
        (directory, archive)
    }

    #[tokio::test]
    async fn an_object_is_written_once() {
        let (_directory, archive) = archive();
        let key = "content/0197-a/abc";
        assert_eq!(archive.get(key).await.unwrap(), None);
        assert_eq!(archive.put_new(key, b"one".to_vec()).await.unwrap(), Stored::Created);
        assert_eq!(archive.put_new(key, b"two".to_vec()).await.unwrap(), Stored::Existed);
        assert_eq!(archive.get(key).await.unwrap(), Some(b"one".to_vec()));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn of_many_writers_one_creates() {
        let (_directory, archive) = archive();
        let put = |n: u8| {
            let archive = archive.clone();
            tokio::spawn(async move { archive.put_new("a/b/c", vec![n; 4096]).await.unwrap() })
        };
        let mut created = 0;
        for writer in (0..16).map(put).collect::<Vec<_>>() {
            created += usize::from(writer.await.unwrap() == Stored::Created);
        }
        let object = archive.get("a/b/c").await.unwrap().unwrap();
        assert_eq!((created, object.len()), (1, 4096));
        assert!(object.iter().all(|byte| *byte == object[0]));
    }

    #[tokio::test]
    async fn a_key_names_nothing_outside() {
        let (_directory, archive) = archive();
        for key in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "a/./b", ".unnamed/x", "a\\b", "a\0b", "a b", &"x".repeat(300)] {
            assert!(archive.put_new(key, vec![]).await.is_err(), "{key:?}");
            assert!(archive.get(key).await.is_err(), "{key:?}");
        }
        assert!(archive.put_new("2026/01/31/18/04/0197-x-rev-1.ndjson.gz", vec![]).await.is_ok());
    }

    #[test]
    fn opening_again_keeps_objects_and_removes_what_has_no_name() {
        let (directory, archive) = archive();
        archive.put(&archive.path("kept").unwrap(), b"kept").unwrap();
        std::fs::write(archive.root.join(UNNAMED).join("half"), b"ha").unwrap();
        let again = FileArchive::open(&directory.path().join("objects")).unwrap();
        assert_eq!(std::fs::read(again.path("kept").unwrap()).unwrap(), b"kept");
        assert_eq!(std::fs::read_dir(again.root.join(UNNAMED)).unwrap().count(), 0);
    }
}
