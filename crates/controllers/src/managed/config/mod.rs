//! Configurations: the accounts that objects are managed in.
//!
//! A provider needs no access to the store: what it needs of a ProviderConfig and its credentials is read
//! here and handed over. Both are kept for a minute, so that passes do not read them each; usages are kept
//! on record once per object.

mod credentials;
mod target;
#[cfg(test)]
mod tests;
mod track;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_engine::Wait;
use concert_model::{Object, ObjectKey, Uid};
use concert_provider::{Configuration, Details, Served};
use concert_store::{By, Clock, Error, Store};

pub use credentials::CREDENTIALS;
use target::Target;

/// How long a configuration is used without another look, as long as the provider accepts it.
const LIFE: Duration = Duration::from_secs(60);

/// How long a usage is taken to be on record. Deleted by hand, it would be missing for so long.
const USAGE_LIFE: Duration = Duration::from_secs(60 * 60);

/// Why an object has no account.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The object or its configuration has to change first.
    #[error("{0}")]
    Invalid(String),
    /// Something is missing.
    #[error("{message}")]
    NotReady {
        /// For people.
        message: String,
        /// What to wait for.
        waits: Vec<Wait>,
    },
    /// The store failed.
    #[error("cannot read the configuration")]
    Store(#[source] Error),
}

impl From<Error> for ConfigError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Reads configurations and keeps a record of who uses them.
pub struct Configurations {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    environment: Box<credentials::Environment>,
    /// Two keys, so that a fingerprint has 128 bits. Random ones: a fingerprint is logged, and must not let
    /// anybody try out which secret it is of.
    hashers: [RandomState; 2],
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    configurations: HashMap<ObjectKey, Entry>,
    usages: HashMap<Uid, Usage>,
    /// Grows with every invalidation, so that what was read before one is not kept after it.
    epoch: u64,
}

struct Entry {
    configuration: Arc<Configuration>,
    secret: Option<ObjectKey>,
    read_at: Duration,
}

struct Usage {
    of: ObjectKey,
    tracked_at: Duration,
}

impl Configurations {
    /// Reads from `store`, and variables from `environment`.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        environment: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let hashers = [RandomState::new(), RandomState::new()];
        Self { store, clock, environment: Box::new(environment), hashers, kept: Mutex::default() }
    }

    /// The account of `object`, whose use of it is on record before it is read. None if the kind declares
    /// no configurations.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub async fn of(
        &self,
        object: &Object,
        served: &Served,
        by: &By,
    ) -> Result<Option<Arc<Configuration>>, ConfigError> {
        if served.configs.is_empty() {
            return Ok(None);
        }
        let target = target::target(&*self.store, object, served).await?;
        self.track(object, &target, by).await?;
        if let Some(kept) = self.kept(&target.key) {
            return Ok(Some(kept));
        }
        let epoch = self.lock().epoch;
        let (configuration, secret) = self.read(&target.key).await?;
        self.keep(&target.key, &configuration, secret, epoch);
        Ok(Some(configuration))
    }

    /// The account of an object whose use of it is on record, as long as neither has to be looked at again.
    /// None inside for an object that needs no account.
    pub fn remembered(&self, uid: &Uid, of: Option<&ObjectKey>) -> Option<Option<Arc<Configuration>>> {
        let Some(of) = of else { return Some(None) };
        let now = self.clock.elapsed();
        let kept = self.lock();
        let is_fresh = |it: &Usage| it.of == *of && now.saturating_sub(it.tracked_at) < USAGE_LIFE;
        // Nothing is on record where nobody counts users.
        let is_on_record = kept.usages.get(uid).is_none_or(is_fresh);
        let entry = kept.configurations.get(of).filter(|it| is_on_record && it.is_fresh(now))?;
        Some(Some(entry.configuration.clone()))
    }

    /// Which configuration `object` means, whether it is there or not; none if the kind declares none or
    /// nobody can tell.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn meant_by(&self, object: &Object, served: &Served) -> Result<Option<ObjectKey>, Error> {
        if served.configs.is_empty() {
            return Ok(None);
        }
        match target::target(&*self.store, object, served).await {
            Ok(target) => Ok(Some(target.key)),
            Err(ConfigError::Store(error)) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Forgets the contents of a configuration that changed. Also takes the key of a secret with
    /// credentials.
    pub fn invalidate(&self, key: &ObjectKey) {
        let mut kept = self.lock();
        kept.epoch += 1;
        kept.configurations.retain(|config, entry| config != key && entry.secret.as_ref() != Some(key));
    }

    /// Lets go of the account of `object`, which is about to go itself.
    ///
    /// # Errors
    /// As the store's.
    pub async fn release(&self, object: &Object, served: &Served, by: &By) -> Result<(), Error> {
        let kinds: BTreeSet<_> = served.configs.iter().filter_map(|it| it.usage.as_ref()).collect();
        for kind in kinds {
            track::release(&*self.store, object, kind, by).await?;
        }
        Ok(())
    }

    /// Drops what is remembered of an object that is gone. Its usage goes with it.
    pub fn forget(&self, uid: &Uid) {
        self.lock().usages.remove(uid);
    }

    async fn track(&self, object: &Object, target: &Target, by: &By) -> Result<(), ConfigError> {
        let (Some(kind), Some(uid)) = (&target.usage, object.uid()) else { return Ok(()) };
        let now = self.clock.elapsed();
        let is_fresh = |it: &Usage| it.of == target.key && now.saturating_sub(it.tracked_at) < USAGE_LIFE;
        if self.lock().usages.get(&uid).is_some_and(is_fresh) {
            return Ok(());
        }
        track::track(&*self.store, object, target, kind, by).await?;
        self.lock().usages.insert(uid, Usage { of: target.key.clone(), tracked_at: now });
        Ok(())
    }

    fn kept(&self, key: &ObjectKey) -> Option<Arc<Configuration>> {
        let now = self.clock.elapsed();
        let kept = self.lock();
        let entry = kept.configurations.get(key).filter(|it| it.is_fresh(now))?;
        Some(entry.configuration.clone())
    }

    fn keep(
        &self,
        key: &ObjectKey,
        configuration: &Arc<Configuration>,
        secret: Option<ObjectKey>,
        epoch: u64,
    ) {
        let now = self.clock.elapsed();
        let mut kept = self.lock();
        if kept.epoch != epoch {
            return;
        }
        kept.configurations.retain(|_, it| it.is_fresh(now));
        let entry = Entry { configuration: configuration.clone(), secret, read_at: now };
        kept.configurations.insert(key.clone(), entry);
    }

    async fn read(&self, key: &ObjectKey) -> Result<(Arc<Configuration>, Option<ObjectKey>), ConfigError> {
        let object = match self.store.get(key).await {
            Ok(object) => object.decode(),
            Err(error @ Error::NotFound { .. }) => {
                let message = format!("cannot get configuration: {error}");
                return Err(ConfigError::NotReady { message, waits: vec![Wait::existence_of(key.clone())] });
            }
            Err(other) => return Err(other.into()),
        };
        let found = credentials::read(&*self.store, &*self.environment, &object).await?;
        let (name, fingerprint) = (key.to_string(), self.fingerprint(&object, &found.details));
        let configuration = Configuration { name, fingerprint, object, credentials: found.details };
        Ok((Arc::new(configuration), found.secret))
    }

    /// Differs with every write of the configuration and with every other secret.
    fn fingerprint(&self, object: &Object, credentials: &Details) -> String {
        let secrets: Vec<(&str, &[u8])> = credentials.iter().collect();
        let whole = (object.uid(), object.resource_version(), secrets);
        self.hashers.each_ref().map(|it| format!("{:016x}", it.hash_one(&whole))).concat()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn is_fresh(&self, now: Duration) -> bool {
        now.saturating_sub(self.read_at) < LIFE
    }
}

impl fmt::Debug for Configurations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Configurations")
    }
}
