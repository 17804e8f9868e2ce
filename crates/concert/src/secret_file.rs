//! Files that only their owner can read.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Writes a file that only its owner can read, whole or not at all, whoever could read what was there.
pub fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    // A link stays, and what it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(path).is_ok_and(|it| !it.is_file()) {
        // A pipe or a device is not ours to replace.
        return OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(content))
            .with_context(cannot);
    }
    let fresh = beside(path);
    // One that a crash has left may have another mode.
    let _ = fs::remove_file(&fresh);
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).with_context(cannot)?;
    file.write_all(content).and_then(|()| file.sync_all()).with_context(cannot)?;
    fs::rename(&fresh, path).with_context(cannot)
}

/// `.x.new` for `x`.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.new"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_that_others_could_read_is_for_its_owner_only_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.plan");
        fs::write(&path, "before").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        // Who has it open goes on to read what was there.
        let mut open = fs::File::open(&path).unwrap();
        write(&path, b"secret").unwrap();
        assert_eq!((mode(&path), fs::read(&path).unwrap()), (0o600, b"secret".to_vec()));
        assert_eq!(std::io::read_to_string(&mut open).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_link_stays_and_a_device_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "before").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write(&link, b"secret").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((mode(&target), fs::read(&target).unwrap()), (0o600, b"secret".to_vec()));
        write(Path::new("/dev/null"), b"secret").unwrap();
    }
}
