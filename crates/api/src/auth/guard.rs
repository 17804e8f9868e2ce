//! Answers from the store that are never older than the question.
//!
//! Tokens, people and accounts are looked at for each request, and read anew if any of their kind has
//! changed. Roles and bindings are indexed in memory, and the index may be old. That is enough: whatever it
//! grants rests on two or three objects, which are compared before the grant counts, and whatever it does
//! not grant is asked again of an index that is as new as the store. So taking something away works at once,
//! giving it works at once, writes of other kinds cost nothing, and no watch has to be trusted to be up to
//! date.

use std::sync::{Arc, PoisonError, RwLock};

use concert_model::{Encoded, GroupKind, ObjectKey, Revision};
use concert_store::{Clock, Error, Local, PageRequest, Query, Store};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::Mutex;

use super::gate::Refusal;
use super::index::{GROUP, Index, Witness};
use super::jwt::{self, BadToken, Keys};
use super::person::{Person, person_kind};
use super::recent::Recent;
use super::token::{self, Held};
use super::{Access, User};

/// What answers whoever does not say who they are, or not in a way we know.
const NO_TOKEN: &str = "Missing or invalid Authorization header";

/// Paths that anybody may read, so that probes need no token.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The kinds that say who may do what.
pub(super) const KINDS: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

pub(super) struct Guard {
    recent: Recent,
    clock: Arc<dyn Clock>,
    /// None where nobody logs in with a password.
    keys: Option<Keys>,
    index: RwLock<Arc<Index>>,
    /// Held by who reads the index anew; who waits for it finds it read.
    reading: Mutex<()>,
}

impl Guard {
    pub(super) fn new(store: Local, clock: Arc<dyn Clock>, keys: Option<Keys>) -> Self {
        let recent = Recent::new(store);
        Self { recent, clock, keys, index: RwLock::default(), reading: Mutex::new(()) }
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<User, Refusal> {
        let Some(token) = bearer(headers).map_err(|()| unknown(NO_TOKEN))? else {
            return Ok(User::anonymous());
        };
        if let Some(held) = self.token(token).await? {
            return self.holder(&held).await;
        }
        match &self.keys {
            Some(keys) if jwt::is_like_token(token) => self.logged_in(keys, token).await,
            _ => Err(invalid("Not enough segments")),
        }
    }

    /// The `Token` object of a token; none if it is no such token.
    async fn token(&self, token: &str) -> Result<Option<Held>, Refusal> {
        let Some((key, hash)) = token::locate(token) else { return Ok(None) };
        let object = self.find(&key).await?;
        let held = object.filter(|object| object.head().deleted_at.is_none()).map(|object| object.decode());
        Ok(held.and_then(|object| Held::read(&object)).filter(|held| held.is_of(&hash)))
    }

    /// Who holds a token.
    async fn holder(&self, held: &Held) -> Result<User, Refusal> {
        if held.is_expired(self.clock.now()) {
            return Err(unknown(&BadToken::Expired.to_string()));
        }
        if let Some(account) = &held.account {
            let found = self.find(&account.key()).await?;
            return held
                .user()
                .filter(|_| account.is(found.as_ref()))
                .ok_or_else(|| invalid("the account is gone"));
        }
        let user = held.user().ok_or_else(|| invalid("it is nobody's"))?;
        // Who was suspended is out, whichever way they came in.
        match self.person(&user.name).await? {
            Some(person) if !person.is_active => Err(invalid("the user is suspended")),
            _ => Ok(user),
        }
    }

    /// Who logged in. What the token says of their rights is not looked at: the user is, as it is now.
    async fn logged_in(&self, keys: &Keys, token: &str) -> Result<User, Refusal> {
        let claims = keys.check(token, self.clock.now()).map_err(|bad| unknown(&bad.to_string()))?;
        let person = self.person(&claims.username).await?;
        let person = person.filter(|it| it.id.is_some_and(|id| id.to_string() == claims.sub));
        let Some(person) = person else { return Err(invalid("there is no such user")) };
        if !person.is_active {
            return Err(invalid("the user is suspended"));
        }
        let password = person.password_hash.as_ref().map(|hash| keys.fingerprint(hash));
        if password.as_ref() != Some(&claims.pwd) {
            return Err(invalid("the password was changed"));
        }
        Ok(person.user())
    }

    /// The person of this name.
    async fn person(&self, name: &str) -> Result<Option<Person>, Refusal> {
        let object = self.find(&ObjectKey::cluster(person_kind(), name)).await?;
        Ok(object.map(|object| Person::read(&object.decode())))
    }

    async fn find(&self, key: &ObjectKey) -> Result<Option<Encoded>, Refusal> {
        self.recent.find(key).await.map_err(|error| unavailable(&error))
    }

    pub(super) async fn authorise(&self, user: &User, access: &Access<'_>) -> Result<(), Refusal> {
        if user.is_master() || is_public(access) {
            return Ok(());
        }
        if user.is_anonymous() {
            return Err(unknown(NO_TOKEN));
        }
        if self.may(user, access).await? { Ok(()) } else { Err(Refusal::Forbidden(access.refusal(user))) }
    }

    async fn may(&self, user: &User, access: &Access<'_>) -> Result<bool, Refusal> {
        let known = self.index.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(witnesses) = known.grant(user, access)
            && self.still_hold(&witnesses).await?
        {
            return Ok(true);
        }
        Ok(self.fresh().await?.grant(user, access).is_some())
    }

    /// Whether each of these objects is as it was seen.
    async fn still_hold(&self, witnesses: &[Witness]) -> Result<bool, Refusal> {
        for (key, version) in witnesses {
            if self.find(key).await?.is_none_or(|object| object.resource_version() != version) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An index in which everything is that was answered before this call.
    pub(super) async fn fresh(&self) -> Result<Arc<Index>, Refusal> {
        let asked = self.touched();
        if let Some(index) = self.as_of(asked) {
            return Ok(index);
        }
        let _turn = self.reading.lock().await;
        if let Some(index) = self.as_of(asked) {
            return Ok(index);
        }
        let index = Arc::new(self.read().await?);
        *self.index.write().unwrap_or_else(PoisonError::into_inner) = index.clone();
        Ok(index)
    }

    /// The index, if it is no older than `asked`. A store that is empty has nothing to be read.
    fn as_of(&self, asked: Revision) -> Option<Arc<Index>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner).clone();
        (index.position >= asked).then_some(index)
    }

    async fn read(&self) -> Result<Index, Refusal> {
        // Before the lists, so that what changes between them makes the index old rather than wrong.
        let position = self.touched();
        let mut objects = Vec::new();
        for kind in kinds() {
            match self.recent.store().list(&Query::all(kind), &PageRequest::whole()).await {
                Ok(page) => objects.extend(page.items),
                Err(Error::UnknownKind { .. }) => {}
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Ok(Index::build(position, objects))
    }

    /// When rights were last given or taken.
    fn touched(&self) -> Revision {
        self.recent.touched(&kinds())
    }
}

fn kinds() -> [GroupKind; 4] {
    KINDS.map(|kind| GroupKind::new(GROUP, kind))
}

fn is_public(access: &Access<'_>) -> bool {
    matches!(access, Access::Path { verb: "get" | "head", path } if PUBLIC.contains(path))
}

fn unknown(why: &str) -> Refusal {
    Refusal::Unauthenticated(why.to_owned())
}

fn invalid(why: &'static str) -> Refusal {
    unknown(&BadToken::Invalid(why).to_string())
}

fn unavailable(error: &Error) -> Refusal {
    // The cause is for the log of the operator, not for whoever calls.
    tracing::error!(error = %error, "who may do what cannot be read");
    Refusal::Unavailable("the server cannot tell who may do what right now".to_owned())
}

/// The token that was sent, if any; an error for anything that is not exactly one bearer token.
pub(crate) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ()> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let Some(first) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        return Err(());
    }
    let (scheme, token) = first.to_str().map_err(drop)?.trim().split_once(' ').ok_or(())?;
    let token = token.trim();
    let is_token = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' ');
    is_token.then_some(Some(token)).ok_or(())
}
