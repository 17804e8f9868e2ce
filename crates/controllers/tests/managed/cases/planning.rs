//! What would be done is asked without doing it.

use concert_controllers::managed::plan::Planner;
use concert_controllers::managed::vocabulary::annotation::{CREATE_PENDING, CREATE_TOKEN};
use concert_controllers::managed::vocabulary::{FINALIZER, message};
use concert_provider::{Class, Error, PlanAction};
use concert_store::Clock;
use serde_json::json;

use crate::bench::{Bench, allowing, annotated};
use crate::stores::Subject;

/// What the provider plans, what it thinks of the object, and what comes of it.
async fn planned(bench: &Bench, plan: PlanAction, valid: Result<(), Error>) -> (PlanAction, String) {
    let object = bench.get().await;
    bench.provider.script(|script| {
        script.plan = Some(plan);
        script.validate.push_back(valid);
    });
    let planner = Planner {
        rules: bench.managed.rules.clone(),
        store: bench.store.clone(),
        connector: bench.line.clone(),
        configurations: bench.managed.configurations.clone(),
    };
    let plan = planner.plan(&object, bench.clock.now()).await;
    (plan.action, plan.reason)
}

pub async fn says_what_the_provider_would_refuse(subject: &Subject) {
    let bench = Bench::new(subject).await;
    let declared = bench.declare(json!({})).await;
    let refusal = || Err(Error::new(Class::Terminal, "spec.forProvider.size: must be even"));
    let refused = "it would be refused: spec.forProvider.size: must be even".to_owned();
    for change in [PlanAction::Create, PlanAction::Update] {
        assert_eq!(planned(&bench, change, Ok(())).await, (change, String::new()));
        assert_eq!(planned(&bench, change, refusal()).await, (PlanAction::None, refused.clone()));
        let broken = Err(Error::new(Class::Transient, "boom"));
        assert_eq!(planned(&bench, change, broken).await, (PlanAction::Unknown, "boom".to_owned()));
    }
    // Where nothing is to be done, nobody has to take the object.
    assert_eq!(planned(&bench, PlanAction::None, refusal()).await, (PlanAction::None, String::new()));
    assert_eq!(bench.get().await.resource_version(), declared.resource_version());
    assert!(bench.calls().is_empty() && bench.provider.things().is_empty());
}

pub async fn says_that_nothing_is_replaced(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({})).await;
    let refused = "nothing is replaced, so it would be refused".to_owned();
    assert_eq!(planned(&bench, PlanAction::Replace, Ok(())).await, (PlanAction::Replace, refused));
    // Policies that forbid the update forbid this all the more.
    bench.edit(allowing(&["Observe", "Create", "Delete"])).await;
    let forbidden = "`spec.managementPolicies` does not allow Update".to_owned();
    assert_eq!(planned(&bench, PlanAction::Replace, Ok(())).await, (PlanAction::None, forbidden));
}

pub async fn says_what_becomes_of_an_object_that_is_being_deleted(subject: &Subject) {
    let bench = Bench::new(subject).await;
    bench.declare(json!({"metadata": {"finalizers": [FINALIZER]}})).await;
    bench.delete().await;
    // The provider would plan as for any other object.
    let deleted = (PlanAction::Delete, "it is being deleted".to_owned());
    assert_eq!(planned(&bench, PlanAction::Update, Ok(())).await, deleted);
    bench.edit(allowing(&["Observe", "Create", "Update"])).await;
    let left = "it is being deleted, and its policies leave the external resource alone".to_owned();
    assert_eq!(planned(&bench, PlanAction::Update, Ok(())).await, (PlanAction::None, left));
    assert!(bench.calls().is_empty());
}

pub async fn does_not_promise_a_create_while_an_earlier_one_is_open(subject: &Subject) {
    let mut bench = Bench::new(subject).await;
    bench.declare(annotated(&[(CREATE_PENDING, "2026-01-01T00:00:00Z"), (CREATE_TOKEN, "t-1")])).await;
    let unknown = |why: &str| (PlanAction::Unknown, why.to_owned());
    let create = async |bench: &Bench| planned(bench, PlanAction::Create, Ok(())).await;
    assert_eq!(create(&bench).await, unknown(message::CREATE_IN_DOUBT));
    bench.managed.rules.can_look_up = true;
    assert_eq!(create(&bench).await, unknown(message::CREATE_OPEN));
    // What can be seen leaves no doubt.
    assert_eq!(planned(&bench, PlanAction::None, Ok(())).await, (PlanAction::None, String::new()));
    // Nor is there any where the second create of a name makes nothing.
    bench.managed.rules.served.has_deterministic_names = true;
    assert_eq!(create(&bench).await, (PlanAction::Create, String::new()));
    assert!(bench.calls().is_empty());
}
