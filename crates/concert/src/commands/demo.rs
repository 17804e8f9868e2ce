//! `concert demo`: a control plane in a temporary folder, with a cloud to play with.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use concert_model::condition::{self, Status};
use concert_model::{GroupKind, Object};
use concert_provider::server::Server;
use concert_provider_example::cloud::{Api, Cloud, Settings};
use concert_provider_example::{CLAIMED_CRDS, CRDS, Example};
use concert_server::serve::{Error, LISTEN, Layer, Plane, Running};
use concert_server::{Chance, Event, Shutdown, SystemClock};

use super::Run;
use crate::cli::say;
use crate::client::Flags;
use crate::exit::Exit;
use crate::logs;
use crate::print;
use crate::signals::Signals;

/// What is declared.
const MANIFESTS: &str = "
apiVersion: cloud.concert.dev/v1alpha1
kind: ClusterProviderConfig
metadata: {name: default}
spec: {credentials: {source: None}}
---
apiVersion: cloud.concert.dev/v1alpha1
kind: Bucket
metadata: {name: photos, namespace: default}
spec: {forProvider: {region: here, size: 3}}
---
apiVersion: cloud.concert.dev/v1alpha1
kind: Bucket
metadata: {name: music, namespace: default}
spec: {forProvider: {region: there, size: 5}}
---
apiVersion: cloud.concert.dev/v1alpha1
kind: Bucket
metadata: {name: letters, namespace: default}
spec: {forProvider: {region: here, size: 1}}
";
const BUCKETS: usize = 3;
/// What a stranger may declare next.
const OWN: &str = "\
apiVersion: cloud.concert.dev/v1alpha1
kind: Bucket
metadata: {name: mine, namespace: default}
spec: {forProvider: {region: here, size: 2}}
";

/// What the platform team of the second half ships, and what the application team claims.
const CLAIMABLE: [&str; 9] = [
    include_str!("../../../../deploy/claims/buckets.yaml"),
    include_str!("../../../../deploy/claims/kubernetesclusters.yaml"),
    include_str!("../../../../deploy/claims/mysqlinstances.yaml"),
    include_str!("../../../../deploy/claims/postgresqlinstances.yaml"),
    include_str!("../../../../deploy/claims/redisclusters.yaml"),
    include_str!("../../../../deploy/claims/classes.yaml"),
    include_str!("../../../../deploy/claims/definitions.yaml"),
    include_str!("../../../../examples/claims/memorystore.yaml"),
    include_str!("../../../../examples/claims/policy.yaml"),
];
const CLAIM: &str = include_str!("../../../../examples/claims/claim.yaml");

#[derive(clap::Args)]
pub struct Demo {
    /// End when everything is ready, instead of going on to serve
    #[arg(long)]
    exit: bool,
}

impl Run for Demo {
    const NAME: &'static str = "demo";
    const ABOUT: &'static str = "Try it: a control plane and a simulated cloud in a temporary folder";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        // What is worth a word is said below.
        logs::start("error", "text")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(demo(self.exit))
    }
}

async fn demo(is_short: bool) -> anyhow::Result<Exit> {
    let mut signals = Signals::new()?;
    let folder =
        tempfile::Builder::new().prefix("concert-demo-").tempdir().context("cannot make a folder")?;
    let provider = provider().await?;
    let endpoint = provider.address().context("the provider has an address")?.to_string();
    let stop = Shutdown::new();
    let until = stop.clone();
    let serving = provider.serve(async move { until.requested().await });

    let running = plane(folder.path()).await?;
    say(&format!(
        "a control plane on http://{}, in {}, without authentication: for trying out",
        running.address(),
        folder.path().display()
    ));
    let play = async {
        declare(&running, &endpoint).await?;
        let buckets = GroupKind::new("cloud.concert.dev", "Bucket");
        let mut is_over = show(&running, buckets, BUCKETS, bucket, &mut signals).await?;
        if !is_over {
            claim(&running).await?;
            let claims = GroupKind::new("cache.crossplane.io", "RedisCluster");
            is_over = show(&running, claims, 1, redis, &mut signals).await?;
        }
        if !is_short && !is_over {
            say(&invitation(&folder.path().join("data/kubeconfig")));
            signals.next().await;
        }
        running.stop().await;
        stop.request();
        anyhow::Ok(())
    };
    let (played, served) = tokio::join!(play, serving);
    played?;
    served?;
    Ok(Exit::Done)
}

/// The example provider, slow enough to be watched.
async fn provider() -> anyhow::Result<concert_provider::server::Bound> {
    let settings = Settings { latency: Duration::from_millis(200), ..Settings::default() };
    let cloud = Cloud::new(settings, Chance::from_system());
    let api = Arc::new(Api::new(cloud, Arc::new(SystemClock::new())));
    let example = Example::new(api).with_claims(true);
    Ok(Server::new(Arc::new(example)).address("127.0.0.1:0").bind().await?)
}

/// On the usual port, or on any if that is taken.
async fn plane(folder: &Path) -> anyhow::Result<Running> {
    match plane_on(folder, LISTEN).await {
        // It listens before it opens anything.
        Err(Error::Listen(_)) => Ok(plane_on(folder, "127.0.0.1:0").await?),
        started => Ok(started?),
    }
}

async fn plane_on(folder: &Path, listen: &str) -> Result<Running, Error> {
    let settings = Layer {
        data_dir: Some(folder.join("data")),
        listen: Some(listen.to_owned()),
        admin_listen: Some("0".to_owned()),
        dev: Some(true),
        plugins: Some("off".to_owned()),
        ..Layer::default()
    };
    Plane::new(settings.resolve()?).start().await
}

async fn declare(running: &Running, endpoint: &str) -> anyhow::Result<()> {
    for (_, definition) in CRDS.iter().chain(CLAIMED_CRDS) {
        running.apply(definition, "demo").await?;
    }
    let provider = format!(
        "{{\"apiVersion\": \"concert.dev/v1alpha1\", \"kind\": \"Provider\", \"metadata\": {{\"name\": \"example\"}}, \
         \"spec\": {{\"endpoint\": \"{endpoint}\"}}}}"
    );
    running.apply(&provider, "demo").await?;
    running.apply(MANIFESTS, "demo").await?;
    say("declared: a provider with a simulated cloud, an account in it, and three buckets");
    Ok(())
}

async fn claim(running: &Running) -> anyhow::Result<()> {
    for manifests in CLAIMABLE {
        running.apply(manifests, "platform-team").await?;
    }
    running.apply(CLAIM, "application-team").await?;
    say("declared: what a Redis is, by a class and a policy, and a claim of one");
    Ok(())
}

/// Shows each object of a kind as it changes, until so many are ready. Whether somebody ended it.
async fn show(
    running: &Running,
    kind: GroupKind,
    count: usize,
    line: fn(&Object) -> String,
    signals: &mut Signals,
) -> anyhow::Result<bool> {
    let mut events = running.watch(kind).await?;
    let (mut ready, mut told) = (BTreeSet::new(), BTreeSet::new());
    while ready.len() < count {
        let event = tokio::select! {
            event = events.next() => event.context("the watch has ended")??,
            () = signals.next() => return Ok(true),
        };
        let (Event::Added(object) | Event::Modified(object)) = event else { continue };
        let object = object.decode();
        let line = line(&object);
        if told.insert(line.clone()) {
            print::out(&(line + "\n"))?;
        }
        if is_ready(&object) {
            ready.insert(object.name().to_owned());
        }
    }
    Ok(false)
}

fn is_ready(object: &Object) -> bool {
    condition::find(object.status(), "Ready").is_some_and(|it| it.status == Status::True)
}

fn redis(claim: &Object) -> String {
    let name = format!("rediscluster/{}", claim.name());
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let made = text(&claim.spec()["resourceRef"]["name"]);
    let state = match (text(&claim.status()["bindingPhase"]), &claim.spec()["classRef"]["name"]) {
        (phase, _) if !phase.is_empty() => phase,
        (_, serde_json::Value::String(class)) => format!("Class {class}"),
        _ => "Claimed".to_owned(),
    };
    format!("{name:<24} {state:<16} {made}").trim_end().to_owned()
}

fn bucket(object: &Object) -> String {
    let name = format!("bucket/{}", object.name());
    let state = match condition::find(object.status(), "Ready") {
        _ if is_ready(object) => "Ready".to_owned(),
        Some(it) => it.reason,
        None => "Declared".to_owned(),
    };
    let id = object.annotation("crossplane.io/external-name").unwrap_or_default();
    format!("{name:<16} {state:<10} {id}").trim_end().to_owned()
}

/// What to try next. Nothing that is not there already is needed: this very program is the client.
fn invitation(kubeconfig: &Path) -> String {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    let path = folder.map(|it| format!("  export PATH={}:$PATH\n", it.display())).unwrap_or_default();
    format!(
        "
It goes on to serve. In another terminal:
  export KUBECONFIG={}
{path}  concert get buckets.cloud.concert.dev
  concert explain bucket.cloud.concert.dev/photos
  concert explain rediscluster/app-redis
A bucket of your own:

concert apply --wait -f - <<END
{OWN}END
concert explain bucket.cloud.concert.dev/mine

Apply it again with another size, and see the cloud follow. kubectl works as well, with the same KUBECONFIG.
Ctrl-C ends it and removes everything.",
        kubeconfig.display()
    )
}
