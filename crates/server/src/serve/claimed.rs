//! What can be told of claims: what they hang on, and what would become of them.

use concert_controllers::claims::ensemble::Ensemble;
use concert_controllers::claims::plan::{Wanted, wanted};
use concert_controllers::claims::reference::{Reference, shown};
use concert_model::{Object, ObjectKey};

use crate::explain::Relation;
use crate::managed::plan::{Action, Live, Planned};

/// The class and the managed resource that a claim names, if they are of the kinds that play for it: what
/// else somebody writes there is not looked up for them.
pub(super) fn chain(claim: &Object, ensemble: &Ensemble) -> Vec<(Relation, ObjectKey)> {
    let named = |field| Reference::read(claim.spec(), field);
    let class = named("classRef").filter(|it| ensemble.has_class(&it.kind));
    let managed = named("resourceRef").filter(|it| ensemble.has_managed(&it.kind));
    let class = class.map(|it| (Relation::Class, it.cluster_key()));
    class.into_iter().chain(managed.map(|it| (Relation::Managed, it.cluster_key()))).collect()
}

/// Whether a claim may be told of a managed resource that it names: its own, and those that are free.
pub(super) fn may_know(claim: &Object, managed: &Object) -> bool {
    let whose = Reference::read(managed.spec(), "claimRef");
    whose.is_none_or(|it| it.uid.is_some() && it.uid == claim.uid())
}

/// What would become of a claim: what the provider would do about its managed resource.
pub(super) async fn plan(live: &Live, ensemble: &Ensemble, claim: &Object) -> Planned {
    let unknown = |why: String| Planned { reason: why, ..of(claim, Action::Unknown) };
    match wanted(&*live.store, ensemble, claim).await {
        Err(error) => unknown(error.to_string()),
        Ok(Wanted::Waits(why)) => unknown(why),
        Ok(Wanted::Named(key)) => {
            let it = shown(&key.kind, "", &key.name);
            Planned { reason: format!("it is, or will be, bound to {it}"), ..of(claim, Action::None) }
        }
        Ok(Wanted::Made { managed, class }) => {
            let made = format!("{class} makes a {} of it", managed.kind());
            match live.one(&managed).await {
                None => unknown(format!("{made}, and no provider serves that")),
                Some(planned) => {
                    let reason = match planned.reason.as_str() {
                        "" => made,
                        why => format!("{made}; {why}"),
                    };
                    Planned {
                        reason,
                        action: planned.action,
                        changes: planned.changes,
                        ..of(claim, Action::None)
                    }
                }
            }
        }
    }
}

fn of(claim: &Object, action: Action) -> Planned {
    Planned {
        action,
        api_version: claim.api_version().to_owned(),
        kind: claim.kind().to_owned(),
        namespace: claim.namespace().to_owned(),
        name: claim.name().to_owned(),
        changes: Vec::new(),
        reason: String::new(),
    }
}
