//! One pass: the object as it stands, what was found out about it, and the steps.

use std::time::Duration;

use concert_model::{Encoded, Object, ObjectKey, ResourceVersion, Timestamp, Uid};
use concert_provider::{
    Action, Call, Class, Delta, Details, Effect, Error as ProviderError, External, Lookup, Observation, Token,
};
use concert_store::{By, Error, Part};
use serde_json::Value;
use tracing::{debug, warn};

use super::BOOKKEEPING;
use super::binding::policy_of;
use super::config::ConfigError;
use super::connection::PublishError;
use super::decide::{Done, Progress, Seen, Step};
use super::delta;
use super::journal::{self, Ending};
use super::reference::{self, ReferenceError};
use super::run::{Managed, since};
use super::verdict::{Told, Verdict};
use super::vocabulary::{FINALIZER, REFERENCE_MANAGER, annotation, event};

/// How long to wait before an outcome is written again that must not be lost.
const OUTCOME_RETRY: Duration = Duration::from_millis(100);

/// The least time a call is given.
const CALL_MIN: Duration = Duration::from_millis(1);

/// With less time left, or less than half of what a call may take, nothing is made in a pass any more: a
/// create that is cut off is one whose outcome nobody knows.
const CREATE_MIN: Duration = Duration::from_secs(10);

/// How long a provider may take to say goodbye.
const DISCONNECT_MAX: Duration = Duration::from_secs(10);

/// What one pass knows.
pub struct Pass<'a> {
    managed: &'a Managed,
    by: By,
    /// As stored, with what was learnt and not yet written.
    pub object: Object,
    /// Whether `object` differs from what is stored, its status aside.
    is_dirty: bool,
    /// The status as it is to be.
    pub status: Value,
    /// The status as it is.
    pub stored_status: Value,
    /// What was found out.
    pub seen: Seen,
    /// Whether the object is no more, so that nothing is left to be said of it.
    pub is_gone: bool,
    external: Option<Box<dyn External>>,
    /// The configuration that the session was opened with.
    account: Option<ObjectKey>,
    started: Duration,
}

/// What a look from afar has shown.
pub struct Glance {
    /// When that was asked.
    pub asked_at: Timestamp,
    /// In this account.
    pub account: Option<ObjectKey>,
    /// What was seen.
    pub seen: Result<Observation, ProviderError>,
}

/// What a step ends with: go on, or the end of the pass.
type Taken = Result<(), Verdict>;

impl<'a> Pass<'a> {
    /// A pass over `current` that began at `started`.
    pub fn begin(managed: &'a Managed, current: &Encoded, by: By, started: Duration) -> Self {
        let mut pass = Self {
            managed,
            by,
            object: current.decode(),
            is_dirty: false,
            status: Value::Null,
            stored_status: Value::Null,
            seen: Seen::default(),
            is_gone: false,
            external: None,
            account: None,
            started,
        };
        pass.status = pass.object.status().clone();
        pass.stored_status = pass.status.clone();
        pass.view();
        pass
    }

    /// Looks at what was just read or written in the version that the provider serves, and with the
    /// external name that it will have.
    fn view(&mut self) {
        let version = self.managed.rules.served.kind.api_version();
        if self.object.api_version() != version {
            self.object.set("apiVersion", version.into());
        }
        let has_name = self.object.annotation(annotation::EXTERNAL_NAME).is_some_and(|it| !it.is_empty());
        if self.managed.rules.names_by_object && !has_name {
            let name = self.object.name().to_owned();
            self.object.set_annotation(annotation::EXTERNAL_NAME, &name);
            self.is_dirty = true;
        }
    }

    /// What the thing is called where it is; empty if it has no name yet.
    pub fn external_name(&self) -> &str {
        self.object.annotation(annotation::EXTERNAL_NAME).unwrap_or_default()
    }

    /// Takes one step.
    ///
    /// # Errors
    /// The verdict in which the pass ends.
    pub async fn take(&mut self, step: Step) -> Taken {
        match step {
            Step::Lookup(token) => self.lookup(&token).await,
            Step::Close(ending) => self.close(ending).await,
            Step::ResolveReferences => self.resolve().await,
            Step::Observe => self.observe().await,
            Step::Save => self.save().await,
            Step::Publish => self.publish_observed().await,
            Step::Create => self.create().await,
            Step::Update => self.update().await,
            Step::Delete => self.delete().await,
            Step::RemoveFinalizer => self.remove_finalizer().await,
            Step::Rest(verdict) => Err(verdict),
        }
    }

    async fn lookup(&mut self, token: &Token) -> Taken {
        let call = self.call();
        let (external, object) = self.connected().await?;
        let lookup = external.lookup(object, token, &call).await;
        self.seen.lookup = Some(lookup);
        Ok(())
    }

    /// Writes down how an open create has ended.
    async fn close(&mut self, ending: Ending) -> Taken {
        if let Some(Ok(Lookup::Found(found))) = &self.seen.lookup {
            delta::annotate(&mut self.object, found);
        }
        journal::close(&mut self.object, ending, self.managed.clock.now());
        self.is_dirty = true;
        self.write(false).await?;
        self.seen.unsent = None;
        if let Some(uid) = self.object.uid() {
            self.managed.unwritten.is_written(&uid);
        }
        Ok(())
    }

    async fn resolve(&mut self) -> Taken {
        self.seen.has_references = true;
        let references = &self.managed.rules.served.references;
        if references.is_empty() {
            return Ok(());
        }
        let resolved = reference::resolve(&*self.managed.store, &self.object, references).await;
        match resolved {
            Ok(None) => Ok(()),
            Ok(Some(object)) => {
                self.object = object;
                let by = By { manager: REFERENCE_MANAGER.into(), ..self.by.clone() };
                let written = self.managed.store.update(self.object.clone(), &by).await;
                self.take_written(written, false)
            }
            Err(ReferenceError::Store(Error::Conflict { .. })) => Err(Verdict::conflict()),
            Err(ReferenceError::Store(error)) => {
                Err(Verdict::references_failed(&format!("cannot resolve references: {error}"), Vec::new()))
            }
            Err(ReferenceError::NotReady { message, waits }) => {
                Err(Verdict::references_failed(&format!("cannot resolve references: {message}"), waits))
            }
            Err(ReferenceError::Invalid(message)) => {
                Err(Verdict::references_failed(&format!("cannot resolve references: {message}"), Vec::new()))
            }
        }
    }

    async fn observe(&mut self) -> Taken {
        let call = self.call();
        let asked_at = self.managed.clock.now();
        let (external, object) = self.connected().await?;
        let observation = external.observe(object, &call).await;
        self.take_in(asked_at, observation);
        Ok(())
    }

    /// Takes in what a glance has shown, which is not what it was.
    pub fn glanced(&mut self, glance: Glance) {
        self.account = glance.account;
        self.take_in(glance.asked_at, glance.seen);
    }

    fn take_in(&mut self, asked_at: Timestamp, observation: Result<Observation, ProviderError>) {
        self.seen.asked_at = Some(asked_at);
        match &observation {
            Ok(observation) => self.learn(&observation.delta, observation.exists),
            Err(error) => self.doubt(error),
        }
        self.seen.observation = Some(observation);
    }

    /// What was seen, if that was all there was to this pass: nothing was done, nothing was or is to be
    /// written, and the thing is as declared.
    pub fn quiet(&self, begun_with: &ResourceVersion) -> Option<&Observation> {
        let Some(Ok(observation)) = &self.seen.observation else { return None };
        let is_untouched = self.object.resource_version().as_ref() == Some(begun_with) && !self.is_dirty;
        let is_quiet = is_untouched
            && self.status == self.stored_status
            && self.seen.done.is_none()
            && self.seen.lookup.is_none();
        (is_quiet && observation.exists && observation.is_up_to_date).then_some(observation)
    }

    /// The configuration that the provider was spoken to with.
    pub fn account(&self) -> Option<&ObjectKey> {
        self.account.as_ref()
    }

    /// Takes over what the provider has learnt. Late initialisation only of what exists, and only where
    /// the policy allows it.
    fn learn(&mut self, delta: &Delta, may_initialise: bool) {
        let now = self.managed.clock.now();
        delta::restate(&mut self.status, delta, self.object.generation(), now);
        self.is_dirty |= delta::annotate(&mut self.object, delta);
        let rules = &self.managed.rules;
        let policy = policy_of(&self.object, rules);
        if may_initialise && policy.is_ok_and(|it| it.allows(Action::LateInitialize)) {
            self.is_dirty |= delta::late_initialise(&mut self.object, delta);
        }
    }

    async fn save(&mut self) -> Taken {
        self.seen.is_saved = true;
        self.is_dirty |= self.object.add_finalizer(FINALIZER);
        let before = self.object.generation();
        self.write(false).await?;
        let generation = self.object.generation();
        if let Some(Ok(observation)) = &self.seen.observation
            && generation != before
        {
            // What the provider said of the object holds for the fields too that it has just filled in.
            delta::restate(&mut self.status, &observation.delta, generation, self.managed.clock.now());
        }
        Ok(())
    }

    async fn publish_observed(&mut self) -> Taken {
        self.seen.is_published = true;
        let details = match &self.seen.observation {
            Some(Ok(observation)) => observation.connection.clone(),
            _ => Details::new(),
        };
        self.publish(&details).await.map_err(unpublished)
    }

    async fn publish(&mut self, details: &Details) -> Result<(), PublishError> {
        self.managed.publisher.publish(&self.object, details, &self.by).await
    }

    /// Publishes what a provider may never tell again, and keeps at it until the pass is out of time.
    async fn publish_once(&mut self, details: &Details) -> Taken {
        loop {
            let error = match self.publish(details).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let may_pass = match &error {
                PublishError::Conflict => true,
                PublishError::Store(error) => error.is_transient(),
                PublishError::Refused(_) => false,
            };
            if !may_pass || self.left(self.managed.rules.timeout + BOOKKEEPING).is_zero() {
                return Err(unpublished(error));
            }
            warn!(%error, "cannot write connection details, trying again");
            self.managed.clock.sleep(OUTCOME_RETRY).await;
        }
    }

    async fn create(&mut self) -> Taken {
        // An intent that nobody can act on would have to be looked into, or asked of a person.
        self.connected().await?;
        let timeout = self.managed.rules.timeout;
        if self.left(timeout) < CREATE_MIN.min(timeout / 2) {
            return Err(Verdict::out_of_time());
        }
        if let Err(error) = self.validate().await? {
            return Err(Verdict::create_failed(&error));
        }
        let token = Token(Uid::from_random(self.managed.chance.bits()).0);
        // One write proves that we decided on the object as it is, keeps it until the thing is gone,
        // and says that a thing may be about to exist.
        self.object.add_finalizer(FINALIZER);
        journal::begin(&mut self.object, &token, self.managed.clock.now());
        self.is_dirty = true;
        if let Err(verdict) = self.write(true).await {
            // Perhaps it was written after all; but nothing was sent, which nobody else can know.
            if let Some(uid) = self.object.uid() {
                self.managed.unwritten.never_sent(uid, token);
            }
            return Err(verdict);
        }
        if let Some(uid) = self.object.uid() {
            self.managed.unwritten.is_written(&uid);
        }
        let call = self.call();
        let (external, object) = self.connected().await?;
        match external.create(object, &token, &call).await {
            Ok(created) => {
                self.settle(&token, Ending::Succeeded, &created.delta).await?;
                self.learn(&created.delta, false);
                self.managed.tell_done(self, event::CREATED);
                if !created.connection.is_empty() {
                    self.publish_once(&created.connection).await?;
                }
                let progress = Progress { text: created.progress, again_after: created.again_after };
                self.seen.done = Some(Done::Create(Ok(progress)));
                self.seen.observation = None;
            }
            Err(error) => {
                debug!(%error, effect = ?error.effect, "create failed");
                if error.effect == Effect::None {
                    self.settle(&token, Ending::Failed, &Delta::default()).await?;
                }
                self.seen.done = Some(Done::Create(Err(error)));
            }
        }
        Ok(())
    }

    /// Writes down how our create has ended, whatever else was written meanwhile, and keeps at it until
    /// the pass is out of time: what is lost here must be found out again, or asked of a person.
    async fn settle(&mut self, token: &Token, ending: Ending, learnt: &Delta) -> Taken {
        let managed = self.managed;
        let Ok(key) = self.object.key() else { return Ok(()) };
        let now = managed.clock.now();
        let time = managed.rules.timeout + BOOKKEEPING;
        let patch = journal::closing(&self.object, token, ending, now, delta::annotations(learnt));
        loop {
            match managed.store.patch(&key, Part::Main, &patch, &self.by).await {
                Ok(written) => return self.take_written(Ok(written), true),
                Err(Error::NotFound { .. }) => {
                    self.is_gone = true;
                    return Err(Verdict::nothing());
                }
                // Ours was written and the answer lost; or somebody else has found it out too.
                Err(Error::Invalid { .. }) => {
                    let fresh = managed.store.get(&key).await;
                    if fresh.as_ref().is_ok_and(|it| Some(&it.head().uid) != self.object.uid().as_ref()) {
                        // Another object by the same name: what was made is not its own.
                        self.is_gone = true;
                        return Err(Verdict::nothing());
                    }
                    return self.take_written(fresh, true);
                }
                Err(error) if error.is_transient() && !self.left(time).is_zero() => {
                    warn!(%error, "cannot write down how a create has ended, trying again");
                    managed.clock.sleep(OUTCOME_RETRY).await;
                }
                Err(error) => return Err(Verdict::write_failed(&error.to_string(), true)),
            }
        }
    }

    /// Whether the provider would take the object at all.
    async fn validate(&mut self) -> Result<Result<(), ProviderError>, Verdict> {
        let call = self.call();
        let (external, object) = self.connected().await?;
        Ok(external.validate(object, &call).await)
    }

    async fn update(&mut self) -> Taken {
        if let Err(error) = self.validate().await? {
            self.seen.done = Some(Done::Update(Err(error)));
            return Ok(());
        }
        let call = self.call();
        let (external, object) = self.connected().await?;
        match external.update(object, &call).await {
            Ok(updated) => {
                self.learn(&updated.delta, false);
                self.managed.tell_done(self, event::UPDATED);
                if let Some(uid) = self.object.uid() {
                    self.managed.metrics.updated(&uid, self.managed.clock.elapsed());
                }
                if !updated.connection.is_empty() {
                    self.publish_once(&updated.connection).await?;
                }
                let progress = Progress { text: updated.progress, again_after: updated.again_after };
                self.seen.done = Some(Done::Update(Ok(progress)));
                (self.seen.observation, self.seen.is_saved, self.seen.is_published) = (None, false, false);
            }
            Err(error) => self.seen.done = Some(Done::Update(Err(error))),
        }
        Ok(())
    }

    async fn delete(&mut self) -> Taken {
        let call = self.call();
        let (external, object) = self.connected().await?;
        match external.delete(object, &call).await {
            Ok(deleted) => {
                self.learn(&deleted.delta, false);
                self.managed.tell_done(self, event::DELETED);
                self.seen.is_deleted = true;
                if let Some(uid) = self.object.uid() {
                    self.managed.unwritten.deleted(uid, self.external_name());
                }
                let progress = Progress { text: deleted.progress, again_after: deleted.again_after };
                self.seen.done = Some(Done::Delete(Ok(progress)));
                self.seen.observation = None;
            }
            Err(error) => self.seen.done = Some(Done::Delete(Err(error))),
        }
        Ok(())
    }

    async fn remove_finalizer(&mut self) -> Taken {
        self.object.remove_finalizer(FINALIZER);
        match self.managed.store.update(self.object.clone(), &self.by).await {
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(Error::Conflict { .. }) => return Err(Verdict::conflict()),
            Err(error) => {
                return Err(Verdict::finalize_failed(&format!("cannot remove the finalizer: {error}")));
            }
        }
        self.is_gone = true;
        let managed = self.managed;
        // Only now: an object that is still held may need its account again. Where this fails, whoever counts
        // users finds a usage without one.
        if let Err(error) =
            managed.configurations.release(&self.object, &managed.rules.served, &self.by).await
        {
            debug!(%error, "cannot let go of the configuration");
        }
        if let (Some(uid), Some(deleted)) = (self.object.uid(), self.object.deleted_at()) {
            managed.metrics.deleted(&uid, since(deleted, managed.clock.now()));
            managed.forget(&uid);
        }
        if let Ok(key) = self.object.key() {
            managed.mentions.forget(&key);
            managed.roll.strike(&key);
        }
        Err(Verdict::nothing())
    }

    /// Writes the object if it differs from what is stored.
    async fn write(&mut self, is_creating: bool) -> Taken {
        if !self.is_dirty {
            return Ok(());
        }
        let written = self.managed.store.update(self.object.clone(), &self.by).await;
        self.take_written(written, is_creating)
    }

    fn take_written(&mut self, written: Result<Encoded, Error>, is_creating: bool) -> Taken {
        match written {
            Ok(current) => {
                self.object = current.decode();
                self.stored_status = self.object.status().clone();
                self.is_dirty = false;
                self.view();
                Ok(())
            }
            Err(Error::NotFound { .. }) => {
                self.is_gone = true;
                Err(Verdict::nothing())
            }
            Err(Error::Conflict { .. }) => Err(Verdict::conflict()),
            Err(error) => Err(Verdict::write_failed(&error.to_string(), is_creating)),
        }
    }

    /// Writes the status as it is to be.
    ///
    /// # Errors
    /// As the store's.
    pub async fn write_status(&mut self) -> Result<(), Error> {
        self.object.set("status", self.status.clone());
        self.managed.store.update_status(self.object.clone(), &self.by).await.map(drop)
    }

    /// The session with the provider, opened if it is not yet, and the object to show it.
    async fn connected(&mut self) -> Result<(&mut Box<dyn External>, &Object), Verdict> {
        if self.external.is_none() {
            let managed = self.managed;
            let served = &managed.rules.served;
            let account = match managed.configurations.of(&self.object, served, &self.by).await {
                Ok(account) => account,
                Err(ConfigError::Store(Error::Conflict { .. })) => return Err(Verdict::conflict()),
                Err(ConfigError::Store(error)) => {
                    return Err(Verdict::config_failed(&error.to_string(), Vec::new()));
                }
                Err(ConfigError::Invalid(message)) => {
                    return Err(Verdict::config_failed(&message, Vec::new()));
                }
                Err(ConfigError::NotReady { message, waits }) => {
                    return Err(Verdict::config_failed(&message, waits));
                }
            };
            self.account = account.as_ref().and_then(|it| it.object.key().ok());
            let call = self.call();
            match managed.connector.connect(&self.object, account.as_ref(), &call).await {
                Ok(external) => self.external = Some(external),
                Err(error) => {
                    self.doubt(&error);
                    return Err(Verdict::connect_failed(&error));
                }
            }
        }
        // The provider sees the status as it will be.
        self.object.set("status", self.status.clone());
        let external = self.external.as_mut().expect("it was opened above");
        Ok((external, &self.object))
    }

    /// Forgets the account that the provider does not accept: its credentials may have been renewed since.
    fn doubt(&self, error: &ProviderError) {
        if let (Class::Denied, Some(account)) = (error.class, &self.account) {
            self.managed.configurations.invalidate(account);
        }
    }

    /// Ends the session with the provider, if there is one.
    pub async fn disconnect(&mut self) {
        let Some(external) = self.external.take() else { return };
        // A provider that used up its own time is told all the same, and what is left is for our writes.
        let timeout = self.left(self.managed.rules.timeout + BOOKKEEPING).clamp(CALL_MIN, DISCONNECT_MAX);
        let call = Call { timeout, ..self.call() };
        if let Err(error) = external.disconnect(&call).await {
            debug!(%error, "cannot disconnect from the provider");
            let told =
                Told { is_warning: true, reason: event::CANNOT_DISCONNECT, message: error.to_string() };
            self.managed.tell(self, &told);
        }
    }

    /// A call that ends before this pass must.
    fn call(&self) -> Call {
        let timeout = self.left(self.managed.rules.timeout).max(CALL_MIN);
        Call { timeout, fence: self.managed.claim(self.by.fence.as_ref()) }
    }

    /// What is left of the time that this pass has for something.
    fn left(&self, time: Duration) -> Duration {
        (self.started + time).saturating_sub(self.managed.clock.elapsed())
    }
}

fn unpublished(error: PublishError) -> Verdict {
    match error {
        PublishError::Conflict => Verdict::conflict(),
        PublishError::Refused(why) => Verdict::publish_failed(&why),
        PublishError::Store(error) => {
            Verdict::publish_failed(&format!("cannot publish connection details: {error}"))
        }
    }
}
