//! What all controllers of claims do with a claim: read it, write it, tell of it.

use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Failure, Outcome, Request};
use concert_model::{Encoded, Object, ObjectKey};
use concert_store::{By, Chance, Clock, Error, PageRequest, Query, Store};

use super::verdict::{Told, Verdict};
use crate::managed::event::{Event, Recorder};

/// Before another look at what somebody else has written first, and up to twice that: a secret has to follow
/// within a second, also if others are faster a few times.
const CONFLICT_PAUSE: Duration = Duration::from_millis(25);

/// Before another look at what is of a kind that is not served at this moment: a server that has just learned
/// of a change to the kind knows it again in less. One that is really gone ends its controllers.
const UNSERVED_PAUSE: Duration = Duration::from_secs(1);

/// The longest name of a manager that a kube-apiserver takes, in bytes.
const MANAGER_MAX: usize = 128;

/// What the controllers of claims work with.
#[derive(Clone)]
pub struct Hands {
    /// The controller's name.
    pub name: Arc<str>,
    /// Where objects live.
    pub store: Arc<dyn Store>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Makes choices and jitter.
    pub chance: Chance,
    /// Takes events.
    pub recorder: Arc<dyn Recorder>,
}

impl Hands {
    /// Who writes.
    pub fn by(&self, request: &Request) -> By {
        By {
            fence: request.fence.clone(),
            manager: manager(&self.name),
            ..By::actor(self.name.clone()).because("reconcile")
        }
    }

    /// The object; none if there is none.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find(&self, key: &ObjectKey) -> Result<Option<Object>, Error> {
        match self.store.get(key).await {
            Ok(found) => Ok(Some(found.decode())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All objects of a query.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(&self, query: &Query) -> Result<Vec<Object>, Error> {
        let page = self.store.list(query, &PageRequest::whole()).await?;
        Ok(page.items.iter().map(Encoded::decode).collect())
    }

    /// Says on the claim what the verdict says, and tells its event.
    pub async fn conclude(&self, claim: &Object, verdict: &Verdict, by: &By) -> Outcome {
        if let Some(told) = &verdict.told {
            self.tell(claim, told);
        }
        let status = verdict.restate(claim, self.clock.now());
        if status == *claim.status() || (status.is_null() && claim.status().is_null()) {
            return verdict.outcome();
        }
        let mut claim = claim.clone();
        claim.set("status", status);
        match self.store.update_status(claim, by).await {
            Ok(_) => verdict.outcome(),
            Err(error) => self.missed(&error),
        }
    }

    /// What a write or a read that failed means for the pass. Who lost to another writer has not failed, and
    /// what the other has written is there to be read: it comes back at once, give or take what keeps the
    /// two from meeting again. The back-off is for failures.
    pub fn missed(&self, error: &Error) -> Outcome {
        match error {
            Error::NotFound { .. } => Outcome::Done,
            Error::UnknownKind { .. } => Outcome::Requeue(words(error).into(), Some(UNSERVED_PAUSE)),
            Error::Conflict { .. } => {
                let pause = CONFLICT_PAUSE + CONFLICT_PAUSE.mul_f64(self.chance.fraction());
                Outcome::Requeue("the object changed meanwhile".into(), Some(pause))
            }
            error => Outcome::Transient(Failure::from_error(error)),
        }
    }

    /// Records an event on the claim.
    pub fn tell(&self, claim: &Object, told: &Told) {
        let (Ok(key), Some(uid)) = (claim.key(), claim.uid()) else { return };
        self.recorder.record(
            &self.name,
            Event {
                object: key,
                api_version: claim.api_version().to_owned(),
                uid,
                resource_version: claim.resource_version(),
                is_warning: told.is_warning,
                reason: told.reason,
                message: told.message.clone(),
                annotations: Default::default(),
            },
        );
    }
}

/// Who writes, as the fields of an object remember it: the name, as far as it fits.
fn manager(name: &Arc<str>) -> Arc<str> {
    name.get(..MANAGER_MAX).map_or_else(|| name.clone(), Into::into)
}

/// The error and its causes, for a condition.
pub fn words(error: &Error) -> String {
    Failure::from_error(error).to_string()
}

#[cfg(test)]
mod tests {
    use concert_model::GroupKind;
    use concert_store::backend::memory::Memory;
    use concert_store::{Config, Local};

    use super::*;
    use crate::fixtures::PausedClock;
    use crate::managed::event::Silent;

    fn hands(seed: u64) -> Hands {
        let clock: Arc<dyn Clock> = Arc::new(PausedClock::new());
        let config = Config::new(clock.clone(), Chance::seeded(1)).inline();
        let store = Arc::new(Local::open(Arc::new(Memory::new()), config).unwrap());
        let (name, chance) = ("test".into(), Chance::seeded(seed));
        Hands { name, store, clock, chance, recorder: Arc::new(Silent) }
    }

    #[test]
    fn a_manager_is_never_longer_than_a_server_takes() {
        let short: Arc<str> = "claims/redis.x.dev/a.x.dev".into();
        assert_eq!(manager(&short), short);
        let long: Arc<str> = format!("claims/{}", "x".repeat(200)).into();
        assert_eq!(manager(&long).len(), MANAGER_MAX);
        assert!(long.starts_with(&*manager(&long)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_served_at_this_moment_is_looked_at_again_soon() {
        let (hands, kind) = (hands(0), GroupKind::new("x.dev", "Class"));
        let error = hands.find(&ObjectKey::cluster(kind, "a")).await.expect_err("nobody can say");
        assert!(matches!(error, Error::UnknownKind { .. }), "{error}");
        let soon = Outcome::Requeue("there is no kind Class.x.dev".into(), Some(UNSERVED_PAUSE));
        assert_eq!(hands.missed(&error), soon);
    }

    #[tokio::test(start_paused = true)]
    async fn who_lost_to_another_writer_is_back_at_once_and_who_failed_backs_off() {
        let key = ObjectKey::namespaced(GroupKind::new("", "Secret"), "team", "conn");
        for seed in 0..100 {
            let Outcome::Requeue(_, Some(pause)) = hands(seed).missed(&Error::Conflict { key: key.clone() })
            else {
                panic!("a conflict is no failure");
            };
            // Ten in a row, and it still follows within a second.
            assert!(pause >= CONFLICT_PAUSE && pause * 10 < Duration::from_secs(1), "{pause:?}");
        }
        let failed = hands(0).missed(&Error::unavailable("nobody is there"));
        assert!(matches!(&failed, Outcome::Transient(it) if it.after.is_none()), "{failed:?}");
        assert_eq!(hands(0).missed(&Error::NotFound { key }), Outcome::Done);
    }
}
