//! A provider with the guards that every author would have to write: kinds, claims and accounts.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

use concert_model::{GroupVersionKind, Object};

use super::fence::Fences;
use crate::codec::NEEDS_CONFIGURE;
use crate::contract::{Call, Configuration, Provider, Result};
use crate::error::{Class, Error};
use crate::handshake::Handshake;

/// Accounts that are remembered, in all their states; a forgotten one is asked for again.
const ACCOUNTS_MAX: usize = 4096;

/// A provider, guarded.
pub(crate) struct Host {
    pub(crate) provider: Arc<dyn Provider>,
    fences: Fences,
    kinds: Mutex<HashSet<GroupVersionKind>>,
    accounts: Mutex<VecDeque<Account>>,
}

struct Account {
    /// Who configured it. Nobody else can use it: credentials are not shared between callers.
    peer: String,
    configuration: Arc<Configuration>,
}

impl Host {
    pub(crate) fn new(provider: Arc<dyn Provider>) -> Self {
        Self { provider, fences: Fences::default(), kinds: Mutex::default(), accounts: Mutex::default() }
    }

    pub(crate) fn handshake(&self) -> Handshake {
        let shake = self.provider.handshake();
        let kinds = shake.kinds.iter().map(|it| it.kind.clone()).collect();
        *self.kinds.lock().expect("nobody panics with the kinds in hand") = kinds;
        shake
    }

    /// Checks that the kind of an object is served.
    ///
    /// # Errors
    /// [`Class::NotServed`].
    pub(crate) fn serves(&self, kind: &GroupVersionKind) -> Result<()> {
        let knows = || self.kinds.lock().expect("nobody panics with the kinds in hand").contains(kind);
        // Asked before any handshake, or a kind that has come since.
        if knows() || {
            self.handshake();
            knows()
        } {
            return Ok(());
        }
        Err(Error::new(Class::NotServed, format!("{kind} is not served")))
    }

    /// Checks what every mutation must pass.
    pub(crate) fn admit(&self, object: &Object, call: &Call) -> Result<()> {
        self.fences.admit(object, call)
    }

    /// Takes over an account.
    pub(crate) async fn configure(&self, peer: &str, configuration: Configuration) -> Result<()> {
        self.provider.configure(&configuration).await?;
        let mut accounts = self.accounts.lock().expect("nobody panics with the accounts in hand");
        accounts.retain(|it| !it.is(peer, &configuration.name, &configuration.fingerprint));
        if accounts.len() == ACCOUNTS_MAX {
            accounts.pop_front();
        }
        accounts.push_back(Account { peer: peer.to_owned(), configuration: Arc::new(configuration) });
        Ok(())
    }

    /// An account that was configured.
    ///
    /// # Errors
    /// The one that makes a client configure it and call again.
    pub(crate) fn account(&self, peer: &str, name: &str, fingerprint: &str) -> Result<Arc<Configuration>> {
        let accounts = self.accounts.lock().expect("nobody panics with the accounts in hand");
        // From the back: what is used is mostly what came last.
        match accounts.iter().rev().find(|it| it.is(peer, name, fingerprint)) {
            Some(account) => Ok(Arc::clone(&account.configuration)),
            None => Err(Error::new(Class::Denied, format!("{NEEDS_CONFIGURE}{name}"))),
        }
    }
}

impl Account {
    fn is(&self, peer: &str, name: &str, fingerprint: &str) -> bool {
        self.peer == peer && self.configuration.name == name && self.configuration.fingerprint == fingerprint
    }
}
