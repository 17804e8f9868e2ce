//! The tasks that turn watches into keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Encoded, GroupKind, GroupVersionKind, ObjectKey};
use concert_store::{Chance, Query};
use tracing::warn;

use crate::follow::{Change, Follow};
use crate::queue::{Full, Lane};
use crate::shutdown::Shutdown;
use crate::source::{Map, Mapping, Objects, Source};

use super::core::Core;
use super::shared::Shared;
use super::sight::Sight;

/// Between questions for a kind that is not served yet.
const KIND_RETRY: Duration = Duration::from_secs(1);

/// Follows the objects that the controller reconciles.
pub(super) async fn run_objects(shared: Arc<Shared>, objects: Objects, chance: Chance, shutdown: Shutdown) {
    let follow = follow(&shared, objects.query.clone(), chance);
    let mut readiness = Some(());
    // While a key goes from one member to another, news from related sources may reach neither.
    let may_rest = shared.authority.shares().is_none() || !shared.with(|core| core.policy.has_related);
    let mut tell = |change: &Change| {
        let now = shared.now();
        match change {
            Change::ListBegins => shared.with(Core::list_begins),
            Change::Present { object, .. } | Change::Gone(object) if !shared.authority.has(object.key()) => {
                shared.with(|core| core.disown(object.key()));
            }
            Change::Present { object, .. } if !objects.is_ours.as_ref().is_none_or(|it| it(object)) => {
                shared.with(|core| core.not_ours(object.key(), now));
            }
            Change::Present { object, is_listed } => {
                let sight = Sight {
                    key: object.key(),
                    fingerprint: (objects.fingerprint)(object),
                    generation: object.head().generation,
                    uid: &object.head().uid,
                    listed: is_listed.then(|| (objects.listed)(object)),
                    is_settled: *is_listed && may_rest && (objects.is_settled)(object),
                    is_first: objects.is_first.as_ref().map(|is_first| is_first(object)),
                    share: (objects.share)(object),
                };
                shared.with(|core| core.sighted(&sight, "changed", now))?;
            }
            Change::Gone(object) if objects.is_ours.is_some() => {
                shared.with(|core| core.not_ours(object.key(), now));
            }
            Change::Gone(object) => shared.with(|core| core.gone(object.key(), "deleted", now))?,
            // Whoever started the controller for the kind will stop it, or knows that it comes back.
            Change::Unserved => {}
            Change::ListEnds => {
                shared.with(|core| core.list_ends(now));
                report_ready(&shared, &mut readiness);
            }
        }
        Ok(())
    };
    while !shutdown.is_requested() {
        let seen = shared.relists.get();
        tokio::select! {
            biased;
            _ = shared.relists.wait_for(|relists| *relists != seen) => {}
            () = follow.run(&shutdown, &shared.bells.room, &mut tell) => {}
        }
    }
}

/// Follows objects whose changes concern other keys.
pub(super) async fn run_related(shared: Arc<Shared>, source: Source, chance: Chance, shutdown: Shutdown) {
    let Some(map) = resolve(&shared, &source.mapping, &shutdown).await else { return };
    let follow = follow(&shared, source.query.clone(), chance);
    let mut related = Related { shared: shared.clone(), source, map, known: BTreeMap::new(), list: 0 };
    let mut readiness = Some(());
    let tell = |change: &Change| {
        match change {
            Change::ListBegins => related.list += 1,
            Change::Present { object, is_listed } => related.present(object, *is_listed)?,
            Change::Gone(object) => related.gone(object)?,
            Change::Unserved => {
                related.list += 1;
                related.forget_lost()?;
            }
            Change::ListEnds => {
                related.forget_lost()?;
                report_ready(&shared, &mut readiness);
            }
        }
        Ok(())
    };
    follow.run(&shutdown, &shared.bells.room, tell).await;
}

fn follow(shared: &Shared, query: Query, chance: Chance) -> Follow {
    let (store, clock, relist) = (shared.store.clone(), shared.clock.clone(), shared.relist);
    Follow { store, clock, chance, query, relist }
}

/// Counts a source as listed, once.
fn report_ready(shared: &Shared, readiness: &mut Option<()>) {
    if readiness.take().is_some() {
        shared.unlisted.change(|count| *count -= 1);
    }
}

/// What the objects of a related source led to, so that keys are woken that they lead to no more.
struct Related {
    shared: Arc<Shared>,
    source: Source,
    map: Map,
    known: BTreeMap<ObjectKey, Known>,
    list: u64,
}

struct Known {
    targets: Vec<ObjectKey>,
    fingerprint: u64,
    list: u64,
}

impl Related {
    fn present(&mut self, object: &Encoded, is_listed: bool) -> Result<(), Full> {
        let (targets, fingerprint) = ((self.map)(object), (self.source.fingerprint)(object));
        let list = self.list;
        match self.known.get_mut(object.key()) {
            Some(known) if known.fingerprint == fingerprint && known.targets == targets => {
                known.list = list;
                return Ok(());
            }
            Some(known) => {
                let before: Vec<_> =
                    known.targets.iter().filter(|it| !targets.contains(it)).cloned().collect();
                self.wake(&before, self.source.lane)?;
                self.wake(&targets, self.source.lane)?;
            }
            None if is_listed => self.wake(&targets, Lane::Poll)?,
            None => self.wake(&targets, self.source.lane)?,
        }
        self.known.insert(object.key().clone(), Known { targets, fingerprint, list });
        Ok(())
    }

    fn gone(&mut self, object: &Encoded) -> Result<(), Full> {
        let mut targets = (self.map)(object);
        if let Some(known) = self.known.get(object.key()) {
            let more: Vec<_> = known.targets.iter().filter(|it| !targets.contains(it)).cloned().collect();
            targets.extend(more);
        }
        self.wake(&targets, self.source.lane)?;
        self.known.remove(object.key());
        Ok(())
    }

    /// What was known and is not in the latest list is gone.
    fn forget_lost(&mut self) -> Result<(), Full> {
        let lost = self.known.iter().filter(|(_, it)| it.list != self.list);
        let targets: Vec<ObjectKey> = lost.flat_map(|(_, it)| it.targets.iter().cloned()).collect();
        self.wake(&targets, self.source.lane)?;
        self.known.retain(|_, it| it.list == self.list);
        Ok(())
    }

    fn wake(&self, targets: &[ObjectKey], lane: Lane) -> Result<(), Full> {
        let now = self.shared.now();
        self.shared.with(|core| {
            let ours = targets.iter().filter(|key| self.shared.authority.has(key));
            let mut ours = ours;
            ours.try_for_each(|key| core.enqueue(key, lane, self.source.reason, now, now))
        })
    }
}

/// The mapping as a function. Asks whether owners live in namespaces, for as long as it takes until
/// their kind is served.
async fn resolve(shared: &Shared, mapping: &Mapping, shutdown: &Shutdown) -> Option<Map> {
    let owner = match mapping {
        Mapping::With(map) => return Some(map.clone()),
        Mapping::Owner(owner) => owner.clone(),
    };
    while !shutdown.is_requested() {
        match shared.store.kind(&owner).await {
            Ok(kind) => {
                let is_namespaced = kind.is_namespaced;
                return Some(Arc::new(move |object| owners(object, &owner, is_namespaced)));
            }
            Err(error) => warn!(kind = %owner, %error, "cannot tell where owners live"),
        }
        tokio::select! {
            biased;
            () = shutdown.requested() => {}
            () = shared.clock.sleep(KIND_RETRY) => {}
        }
    }
    None
}

fn owners(object: &Encoded, kind: &GroupKind, is_namespaced: bool) -> Vec<ObjectKey> {
    let is_it = |api_version: &str, name: &str| {
        GroupVersionKind::parse(api_version, name).is_ok_and(|it| it.group_kind == *kind)
    };
    let ours = object.head().owners.iter().filter(|it| is_it(&it.api_version, &it.kind));
    let namespace = if is_namespaced { object.key().namespace.clone() } else { "".into() };
    ours.map(|it| ObjectKey::namespaced(kind.clone(), namespace.clone(), it.name.as_str())).collect()
}
