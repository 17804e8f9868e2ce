//! Puts controllers together.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::{Controller, Durability, Handle, Objects, Source, Tasks};
use concert_model::{Encoded, GroupKind, GroupVersionKind};
use concert_provider::{Handshake, Protocol, Served};
use concert_store::Query;
use tracing::info;

use super::super::decide::Rules;
use super::super::mentions::Mentions;
use super::super::poll::Poll;
use super::super::rest::AtRest;
use super::super::roll::Roll;
use super::super::run::Managed;
use super::super::unwritten::Unwritten;
use super::super::{BOOKKEEPING, CREATION_GRACE, TIMEOUT, predicate, usage};
use super::claims::{Charge, Duty};
use super::placeholder::Placeholder;
use super::{CONCURRENCY, Registry, Settings, push};

/// What runs.
pub(super) struct Launched {
    pub handle: Handle,
    /// What runs beside it.
    pub tasks: Tasks,
    /// Kinds that it would watch if they were there.
    pub missing: BTreeSet<GroupKind>,
}

pub(super) type Started = Result<Launched, String>;

impl Registry {
    pub(super) fn start_placeholder(&self, kind: &GroupKind, why: String) -> Started {
        let parts = &self.0.parts;
        let name = Managed::name_of(&kind.at_version(""));
        let (store, clock) = (parts.store.clone(), parts.clock.clone());
        let reconciler = Arc::new(Placeholder { name: name.clone(), why, store, clock });
        let controller = Controller::builder(name, reconciler)
            .objects(Objects::new(Query::all(kind.clone())).changed(predicate::fingerprint))
            .authority(parts.authority.clone())
            .build();
        self.launch(controller)
    }

    /// Starts the controller of whoever is in charge.
    pub(super) async fn start_controller(&self, charge: Charge) -> Started {
        match charge {
            Charge::Held(why) => Err(why),
            Charge::Config(config) => {
                let parts = &self.0.parts;
                let usage = config.usage.ok_or("nobody counts its users")?;
                if !self.is_there(&usage).await {
                    return Err(format!("there is no definition of {}", usage.group_kind));
                }
                let (store, recorder) = (parts.store.clone(), parts.recorder.clone());
                let clock = parts.clock.clone();
                let controller =
                    usage::controller(store, clock, recorder, config.kind, usage, parts.authority.clone());
                self.launch(controller)
            }
            Charge::Managed { provider, served, handshake, state } => {
                let handshake = handshake.ok_or("the provider has not introduced itself")?;
                let is_back = matches!(state, Duty::Up(epoch) if epoch > 1);
                self.start_managed(&provider, &served, &handshake, is_back).await
            }
        }
    }

    /// `is_back`: the provider has introduced itself before.
    async fn start_managed(
        &self,
        provider: &str,
        served: &Served,
        handshake: &Handshake,
        is_back: bool,
    ) -> Started {
        let connector = {
            let desk = self.lock();
            let found = desk.providers.iter().find(|(name, _)| **name == *provider);
            found.map(|(_, it)| it.connector.clone()).ok_or("the provider is gone")?
        };
        let parts = &self.0.parts;
        let rules = rules(&parts.settings, served, handshake);
        let poll = poll_of(&parts.settings, served);
        let mentions = Arc::new(Mentions::new(!served.watches.is_empty()));
        let (timeout, interval) = (rules.timeout, poll.interval);
        let name = Managed::name_of(&served.kind);
        let reconciler = Arc::new(Managed {
            name: name.clone(),
            rules,
            poll,
            store: parts.store.clone(),
            clock: parts.clock.clone(),
            chance: parts.chance.fork(),
            connector: connector.clone(),
            publisher: self.0.publisher.clone(),
            configurations: self.0.configurations.clone(),
            recorder: parts.recorder.clone(),
            metrics: parts.metrics.kind(&served.kind),
            at_rest: AtRest::default(),
            mentions: mentions.clone(),
            roll: Roll::default(),
            term: parts.authority.term(),
            unwritten: Unwritten::default(),
        });
        let kind = served.kind.group_kind.clone();
        let concurrency = parts.settings.concurrency.or(served.concurrency).unwrap_or(CONCURRENCY);
        let objects = Objects::new(Query::all(kind.clone()));
        let (listed, has_watches) = (reconciler.clone(), !served.watches.is_empty());
        // Whom an object mentions is known from its first pass on, so where that matters none can wait for it.
        let settled = move |object: &Encoded| listed.meet(object) && !has_watches;
        let mut builder = Controller::builder(name, reconciler)
            .objects(objects.changed(predicate::fingerprint).settled(settled))
            .concurrency(concurrency)
            // The pass itself ends its calls in time; this is for what hangs all the same.
            .timeout(timeout + BOOKKEEPING + Duration::from_secs(5))
            .poll(interval)
            .relist(Some(parts.settings.relist))
            .authority(parts.authority.clone());
        if let Some(work) = &parts.settings.work {
            builder = builder.durability(Durability::Outcomes(work.clone()));
        }
        let (sources, missing) = self.sources(&kind, served, &mentions).await;
        for source in sources {
            builder = builder.source(source);
        }
        let launched = Launched { missing, ..self.launch(builder.build())? };
        if handshake.capabilities.watch {
            let pushing = push::Pushing {
                connector,
                kind: served.kind.clone(),
                handle: launched.handle.clone(),
                is_back,
                store: parts.store.clone(),
                clock: parts.clock.clone(),
                chance: parts.chance.fork(),
            };
            push::start(pushing, &launched.tasks);
        }
        Ok(launched)
    }

    /// What else wakes objects of a kind, and the kinds that would but are not there.
    async fn sources(
        &self,
        kind: &GroupKind,
        served: &Served,
        mentions: &Arc<Mentions>,
    ) -> (Vec<Source>, BTreeSet<GroupKind>) {
        let mut sources = vec![self.0.publisher.source(kind.clone())];
        let mut missing = BTreeSet::new();
        for owned in &served.owns {
            if self.is_there(owned).await {
                sources.push(Source::owned(Query::all(owned.group_kind.clone()), kind.clone()));
            } else {
                missing.insert(owned.group_kind.clone());
            }
        }
        for watched in &served.watches {
            if !self.is_there(&watched.kind).await {
                missing.insert(watched.kind.group_kind.clone());
                continue;
            }
            let mut query = Query::all(watched.kind.group_kind.clone());
            if !watched.namespace.is_empty() {
                query = query.in_namespace(watched.namespace.as_str());
            }
            let (mentions, only) = (mentions.clone(), watched.name.clone());
            sources.push(Source::mapped(query, move |object| {
                let key = object.key();
                let is_it = only.is_empty() || *key.name == *only;
                if is_it { mentions.of(&key.name, &key.namespace) } else { Vec::new() }
            }));
        }
        (sources, missing)
    }

    /// A source of a kind that is not there would never be ready.
    async fn is_there(&self, kind: &GroupVersionKind) -> bool {
        match self.0.parts.store.kind(&kind.group_kind).await {
            Ok(_) => true,
            Err(error) => {
                info!(%kind, %error, "a kind that the provider names is not there");
                false
            }
        }
    }

    fn launch(&self, controller: Controller) -> Started {
        let handle = self.0.parts.engine.start(controller).map_err(|error| error.to_string())?;
        Ok(Launched { handle, tasks: self.0.tasks.group(), missing: BTreeSet::new() })
    }
}

/// The rules of a kind, by what its provider says and people have set.
pub fn rules(settings: &Settings, served: &Served, handshake: &Handshake) -> Rules {
    Rules {
        can_look_up: handshake.capabilities.lookup,
        // The older protocol always starts from the object's own name.
        names_by_object: handshake.protocol == Protocol::V1Alpha1 || served.has_deterministic_names,
        has_policies: settings.has_policies,
        creation_grace: served.creation_grace.unwrap_or(CREATION_GRACE),
        timeout: settings.timeout.or(served.timeout).unwrap_or(TIMEOUT),
        served: served.clone(),
    }
}

/// How often the objects of a kind are looked at, by the same.
fn poll_of(settings: &Settings, served: &Served) -> Poll {
    Poll::every(settings.poll.or(served.poll).unwrap_or(Poll::INTERVAL))
}

#[cfg(test)]
mod tests {
    use concert_provider::Capabilities;

    use super::*;

    #[test]
    fn hints_of_the_provider_beat_the_defaults_and_settings_beat_both() {
        let handshake = Handshake {
            protocol: Protocol::V1,
            name: "p".into(),
            version: "1".into(),
            capabilities: Capabilities::default(),
            kinds: Vec::new(),
            refused: Vec::new(),
        };
        let (hint, set) = (Duration::from_secs(7), Duration::from_secs(3));
        for (hint, set, interval, timeout) in [
            (None, None, Poll::INTERVAL, TIMEOUT),
            (Some(hint), None, hint, hint),
            (None, Some(set), set, set),
            (Some(hint), Some(set), set, set),
        ] {
            let mut served = Served::new(GroupKind::new("example.com", "Thing").at_version("v1"));
            (served.poll, served.timeout) = (hint, hint);
            let settings = Settings { poll: set, timeout: set, ..Settings::default() };
            assert_eq!(poll_of(&settings, &served).interval, interval, "{hint:?} {set:?}");
            assert_eq!(rules(&settings, &served, &handshake).timeout, timeout, "{hint:?} {set:?}");
        }
    }
}
