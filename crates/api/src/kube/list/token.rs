//! Continue tokens.
//!
//! The store's own token, `REVISION/NAMESPACE/NAME`, in an envelope that says to people that it is not to
//! be read. The envelope is opened here and nowhere else.

use concert_model::ResourceVersion;

use crate::error::Error;

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Sorts before every name.
const BEFORE_ALL: &str = "\u{1}";

/// A token for clients.
pub(super) fn seal(token: &str) -> String {
    let mut out = String::with_capacity(token.len().div_ceil(3) * 4);
    for chunk in token.as_bytes().chunks(3) {
        let bits =
            chunk.iter().enumerate().fold(0u32, |bits, (i, byte)| bits | u32::from(*byte) << (16 - 8 * i));
        for i in 0..=chunk.len() {
            out.push(char::from(DIGITS[((bits >> (18 - 6 * i)) & 63) as usize]));
        }
    }
    out
}

/// The store's token.
pub(super) fn open(sealed: &str) -> Result<String, Error> {
    let invalid = || Error::bad_request("continue key is not valid: it was not given out by this server");
    let mut bytes = Vec::with_capacity(sealed.len());
    for chunk in sealed.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for (i, digit) in chunk.iter().enumerate() {
            let value = DIGITS.iter().position(|known| known == digit).ok_or_else(invalid)?;
            bits |= u32::try_from(value).map_err(|_| invalid())? << (18 - 6 * i);
        }
        if chunk.len() == 1 {
            return Err(invalid());
        }
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    let token = String::from_utf8(bytes).map_err(|_| invalid())?;
    if token.split('/').count() == 3 { Ok(token) } else { Err(invalid()) }
}

/// The store's token for the beginning of a list as of `version`.
pub(super) fn start(version: &ResourceVersion, namespace: &str) -> String {
    format!("{}/{namespace}/{BEFORE_ALL}", version.0)
}

/// The place of `token` as of `newest`, for clients.
pub(super) fn renew(token: &str, newest: &ResourceVersion) -> Option<String> {
    let (_, place) = token.split_once('/')?;
    Some(seal(&format!("{}/{place}", newest.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_survive_their_envelope() {
        for token in ["1/a/b", "12/default/name", "123//cluster", "1234/a/ä"] {
            assert_eq!(open(&seal(token)).unwrap(), token);
        }
        for bad in ["", "a", "!!!!", "AAAA", "=", "YQ"] {
            assert!(open(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_renewed_token_keeps_its_place() {
        let renewed = renew("5/a/b", &ResourceVersion("9".into())).unwrap();
        assert_eq!(open(&renewed).unwrap(), "9/a/b");
    }
}
