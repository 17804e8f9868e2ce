//! The folder with all that outlives the process. Nobody but its user can read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The folder of one provider, locked for as long as this lives.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    // Two providers would each start a server for the same record.
    _lock: File,
}

impl DataFolder {
    /// Takes a folder, and makes it if need be.
    ///
    /// # Errors
    /// It cannot be made or written, or another provider uses it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot use {} as data folder", path.display());
        make(path).with_context(failed)?;
        // Processes are recognised by the folder they work in, which the kernel tells without links.
        let path = path.canonicalize().with_context(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).with_context(failed)?;
        let lock = private().write(true).create(true).truncate(false).open(path.join("lock"));
        let lock = lock.with_context(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => {
                bail!("{} is used by another provider: stop it, or choose another --data-dir", path.display())
            }
            Err(fs::TryLockError::Error(error)) => Err(error).with_context(failed),
        }
    }

    /// A folder in it, made if need be.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        make(&path)?;
        Ok(path)
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Makes a folder that only its user can enter.
pub(crate) fn make(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Files that only their user can read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Puts a file there as a whole: after a crash there is the old one or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = private().write(true).create(true).truncate(true).open(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// A file's contents; none if there is no such file.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_user_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataFolder::open(folder.path()).unwrap();
        let error = DataFolder::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("choose another --data-dir"), "{error}");
        drop(first);
        DataFolder::open(folder.path()).unwrap();
    }

    #[test]
    fn nobody_else_can_read_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(&folder.path().join("a/b")).unwrap();
        let file = data.folder("c").unwrap().join("secret");
        write(&file, b"old").unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(read(&file).unwrap().unwrap(), b"new");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(read(&data.file("missing")).unwrap(), None);
    }
}
