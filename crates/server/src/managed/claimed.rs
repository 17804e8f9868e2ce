//! What would become of claims.

use async_trait::async_trait;
use concert_controllers::claims::ensemble::Ensemble;
use concert_controllers::claims::plan::{Wanted, wanted};
use concert_controllers::claims::reference::shown;
use concert_model::Object;
use concert_store::Store;

use super::plan::{Action, Planned};

/// Somebody who knows what providers would do.
#[async_trait]
pub(crate) trait Asking: Sync {
    /// What would be done about a managed resource; none if nobody serves its kind.
    async fn one(&self, managed: &Object) -> Option<Planned>;
}

/// What would become of a claim: what the provider would do about its managed resource.
pub(crate) async fn plan(
    asked: &impl Asking,
    store: &dyn Store,
    ensemble: &Ensemble,
    claim: &Object,
) -> Planned {
    let unknown = |why: String| Planned { reason: why, ..of(claim, Action::Unknown) };
    match wanted(store, ensemble, claim).await {
        Err(error) => unknown(error.to_string()),
        Ok(Wanted::Waits(why)) => unknown(why),
        Ok(Wanted::Named(key)) => {
            let it = shown(&key.kind, "", &key.name);
            Planned { reason: format!("it is, or will be, bound to {it}"), ..of(claim, Action::None) }
        }
        Ok(Wanted::Made { managed, class }) => {
            let made = format!("{class} makes a {} of it", managed.kind());
            match asked.one(&managed).await {
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
        sensitive: Vec::new(),
        reason: String::new(),
    }
}
