//! Two instances, one store.

use tokio::runtime::Runtime;

use super::*;
use crate::managed::{Controller, Running};

/// A process of its own, as far as tasks are concerned: dropping the runtime is its `kill -9`.
fn process() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn start(process: &Runtime, store: &Arc<Local>, cloud: &Cloud) -> Running {
    process.block_on(Controller::new(config(), options(store, cloud)).start()).unwrap()
}

fn readiness(process: &Runtime, running: &Running) -> (u16, String) {
    process.block_on(get(running.health_address().unwrap(), "/readyz"))
}

#[test]
fn when_the_leader_is_killed_the_other_goes_on() {
    let (store, cloud, one, two) = (store(), Cloud::default(), process(), process());
    one.block_on(define_buckets(&*store));
    let first = start(&one, &store, &cloud);
    one.block_on(until("the first leads", async || first.is_working()));
    let second = start(&two, &store, &cloud);
    two.block_on(until("the second stands by", async || {
        let (status, text) = get(second.health_address().unwrap(), "/readyz").await;
        status == 200 && text.starts_with("standing by: ")
    }));
    assert!(!second.is_working());

    one.shutdown_background();
    two.block_on(until("the second leads", async || second.is_working()));
    two.block_on(until("it is ready", async || {
        get(second.health_address().unwrap(), "/readyz").await == (200, "ok\n".to_owned())
    }));
    let registry = second.registry().unwrap();
    assert!(registry.provider("a").unwrap().is_ok());
    assert_eq!(registry.controllers().len(), 1);
    assert_eq!(readiness(&two, &second).0, 200);
    two.block_on(second.stop());
}

#[test]
fn a_leader_that_stops_gives_the_lease_free_after_its_controllers() {
    let (store, cloud, one, two) = (store(), Cloud::default(), process(), process());
    let first = start(&one, &store, &cloud);
    one.block_on(until("the first leads", async || first.is_working()));
    let second = start(&two, &store, &cloud);
    let registry = first.registry().unwrap();
    one.block_on(first.stop());
    assert!(registry.controllers().is_empty());
    two.block_on(until("the second leads", async || second.is_working()));
    two.block_on(second.stop());
}
