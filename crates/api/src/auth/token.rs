//! Tokens: `Token` objects that hold a hash, and the one moment when a token is there in clear.
//!
//! The name of the object is the beginning of the hash, so that finding a token is one read and the
//! store can be read by anybody without a token getting out.

use std::time::Duration;

use concert_model::time::SignedDuration;
use concert_model::{Encoded, GroupKind, Object, ObjectKey, Timestamp, time};
use concert_store::{By, Chance, Clock, Delete, Error, Local, PageRequest, Query, Store};
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::User;
use super::user::account_of;

/// What every token of ours starts with, so that scanners for leaked secrets find it.
const PREFIX: &str = "concert_";
/// Random bytes of a token: as many as the hash has.
const SECRET_BYTES: usize = 32;
/// Longer ones are not ours and are not hashed.
const TOKEN_BYTES_MAX: usize = 256;
/// Hexadecimal digits of the hash that name the object.
const NAME_DIGITS: usize = 32;

/// The kind that tokens are kept in.
pub fn token_kind() -> GroupKind {
    GroupKind::new("concert.dev", "Token")
}

pub(super) fn account_kind() -> GroupKind {
    GroupKind::new("", "ServiceAccount")
}

/// A new token.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// In clear, for this once.
    pub token: String,
    /// The object that stands for it: deleting it ends the token.
    pub key: ObjectKey,
    /// From when on it is worth nothing.
    pub expires_at: Option<Timestamp>,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Issued({})", self.key)
    }
}

/// Why there is no new token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The time it is asked for cannot be.
    #[error("a token must live at least a minute, and no longer than time is counted")]
    Lifetime,
    /// The store does not have the account or cannot take the token.
    #[error("cannot store the token")]
    Store(#[source] Error),
}

/// Makes a token for the service account `account` that lives for `lifetime`, and no longer than the
/// account. Whether the caller may is decided before.
///
/// # Errors
/// [`TokenError`]; [`Error::NotFound`] within if there is no such account.
pub async fn issue(
    store: &Local,
    clock: &dyn Clock,
    chance: &Chance,
    account: &ObjectKey,
    lifetime: Duration,
    by: &By,
) -> Result<Issued, TokenError> {
    let object = store.get(account).await.map_err(TokenError::Store)?;
    if object.head().deleted_at.is_some() {
        return Err(TokenError::Store(Error::NotFound { key: account.clone() }));
    }
    let uid = &*object.head().uid.0;
    let spec =
        json!({"serviceAccount": {"namespace": &*account.namespace, "name": &*account.name, "uid": uid}});
    write(store, clock, chance, spec, Some(lifetime), by).await
}

/// Makes a token for `user`. Without a lifetime it ends when it is deleted.
///
/// # Errors
/// [`TokenError`].
pub async fn issue_for_user(
    store: &Local,
    clock: &dyn Clock,
    chance: &Chance,
    user: &str,
    groups: &[&str],
    lifetime: Option<Duration>,
    by: &By,
) -> Result<Issued, TokenError> {
    write(store, clock, chance, json!({"user": user, "groups": groups}), lifetime, by).await
}

async fn write(
    store: &Local,
    clock: &dyn Clock,
    chance: &Chance,
    spec: Value,
    lifetime: Option<Duration>,
    by: &By,
) -> Result<Issued, TokenError> {
    let expires_at = lifetime.map(|lifetime| expiry(clock.now(), lifetime)).transpose()?;
    let mut secret = [0; SECRET_BYTES];
    chance.fill(&mut secret);
    let token = format!("{PREFIX}{}", hex(&secret));
    let hash = hash(&token);
    let key = ObjectKey::cluster(token_kind(), &hash[..NAME_DIGITS]);
    let mut object = Object::new(&token_kind().at_version("v1alpha1"), "", &key.name);
    let mut spec = with(spec, "sha256", hash.into());
    if let Some(at) = expires_at {
        spec = with(spec, "expiresAt", time::seconds(at).into());
    }
    object.set("spec", spec);
    store.create(object, by).await.map_err(TokenError::Store)?;
    Ok(Issued { token, key, expires_at })
}

fn with(mut spec: Value, field: &str, value: Value) -> Value {
    spec[field] = value;
    spec
}

fn expiry(now: Timestamp, lifetime: Duration) -> Result<Timestamp, TokenError> {
    let lifetime = SignedDuration::try_from(lifetime).map_err(|_| TokenError::Lifetime)?;
    if lifetime < SignedDuration::from_mins(1) {
        return Err(TokenError::Lifetime);
    }
    now.checked_add(lifetime).map_err(|_| TokenError::Lifetime)
}

/// Deletes tokens that have expired and those of accounts that are gone. Called now and then; a token
/// is worth nothing from the moment it expires, whether it is still there or not. Says how many.
///
/// # Errors
/// Those of the store; what was deleted until then is.
pub async fn sweep(store: &Local, clock: &dyn Clock, by: &By) -> Result<usize, Error> {
    let page = store.list(&Query::all(token_kind()), &PageRequest::whole()).await?;
    let mut count = 0;
    for encoded in page.items {
        let held = Held::read(&encoded.decode());
        let is_over = held.as_ref().is_some_and(|it| it.is_expired(clock.now()));
        let is_orphan = match held.as_ref().and_then(|it| it.account.as_ref()) {
            Some(account) if !is_over => !account.is_there(store).await?,
            _ => false,
        };
        if is_over || is_orphan {
            let only =
                Delete { resource_version: Some(encoded.resource_version().clone()), ..Delete::default() };
            match store.delete(encoded.key(), &only, by).await {
                Ok(_) => count += 1,
                Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(count)
}

/// Whether `token` still stands for somebody.
///
/// # Errors
/// Those of the store.
pub async fn is_known(store: &Local, clock: &dyn Clock, token: &str) -> Result<bool, Error> {
    let Some((key, hash)) = locate(token) else { return Ok(false) };
    match store.get(&key).await {
        Ok(found) => Ok(Held::read(&found.decode())
            .is_some_and(|held| held.is_of(&hash) && !held.is_expired(clock.now()) && held.user().is_some())),
        Err(Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the object of `token` is, and its whole hash; none for what cannot be a token.
pub(super) fn locate(token: &str) -> Option<(ObjectKey, String)> {
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
        return None;
    }
    let hash = hash(token);
    Some((ObjectKey::cluster(token_kind(), &hash[..NAME_DIGITS]), hash))
}

/// What a `Token` object says.
pub(super) struct Held {
    hash: String,
    user: String,
    groups: Vec<String>,
    pub(super) account: Option<Account>,
    expires_at: Expiry,
}

enum Expiry {
    Never,
    At(Timestamp),
    /// A time nobody can read is over.
    Unreadable,
}

/// The account that a token lives and dies with.
pub(super) struct Account {
    namespace: String,
    name: String,
    uid: String,
}

impl Held {
    pub(super) fn read(object: &Object) -> Option<Self> {
        let spec = object.spec();
        let text = |value: &Value, field: &str| value.get(field)?.as_str().map(str::to_owned);
        let account = match spec.get("serviceAccount").filter(|it| !it.is_null()) {
            None => None,
            Some(it) => Some(Account {
                namespace: text(it, "namespace")?,
                name: text(it, "name")?,
                uid: text(it, "uid").filter(|uid| !uid.is_empty())?,
            }),
        };
        let expires_at = match spec.get("expiresAt") {
            None | Some(Value::Null) => Expiry::Never,
            Some(at) => at.as_str().and_then(time::parse).map_or(Expiry::Unreadable, Expiry::At),
        };
        let groups = spec.get("groups").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            hash: text(spec, "sha256")?,
            user: text(spec, "user").unwrap_or_default(),
            groups: groups.filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            account,
            expires_at,
        })
    }

    /// Compared in a time that does not tell how much of it was right.
    pub(super) fn is_of(&self, hash: &str) -> bool {
        self.hash.as_bytes().ct_eq(hash.as_bytes()).into()
    }

    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        match self.expires_at {
            Expiry::Never => false,
            Expiry::At(at) => now >= at,
            Expiry::Unreadable => true,
        }
    }

    /// Who holds it; none if it says nobody, or an account without saying which incarnation.
    pub(super) fn user(&self) -> Option<User> {
        match &self.account {
            Some(account) => Some(User::service_account(&account.namespace, &account.name, &*account.uid)),
            None if self.user.is_empty() || account_of(&self.user).is_some() => None,
            None => Some(User::known(&*self.user, self.groups.iter().map(|group| group.as_str().into()))),
        }
    }
}

impl Account {
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(account_kind(), &*self.namespace, &*self.name)
    }

    /// Whether what was found is it, the same incarnation, and not about to go.
    pub(super) fn is(&self, found: Option<&Encoded>) -> bool {
        found.is_some_and(|it| *it.head().uid.0 == *self.uid && it.head().deleted_at.is_none())
    }

    async fn is_there(&self, store: &Local) -> Result<bool, Error> {
        match store.get(&self.key()).await {
            Ok(account) => Ok(self.is(Some(&account))),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn hash(token: &str) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, token.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
