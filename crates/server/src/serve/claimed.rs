//! What can be told of claims: what they hang on.

use concert_controllers::claims::ensemble::Ensemble;
use concert_controllers::claims::reference::Reference;
use concert_model::{Object, ObjectKey};

use crate::explain::Relation;

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
