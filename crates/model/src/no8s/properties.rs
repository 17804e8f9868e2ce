//! What holds after any number of reports in any order.

use proptest::prelude::*;
use serde_json::json;

use super::conditions::STANDARD;
use super::tests::{at, moment};
use super::*;
use crate::{Object, time};

#[derive(Clone, Debug)]
enum Step {
    Report(Phase, Option<i64>),
    Condition(&'static str, Option<i64>),
    End(Option<bool>, Option<u64>),
    Change,
    Delete,
}

fn step() -> impl Strategy<Value = Step> {
    let phase = prop::sample::select(Phase::ALL.to_vec());
    let observed = prop::option::of(-1..6_i64);
    let kind = prop::sample::select(vec!["A", "B", "Ready", "Degraded"]);
    prop_oneof![
        4 => (phase, observed.clone()).prop_map(|(phase, observed)| Step::Report(phase, observed)),
        2 => (kind, observed).prop_map(|(kind, observed)| Step::Condition(kind, observed)),
        3 => (prop::option::of(any::<bool>()), prop::option::of(0..9_u64)).prop_map(|(ok, after)| Step::End(ok, after)),
        1 => Just(Step::Change),
        1 => Just(Step::Delete),
    ]
}

fn act(object: &mut Object, step: &Step, second: i64, lease: &mut Lease, claimed: &mut i64) {
    let moment = moment(second, *claimed);
    let status = match step {
        Step::Report(phase, observed_generation) => {
            lease.reported = Some(*phase);
            let report = Report { phase: *phase, message: None, observed_generation: *observed_generation };
            reported(object, &report, &moment)
        }
        Step::Condition(kind, observed) => {
            conditioned(object, kind, "True", ("R", ""), *observed, at(second)).unwrap()
        }
        Step::End(success, after) => {
            let requeue_after = after.map(std::time::Duration::from_secs);
            let verdict = Verdict { success: *success, message: "x".into(), requeue_after, left: None };
            let (status, _) = recorded(object, &verdict, lease, &moment);
            (*lease, *claimed) = (Lease::of(object, "w"), object.generation());
            status
        }
        Step::Change | Step::Delete => {
            if object.deleted_at().is_none() || matches!(step, Step::Change) {
                object.set_metadata("generation", json!(object.generation() + 1));
            }
            if matches!(step, Step::Delete) {
                object.set_metadata("deletionTimestamp", json!(time::seconds(at(second))));
                object.set("status", deleting(object, at(second)));
            }
            return;
        }
    };
    object.set("status", status);
}

proptest! {
    #[test]
    fn reports_in_any_order_keep_the_promises(steps in prop::collection::vec(step(), 1..40)) {
        let mut object = Object::from_value(json!({"apiVersion": "no8s.concert.dev/v1", "kind": "T",
            "metadata": {"name": "a", "generation": 1, "finalizers": ["w"]}})).unwrap();
        let (mut lease, mut claimed) = (Lease::of(&object, "w"), 1);
        for (second, step) in steps.iter().enumerate() {
            let before = object.clone();
            act(&mut object, step, i64::try_from(second).unwrap(), &mut lease, &mut claimed);
            let (was, is) = (Resource(&before), Resource(&object));
            prop_assert!(is.observed_generation() >= was.observed_generation(), "{step:?}");
            prop_assert!(is.observed_generation() <= object.generation());
            prop_assert_eq!(is.is_deleting(), is.shown_phase() == Phase::Deleting);
            let kinds: Vec<String> = is.conditions().into_iter().map(|it| it.kind).collect();
            let standard = kinds.iter().filter(|it| STANDARD.contains(&it.as_str())).count();
            let expected: Vec<&str> = STANDARD.into_iter().filter(|it| kinds.iter().any(|k| k == it)).collect();
            prop_assert_eq!(&kinds[..standard], &expected[..]);
            if matches!(step, Step::Condition(..)) {
                prop_assert_eq!(is.reported_generation(), was.reported_generation(), "{:?}", step);
            }
            if matches!(step, Step::End(..)) && !is.is_deleting() {
                prop_assert!(standard == 3 || is.phase() == Phase::Reconciling || expected.len() >= 2);
                prop_assert!(is.is_changed() || is.next().is_some(), "somebody will look again");
            }
        }
    }
}
