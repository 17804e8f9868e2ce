//! JSON Web Tokens (RFC 7519) with HS256, and nothing else: what a login gives.
//!
//! A token says who somebody is, not what they may do: everything but `sub`, `username`, the times and
//! `pwd` is for clients to look at. Who it names is read anew for each request.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use concert_model::{Timestamp, base64};
use concert_store::Chance;
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `{"alg":"HS256","typ":"JWT"}`.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
/// Longer ones are not ours and are not hashed.
const TOKEN_BYTES_MAX: usize = 4096;
/// Bytes of a key that was drawn: as many as the hash has.
const KEY_BYTES: usize = 32;
/// Bytes of [`Keys::fingerprint`]: enough that nobody finds another password with the same.
const FINGERPRINT_BYTES: usize = 12;

/// What a token says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The id of the user, as text.
    pub sub: String,
    /// The name of the user.
    pub username: String,
    /// As it was when the token was made.
    #[serde(default)]
    pub is_admin: bool,
    /// As it was when the token was made.
    #[serde(default)]
    pub source: String,
    /// As it was when the token was made.
    #[serde(default)]
    pub custom_role_id: Option<u64>,
    /// When it was made, in seconds since 1970.
    pub iat: i64,
    /// From when on it is worth nothing.
    pub exp: i64,
    /// Which password it was got with: another password ends it.
    pub pwd: String,
}

/// Why a token is worth nothing. The texts are those that clients of no8s look for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    /// Its time is over.
    #[error("Token has expired")]
    Expired,
    /// It is no token of ours.
    #[error("Invalid token: {0}")]
    Invalid(&'static str),
}

/// Signs tokens and checks them.
#[derive(Clone)]
pub struct Keys {
    key: hmac::Key,
    lifetime: Duration,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({:?})", self.lifetime)
    }
}

impl Keys {
    /// Those of a secret that was configured; its tokens live for `lifetime`.
    pub fn new(secret: &[u8], lifetime: Duration) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), lifetime }
    }

    /// Those of a file that only its owner may read, which is made if it is not there.
    ///
    /// # Errors
    /// Those of the file system; `PermissionDenied` for a file that others may read, `InvalidData` for
    /// one that is too short to be a key.
    pub fn from_file(path: &Path, chance: &Chance, lifetime: Duration) -> io::Result<Self> {
        let secret = match fs::read(path) {
            Ok(secret) => {
                check_private(path)?;
                secret
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, chance)?,
            Err(error) => return Err(error),
        };
        if secret.len() < KEY_BYTES {
            let text = format!("{} holds no key: it has less than {KEY_BYTES} bytes", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(Self::new(&secret, lifetime))
    }

    /// A token that says `claims`, with its times set.
    pub fn mint(&self, mut claims: Claims, now: Timestamp) -> String {
        claims.iat = now.as_second();
        claims.exp = claims.iat.saturating_add(i64::try_from(self.lifetime.as_secs()).unwrap_or(i64::MAX));
        let claims = serde_json::to_vec(&claims).expect("text and numbers are JSON");
        let signed = format!("{HEADER}.{}", encode(&claims));
        let tag = hmac::sign(&self.key, signed.as_bytes());
        format!("{signed}.{}", encode(tag.as_ref()))
    }

    /// What `token` says.
    ///
    /// # Errors
    /// [`BadToken`].
    pub fn check(&self, token: &str, now: Timestamp) -> Result<Claims, BadToken> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(BadToken::Invalid("too long"));
        }
        let (signed, tag) = token.rsplit_once('.').ok_or(BadToken::Invalid("Not enough segments"))?;
        let (header, claims) = signed.split_once('.').ok_or(BadToken::Invalid("Not enough segments"))?;
        let header = decode_json(header).ok_or(BadToken::Invalid("Invalid header"))?;
        // Who could choose the algorithm could choose none.
        if header.get("alg").and_then(Value::as_str) != Some("HS256") {
            return Err(BadToken::Invalid("The specified alg value is not allowed"));
        }
        let forged = BadToken::Invalid("Signature verification failed");
        let tag = decode(tag).ok_or(forged.clone())?;
        hmac::verify(&self.key, signed.as_bytes(), &tag).map_err(|_| forged)?;
        let claims = decode_json(claims).ok_or(BadToken::Invalid("Invalid payload"))?;
        let claims: Claims =
            serde_json::from_value(claims).map_err(|_| BadToken::Invalid("a claim is missing"))?;
        if now.as_second() >= claims.exp { Err(BadToken::Expired) } else { Ok(claims) }
    }

    /// A tag of `bytes` that nobody else can make. What is tagged for one purpose is nothing for another,
    /// and no tag is the signature of a token.
    pub fn tag(&self, purpose: &str, bytes: &[u8]) -> Vec<u8> {
        hmac::sign(&self.key, &tagged(purpose, bytes)).as_ref().to_vec()
    }

    /// Whether `tag` is that of `bytes`; takes as long whatever is wrong with it.
    pub fn is_tag(&self, purpose: &str, bytes: &[u8], tag: &[u8]) -> bool {
        hmac::verify(&self.key, &tagged(purpose, bytes), tag).is_ok()
    }

    /// Something that says which password hash is meant and nothing about it.
    pub fn fingerprint(&self, password_hash: &str) -> String {
        let tag = hmac::sign(&self.key, format!("password\0{password_hash}").as_bytes());
        encode(&tag.as_ref()[..FINGERPRINT_BYTES])
    }
}

/// A zero byte stands in no header and in no purpose.
fn tagged(purpose: &str, bytes: &[u8]) -> Vec<u8> {
    [purpose.as_bytes(), b"\0", bytes].concat()
}

/// Whether this could be a token of ours, so that it is worth a look.
pub(super) fn is_like_token(token: &str) -> bool {
    token.bytes().filter(|byte| *byte == b'.').count() == 2
}

fn make(path: &Path, chance: &Chance) -> io::Result<Vec<u8>> {
    let mut secret = vec![0; KEY_BYTES];
    chance.fill(&mut secret);
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let _ = fs::remove_file(&beside);
    let mut options = fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    io::Write::write_all(&mut file, &secret)?;
    file.sync_all()?;
    // Not a rename: whoever came first has made the key that counts.
    match fs::hard_link(&beside, path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => secret = fs::read(path)?,
        Err(error) => return Err(error),
    }
    fs::remove_file(&beside)?;
    Ok(secret)
}

#[cfg(unix)]
fn check_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if fs::metadata(path)?.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let text = format!("{} may be read by others: make it mode 0600", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> io::Result<()> {
    Ok(())
}

fn decode_json(segment: &str) -> Option<Value> {
    serde_json::from_slice(&decode(segment)?).ok()
}

/// Base64 as URLs have it, without padding (RFC 7515).
pub(crate) fn encode(bytes: &[u8]) -> String {
    base64::encode(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/', '=']) {
        return None;
    }
    let mut padded = text.replace('-', "+").replace('_', "/");
    while !padded.len().is_multiple_of(4) {
        padded.push('=');
    }
    let bytes = base64::decode(&padded)?;
    // One text for one value: bits that are left over must not make a second token of one.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(b"a secret", Duration::from_secs(3600))
    }

    fn claims() -> Claims {
        Claims {
            sub: "2".into(),
            username: "alice".into(),
            is_admin: false,
            source: "manual".into(),
            custom_role_id: None,
            iat: 0,
            exp: 0,
            pwd: keys().fingerprint("hash"),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn reason(token: &str) -> String {
        keys().check(token, at(100)).unwrap_err().to_string()
    }

    #[test]
    fn a_token_is_worth_something_until_it_expires() {
        let token = keys().mint(claims(), at(100));
        let seen = keys().check(&token, at(3699)).unwrap();
        assert_eq!((&*seen.sub, seen.iat, seen.exp), ("2", 100, 3700));
        assert_eq!(keys().check(&token, at(3700)), Err(BadToken::Expired));
        assert_eq!(BadToken::Expired.to_string(), "Token has expired");
    }

    /// Made with another implementation (Python's hmac and base64).
    #[test]
    fn tokens_are_those_of_the_standard() {
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIyIiwidXNlcm5hbWUiOiJhbGljZSIsImlzX2FkbWluIjpmYWxzZSwic291cmNlIjoibWFudWFsIiwiY3VzdG9tX3JvbGVfaWQiOm51bGwsImlhdCI6MTAwLCJleHAiOjM3MDAsInB3ZCI6IngifQ.qrVI5XM_f_yfrSYfmP6eRIxJcZiuZw4-Gi-iVY8T1q8";
        assert_eq!(keys().check(token, at(100)).unwrap().username, "alice");
    }

    #[test]
    fn what_is_forged_is_named() {
        let token = keys().mint(claims(), at(100));
        let (signed, tag) = token.rsplit_once('.').unwrap();
        let claims = signed.split_once('.').unwrap().1;
        let none = encode(br#"{"alg":"none"}"#);
        let rs = encode(br#"{"alg":"RS256"}"#);
        assert_eq!(reason("abc"), "Invalid token: Not enough segments");
        assert_eq!(reason("a.b"), "Invalid token: Not enough segments");
        assert_eq!(reason(&format!("a.{claims}.{tag}")), "Invalid token: Invalid header");
        let alg = "Invalid token: The specified alg value is not allowed";
        assert_eq!(reason(&format!("{none}.{claims}.")), alg);
        assert_eq!(reason(&format!("{rs}.{claims}.{tag}")), alg);
        let forged = "Invalid token: Signature verification failed";
        assert_eq!(reason(&format!("{signed}.")), forged);
        assert_eq!(reason(&format!("{signed}.{tag}=")), forged);
        assert_eq!(reason(&format!("{HEADER}.{}.{tag}", encode(b"{}"))), forged);
        let other =
            Keys::new(b"another secret", Duration::from_secs(3600)).mint(super::tests::claims(), at(100));
        assert_eq!(reason(&other), forged);
        assert_eq!(reason(&"a".repeat(5000)), "Invalid token: too long");
    }

    #[test]
    fn a_tag_is_for_one_purpose() {
        let tag = keys().tag("one", b"text");
        assert!(keys().is_tag("one", b"text", &tag));
        assert!(!keys().is_tag("another", b"text", &tag));
        assert!(!keys().is_tag("one", b"other", &tag));
        assert!(!Keys::new(b"another secret", Duration::from_secs(1)).is_tag("one", b"text", &tag));
    }

    #[test]
    fn every_other_bit_of_a_tag_is_another_tag() {
        let token = keys().mint(claims(), at(100));
        let (rest, last) = token.split_at(token.len() - 1);
        let others = ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(['-', '_']);
        for other in others.filter(|it| !last.contains(*it)) {
            assert!(keys().check(&format!("{rest}{other}"), at(100)).is_err(), "{other}");
        }
    }

    #[test]
    fn a_key_file_is_private_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("jwt.key");
        let chance = Chance::from_system();
        let hour = Duration::from_secs(3600);
        let token = Keys::from_file(&path, &chance, hour).unwrap().mint(claims(), at(100));
        assert!(Keys::from_file(&path, &chance, hour).unwrap().check(&token, at(100)).is_ok());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let error = Keys::from_file(&path, &chance, hour).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        let short = folder.path().join("short");
        fs::write(&short, "x").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&short, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(Keys::from_file(&short, &chance, hour).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
