//! The issuer's key in a file of its directory: made once, whoever comes first, and read by everyone else.
//!
//! A new key is written whole to a file of its own and then linked to its final name. A link never replaces what is there,
//! so of two processes that both find no key one wins and the other reads the winner's.

use crate::local::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The secret part of an Ed25519 key pair.
pub(crate) type Seed = [u8; 32];

const FILE: &str = "ed25519.key";
/// Hex digits and a line end are all that the file holds.
const MAX_FILE_BYTES: u64 = 128;

/// The key in this directory, made where there is none.
pub(crate) fn open(dir: &Path) -> Result<Seed, Error> {
    let path = dir.join(FILE);
    if let Some(seed) = read(&path)? {
        return Ok(seed);
    }
    create(dir, &path)?;
    read(&path)?.ok_or_else(|| file_error(&path, ErrorKind::NotFound.into()))
}

fn read(path: &Path) -> Result<Option<Seed>, Error> {
    let file = match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| file_error(path, e))?,
    };
    if is_readable_by_others(&file).map_err(|e| file_error(path, e))? {
        return Err(Error::Exposed(path.to_owned()));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(|e| file_error(path, e))?;
    let mut seed = Seed::default();
    hex::decode_to_slice(text.trim_end(), &mut seed).map_err(|_| Error::Damaged(path.to_owned()))?;
    Ok(Some(seed))
}

fn create(dir: &Path, path: &Path) -> Result<(), Error> {
    create_dir(dir).map_err(|e| file_error(dir, e))?;
    let draft = draft_path(dir)?;
    let written = write_new(&draft, &random::<32>()?).and_then(|()| link(&draft, path));
    let removed = fs::remove_file(&draft);
    written.and(removed).map_err(|e| file_error(&draft, e))
}

/// A link that finds a key in place leaves it: that key is the one.
fn link(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    }
}

fn write_new(path: &Path, seed: &Seed) -> io::Result<()> {
    let mut file = private().write(true).create_new(true).open(path)?;
    writeln!(file, "{}", hex::encode(seed))?;
    file.sync_all()
}

fn draft_path(dir: &Path) -> Result<PathBuf, Error> {
    Ok(dir.join(format!(".{FILE}.{}", hex::encode(random::<8>()?))))
}

fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Error::NoRandomness)?;
    Ok(bytes)
}

fn file_error(path: &Path, source: io::Error) -> Error {
    Error::File { path: path.to_owned(), source }
}

#[cfg(unix)]
fn create_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(not(unix))]
fn create_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)
}

#[cfg(unix)]
fn private() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

#[cfg(not(unix))]
fn private() -> OpenOptions {
    OpenOptions::new()
}

#[cfg(unix)]
fn is_readable_by_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_file: &File) -> io::Result<bool> {
    Ok(false)
}
