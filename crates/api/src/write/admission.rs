//! What else is asked before an object of certain kinds is written.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object};
use concert_store::Error;

use super::Written;
use crate::auth::User;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// There is none yet.
    Create,
    /// Anything but its status changes.
    Update,
    /// It is to go.
    Delete,
}

/// Why an object is not let in.
#[derive(Debug, thiserror::Error)]
pub enum Denied {
    /// It asks for what is not there: a type, a plugin.
    #[error("{0}")]
    BadRequest(String),
    /// A field of it is wrong.
    #[error("{detail}")]
    Invalid {
        /// `spec`, as Kubernetes' clients are told.
        field: &'static str,
        /// In words.
        detail: String,
    },
    /// Somebody who is asked said no.
    #[error("{0}")]
    Forbidden(String),
    /// It could not be found out.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Judges and completes objects, whichever door they came through.
///
/// # Guarantees
/// What is committed is what was judged last: a state that moved meanwhile is judged again.
///
/// # Assumptions
/// Asked once for each try at a write, so it must not leave anything behind; what follows from a commit
/// belongs into [`Admission::committed`].
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Whether objects of this kind are judged at all. Asked at every write: fast, and without the store.
    fn concerns(&self, kind: &GroupKind) -> bool;

    /// Judges one write of anything but status; may change `new`, which is none for a deletion.
    ///
    /// # Errors
    /// [`Denied`]; then nothing is written.
    async fn admit(
        &self,
        user: &User,
        act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
        is_dry_run: bool,
    ) -> Result<(), Denied>;

    /// Hears of a write of anything but status that was committed, and may follow up on it. Gives what
    /// the object is after that. Never fails the write: it has happened.
    async fn committed(&self, act: Act, old: Option<&Encoded>, written: Written) -> Written;
}

/// Nobody to ask.
#[async_trait]
impl Admission for () {
    fn concerns(&self, _kind: &GroupKind) -> bool {
        false
    }

    async fn admit(
        &self,
        _user: &User,
        _act: Act,
        _old: Option<&Object>,
        _new: Option<&mut Object>,
        _is_dry_run: bool,
    ) -> Result<(), Denied> {
        Ok(())
    }

    async fn committed(&self, _act: Act, _old: Option<&Encoded>, written: Written) -> Written {
        written
    }
}

/// Anybody to ask.
pub type Admissions = Arc<dyn Admission>;
