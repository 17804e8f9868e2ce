//! Files of keys: private from their first moment, and whole or not there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::error::TlsError;

pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(failed(path))
}

/// A file that only its owner may read; none if it is not there.
pub(super) fn read_private(path: &Path) -> Result<Option<Vec<u8>>, TlsError> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(path)(error)),
        Ok(metadata) if is_exposed(&metadata) => return Err(TlsError::Exposed { path: path.to_owned() }),
        Ok(_) => {}
    }
    read(path).map(Some)
}

#[cfg(unix)]
fn is_exposed(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_exposed(_: &fs::Metadata) -> bool {
    false
}

/// Makes the directory, for its owner alone.
pub(super) fn make_directory(path: &Path) -> Result<(), TlsError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(failed(path))
}

/// As [`replace_file`], with a text.
pub(super) fn replace(path: &Path, text: &str, mode: u32) -> Result<(), TlsError> {
    replace_file(path, text.as_bytes(), mode).map_err(failed(path))
}

/// Writes the file beside, syncs it, and moves it into place: nobody ever reads half of it, and it is there
/// after a power failure.
///
/// # Errors
/// Those of the file system.
pub fn replace_file(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    // Left behind by a try that was cut off, perhaps with another mode.
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> TlsError {
    let path = path.to_owned();
    move |source| TlsError::Io { path: path.clone(), source }
}
