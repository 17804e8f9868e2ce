//! Keys, in a file that only its owner can read.
//!
//! ```text
//! concert keys v1
//! 1 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! 2 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752
//! ```
//! The last one seals; the others open what they sealed. The file is replaced as a whole, synced before
//! the first payload is sealed with a new key: a power cut never leaves a payload without its key.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use zeroize::Zeroizing;

use crate::chance::Chance;

const FIRST_LINE: &str = "concert keys v1";
const KEY_BYTES: usize = 32;

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It cannot be read or written.
    #[error("cannot use the key file {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not a key file, or damaged.
    #[error("{} line {line} is not a key file's", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// Others can read it.
    #[error("the key file {} can be read by others; make it mode 0600", .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
}

/// All keys of a store. Cheap to clone.
#[derive(Clone)]
pub struct Keyring {
    path: Option<Arc<Path>>,
    keys: Arc<RwLock<Vec<Key>>>,
}

#[derive(Clone)]
struct Key {
    number: u32,
    secret: Zeroizing<[u8; KEY_BYTES]>,
    cipher: Arc<XChaCha20Poly1305>,
    /// No longer in the file. It stays in memory for those who were given a payload, or sealed one, just
    /// before everything was sealed again.
    is_dropped: bool,
}

impl Key {
    fn new(number: u32, secret: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        let cipher = Arc::new(XChaCha20Poly1305::new(&(*secret).into()));
        Self { number, secret, cipher, is_dropped: false }
    }

    fn random(number: u32, chance: &Chance) -> Self {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        chance.fill(&mut *secret);
        Self::new(number, secret)
    }
}

impl Keyring {
    /// A ring with one fresh key that is nowhere else: for tests and stores in memory.
    pub fn in_memory(chance: &Chance) -> Self {
        Self { path: None, keys: Arc::new(RwLock::new(vec![Key::random(1, chance)])) }
    }

    /// Reads the key file, or makes it with a first key, readable by its owner only.
    ///
    /// # Errors
    /// [`KeyError`]; an existing file is never overwritten.
    pub fn open(path: impl Into<PathBuf>, chance: &Chance) -> Result<Self, KeyError> {
        let path = path.into();
        match Self::read_from(&path) {
            Err(KeyError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let keys = vec![Key::random(1, chance)];
                replace(&path, &keys).map_err(|source| KeyError::Io { path: path.clone(), source })?;
                Ok(Self { path: Some(path.into()), keys: Arc::new(RwLock::new(keys)) })
            }
            read => read,
        }
    }

    /// Reads a key file that must be there.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn read_from(path: impl Into<PathBuf>) -> Result<Self, KeyError> {
        let path = path.into();
        let text = fs::read_to_string(&path).map_err(|source| KeyError::Io { path: path.clone(), source })?;
        check_mode(&path)?;
        let keys = parse(&path, &Zeroizing::new(text))?;
        Ok(Self { path: Some(path.into()), keys: Arc::new(RwLock::new(keys)) })
    }

    /// Writes all keys to another file, readable by its owner only.
    ///
    /// # Errors
    /// [`KeyError::Io`], also when there is such a file already.
    pub fn copy_to(&self, path: &Path) -> Result<(), KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        if path.exists() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        replace(path, &self.read()).map_err(failed)
    }

    /// Adds a key, which seals from now on. It is in the file before it is used.
    ///
    /// # Errors
    /// [`KeyError::Io`]; the ring is unchanged.
    pub fn add(&self, chance: &Chance) -> Result<u32, KeyError> {
        self.change(|keys| {
            let number = keys.iter().map(|k| k.number).max().unwrap_or(0) + 1;
            keys.push(Key::random(number, chance));
            number
        })
    }

    /// Drops all keys but the newest. Once the process ends, payloads sealed with others can never be
    /// opened again.
    ///
    /// # Errors
    /// [`KeyError::Io`]; the ring is unchanged.
    pub fn drop_old(&self) -> Result<(), KeyError> {
        self.change(|keys| {
            let old = keys.len() - 1;
            keys[..old].iter_mut().for_each(|key| key.is_dropped = true);
        })
    }

    /// The numbers of the keys held, the newest last.
    pub fn numbers(&self) -> Vec<u32> {
        self.read().iter().filter(|k| !k.is_dropped).map(|k| k.number).collect()
    }

    pub(super) fn newest(&self) -> (u32, Arc<XChaCha20Poly1305>) {
        let keys = self.read();
        let key = keys.last().expect("a ring is never empty");
        (key.number, key.cipher.clone())
    }

    pub(super) fn cipher(&self, number: u32) -> Option<Arc<XChaCha20Poly1305>> {
        self.read().iter().find(|k| k.number == number).map(|k| k.cipher.clone())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Key>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Key>) -> T) -> Result<T, KeyError> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = keys.clone();
        let result = change(&mut changed);
        if let Some(path) = &self.path {
            replace(path, &changed).map_err(|source| KeyError::Io { path: path.to_path_buf(), source })?;
        }
        *keys = changed;
        Ok(result)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keyring({:?})", self.numbers())
    }
}

fn parse(path: &Path, text: &str) -> Result<Vec<Key>, KeyError> {
    let malformed = |line| KeyError::Malformed { path: path.to_owned(), line };
    let mut lines = (1..).zip(text.lines());
    if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
        return Err(malformed(1));
    }
    let key = |(n, line): (usize, &str)| {
        let (number, secret) = line.split_once(' ').ok_or_else(|| malformed(n))?;
        let number = number.parse().ok().filter(|n| *n > 0).ok_or_else(|| malformed(n))?;
        Ok(Key::new(number, unhex(secret).ok_or_else(|| malformed(n))?))
    };
    let keys = lines.map(key).collect::<Result<Vec<Key>, KeyError>>()?;
    if keys.is_empty() { Err(malformed(2)) } else { Ok(keys) }
}

fn unhex(text: &str) -> Option<Zeroizing<[u8; KEY_BYTES]>> {
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    if text.len() != 2 * KEY_BYTES || !text.is_ascii() {
        return None;
    }
    for (i, byte) in secret.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(secret)
}

/// Writes the file beside, syncs it, and moves it into place.
fn replace(path: &Path, keys: &[Key]) -> io::Result<()> {
    let mut text = Zeroizing::new(format!("{FIRST_LINE}\n"));
    for key in keys.iter().filter(|key| !key.is_dropped) {
        text.push_str(&format!("{} ", key.number));
        for byte in key.secret.iter() {
            text.push_str(&format!("{byte:02x}"));
        }
        text.push('\n');
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    // Left behind by a try that was cut off, perhaps with another mode.
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => File::open(".")?.sync_all(),
    }
}

#[cfg(unix)]
fn check_mode(path: &Path) -> Result<(), KeyError> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path).map_err(|source| KeyError::Io { path: path.to_owned(), source })?;
    if is_exposed(metadata.mode(), metadata.uid()) {
        Err(KeyError::Exposed { path: path.to_owned() })
    } else {
        Ok(())
    }
}

/// Nobody but the owner may read it. A file of root's may be read by a group as well: so Kubernetes hands a
/// Secret to a pod that is not root, and PostgreSQL takes its keys by the same rule.
#[cfg(unix)]
fn is_exposed(mode: u32, owner: u32) -> bool {
    let of_others = if owner == 0 { 0o037 } else { 0o077 };
    mode & of_others != 0
}

#[cfg(not(unix))]
fn check_mode(_: &Path) -> Result<(), KeyError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_group_may_read_the_keys_only_if_root_hands_them_out() {
        assert!(!is_exposed(0o100_600, 65_532) && !is_exposed(0o100_400, 0) && !is_exposed(0o100_440, 0));
        assert!(is_exposed(0o100_440, 65_532) && is_exposed(0o100_460, 0) && is_exposed(0o100_444, 0));
    }

    #[test]
    fn keys_survive_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.key");
        let ring = Keyring::open(&path, &Chance::seeded(1)).unwrap();
        ring.add(&Chance::seeded(2)).unwrap();
        let again = Keyring::open(&path, &Chance::seeded(3)).unwrap();
        assert_eq!(again.numbers(), [1, 2]);
        assert_eq!(*again.read()[1].secret, *ring.read()[1].secret);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(Keyring::open(&path, &Chance::seeded(1)), Err(KeyError::Exposed { .. })));
        }
    }

    #[test]
    fn a_damaged_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.key");
        drop(Keyring::open(&path, &Chance::seeded(1)).unwrap());
        let good = fs::read_to_string(&path).unwrap();
        for bad in ["", "x", "concert keys v1\n", &good[..good.len() - 2], &good.replace("1 ", "0 ")] {
            fs::write(&path, bad).unwrap();
            let error = Keyring::open(&path, &Chance::seeded(1)).unwrap_err();
            assert!(matches!(error, KeyError::Malformed { .. }), "{bad:?}: {error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), bad);
        }
    }

    #[test]
    fn a_ring_never_prints_its_keys() {
        let ring = Keyring::in_memory(&Chance::seeded(1));
        assert_eq!(format!("{ring:?}"), "Keyring([1])");
    }
}
