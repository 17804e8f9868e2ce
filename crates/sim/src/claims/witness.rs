//! Sees every secret in the moment in which it is written, and whether it was copied by consent.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use concert_controllers::claims::propagate::decide::source_of;
use concert_controllers::claims::vocabulary::annotation;
use concert_model::{Encoded, Object, Uid};
use concert_store::{Local, Store};
use futures_util::FutureExt;

use super::check;
use crate::faults::Witness;

/// Sees secrets.
#[derive(Default)]
pub struct Consents(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// Which source has agreed to which copy, by uid on both sides.
    agreed: BTreeSet<(Uid, String)>,
    violations: Vec<String>,
}

impl Consents {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every copy that was made without consent.
    pub fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }
}

impl Witness for Consents {
    fn read(&self, found: &Encoded) {
        if found.key().kind == check::secrets() {
            self.lock().agreed.extend(consents(&found.decode()));
        }
    }

    fn written(&self, store: &Local, before: Option<&Encoded>, after: &Encoded) {
        if after.key().kind != check::secrets() {
            return;
        }
        let (before, after) = (before.map(Encoded::decode), after.decode());
        self.lock().agreed.extend(consents(&after));
        let is_changed = before.is_none_or(|it| it.get("data") != after.get("data"));
        if is_changed && !after.get("data").is_null() && !self.is_agreed(store, &after) {
            let text = format!("secret {}/{} was copied without consent", after.namespace(), after.name());
            self.lock().violations.push(text);
        }
    }
}

impl Consents {
    /// Whether the source of what was just written agrees to that. One that went since it was read has
    /// agreed while it was there, or not at all.
    fn is_agreed(&self, store: &Local, target: &Object) -> bool {
        let (Some((from, uid)), Some(own)) = (source_of(target), target.uid()) else { return true };
        let found = store.get(&from).now_or_never().expect("an inline store never waits");
        let source = found.ok().map(|it| it.decode()).filter(|it| it.uid().as_ref() == Some(&uid));
        let consent = (uid, own.to_string());
        match source {
            Some(source) => consents(&source).any(|it| it == consent),
            None => self.lock().agreed.contains(&consent),
        }
    }
}

/// What a source has agreed to.
fn consents(source: &Object) -> impl Iterator<Item = (Uid, String)> + use<> {
    let own = source.uid();
    let targets: Vec<String> = source
        .annotations()
        .into_keys()
        .filter_map(|name| name.strip_prefix(annotation::TO_PREFIX).map(str::to_owned))
        .collect();
    targets.into_iter().filter_map(move |target| Some((own.clone()?, target)))
}
