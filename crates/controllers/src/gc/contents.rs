//! Deleting whatever a namespace or a definition holds, and telling what is left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_engine::{Failure, Outcome, Wait};
use concert_model::{Encoded, ObjectKey};
use concert_store::{By, Clock, Delete, Deleted, Error, PageRequest, Query, Store};

use super::finalizers;

/// Objects in memory at a time.
const PAGE_OBJECTS: usize = 500;

/// Objects whose change is waited for. The container needs all of them gone, so any of them is enough
/// to go on; the more, the fresher the numbers that people see.
const WAITS_MAX: usize = 100;

/// Failures that are told.
const FAILURES_MAX: usize = 10;

/// Between two looks at the same container. A thousand objects that lose their finalizers one by one
/// would otherwise mean as many looks at all of them.
const PAUSE: Duration = Duration::from_millis(500);

/// What is left after everything was asked to go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remains {
    /// Objects by their kind, in words: `widgets.example.com`.
    pub kinds: BTreeMap<String, usize>,
    /// Objects by what they wait for.
    pub finalizers: BTreeMap<String, usize>,
    /// What went wrong.
    pub failures: Vec<String>,
    pub(super) waits: Vec<Wait>,
}

impl Remains {
    /// Whether nothing is left, certainly.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.failures.is_empty()
    }

    /// How many objects are left.
    pub fn count(&self) -> usize {
        self.kinds.values().sum()
    }

    /// When to look again.
    pub(super) fn outcome(self) -> Outcome {
        match self.failures.into_iter().next() {
            Some(failure) => Outcome::Transient(Failure::new(failure)),
            None if self.waits.is_empty() => Outcome::Done,
            None => Outcome::WaitFor(self.waits),
        }
    }

    fn waits_for(&mut self, kind: &str, object: &Encoded) {
        *self.kinds.entry(kind.to_owned()).or_default() += 1;
        for finalizer in finalizers::of(object) {
            *self.finalizers.entry(finalizer).or_default() += 1;
        }
        if self.waits.len() < WAITS_MAX {
            self.waits.push(Wait::change_of(object));
        }
    }

    fn failed(&mut self, error: &Error) {
        if self.failures.len() < FAILURES_MAX {
            self.failures.push(Failure::from_error(error).to_string());
        }
    }
}

/// Asks all objects of a query to go and adds those that do not at once to `remains`. `kind` is what
/// people call them.
pub(super) async fn sweep(store: &dyn Store, query: &Query, kind: &str, by: &By, remains: &mut Remains) {
    let mut page = PageRequest { limit: Some(PAGE_OBJECTS), token: None };
    loop {
        let listed = match store.list(query, &page).await {
            Ok(listed) => listed,
            // What is not served any more has no objects.
            Err(Error::UnknownKind { .. }) => return,
            Err(error) => return remains.failed(&error),
        };
        for object in &listed.items {
            if object.head().deleted_at.is_some() {
                remains.waits_for(kind, object);
                continue;
            }
            let options = Delete { uid: Some(object.head().uid.clone()), ..Delete::default() };
            match store.delete(object.key(), &options, by).await {
                Ok(Deleted::Waiting(waiting)) => remains.waits_for(kind, &waiting),
                Ok(Deleted::Gone(_)) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    remains.waits_for(kind, object);
                    remains.failed(&error);
                }
            }
        }
        match listed.next {
            Some(token) => page.token = Some(token),
            None => return,
        }
    }
}

/// Keeps looks at the same container apart.
pub(super) struct Pace {
    clock: Arc<dyn Clock>,
    looks: Mutex<BTreeMap<ObjectKey, Duration>>,
}

impl Pace {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, looks: Mutex::default() }
    }

    /// How long to wait before the next look at `key`; none if it may be now, which is noted.
    pub fn rest(&self, key: &ObjectKey) -> Option<Duration> {
        let now = self.clock.elapsed();
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let due = looks.get(key).map(|last| *last + PAUSE);
        if let Some(due) = due.filter(|due| *due > now) {
            return Some(due - now);
        }
        looks.insert(key.clone(), now);
        None
    }

    /// Nobody will look at `key` any more.
    pub fn forget(&self, key: &ObjectKey) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}
