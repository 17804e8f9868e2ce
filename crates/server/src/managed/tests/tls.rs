//! Providers that are spoken to in private.

use std::path::Path;

use concert_engine::{OnExit, Tasks, TokioSpawn};
use concert_model::ObjectKey;
use concert_model::condition::{self, Status};
use concert_provider::server::Server;
use concert_provider::{Memory as MemoryProvider, Tls};
use concert_testbed::Authority;

use super::*;
use crate::managed::{Controller, Running};

/// The one provider of the configuration, over TLS at this port.
async fn start(store: &Arc<Local>, port: u16, certificates: &Path) -> Running {
    let mut config = config();
    config.providers[0].endpoint = format!("localhost:{port}");
    config.providers[0].use_ssl = true;
    let loopback: Address = "127.0.0.1:0".parse().unwrap();
    let options = Options::new()
        .with_store(store.clone(), Some(store.clone()))
        .with_cert_dir(certificates)
        .with_metrics_address(loopback.clone())
        .with_health_address(loopback)
        .with_patience(Duration::from_secs(5))
        .with_leader_election(false);
    Controller::new(config, options).start().await.unwrap()
}

async fn is_well(store: &Local) -> bool {
    let key = ObjectKey::cluster(bucket().group_kind, "a");
    let object = store.get(&key).await.unwrap().decode();
    let holds = |kind| condition::find(object.status(), kind).is_some_and(|it| it.status == Status::True);
    holds("UpToDate") && holds("Synced")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_believed_by_the_authority_in_the_folder_and_by_no_other() {
    let authority = Authority::fresh();
    let certificates = authority.pair_only("localhost");
    let provider = Arc::new(MemoryProvider::new([bucket()]));
    let server = Server::new(provider.clone()).address("127.0.0.1:0").tls(Tls::folder(certificates.path()));
    let bound = server.bind().await.unwrap();
    let port = bound.address().unwrap().port();
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), Arc::new(SystemClock::new()));
    let shutdown = tasks.shutdown().clone();
    tasks.spawn("provider", OnExit::Log, async move {
        bound.serve(async move { shutdown.requested().await }).await.unwrap();
    });
    let store = store();
    define_buckets(&*store).await;
    store.create(Object::new(&bucket(), "", "a"), &By::actor("test")).await.unwrap();

    let stranger = Authority::fresh().trusting();
    let running = start(&store, port, stranger.path()).await;
    let at = running.health_address().unwrap();
    until("the probe names the provider", async || {
        let (status, text) = get(at, "/readyz").await;
        let is_named = text.lines().any(|it| it.starts_with("provider a: ") && it.contains("certificate"));
        status == 503 && is_named
    })
    .await;
    running.stop().await;
    assert!(provider.names().is_empty(), "nothing is asked of a stranger");

    let trusting = authority.trusting();
    let running = start(&store, port, trusting.path()).await;
    let at = running.health_address().unwrap();
    until("ready", async || get(at, "/readyz").await.0 == 200).await;
    until("the object is as declared", async || is_well(&store).await).await;
    assert_eq!(provider.names().len(), 1);
    running.stop().await;
    tasks.stop(Duration::from_secs(5)).await;
}
