//! `/api/v1/auth`, and the parts that users, roles and webhooks share.
//!
//! `login` gives tokens, `password` changes what they are got with, `admit` is what is asked of users,
//! roles and webhooks whichever door they come through, `start` what a server does before it opens.

mod admit;
mod login;
pub(super) mod password;
mod start;

use std::sync::Arc;

use async_trait::async_trait;
use concert_store::{Chance, Clock, Local};
use http::{Method, Response};
use tokio::sync::Mutex;

pub(super) use admit::LAST_ADMIN;
pub(super) use login::find;
pub use start::{BadAdmin, FirstAdmin};

use super::call::Call;
use super::door::Annex;
use super::error::Error;
use super::ids::Ids;
use super::roles::Roles;
use super::{roles, users, webhooks};
use crate::auth::{Gate, Keys, Passwords, Throttle};
use crate::kube::Body;

/// What accounts are made of.
pub struct Parts {
    /// Where the objects are.
    pub store: Local,
    /// Who may do what: the same gate that the doors ask.
    pub gate: Gate,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where salts come from.
    pub chance: Chance,
    /// Where numbers come from.
    pub ids: Ids,
    /// What tokens are signed with; nobody logs in without.
    pub keys: Option<Keys>,
}

/// Users, roles and webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Accounts(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Local,
    pub(crate) gate: Gate,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Ids,
    pub(crate) keys: Option<Keys>,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Throttle,
    pub(crate) roles: Roles,
    /// Held while something is checked that must still hold when it is written: that a name is free,
    /// that an administrator is left.
    pub(crate) turn: Mutex<()>,
}

impl Accounts {
    /// Over `parts`.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, gate, clock, chance, ids, keys } = parts;
        Self(Arc::new(Inner {
            roles: Roles::new(store.clone()),
            store,
            gate,
            clock,
            ids,
            keys,
            passwords: Passwords::new(chance),
            throttle: Throttle::default(),
            turn: Mutex::new(()),
        }))
    }
}

#[async_trait]
impl Annex for Accounts {
    fn takes(&self, method: &Method, path: &[&str]) -> bool {
        let methods: &[&str] = match path {
            ["auth", "login"] | ["users", "ldap-sync"] | ["custom-roles", _, "permissions"] => &["POST"],
            ["auth", "me"] => &["GET"],
            ["auth", "password"] | ["users", _, "password"] => &["PUT"],
            ["users" | "custom-roles" | "admission-webhooks"] => &["POST", "GET"],
            ["users" | "custom-roles" | "admission-webhooks", _] => &["GET", "PUT", "DELETE"],
            ["custom-roles", _, "permissions", _] => &["PUT", "DELETE"],
            _ => &[],
        };
        methods.contains(&method.as_str())
    }

    async fn answer(&self, call: &Call<'_>) -> Result<Response<Body>, Error> {
        let accounts = &*self.0;
        match (call.method().as_str(), call.path) {
            ("POST", ["auth", "login"]) => login::login(accounts, call).await,
            ("GET", ["auth", "me"]) => users::me(call).await,
            ("PUT", ["auth", "password"]) => password::change_own(accounts, call).await,
            ("PUT", ["users", id, "password"]) => password::change(accounts, call, id).await,
            (_, ["users", ..]) => users::route(accounts, call).await,
            (_, ["custom-roles", ..]) => roles::route(accounts, call).await,
            (_, ["admission-webhooks", ..]) => webhooks::route(accounts, call).await,
            _ => Err(Error::unknown_path()),
        }
    }
}
