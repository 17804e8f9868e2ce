//! What would become of a claim, without doing anything about it.

use concert_model::{Encoded, Object, ObjectKey};
use concert_store::{Error, PageRequest, Query, Store};
use serde_json::json;

use super::bind::configure::{configure, name_of};
use super::bind::decide::{phase_of, refusal};
use super::ensemble::Ensemble;
use super::policy::decide::{Seen, Step, decide};
use super::reference::{self, Reference};
use super::schedule::Manner;
use super::schedule::decide::fitting;
use super::verdict::Verdict;
use super::vocabulary::phase;
use super::way::Way;

/// The uid of a claim that is yet to come.
const UID_TO_COME: &str = "00000000-0000-4000-8000-000000000000";

/// What would become of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// This managed resource would be made by this class.
    Made {
        /// As it would be.
        managed: Box<Object>,
        /// For sentences.
        class: String,
    },
    /// It has one, or names one that is there.
    Named(ObjectKey),
    /// Nothing, for this reason.
    Waits(String),
}

/// What would become of `claim`.
///
/// # Errors
/// As the store's.
pub async fn wanted(store: &dyn Store, ensemble: &Ensemble, claim: &Object) -> Result<Wanted, Error> {
    let mut claim = claim.clone();
    // Whatever it says itself: by another uid it would be shown what is another's. Of one that is yet to
    // come, nothing that is shown depends on it.
    let stored = match claim.key() {
        Ok(key) => find(store, &key).await?,
        Err(_) => None,
    };
    let was_bound = stored.as_ref().is_some_and(|it| phase_of(it) == phase::BOUND);
    let uid = stored.and_then(|it| it.uid()).map_or(UID_TO_COME.to_owned(), |it| it.to_string());
    claim.set_metadata("uid", json!(uid));
    if let Way::Resource(it) = Way::of(&claim)
        && ensemble.has_managed(&it.kind)
    {
        let key = it.cluster_key();
        if let Some(managed) = find(store, &key).await? {
            return Ok(refusal(&claim, &managed).map_or(Wanted::Named(key), Wanted::Waits));
        }
        // What has the name of its own, and was not there before, is yet to be made by its class.
        let is_own = it.name == name_of(&claim) && !was_bound;
        let class = Reference::read(claim.spec(), "classRef").filter(|_| is_own);
        let Some(class) = class else {
            let it = reference::shown(&it.kind, "", &it.name);
            return Ok(Wanted::Waits(format!("{it} does not exist: create it, or claim another")));
        };
        let seen = look(store, ensemble, &claim).await?;
        return Ok(made(ensemble, &claim, &seen, &class));
    }
    let seen = look(store, ensemble, &claim).await?;
    let class = match decide(&claim, ensemble, &seen) {
        Step::Set(class) => Reference::read(&json!({"ref": class}), "ref"),
        Step::Rest(Verdict { synced: Some(Err(why)), .. }) => return Ok(Wanted::Waits(why)),
        Step::Rest(_) | Step::ListPolicies | Step::ListClasses => chosen(&claim, &seen),
    };
    let Some(class) = class else { return Ok(Wanted::Waits("no class would be chosen for it".into())) };
    Ok(made(ensemble, &claim, &seen, &class))
}

/// What a class makes of a claim.
fn made(ensemble: &Ensemble, claim: &Object, seen: &Seen, class: &Reference) -> Wanted {
    let classes = seen.classes.as_deref().unwrap_or_default();
    let is_it =
        |it: &&Object| it.name() == class.name && it.gvk().is_ok_and(|it| it.group_kind == class.kind);
    let by = ensemble.all().find(|it| it.has_class(&class.kind));
    if let Some(unusable) = by.and_then(|it| it.unusable.as_ref()) {
        return Wanted::Waits(unusable.why.clone());
    }
    let (Some(found), Some(by)) = (classes.iter().find(is_it), by) else {
        let it = reference::shown(&class.kind, "", &class.name);
        return Wanted::Waits(format!("{it} does not exist: create it, or claim by another class"));
    };
    match configure(claim, found, by) {
        Ok(managed) => Wanted::Made { managed: Box::new(managed), class: reference::named(found) },
        Err(why) => Wanted::Waits(why),
    }
}

/// The class that is named, or that a scheduler would choose; the first where it is up to chance.
fn chosen(claim: &Object, seen: &Seen) -> Option<Reference> {
    let manner = match Way::of(claim) {
        Way::Class(class) => return Some(class),
        Way::Selector(_) => Manner::Select,
        Way::Open | Way::Resource(_) => Manner::Default,
    };
    let class = fitting(manner, claim, seen.classes.as_deref()?).first().map(|it| reference::to(it))?;
    Reference::read(&json!({"ref": class}), "ref")
}

async fn look(store: &dyn Store, ensemble: &Ensemble, claim: &Object) -> Result<Seen, Error> {
    let mut policies = Vec::new();
    if let Some(policy) = &ensemble.policy {
        let query = Query::all(policy.group_kind.clone()).in_namespace(claim.namespace());
        policies = list(store, &query).await?;
    }
    let mut classes = Vec::new();
    for implementation in &ensemble.implementations {
        classes.extend(list(store, &Query::all(implementation.class.group_kind.clone())).await?);
    }
    Ok(Seen { policies: Some(Ok(policies)), classes: Some(classes) })
}

async fn find(store: &dyn Store, key: &ObjectKey) -> Result<Option<Object>, Error> {
    match store.get(key).await {
        Ok(found) => Ok(Some(found.decode())),
        Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list(store: &dyn Store, query: &Query) -> Result<Vec<Object>, Error> {
    let page = store.list(query, &PageRequest::whole()).await?;
    Ok(page.items.iter().map(Encoded::decode).collect())
}
