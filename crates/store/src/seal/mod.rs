//! Encryption at rest.
//!
//! Every payload is sealed with XChaCha20-Poly1305 under the newest key of a [`Keyring`], bound to
//! whose it is. Nonces are random and 192 bits long, so there is no count of writes after which a key
//! must be changed. A sealed payload starts with the number of its key: 0 means "not encrypted".

mod keyring;

use bytes::Bytes;
use chacha20poly1305::aead::{Aead, Payload as Sealing};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

use crate::backend::{Failure, Owner};
use crate::chance::Chance;

pub use keyring::{KeyError, Keyring};

/// Four bytes of key number, then 24 of nonce.
const KEY_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;

/// A copy has a payload that no key at hand opens.
#[derive(Debug, thiserror::Error)]
#[error("the copy was sealed with keys that are not here, or altered")]
pub struct SealedElsewhere(#[source] Box<Failure>);

/// Seals and opens payloads.
#[derive(Debug)]
pub(crate) struct Seal {
    keyring: Option<Keyring>,
    chance: Chance,
}

impl Seal {
    /// Seals under `keyring`; without one payloads stay in clear.
    pub(crate) fn new(keyring: Option<Keyring>, chance: Chance) -> Self {
        Self { keyring, chance }
    }

    pub(crate) fn keyring(&self) -> Option<&Keyring> {
        self.keyring.as_ref()
    }

    /// The sealed form of `clear`.
    pub(crate) fn seal(&self, owner: &Owner, clear: &[u8]) -> Bytes {
        let Some((number, cipher)) = self.keyring.as_ref().map(Keyring::newest) else {
            return [&0u32.to_le_bytes(), clear].concat().into();
        };
        let mut nonce = [0; NONCE_BYTES];
        self.chance.fill(&mut nonce);
        let aad = name_of(owner);
        let sealing = Sealing { msg: clear, aad: aad.as_bytes() };
        let sealed = cipher.encrypt(&XNonce::from(nonce), sealing).expect("payloads are far below 256 GiB");
        let mut out = Vec::with_capacity(KEY_BYTES + NONCE_BYTES + sealed.len());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&nonce);
        out.extend_from_slice(&sealed);
        out.into()
    }

    /// What was sealed for `owner`.
    ///
    /// # Errors
    /// [`Failure::Broken`] for bytes that were altered, moved from another owner, or sealed with a key
    /// that the ring does not hold.
    pub(crate) fn open(&self, owner: &Owner, sealed: &Bytes) -> Result<Bytes, Failure> {
        let broken =
            |why: &str| Failure::broken(format!("cannot open the payload of {}: {why}", name_of(owner)));
        let number = key_number(sealed).ok_or_else(|| broken("it is cut off"))?;
        if number == 0 {
            return match self.keyring {
                // In an encrypted store somebody else must have put it there.
                Some(_) => Err(broken("it is not encrypted")),
                None => Ok(sealed.slice(KEY_BYTES..)),
            };
        }
        let cipher = self.keyring.as_ref().and_then(|ring| ring.cipher(number));
        let cipher = cipher.ok_or_else(|| broken(&format!("key {number} is not in the key file")))?;
        open_with(&cipher, owner, &sealed[KEY_BYTES..]).ok_or_else(|| broken("it was altered"))
    }

    /// Nothing if `sealed` can be opened here; sealed anew if one of `keys` opens it.
    ///
    /// # Errors
    /// [`Failure::Broken`] with [`SealedElsewhere`] if neither does.
    pub(crate) fn adopt(
        &self,
        keys: Option<&Keyring>,
        owner: &Owner,
        sealed: &Bytes,
    ) -> Result<Option<Bytes>, Failure> {
        let Err(refusal) = self.open(owner, sealed) else { return Ok(None) };
        let opened = keys.and_then(|keys| {
            let cipher = keys.cipher(key_number(sealed)?)?;
            open_with(&cipher, owner, &sealed[KEY_BYTES..])
        });
        match opened {
            Some(clear) => Ok(Some(self.seal(owner, &clear))),
            None => Err(Failure::Broken(SealedElsewhere(Box::new(refusal)).into())),
        }
    }

    /// The number of the key that seals now.
    pub(crate) fn newest(&self) -> u32 {
        self.keyring.as_ref().map_or(0, |ring| ring.newest().0)
    }

    /// `sealed` under the newest key, or none if its key is `newest` already.
    pub(crate) fn reseal(
        &self,
        newest: u32,
        owner: &Owner,
        sealed: &Bytes,
    ) -> Result<Option<Bytes>, Failure> {
        if key_number(sealed) == Some(newest) {
            return Ok(None);
        }
        Ok(Some(self.seal(owner, &self.open(owner, sealed)?)))
    }
}

fn open_with(cipher: &XChaCha20Poly1305, owner: &Owner, sealed: &[u8]) -> Option<Bytes> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let aad = name_of(owner);
    let opening = Sealing { msg: sealed, aad: aad.as_bytes() };
    cipher.decrypt(&XNonce::from(*nonce), opening).ok().map(Bytes::from)
}

fn key_number(sealed: &[u8]) -> Option<u32> {
    sealed.first_chunk::<KEY_BYTES>().map(|bytes| u32::from_le_bytes(*bytes))
}

fn name_of(owner: &Owner) -> String {
    match owner {
        Owner::Object(key) => key.to_string(),
        Owner::Item(item) => format!("item {} of {}", item.item, item.controller),
    }
}

#[cfg(test)]
mod tests {
    use concert_model::{GroupKind, ObjectKey};

    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::Object(ObjectKey::cluster(GroupKind::new("", "Secret"), name))
    }

    fn seal() -> Seal {
        let chance = Chance::seeded(1);
        Seal::new(Some(Keyring::in_memory(&chance)), chance)
    }

    #[test]
    fn what_is_sealed_is_not_readable_and_opens_again() {
        let seal = seal();
        let sealed = seal.seal(&owner("a"), b"very secret");
        assert!(!sealed.windows(6).any(|w| w == b"secret"));
        assert_eq!(seal.open(&owner("a"), &sealed).unwrap(), "very secret");
        assert_ne!(sealed, seal.seal(&owner("a"), b"very secret"));
    }

    #[test]
    fn altered_moved_cut_and_clear_payloads_are_refused() {
        let seal = seal();
        let sealed = seal.seal(&owner("a"), b"very secret");
        assert!(seal.open(&owner("b"), &sealed).is_err());
        for i in [0, 4, 27, 28, sealed.len() - 1] {
            let mut bytes = sealed.to_vec();
            bytes[i] ^= 1;
            assert!(seal.open(&owner("a"), &bytes.into()).is_err(), "byte {i}");
        }
        for length in [0, 3, 4, 10, 28, sealed.len() - 1] {
            assert!(seal.open(&owner("a"), &sealed.slice(..length)).is_err(), "{length} bytes");
        }
        let clear = Seal::new(None, Chance::seeded(1)).seal(&owner("a"), b"planted");
        assert!(seal.open(&owner("a"), &clear).is_err());
    }

    #[test]
    fn old_payloads_open_after_a_new_key_and_can_be_sealed_again() {
        let folder = tempfile::tempdir().unwrap();
        let keys = || Keyring::open(folder.path().join("key"), &Chance::seeded(1)).unwrap();
        let seal = Seal::new(Some(keys()), Chance::seeded(1));
        let old = seal.seal(&owner("a"), b"x");
        seal.keyring().unwrap().add(&Chance::seeded(2)).unwrap();
        assert_eq!(seal.open(&owner("a"), &old).unwrap(), "x");
        let new = seal.reseal(2, &owner("a"), &old).unwrap().unwrap();
        assert_eq!(seal.reseal(2, &owner("a"), &new).unwrap(), None);
        seal.keyring().unwrap().drop_old().unwrap();
        // Who was in the middle of it can finish; the next start knows the new key only.
        assert_eq!(seal.open(&owner("a"), &old).unwrap(), "x");
        let seal = Seal::new(Some(keys()), Chance::seeded(1));
        assert!(seal.open(&owner("a"), &old).is_err());
        assert_eq!(seal.open(&owner("a"), &new).unwrap(), "x");
    }
}
