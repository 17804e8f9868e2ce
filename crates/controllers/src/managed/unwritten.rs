//! What this process knows of creates and deletes, and no object says.
//!
//! A write that was to say it may have failed, or somebody else was faster. The next pass then knows it all
//! the same; after a restart it has to be found out, or waited for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_model::Uid;
use concert_provider::Token;

/// Facts about objects of one kind, by uid. Few have any, and only for as long as they are worked on.
#[derive(Debug, Default)]
pub struct Unwritten(Mutex<HashMap<Uid, Facts>>);

#[derive(Debug, Default)]
struct Facts {
    /// A create that was perhaps written down, and certainly never sent.
    unsent: Option<Token>,
    /// The external name under which the provider has accepted a delete.
    deleted: Option<String>,
}

impl Unwritten {
    /// The create with this token was never sent, whatever the object says.
    pub fn never_sent(&self, uid: Uid, token: Token) {
        self.lock().entry(uid).or_default().unsent = Some(token);
    }

    /// The create that was never sent.
    pub fn unsent(&self, uid: &Uid) -> Option<Token> {
        self.lock().get(uid)?.unsent.clone()
    }

    /// The object says now what became of its creates.
    pub fn is_written(&self, uid: &Uid) {
        if let Some(facts) = self.lock().get_mut(uid) {
            facts.unsent = None;
        }
    }

    /// The provider has accepted the delete of the thing of this name.
    pub fn deleted(&self, uid: Uid, external_name: &str) {
        self.lock().entry(uid).or_default().deleted = Some(external_name.to_owned());
    }

    /// Whether the provider has accepted that.
    pub fn is_deleted(&self, uid: &Uid, external_name: &str) -> bool {
        self.lock().get(uid).is_some_and(|it| it.deleted.as_deref() == Some(external_name))
    }

    /// The object is gone.
    pub fn forget(&self, uid: &Uid) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uid, Facts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid() -> Uid {
        Uid("u".into())
    }

    #[test]
    fn a_create_that_was_never_sent_is_known_until_the_object_says_so() {
        let unwritten = Unwritten::default();
        assert_eq!(unwritten.unsent(&uid()), None);
        unwritten.never_sent(uid(), Token("t".into()));
        assert_eq!(unwritten.unsent(&uid()), Some(Token("t".into())));
        unwritten.is_written(&uid());
        assert_eq!(unwritten.unsent(&uid()), None);
    }

    #[test]
    fn a_delete_is_known_by_its_name_until_the_object_is_gone() {
        let unwritten = Unwritten::default();
        unwritten.deleted(uid(), "thing-1");
        unwritten.is_written(&uid());
        assert!(unwritten.is_deleted(&uid(), "thing-1"));
        assert!(!unwritten.is_deleted(&uid(), "thing-2"));
        unwritten.forget(&uid());
        assert!(!unwritten.is_deleted(&uid(), "thing-1"));
    }
}
