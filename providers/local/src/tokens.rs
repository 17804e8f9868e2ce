//! Tokens that can make nothing any more.
//!
//! A token that made something is kept with what it made, for as long as that lives. What is here is the
//! rest: tokens whose thing is gone, and tokens of which it was said that they made nothing. A create that
//! was long on its way must not make a thing with either.

use std::io;
use std::path::PathBuf;

use concert_provider::{Class, Error, Token};
use ring::digest::{SHA256, digest};

use crate::{Result, data_folder};

/// One empty file for each, named by its hash.
#[derive(Clone, Debug)]
pub(crate) struct Tokens(PathBuf);

impl Tokens {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// From now on this token makes nothing.
    pub(crate) fn burn(&self, token: &str) -> Result<()> {
        data_folder::write(&self.file(token), b"").map_err(|error| self.failed(&error))
    }

    /// # Errors
    /// It was burnt.
    pub(crate) fn check(&self, token: &Token) -> Result<()> {
        match self.file(&token.0).try_exists() {
            Ok(false) => Ok(()),
            Ok(true) => {
                let message = format!("token {token} can make nothing any more: create with a new one");
                Err(Error::new(Class::Transient, message))
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn file(&self, token: &str) -> PathBuf {
        self.0.join(hex(digest(&SHA256, token.as_bytes()).as_ref()))
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::new(Class::Transient, format!("cannot keep tokens in {}: {error}", self.0.display()))
    }
}

/// Two digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burnt_token_stays_burnt() {
        let folder = tempfile::tempdir().unwrap();
        let token = Token("../a".into());
        let tokens = Tokens::new(folder.path().to_owned());
        tokens.check(&token).unwrap();
        tokens.burn(&token.0).unwrap();
        tokens.burn(&token.0).unwrap();
        assert!(Tokens::new(folder.path().to_owned()).check(&token).is_err());
        tokens.check(&Token("b".into())).unwrap();
    }
}
