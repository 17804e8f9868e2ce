//! The gate that every request goes through.

use std::sync::Arc;

use concert_store::{Clock, Local};
use http::HeaderMap;

use super::guard::Guard;
use super::impersonate::Wanted;
use super::jwt::Keys;
use super::rule::Rule;
use super::{Access, User};

/// Why somebody may not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nobody can tell who calls, for this reason, in the words that no8s' clients know.
    #[error("{0}")]
    Unauthenticated(String),
    /// It is known who calls, and that they may not.
    #[error("{0}")]
    Forbidden(String),
    /// The store could not be asked: nobody may until it can.
    #[error("{0}")]
    Unavailable(String),
}

/// Says who calls and what they may do. Cheap to clone.
///
/// # Guarantees
/// An answer is never older than the request: a token, a user, an account, a role or a binding that was taken
/// away before the request came counts no more, and one that was given counts already.
#[derive(Clone)]
pub struct Gate(Arc<Mode>);

enum Mode {
    /// Everybody is the administrator.
    Open,
    /// Tokens and roles of a store.
    Guarded(Box<Guard>),
}

impl Gate {
    /// One that lets everybody do everything: for development, on loopback.
    pub fn open() -> Self {
        Self(Arc::new(Mode::Open))
    }

    /// One that goes by the tokens and roles in `store`. Nothing is read yet.
    pub fn guarded(store: Local, clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Mode::Guarded(Box::new(Guard::new(store, clock, None)))))
    }

    /// The same; the tokens that a login with a password gives, signed with `keys`, count as well.
    pub fn guarded_with_logins(store: Local, clock: Arc<dyn Clock>, keys: Keys) -> Self {
        Self(Arc::new(Mode::Guarded(Box::new(Guard::new(store, clock, Some(keys))))))
    }

    /// True if everybody may do everything.
    pub fn is_open(&self) -> bool {
        matches!(&*self.0, Mode::Open)
    }

    /// Who sent these headers; [`User::anonymous`] if they do not say. Whoever they want to be instead, if
    /// they may.
    ///
    /// # Errors
    /// [`Refusal::Unauthenticated`] for a token that counts for nothing; [`Refusal::Forbidden`] where
    /// somebody may not act as whom they say.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<User, Refusal> {
        let sender = match &*self.0 {
            Mode::Open => User::known("developer", [super::user::MASTERS.into()]),
            Mode::Guarded(guard) => guard.authenticate(headers).await?,
        };
        let Some(wanted) = Wanted::read(headers)? else { return Ok(sender) };
        for access in wanted.accesses() {
            self.authorise(&sender, &access).await?;
        }
        Ok(wanted.user(&sender))
    }

    /// Whether `user` may.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`], in words that name the user, the verb and the resource;
    /// [`Refusal::Unauthenticated`] where somebody nameless asks for what needs a name.
    pub async fn authorise(&self, user: &User, access: &Access<'_>) -> Result<(), Refusal> {
        match &*self.0 {
            Mode::Open => Ok(()),
            Mode::Guarded(guard) => guard.authorise(user, access).await,
        }
    }

    /// All that `user` may do in `namespace`, or in the cluster as a whole if it is empty.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`].
    pub async fn rules(&self, user: &User, namespace: &str) -> Result<Vec<Rule>, Refusal> {
        match self.guard() {
            Some(guard) if !user.is_master() => Ok(guard.fresh().await?.rules(user, namespace)),
            _ => Ok(super::defaults::everything()),
        }
    }

    pub(super) fn guard(&self) -> Option<&Guard> {
        match &*self.0 {
            Mode::Open => None,
            Mode::Guarded(guard) => Some(guard),
        }
    }
}
