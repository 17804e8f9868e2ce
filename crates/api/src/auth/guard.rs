//! Answers from the store that are never older than the question.
//!
//! Tokens and accounts are read anew for each request: one row each. Roles and bindings are indexed in
//! memory, and the index may be old. That is enough: whatever it grants rests on two or three objects,
//! which are read and compared before the grant counts, and whatever it does not grant is asked again of
//! an index that is as new as the store. So taking something away works at once, giving it works at once,
//! writes of other kinds cost nothing, and no watch has to be trusted to be up to date.

use std::sync::{Arc, PoisonError, RwLock};

use concert_model::{GroupKind, Revision};
use concert_store::{Clock, Error, Local, PageRequest, Query, Store};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio::sync::Mutex;

use super::gate::Refusal;
use super::index::{GROUP, Index, Witness};
use super::token::{self, Held};
use super::{Access, User};

/// What answers whoever cannot be told apart from anybody else.
const UNAUTHORIZED: &str = "Unauthorized";

/// Paths that anybody may read, so that probes need no token.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// The kinds that say who may do what.
pub(super) const KINDS: [&str; 4] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

pub(super) struct Guard {
    store: Local,
    clock: Arc<dyn Clock>,
    index: RwLock<Arc<Index>>,
    /// Held by who reads the index anew; who waits for it finds it read.
    reading: Mutex<()>,
}

impl Guard {
    pub(super) fn new(store: Local, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, index: RwLock::default(), reading: Mutex::new(()) }
    }

    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<User, Refusal> {
        let unknown = || Refusal::Unauthenticated(UNAUTHORIZED.to_owned());
        let Some(token) = bearer(headers).map_err(|()| unknown())? else { return Ok(User::anonymous()) };
        let (key, hash) = token::locate(token).ok_or_else(unknown)?;
        let object = match self.store.get(&key).await {
            Ok(object) if object.head().deleted_at.is_none() => object,
            Ok(_) | Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Err(unknown()),
            Err(error) => return Err(unavailable(&error)),
        };
        let held = Held::read(&object.decode()).filter(|it| it.is_of(&hash)).ok_or_else(unknown)?;
        if held.is_expired(self.clock.now()) {
            return Err(unknown());
        }
        if let Some(account) = &held.account
            && !account.is_there(&self.store).await.map_err(|error| unavailable(&error))?
        {
            return Err(unknown());
        }
        held.user().ok_or_else(unknown)
    }

    pub(super) async fn authorise(&self, user: &User, access: &Access<'_>) -> Result<(), Refusal> {
        if user.is_master() || is_public(access) {
            return Ok(());
        }
        if user.is_anonymous() {
            return Err(Refusal::Unauthenticated(UNAUTHORIZED.to_owned()));
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
            match self.store.get(key).await {
                Ok(object) if object.resource_version() == version => {}
                Ok(_) | Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => return Ok(false),
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Ok(true)
    }

    /// An index in which everything is that was answered before this call.
    pub(super) async fn fresh(&self) -> Result<Arc<Index>, Refusal> {
        let asked = self.newest().await?;
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
        let position = self.newest().await?;
        let mut objects = Vec::new();
        for kind in KINDS {
            match self.store.list(&Query::all(GroupKind::new(GROUP, kind)), &PageRequest::whole()).await {
                Ok(page) => objects.extend(page.items),
                Err(Error::UnknownKind { .. }) => {}
                Err(error) => return Err(unavailable(&error)),
            }
        }
        Ok(Index::build(position, objects))
    }

    async fn newest(&self) -> Result<Revision, Refusal> {
        self.store.newest().await.map_err(|error| unavailable(&error))
    }
}

fn is_public(access: &Access<'_>) -> bool {
    matches!(access, Access::Path { verb: "get" | "head", path } if PUBLIC.contains(path))
}

fn unavailable(error: &Error) -> Refusal {
    // The cause is for the log of the operator, not for whoever calls.
    tracing::error!(error = %error, "who may do what cannot be read");
    Refusal::Unavailable("the server cannot tell who may do what right now".to_owned())
}

/// The token that was sent, if any; an error for anything that is not exactly one bearer token.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ()> {
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
