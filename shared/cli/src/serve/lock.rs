//! The data directory, which one server at a time may have.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// A data directory that is ours until this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

impl DataDir {
    /// Makes the directory where there is none, readable by its owner alone, and takes it.
    pub(crate) fn take(path: &Path) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("data directory {}: {error}", path.display());
        create_private(path).map_err(failed)?;
        let mut lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => note_owner(&mut lock).map_err(failed)?,
            Err(TryLockError::WouldBlock) => return Err(taken(path, &mut lock)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// A path inside.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Makes a directory that only its owner can look into; it will hold keys.
pub(crate) fn create_private(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn note_owner(lock: &mut File) -> std::io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

fn taken(path: &Path, lock: &mut File) -> String {
    let mut owner = String::new();
    let _ = lock.read_to_string(&mut owner);
    let who = owner.trim().parse::<u32>().map_or_else(|_| "another process".to_owned(), |id| format!("process {id}"));
    format!("data directory {}: {who} is serving it; stop that one, or choose another with --data-dir", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_user_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let first = DataDir::take(directory.path()).unwrap();
        let refused = DataDir::take(directory.path()).unwrap_err();
        assert!(refused.contains(&format!("process {} is serving it", std::process::id())), "{refused}");
        drop(first);
        assert!(DataDir::take(directory.path()).is_ok());
    }
}
