//! Tokens of reconcilers: signed, for one reconciler on one entry, for a short time.
//!
//! A token says who somebody is; what they may do is in their grant, which is read for each request. It is
//! good for the inventory alone: no other door knows it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_model::inventory::{Lease, names};
use concert_model::time::SignedDuration;
use concert_model::{Timestamp, Uid, time};
use concert_store::{Clock, Local};
use http::{HeaderMap, Response, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::caller::Caller;
use super::door::{Inner, Parts, find};
use super::newest::Newest;
use super::sent::Sent;
use crate::auth::{BadToken, Keys, User, bearer, decode, encode};
use crate::kube::Body;
use crate::rest::call::answer;
use crate::rest::{Call, Error};

/// What the paths of the inventory stand behind.
pub const BASE: &str = "/inventory/v1/";

/// What every such token starts with, so that scanners for leaked secrets find it.
const PREFIX: &str = "concert_inventory_";
const PURPOSE: &str = "inventory-token";
/// Longer ones are not ours and are not hashed.
const TOKEN_BYTES_MAX: usize = 2048;
/// Items of one request: a claim has at most a thousand.
const ITEMS_MAX: usize = 1_000;
/// Longest uid of an item in a lease.
const ITEM_BYTES_MAX: usize = 64;
/// How long a token lasts: longer than a lease without a heartbeat, shorter than a shift.
const LIFETIME: i64 = 900;
const LIFETIME_MAX: i64 = 24 * 60 * 60;

/// Who a token stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// On which entry.
    pub entry: String,
    /// Which incarnation of it.
    pub uid: Uid,
    /// Which reconciler.
    pub reconciler: String,
    /// Under which claim; none if it is not at work.
    pub lease: Option<Lease>,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    entry: String,
    uid: String,
    reconciler: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<Lease>,
    exp: i64,
}

impl Scope {
    /// Who calls, for the audit trail. No role speaks of such a user, and no door but ours lets it in.
    pub(super) fn user(&self) -> User {
        let name = format!("inventory:{}/{}", self.entry, self.reconciler);
        User { name: name.into(), uid: self.uid.0.clone(), groups: Vec::new(), sender: None }
    }

    fn sign(&self, keys: &Keys, expires_at: Timestamp) -> String {
        let claims = Claims {
            entry: self.entry.clone(),
            uid: self.uid.0.to_string(),
            reconciler: self.reconciler.clone(),
            lease: self.lease.clone(),
            exp: expires_at.as_second(),
        };
        let claims = encode(&serde_json::to_vec(&claims).unwrap_or_default());
        let tag = encode(&keys.tag(PURPOSE, claims.as_bytes()));
        format!("{PREFIX}{claims}.{tag}")
    }
}

/// Who sent these headers, if they carry a token of ours; an error if it is worth nothing.
pub(super) fn scope(keys: &Keys, headers: &HeaderMap, now: Timestamp) -> Option<Result<Scope, Error>> {
    let token = bearer(headers).ok().flatten()?.strip_prefix(PREFIX)?;
    Some(read(keys, token, now).map_err(|bad| Error::unauthorized(bad.to_string())))
}

fn read(keys: &Keys, token: &str, now: Timestamp) -> Result<Scope, BadToken> {
    let forged = || BadToken::Invalid("Signature verification failed");
    let (claims, tag) = token.split_once('.').ok_or_else(forged)?;
    let tag = decode(tag).filter(|_| token.len() <= TOKEN_BYTES_MAX).ok_or_else(forged)?;
    if !keys.is_tag(PURPOSE, claims.as_bytes(), &tag) {
        return Err(forged());
    }
    let claims: Option<Claims> = decode(claims).and_then(|it| serde_json::from_slice(&it).ok());
    let claims = claims.ok_or(BadToken::Invalid("a claim is missing"))?;
    if now.as_second() >= claims.exp {
        return Err(BadToken::Expired);
    }
    let Claims { entry, uid, reconciler, lease, .. } = claims;
    Ok(Scope { entry, uid: Uid(uid.into()), reconciler, lease })
}

/// For whom a token is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// On which entry.
    pub entry: String,
    /// Which reconciler.
    pub reconciler: String,
    /// Under which claim: what is written with the token is refused once there is a later one.
    pub lease: Option<Lease>,
}

/// A new token.
#[derive(Clone, PartialEq, Eq)]
pub struct Minted {
    /// In clear.
    pub token: String,
    /// From when on it is worth nothing.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for Minted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Minted(until {})", self.expires_at)
    }
}

/// No token was made.
#[derive(Debug, thiserror::Error)]
pub enum Unminted {
    /// Whoever asked may not.
    #[error("the inventory gives us no tokens: {0}")]
    Refused(String),
    /// Nobody could be asked; later perhaps.
    #[error("the inventory cannot be reached: {0}")]
    Unavailable(String),
}

/// Makes tokens, here or at an inventory elsewhere.
///
/// # Guarantees
/// - One answer for each that is wanted, in the same order; none where the entry is not there.
/// - A token lets its reconciler do what its grant says on that incarnation of the entry, until it expires or
///   one is made for a later claim of the same item.
///
/// # Errors
/// [`Unminted`]; then there is no token at all.
#[async_trait]
pub trait Minting: Send + Sync + 'static {
    /// Makes a token for each.
    async fn mint(&self, wanted: &[Wanted], lifetime: Duration) -> Result<Vec<Option<Minted>>, Unminted>;

    /// Where an entry is read and written with such a token.
    fn url(&self, entry: &str) -> String;
}

/// Makes tokens for the inventory in this process. Cheap to clone.
#[derive(Clone)]
pub struct Minter {
    store: Local,
    keys: Keys,
    clock: Arc<dyn Clock>,
    /// Where this process is reached.
    address: Arc<str>,
    /// Hears of every claim.
    newest: Newest,
}

impl Minter {
    pub(super) fn new(parts: &Parts, newest: Newest, address: &str) -> Self {
        Self {
            store: parts.store.clone(),
            keys: parts.keys.clone(),
            clock: parts.clock.clone(),
            address: address.trim_end_matches('/').into(),
            newest,
        }
    }
}

#[async_trait]
impl Minting for Minter {
    async fn mint(&self, wanted: &[Wanted], lifetime: Duration) -> Result<Vec<Option<Minted>>, Unminted> {
        let mut minted = Vec::with_capacity(wanted.len());
        for one in wanted {
            let entry = find(&self.store, &names::entry_key(&one.entry)).await;
            let entry = entry.map_err(|error| Unminted::Unavailable(error.to_string()))?;
            minted.push(entry.map(|entry| {
                self.newest.note(one.lease.as_ref());
                let scope = Scope {
                    entry: one.entry.clone(),
                    uid: entry.head().uid.clone(),
                    reconciler: one.reconciler.clone(),
                    lease: one.lease.clone(),
                };
                let lifetime = SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::ZERO);
                let expires_at = self.clock.now().saturating_add(lifetime).unwrap_or(Timestamp::MAX);
                Minted { token: scope.sign(&self.keys, expires_at), expires_at }
            }));
        }
        Ok(minted)
    }

    fn url(&self, entry: &str) -> String {
        format!("{}{BASE}entries/{entry}", self.address)
    }
}

impl Inner {
    /// `POST /tokens`.
    pub async fn mint(&self, call: &Call<'_>, caller: &Caller<'_>) -> Result<Response<Body>, Error> {
        self.permit_user(caller, "create", "tokens", "").await?;
        let mut sent = Sent::read(call, &["items", "ttl_seconds"])?;
        let lifetime = sent.integer("ttl_seconds", 1, LIFETIME_MAX)?.unwrap_or(LIFETIME);
        let wanted = wanted(&mut sent)?;
        let lifetime = Duration::from_secs(lifetime.unsigned_abs());
        let minted = self.minter("").mint(&wanted, lifetime).await;
        let minted = minted.map_err(|_| Error::unavailable("the store is unavailable"))?;
        let shown = |it: &Option<Minted>| match it {
            Some(it) => json!({"token": it.token, "expires_at": time::seconds(it.expires_at)}),
            None => json!({"token": null, "expires_at": null, "detail": "Entry not found"}),
        };
        let tokens: Vec<Value> = minted.iter().map(shown).collect();
        Ok(answer(StatusCode::OK, &json!({"tokens": tokens})))
    }
}

fn wanted(sent: &mut Sent) -> Result<Vec<Wanted>, Error> {
    let list = sent.list("items")?.filter(|it| it.len() <= ITEMS_MAX);
    let list =
        list.ok_or_else(|| Error::unprocessable(format!("items must be a list of at most {ITEMS_MAX}")))?;
    let text = |it: &Value, field: &str| it[field].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let read = |it: &Value| {
        let lease = match &it["lease"] {
            Value::Null => None,
            lease => Some(Lease::deserialize(lease).ok().filter(|it| it.item.0.len() <= ITEM_BYTES_MAX)?),
        };
        Some(Wanted { entry: text(it, "entry")?, reconciler: text(it, "reconciler")?, lease })
    };
    let wanted: Option<Vec<Wanted>> = list.iter().map(read).collect();
    wanted.ok_or_else(|| {
        Error::unprocessable("each of items must have an entry, a reconciler, and perhaps a lease")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(b"a secret", Duration::from_secs(3600))
    }

    fn scope_of(token: &str, second: i64) -> Result<Scope, String> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        let read = scope(&keys(), &headers, Timestamp::from_second(second).unwrap());
        read.expect("a token of ours").map_err(|error| error.text())
    }

    #[test]
    fn a_token_is_for_one_reconciler_on_one_entry_for_a_time() {
        let lease = Some(Lease { item: Uid("i".into()), fence: 7 });
        let scope = Scope { entry: "rt-1".into(), uid: Uid("u".into()), reconciler: "shoot".into(), lease };
        let token = scope.sign(&keys(), Timestamp::from_second(100).unwrap());
        assert_eq!(scope_of(&token, 99), Ok(scope.clone()));
        assert_eq!(scope_of(&token, 100), Err("Token has expired".into()));
        let other = Scope { entry: "rt-2".into(), ..scope.clone() };
        let other = other.sign(&Keys::new(b"another", Duration::ZERO), Timestamp::from_second(100).unwrap());
        let forged = "Invalid token: Signature verification failed";
        assert_eq!(scope_of(&other, 0), Err(forged.into()));
        let (claims, _) = other.split_once('.').unwrap();
        let (_, tag) = token.split_once('.').unwrap();
        for bad in [format!("{claims}.{tag}"), format!("{PREFIX}a"), format!("{token}="), format!("{token}.")]
        {
            assert_eq!(scope_of(&bad, 0), Err(forged.into()), "{bad}");
        }
    }
}
