//! Who asks, and what they may do with entries and sections.
//!
//! Users and service accounts go by their roles: the resources `clusters`, `sections` (by the name of a
//! section, or of one entry's), `sections/secret`, `sectiontypes`, `grants` and `tokens`. A reconciler comes
//! with a token of one entry and may do there what its grant says, and nothing else.

use concert_model::Uid;
use concert_model::inventory::{GROUP, Lease, Right, names};
use http::StatusCode;

use super::door::Inner;
use super::tokens::{self, Scope};
use crate::auth::{Access, Refusal, User};
use crate::rest::{Call, Error};

/// Who asks.
#[derive(Clone)]
pub(super) enum Caller<'a> {
    /// Somebody with roles.
    User(&'a User),
    /// A reconciler at work on one entry.
    Reconciler(&'a User, Scope),
}

impl<'a> Caller<'a> {
    /// What it is called in the audit trail and in history.
    pub fn user(&self) -> &'a User {
        match self {
            Caller::User(user) | Caller::Reconciler(user, _) => user,
        }
    }

    /// What is written down as the writer of a section: who, whatever the entry.
    pub fn name(&self) -> &str {
        match self {
            Caller::User(user) => &user.name,
            Caller::Reconciler(_, scope) => &scope.reconciler,
        }
    }

    /// Under which claim of work it writes; none for who is not at work.
    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Caller::User(_) => None,
            Caller::Reconciler(_, scope) => scope.lease.as_ref(),
        }
    }

    /// A token is for one incarnation of an entry, not for those that come to have its name.
    pub fn check_incarnation(&self, entry: &Uid) -> Result<(), Error> {
        match self {
            Caller::Reconciler(_, scope) if scope.uid != *entry => {
                Err(Error::forbidden("the token is for an entry of this name that is gone"))
            }
            _ => Ok(()),
        }
    }
}

impl Inner {
    /// Who asks.
    pub fn caller<'a>(&self, call: &Call<'a>) -> Result<Caller<'a>, Error> {
        match tokens::scope(&self.parts.keys, &call.head.headers, self.parts.clock.now()) {
            Some(scope) => Ok(Caller::Reconciler(call.user, scope?)),
            None => Ok(Caller::User(call.user)),
        }
    }

    /// Whether the caller may do this to an entry; to all if it has no name.
    pub async fn permit_entry(&self, caller: &Caller<'_>, verb: &str, id: &str) -> Result<(), Error> {
        match caller {
            Caller::User(user) => self.permit(user, verb, "clusters", "", id).await,
            Caller::Reconciler(_, scope) if scope.entry == id && verb == "get" => Ok(()),
            Caller::Reconciler(_, scope) => Err(outside(scope)),
        }
    }

    /// Whether the caller may do this to a section; `verb` is how roles call it.
    pub async fn permit_section(
        &self,
        caller: &Caller<'_>,
        (right, verb): (Right, &str),
        entry: &str,
        section: &str,
    ) -> Result<(), Error> {
        match caller {
            Caller::User(user) => self.permit_either(user, verb, "", entry, section).await,
            Caller::Reconciler(_, scope) if scope.entry == entry => {
                self.permit_reconciler(&scope.reconciler, right, section).await
            }
            Caller::Reconciler(_, scope) => Err(outside(scope)),
        }
    }

    /// Whether the caller, who may read the section, may see what is in it although it is secret.
    pub async fn permit_secret(&self, caller: &Caller<'_>, entry: &str, section: &str) -> Result<(), Error> {
        match caller {
            Caller::User(user) => self.permit_either(user, "get", "secret", entry, section).await,
            // A grant is given section by section: who gave this one knew which it is.
            Caller::Reconciler(..) => Ok(()),
        }
    }

    /// Whether the caller, who must be a user, may do this to something that is no entry and no section.
    pub async fn permit_user(
        &self,
        caller: &Caller<'_>,
        verb: &str,
        resource: &str,
        name: &str,
    ) -> Result<(), Error> {
        match caller {
            Caller::User(user) => self.permit(user, verb, resource, "", name).await,
            Caller::Reconciler(_, scope) => Err(outside(scope)),
        }
    }

    /// Roles name a section of all entries, `network`, or that of one, `rt-1.network`.
    async fn permit_either(
        &self,
        user: &User,
        verb: &str,
        part: &str,
        entry: &str,
        section: &str,
    ) -> Result<(), Error> {
        let one = names::section_object(entry, section);
        match self.permit(user, verb, "sections", part, section).await {
            Err(refused) if refused.code == StatusCode::FORBIDDEN => {
                self.permit(user, verb, "sections", part, &one).await
            }
            decided => decided,
        }
    }

    async fn permit(
        &self,
        user: &User,
        verb: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> Result<(), Error> {
        let access = Access::Resource { verb, group: GROUP, resource, subresource, namespace: "", name };
        self.parts.gate.authorise(user, &access).await.map_err(|refusal| match refusal {
            Refusal::Forbidden(why) => Error::forbidden(why),
            other => Error::refused(other, ""),
        })
    }
}

fn outside(scope: &Scope) -> Error {
    Error::forbidden(format!(
        "the token of reconciler '{}' is for the sections of entry '{}' and nothing else",
        scope.reconciler, scope.entry
    ))
}
