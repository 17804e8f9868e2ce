//! What would be done is asked without doing it.

use concert_controllers::managed::plan::Planner;
use concert_provider::{Class, Error, PlanAction};
use concert_store::Clock;
use serde_json::json;

use crate::bench::Bench;
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
