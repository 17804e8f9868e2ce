use concert_model::GroupKind;
use serde_json::json;

use super::*;
use crate::claims::definition::Unusable;

const UID: &str = "11111111-2222-4333-8444-555555555555";
const NAME: &str = "team-app-555555555555";

fn implementation() -> Implementation {
    Implementation {
        index: 0,
        class: GroupKind::new("cloud.dev", "StoreClass").at_version("v1"),
        managed: GroupKind::new("cloud.dev", "Store").at_version("v1"),
        mapping: Vec::new(),
        allows_external_names: false,
        unusable: None,
    }
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "cloud.dev/v1", "kind": kind, "name": name})
}

/// A claim by a class, which nobody has looked at.
fn claim() -> Object {
    Object::from_value(json!({"apiVersion": "cache.dev/v1", "kind": "Redis",
        "metadata": {"name": "app", "namespace": "team", "uid": UID},
        "spec": {"classRef": reference("StoreClass", "ha")}}))
    .unwrap()
}

/// The same, held, and with the name of its managed resource.
fn held() -> Object {
    let mut claim = claim();
    claim.add_finalizer(FINALIZER);
    claim.get_mut("spec")["resourceRef"] = reference("Store", NAME);
    claim
}

/// A claim of a managed resource that was there before.
fn fixed(name: &str) -> Object {
    let mut claim = claim();
    claim.set("spec", json!({"resourceRef": reference("Store", name)}));
    claim
}

fn deleted(mut claim: Object) -> Object {
    claim.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    claim
}

fn bound(mut claim: Object) -> Object {
    claim.set("status", json!({"bindingPhase": "Bound"}));
    claim
}

fn class() -> Object {
    Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "StoreClass",
        "metadata": {"name": "ha", "uid": "c1", "resourceVersion": "7"},
        "specTemplate": {"writeConnectionSecretsToNamespace": "system"}}))
    .unwrap()
}

fn managed(name: &str, of: Option<&Object>, phase: &str) -> Object {
    let mut managed = Object::from_value(json!({"apiVersion": "cloud.dev/v1", "kind": "Store",
        "metadata": {"name": name, "uid": "m1", "resourceVersion": "9"},
        "spec": {"reclaimPolicy": "Delete"}, "status": {"bindingPhase": phase}}))
    .unwrap();
    if let Some(claim) = of {
        managed.get_mut("spec")["claimRef"] = crate::claims::reference::to(claim);
    }
    managed
}

/// What a pass sees whose claim is certainly as it was read.
fn there(managed: Object) -> Seen {
    let managed = Some(Sight::There(Box::new(managed)));
    Seen { managed, is_proven: true, is_managed_proven: true, ..Seen::default() }
}

fn absent() -> Seen {
    Seen { managed: Some(Sight::Absent), is_proven: true, ..Seen::default() }
}

fn with_class(class: Sight) -> Seen {
    Seen { class: Some(class), ..absent() }
}

fn failed(is_transient: bool) -> Sight {
    Sight::Failed { why: "no".into(), is_transient }
}

fn step(claim: &Object, seen: &Seen) -> Step {
    decide(claim, seen, &implementation())
}

#[track_caller]
fn rest(claim: &Object, seen: &Seen) -> Verdict {
    match step(claim, seen) {
        Step::Rest(verdict) => verdict,
        other => panic!("{other:?}"),
    }
}

/// `Ready`, `Synced` and the event, and what is said.
#[track_caller]
fn said(claim: &Object, seen: &Seen) -> (Option<Ready>, bool, &'static str, String) {
    let verdict = rest(claim, seen);
    let message = verdict.ready.as_ref().map(|(_, message)| message.clone()).unwrap_or_default();
    let (is_synced, message) = match verdict.synced {
        Some(Ok(())) => (true, message),
        Some(Err(why)) => (false, why),
        None => panic!("nothing is said"),
    };
    (verdict.ready.map(|(ready, _)| ready), is_synced, verdict.told.map_or("", |it| it.reason), message)
}

#[test]
fn claims_of_other_classes_and_resources_are_left_to_others() {
    let way = |spec: Value| {
        let mut claim = claim();
        claim.set("spec", spec);
        concern(&claim, &implementation())
    };
    assert_eq!(way(json!({"classRef": reference("StoreClass", "ha")})).as_deref(), Some(NAME));
    assert_eq!(way(json!({"resourceRef": reference("Store", "s")})).as_deref(), Some("s"));
    for other in [
        json!({}),
        json!({"classSelector": {}}),
        json!({"classRef": reference("OtherClass", "ha")}),
        json!({"resourceRef": reference("Other", "s")}),
        // What is bound already counts, and not what it was to be made of.
        json!({"resourceRef": reference("Other", "s"), "classRef": reference("StoreClass", "ha")}),
    ] {
        assert_eq!(way(other.clone()), None, "{other}");
        let mut claim = claim();
        claim.set("spec", other);
        assert_eq!(rest(&claim, &Seen::default()), Verdict::nothing());
    }
}

#[test]
fn it_is_held_and_named_before_it_is_made() {
    assert_eq!(step(&claim(), &Seen::default()), Step::LookAtManaged(NAME.into()));
    assert_eq!(step(&claim(), &absent()), Step::LookAtClass("ha".into()));
    let seen = with_class(Sight::There(Box::new(class())));
    assert_eq!(step(&claim(), &seen), Step::Hold { name: NAME.into() });
    let Step::Create(made) = step(&held(), &seen) else { panic!("not made") };
    assert_eq!(made.name(), NAME);
    assert!(is_of(&made, &held()));
}

#[test]
fn a_crash_after_it_was_named_makes_it_and_one_after_it_was_made_finds_it() {
    let seen = with_class(Sight::There(Box::new(class())));
    assert!(matches!(step(&held(), &seen), Step::Create(_)));
    let made = there(managed(NAME, Some(&held()), ""));
    assert_eq!(said(&held(), &made).0, Some(Ready::Binding));
    // Even if the claim was put back to what it was before.
    assert_eq!(step(&claim(), &made), Step::Hold { name: NAME.into() });
}

#[test]
fn nothing_is_made_or_reserved_for_a_claim_that_may_be_gone() {
    let class = with_class(Sight::There(Box::new(class())));
    assert_eq!(step(&held(), &Seen { is_proven: false, ..class }), Step::Prove);
    let mut claim = fixed("s");
    claim.add_finalizer(FINALIZER);
    for free in [managed("s", None, "Unbound"), managed("s", Some(&claim), "Unbound")] {
        assert_eq!(step(&claim, &Seen { is_proven: false, ..there(free) }), Step::Prove);
    }
    let bound = Seen { is_proven: false, ..there(managed("s", Some(&claim), "Bound")) };
    assert_eq!(step(&claim, &bound), Step::Propagate);
}

#[test]
fn a_managed_resource_that_cannot_be_read_is_said() {
    let seen = Seen { managed: Some(failed(false)), ..Seen::default() };
    assert_eq!(said(&held(), &seen), (None, false, "CannotGetManagedResource", "no".into()));
    assert_eq!(rest(&held(), &seen).next, Next::After(SHORT_WAIT));
}

#[test]
fn one_that_was_to_be_there_is_waited_for() {
    let (ready, is_synced, event, message) = said(&fixed("s"), &absent());
    assert_eq!((ready, is_synced, event), (Some(Ready::Binding), true, "ManagedResourceNotFound"));
    assert_eq!(message, "Store s does not exist: create it, or claim another");
    let key = ObjectKey::cluster(GroupKind::new("cloud.dev", "Store"), "s");
    assert_eq!(rest(&fixed("s"), &absent()).next, Next::WaitFor(vec![Wait::existence_of(key)]));
}

#[test]
fn one_that_was_bound_and_is_gone_is_not_made_again() {
    let (ready, is_synced, _, message) = said(&bound(held()), &absent());
    assert_eq!((ready, is_synced), (Some(Ready::Binding), true));
    assert!(message.contains("is gone"), "{message}");
}

#[test]
fn a_class_that_is_not_there_or_cannot_be_read_is_said() {
    let (ready, is_synced, event, message) = said(&held(), &with_class(Sight::Absent));
    assert_eq!((ready, is_synced, event), (Some(Ready::Creating), false, "CannotGetResourceClass"));
    assert_eq!(message, "StoreClass ha does not exist: create it, or claim by another class");
    assert!(matches!(rest(&held(), &with_class(Sight::Absent)).next, Next::WaitFor(_)));
    let unread = with_class(failed(false));
    assert_eq!(said(&held(), &unread), (Some(Ready::Creating), false, "CannotGetResourceClass", "no".into()));
    assert_eq!(rest(&held(), &unread).next, Next::After(SHORT_WAIT));
}

#[test]
fn what_another_try_may_cure_is_said_all_the_same_and_tried_soon() {
    let managed = Seen { managed: Some(failed(true)), ..Seen::default() };
    for (claim, seen) in
        [(held(), managed.clone()), (held(), with_class(failed(true))), (deleted(held()), managed)]
    {
        assert_eq!(rest(&claim, &seen).synced, Some(Err("no".into())));
        assert_eq!(rest(&claim, &seen).next, Next::Retry);
    }
}

#[test]
fn a_class_that_makes_nothing_of_it_is_said() {
    let mut useless = class();
    useless.set("specTemplate", json!({}));
    let seen = with_class(Sight::There(Box::new(useless)));
    let (ready, is_synced, event, _) = said(&held(), &seen);
    assert_eq!((ready, is_synced, event), (Some(Ready::Creating), false, "CannotConfigureManagedResource"));
}

#[test]
fn what_fails_is_said_with_what_was_being_done() {
    for (doing, ready, event) in [
        (Doing::Hold, Ready::Creating, "CannotCreateManagedResource"),
        (Doing::Create, Ready::Creating, "CannotCreateManagedResource"),
        (Doing::Bind, Ready::Binding, "CannotBindManagedResource"),
        (Doing::Unbind, Ready::Deleting, "CannotUnbindManagedResource"),
    ] {
        let seen = Seen { failure: Some((doing, "no".into())), ..Seen::default() };
        assert_eq!(said(&held(), &seen), (Some(ready), false, event, "no".into()));
        assert_eq!(rest(&held(), &seen).next, Next::After(SHORT_WAIT));
    }
}

#[test]
fn until_it_can_be_bound_it_is_waited_for_in_its_own_words() {
    for phase in ["", "Unbindable"] {
        let mut making = managed(NAME, Some(&held()), phase);
        making.get_mut("status")["conditions"] = json!([
            {"type": "Ready", "status": "False", "reason": "Creating"},
            {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "quota exceeded"}]);
        let (ready, is_synced, event, message) = said(&held(), &there(making.clone()));
        assert_eq!((ready, is_synced, event), (Some(Ready::Binding), true, "WaitingToBind"));
        assert_eq!(message, format!("waiting for Store {NAME}: quota exceeded"));
        assert_eq!(rest(&held(), &there(making)).next, Next::OnChange);
    }
    let (.., message) = said(&held(), &there(managed(NAME, Some(&held()), "")));
    assert!(message.contains("is there a provider that serves Store?"), "{message}");
}

#[test]
fn one_that_says_nothing_of_a_claim_is_watched_for_it() {
    let mut claim = fixed("s");
    claim.add_finalizer(FINALIZER);
    let verdict = rest(&claim, &there(managed("s", None, "")));
    assert!(matches!(verdict.next, Next::WaitFor(waits) if waits.len() == 1));
}

#[test]
fn one_that_was_there_before_is_reserved_before_its_secret_is_copied() {
    let unbound = there(managed("s", None, "Unbound"));
    assert_eq!(step(&fixed("s"), &unbound), Step::Hold { name: "s".into() });
    let mut claim = fixed("s");
    claim.add_finalizer(FINALIZER);
    assert_eq!(step(&claim, &unbound), Step::Reserve);
    // Set aside for it by name: that becomes a reservation by uid.
    let mut aside = managed("s", Some(&claim), "Unbound");
    aside.get_mut("spec")["claimRef"]["uid"] = json!(null);
    assert_eq!(step(&claim, &there(aside)), Step::Reserve);
    assert_eq!(step(&claim, &there(managed("s", Some(&claim), "Unbound"))), Step::Propagate);
}

#[test]
fn it_is_bound_when_its_secret_is_copied() {
    let claim = held();
    let unbound = managed(NAME, Some(&claim), "Unbound");
    let copied = |managed: Object| Seen { propagation: Some(Ok(())), ..there(managed) };
    assert_eq!(step(&claim, &there(unbound.clone())), Step::Propagate);
    assert_eq!(step(&claim, &copied(unbound)), Step::MarkBound);
    let mut done = managed(NAME, Some(&claim), "Bound");
    let verdict = rest(&claim, &copied(done.clone()));
    assert_eq!(verdict.ready, Some((Ready::Available, String::new())));
    assert_eq!((verdict.synced, verdict.phase, verdict.next), (Some(Ok(())), Some("Bound"), Next::OnChange));
    assert_eq!(verdict.told.unwrap().reason, "BoundManagedResource");
    assert_eq!(rest(&bound(claim.clone()), &copied(done.clone())).told, None);
    done.set_annotation(annotation::EXTERNAL_NAME, "ext");
    assert_eq!(step(&claim, &copied(done)), Step::TakeName("ext".into()));
}

#[test]
fn a_secret_that_cannot_be_copied_is_said_and_what_is_in_use_stays_ready() {
    let failed = |claim: &Object, phase| Seen {
        propagation: Some(Err("no".into())),
        ..there(managed(NAME, Some(claim), phase))
    };
    let claim = held();
    let expected = (Some(Ready::Binding), false, "CannotPropagateConnectionDetails", "no".into());
    assert_eq!(said(&claim, &failed(&claim, "Unbound")), expected);
    let in_use = bound(claim);
    assert_eq!(said(&in_use, &failed(&in_use, "Bound")).0, None);
}

#[test]
fn what_is_not_free_is_never_bound() {
    let mut other = held();
    other.set_metadata("uid", json!("another-uid"));
    let mut elsewhere = other.clone();
    elsewhere.set_metadata("namespace", json!("secretteam"));
    let mut owned = managed("s", None, "Unbound");
    owned.set_metadata(
        "ownerReferences",
        json!([{"apiVersion": "a/v1", "kind": "Stack", "name": "x", "uid": "u", "controller": true}]),
    );
    let mut going = managed("s", None, "Unbound");
    going.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    for (managed, words) in [
        (managed("s", Some(&other), "Unbound"), "belongs to another claim (app)"),
        (managed("s", Some(&other), "Bound"), "belongs to another claim (app)"),
        (managed("s", Some(&elsewhere), "Bound"), "belongs to another claim (another namespace)"),
        (managed("s", Some(&elsewhere), ""), "belongs to another claim"),
        (managed("s", None, "Released"), "was released"),
        (managed("s", None, "Bound"), "does not say to whom"),
        (owned, "is controlled by Stack x"),
        (going, "is being deleted"),
    ] {
        let (ready, is_synced, event, message) = said(&fixed("s"), &there(managed));
        assert_eq!((ready, is_synced, event), (Some(Ready::Binding), false, "CannotBindManagedResource"));
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("secretteam"), "{message}");
    }
}

#[test]
fn a_claim_that_goes_releases_then_deletes_then_forgets() {
    let claim = deleted(held());
    assert_eq!(step(&claim, &Seen::default()), Step::LookAtManaged(NAME.into()));
    for phase in ["", "Unbound", "Bound"] {
        assert_eq!(step(&claim, &there(managed(NAME, Some(&claim), phase))), Step::Release);
    }
    let mut released = managed(NAME, Some(&claim), "Released");
    assert_eq!(step(&claim, &there(released.clone())), Step::Delete);
    released.set_metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(step(&claim, &there(released)), Step::Forget);
    assert_eq!(step(&claim, &there(managed(NAME, None, "Released"))), Step::LetGo);
    assert_eq!(step(&claim, &absent()), Step::LetGo);
}

#[test]
fn one_that_is_to_be_kept_is_released_and_forgotten() {
    let claim = deleted(held());
    for policy in [json!("Retain"), json!(null)] {
        let mut kept = managed(NAME, Some(&claim), "Released");
        kept.get_mut("spec")["reclaimPolicy"] = policy;
        assert_eq!(step(&claim, &there(kept)), Step::Forget);
    }
}

#[test]
fn a_claim_that_goes_touches_nothing_that_is_not_its_own() {
    let mut other = held();
    other.set_metadata("uid", json!("another-uid"));
    let claim = deleted(held());
    for foreign in [managed(NAME, Some(&other), "Bound"), managed(NAME, None, "Bound")] {
        // By a stale read what is its own may seem to be another's.
        let unproven = Seen { is_managed_proven: false, ..there(foreign.clone()) };
        assert_eq!(step(&claim, &unproven), Step::ProveManaged);
        assert_eq!(step(&claim, &there(foreign)), Step::LetGo);
    }
    // Set aside for it by name and never bound.
    let mut aside = managed(NAME, Some(&claim), "Unbound");
    aside.get_mut("spec")["claimRef"]["uid"] = json!(null);
    assert_eq!(step(&claim, &there(aside)), Step::LetGo);
}

#[test]
fn a_claim_that_was_never_held_just_goes() {
    assert_eq!(rest(&deleted(claim()), &Seen::default()), Verdict::nothing());
}

#[test]
fn a_managed_resource_that_cannot_be_read_holds_a_claim_that_goes() {
    let seen = Seen { managed: Some(failed(false)), ..Seen::default() };
    let (ready, is_synced, event, _) = said(&deleted(held()), &seen);
    assert_eq!((ready, is_synced, event), (Some(Ready::Deleting), false, "CannotGetManagedResource"));
}

#[test]
fn a_class_that_is_deleted_or_edited_later_breaks_nothing() {
    let claim = bound(held());
    let seen = Seen { propagation: Some(Ok(())), ..there(managed(NAME, Some(&claim), "Bound")) };
    assert_eq!(rest(&claim, &seen).ready, Some((Ready::Available, String::new())));
    let other = Seen { class: Some(Sight::Absent), ..seen };
    assert_eq!(rest(&claim, &other).ready, Some((Ready::Available, String::new())));
}

fn unusable() -> Implementation {
    let unusable = Unusable { why: "no class kind".into(), has_class: true, has_managed: true };
    Implementation { unusable: Some(unusable), ..implementation() }
}

#[test]
fn who_makes_nothing_new_says_why_and_takes_on_nobody() {
    for claim in [claim(), fixed("legacy")] {
        let Step::Rest(verdict) = decide(&claim, &Seen::default(), &unusable()) else { panic!() };
        assert_eq!(verdict.synced, Some(Err("no class kind".into())));
        assert_eq!(verdict.told.unwrap().reason, "CannotConfigureManagedResource");
    }
    // Held before anything was made for it: nothing will be.
    assert!(matches!(decide(&held(), &absent(), &unusable()), Step::Rest(_)));
}

#[test]
fn who_makes_nothing_new_serves_what_is_bound_and_lets_it_go() {
    let claim = bound(held());
    let managed = managed(NAME, Some(&claim), "Bound");
    assert_eq!(decide(&claim, &there(managed.clone()), &unusable()), Step::Propagate);
    assert_eq!(decide(&deleted(claim.clone()), &there(managed), &unusable()), Step::Release);
    assert_eq!(decide(&deleted(claim), &absent(), &unusable()), Step::LetGo);
}

#[test]
fn claims_by_a_class_that_another_has_are_none_of_its_business() {
    let mut former = unusable();
    former.unusable.as_mut().unwrap().has_class = false;
    assert_eq!(concern(&claim(), &former), None);
    assert!(concern(&held(), &former).is_some());
}
