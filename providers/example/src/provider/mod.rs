//! The provider: objects on one side, the cloud on the other.

mod compare;
mod status;
#[cfg(test)]
mod tests;
mod verbs;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use concert_model::Object;
use concert_provider::{Class, Configuration, Error};

use crate::cloud::{Account, Api, Fault, Owner, ThingKey};
use crate::kinds::Kind;

type Result<T, E = Error> = std::result::Result<T, E>;

const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// Serves a simulated cloud.
pub struct Example {
    api: Arc<Api>,
    creation_grace: Option<Duration>,
    serves_claims: bool,
}

impl Example {
    /// A provider for this cloud.
    pub fn new(api: Arc<Api>) -> Self {
        Self { api, creation_grace: None, serves_claims: false }
    }

    /// The same, and it serves the kinds too that portable claims are bound to.
    #[must_use]
    pub fn with_claims(mut self, serves_claims: bool) -> Self {
        self.serves_claims = serves_claims;
        self
    }

    /// The same, and it says how long a new thing may stay invisible.
    #[must_use]
    pub fn with_creation_grace(mut self, grace: Option<Duration>) -> Self {
        self.creation_grace = grace;
        self
    }
}

/// An object and what it is in the cloud.
struct Subject<'a> {
    object: &'a Object,
    kind: &'static Kind,
    account: Account,
}

impl<'a> Subject<'a> {
    fn new(object: &'a Object, configuration: Option<&Configuration>) -> Result<Self> {
        let gvk = object.gvk().map_err(|e| Error::new(Class::Terminal, e.to_string()))?;
        let kind = Kind::of(&gvk)
            .ok_or_else(|| Error::new(Class::NotServed, format!("{gvk} is not served by this provider")))?;
        Ok(Self { object, kind, account: account(configuration) })
    }

    /// The thing that the object says is its own. A generated id is only known once it was stored.
    fn key(&self) -> Option<ThingKey> {
        let told = self.object.annotation(EXTERNAL_NAME).filter(|name| !name.is_empty());
        let own = Some(self.object.name()).filter(|_| self.kind.has_deterministic_names);
        told.or(own).map(|id| ThingKey::new(self.kind.thing, id))
    }

    fn owner(&self) -> Owner {
        Owner {
            kind: self.kind.gvk().group_kind.to_string(),
            object: path(self.object),
            uid: self.object.uid().map(|uid| uid.to_string()).unwrap_or_default(),
        }
    }
}

fn account(configuration: Option<&Configuration>) -> Account {
    configuration.map_or_else(Account::default, |it| Account(it.name.clone()))
}

/// `namespace/name`, or `name`.
fn path(object: &Object) -> String {
    match object.namespace() {
        "" => object.name().to_owned(),
        namespace => format!("{namespace}/{}", object.name()),
    }
}

/// What the caller of the provider can do about a fault of the cloud.
fn error(fault: &Fault) -> Error {
    let message = fault.to_string();
    match fault {
        Fault::OutOfOrder | Fault::Unwritten { .. } => Error::new(Class::Transient, message),
        Fault::AnswerLost => Error::new(Class::Transient, message).in_doubt(),
        Fault::Throttled { account, retry_after } => {
            let mut error = Error::new(Class::Throttled, message).after(*retry_after);
            error.budget = Some(format!("account/{account}"));
            error
        }
        Fault::Taken { .. } | Fault::Immutable { .. } => Error::new(Class::Terminal, message),
        // The next attempt has a token of its own, and a thing that went meanwhile is seen by a look.
        Fault::TokenSpent { .. } | Fault::Missing { .. } => Error::new(Class::Transient, message),
    }
}
