//! Passwords of roles, made from a key and from what they are for.
//!
//! A server keeps no password that could be read again, yet an object is told its own at every look. Made
//! from a key, there is one secret to keep rather than one for each database.

use std::io;
use std::path::Path;

use concert_store::Chance;
use ring::hmac;

use crate::data_folder;
use crate::tokens::hex;

const KEY_BYTES: usize = 32;

pub(super) struct Passwords(hmac::Key);

impl Passwords {
    /// Reads the key, or makes one.
    pub(super) fn open(path: &Path, chance: &Chance) -> io::Result<Self> {
        let bytes = match data_folder::read(path)? {
            Some(bytes) if bytes.len() == KEY_BYTES => bytes,
            Some(_) => {
                let message = format!("{} is not a key: restore it from a copy", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            None => {
                let mut bytes = vec![0; KEY_BYTES];
                chance.fill(&mut bytes);
                data_folder::write(path, &bytes)?;
                bytes
            }
        };
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The password of a role that was made for the object with this uid.
    pub(super) fn of(&self, uid: &str, role: &str) -> String {
        let tag = hmac::sign(&self.0, format!("{}:{uid}{role}", uid.len()).as_bytes());
        hex(&tag.as_ref()[..24])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_same_again_and_another_for_everybody_else() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str, seed| Passwords::open(&folder.path().join(name), &Chance::seeded(seed));
        let (first, again) = (open("key", 1).unwrap(), open("key", 2).unwrap());
        assert_eq!(first.of("u", "r"), again.of("u", "r"));
        assert_ne!(first.of("u", "r"), first.of("u", "s"));
        assert_ne!(first.of("ur", ""), first.of("u", "r"));
        assert_ne!(first.of("u", "r"), open("other", 2).unwrap().of("u", "r"));
        std::fs::write(folder.path().join("short"), "x").unwrap();
        assert!(open("short", 1).is_err());
    }
}
