//! One pass: the object as it stands, what was found out about it, and the steps.

use std::time::Duration;

use concert_model::{Encoded, Object, ObjectKey, Uid};
use concert_provider::{Action, Call, Class, Delta, Details, Effect, External, Lookup, Token};
use concert_store::{By, Error, Part};
use serde_json::Value;
use tracing::{debug, warn};

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

/// What a step ends with: go on, or the end of the pass.
type Taken = Result<(), Verdict>;

impl<'a> Pass<'a> {
    /// A pass over `current`.
    pub fn begin(managed: &'a Managed, current: Encoded, by: By) -> Self {
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
            started: managed.clock.elapsed(),
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
        self.write(false).await
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
        self.seen.asked_at = Some(asked_at);
        match &observation {
            Ok(observation) => self.learn(&observation.delta, observation.exists),
            Err(error) => self.doubt(error),
        }
        self.seen.observation = Some(observation);
        Ok(())
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
        self.publish(&details).await
    }

    async fn publish(&mut self, details: &Details) -> Taken {
        match self.managed.publisher.publish(&self.object, details, &self.by).await {
            Ok(()) => Ok(()),
            Err(PublishError::Conflict) => Err(Verdict::conflict()),
            Err(PublishError::Refused(why)) => Err(Verdict::publish_failed(&why)),
            Err(PublishError::Store(error)) => {
                Err(Verdict::publish_failed(&format!("cannot publish connection details: {error}")))
            }
        }
    }

    async fn create(&mut self) -> Taken {
        let token = Token(Uid::from_random(self.managed.chance.bits()).0);
        // One write proves that we decided on the object as it is, keeps it until the thing is gone,
        // and says that a thing may be about to exist.
        self.object.add_finalizer(FINALIZER);
        journal::begin(&mut self.object, &token, self.managed.clock.now());
        self.is_dirty = true;
        self.write(true).await?;
        let call = self.call();
        let (external, object) = self.connected().await?;
        match external.create(object, &token, &call).await {
            Ok(created) => {
                self.settle(&token, Ending::Succeeded, &created.delta).await?;
                self.learn(&created.delta, false);
                self.managed.tell_done(self, event::CREATED);
                if !created.connection.is_empty() {
                    self.publish(&created.connection).await?;
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
        let patch = journal::closing(&self.object, token, ending, now, delta::annotations(learnt));
        let deadline = self.started + managed.rules.timeout + super::BOOKKEEPING;
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
                Err(error) if error.is_transient() && managed.clock.elapsed() < deadline => {
                    warn!(%error, "cannot write down how a create has ended, trying again");
                    managed.clock.sleep(OUTCOME_RETRY).await;
                }
                Err(error) => return Err(Verdict::write_failed(&error.to_string(), true)),
            }
        }
    }

    async fn update(&mut self) -> Taken {
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
                    self.publish(&updated.connection).await?;
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
        if let (Some(uid), Some(deleted)) = (self.object.uid(), self.object.deleted_at()) {
            managed.metrics.deleted(&uid, since(deleted, managed.clock.now()));
            managed.publisher.forget(&uid);
            managed.configurations.forget(&uid);
        }
        if let Ok(key) = self.object.key() {
            managed.mentions.forget(&key);
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
    fn doubt(&self, error: &concert_provider::Error) {
        if let (Class::Denied, Some(account)) = (error.class, &self.account) {
            self.managed.configurations.invalidate(account);
        }
    }

    /// Ends the session with the provider, if there is one.
    pub async fn disconnect(&mut self) {
        let Some(external) = self.external.take() else { return };
        let call = self.call();
        if let Err(error) = external.disconnect(&call).await {
            debug!(%error, "cannot disconnect from the provider");
            let told =
                Told { is_warning: true, reason: event::CANNOT_DISCONNECT, message: error.to_string() };
            self.managed.tell(self, &told);
        }
    }

    /// A call that ends before this pass must.
    fn call(&self) -> Call {
        let spent = self.managed.clock.elapsed().saturating_sub(self.started);
        let left = self.managed.rules.timeout.saturating_sub(spent).max(Duration::from_millis(1));
        Call { timeout: left, fence: self.by.fence.as_ref().map(|it| it.number) }
    }
}
