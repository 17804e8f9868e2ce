//! What operators see over real sockets.

use super::*;
use crate::managed::Controller;

#[tokio::test(flavor = "multi_thread")]
async fn readiness_names_each_provider_and_kind_that_is_not_ready() {
    let (store, cloud) = (store(), Cloud::default());
    cloud.take_down("a:1");
    let running = Controller::new(config(), options(&store, &cloud)).start().await.unwrap();
    let at = running.health_address().unwrap();
    assert_eq!(get(at, "/healthz").await, (200, "ok\n".to_owned()));
    until("both problems", async || {
        let (status, text) = get(at, "/readyz").await;
        status == 503
            && text.contains("provider a: connection refused\n")
            && text.contains("Bucket.example.com: there is no definition of it\n")
    })
    .await;
    cloud.bring_up();
    define_buckets(&*store).await;
    until("ready", async || get(at, "/readyz").await == (200, "ok\n".to_owned())).await;
    assert_eq!(get(at, "/nothing").await.0, 404);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_there_from_the_start() {
    let (store, cloud) = (store(), Cloud::default());
    define_buckets(&*store).await;
    let running = Controller::new(config(), options(&store, &cloud)).start().await.unwrap();
    let at = running.metrics_address().unwrap();
    let lines = [
        "leader_election_master_status{name=\"managed-reconciler-leader-election\"} 1",
        "controller_runtime_reconcile_total{controller=\"managed/definitions\",result=\"success\"}",
        "workqueue_depth{",
        "crossplane_managed_resource_exists",
    ];
    until("all metrics", async || {
        let (status, text) = get(at, "/metrics").await;
        status == 200 && text.ends_with("# EOF\n") && lines.iter().all(|line| text.contains(line))
    })
    .await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_election_it_works_at_once_and_nowhere_means_no_socket() {
    let (store, cloud) = (store(), Cloud::default());
    let options = options(&store, &cloud).with_leader_election(false).with_health_address(Address::Nowhere);
    let running = Controller::new(config(), options).start().await.unwrap();
    assert!(running.is_working());
    assert_eq!(running.health_address(), None);
    let (_, text) = get(running.metrics_address().unwrap(), "/metrics").await;
    assert!(!text.contains("leader_election_master_status"), "{text}");
    running.stop().await;
}
