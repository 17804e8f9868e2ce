//! An inventory in another process: the store that talks to a Kubernetes-shaped API, and tokens by HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_api::inventory::{BASE, Minted, Minting, Unminted, Wanted};
use concert_engine::{OnExit, Tasks};
use concert_model::time;
use concert_store::Clock;
use concert_store::kubernetes::{self, Kubernetes};
use kube::client::Body;
use kube::config::{AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig};
use kube::config::{NamedAuthInfo, NamedCluster, NamedContext};
use serde_json::{Value, json};
use tracing::info;

use super::Inventory;
use crate::serve::error::Error;
use crate::serve::only::Elsewhere;

/// What the parts of a connection are called, where they must be called something.
const NAME: &str = "inventory";

impl Inventory {
    /// One elsewhere. Nothing is asked of it yet: that it cannot be reached is no reason not to start.
    ///
    /// # Errors
    /// [`Error::Inventory`] when what was said of it cannot be used.
    pub async fn elsewhere(
        elsewhere: &Elsewhere,
        clock: &Arc<dyn Clock>,
        tasks: &Tasks,
    ) -> Result<Self, Error> {
        let client = client(elsewhere).await?;
        let owner = tasks.clone();
        let spawn: kubernetes::Spawn = Arc::new(move |name: &str, task| owner.spawn(name, OnExit::Log, task));
        let config = kubernetes::Config::new(clock.clone(), spawn);
        let store = Kubernetes::new(client.clone(), config);
        info!(url = %elsewhere.url, "the inventory is elsewhere");
        let minting = Remote { client, address: elsewhere.url.clone() };
        Ok(Self { store: Arc::new(store), minting: Arc::new(minting), here: None })
    }
}

/// A connection, put together as a kubeconfig would say it.
async fn client(elsewhere: &Elsewhere) -> Result<kube::Client, Error> {
    for path in [&elsewhere.token_file, &elsewhere.ca_file].into_iter().flatten() {
        // Read here, so that a file that is not there is said by name.
        std::fs::read(path).map_err(|error| Error::Data { path: path.clone(), error })?;
    }
    let text = |path: &Path| path.display().to_string();
    let cluster = Cluster {
        server: Some(elsewhere.url.clone()),
        certificate_authority: elsewhere.ca_file.as_deref().map(text),
        ..Cluster::default()
    };
    let user = AuthInfo { token_file: elsewhere.token_file.as_deref().map(text), ..AuthInfo::default() };
    let context = Context { cluster: NAME.into(), user: Some(NAME.into()), ..Context::default() };
    let file = Kubeconfig {
        clusters: vec![NamedCluster { name: NAME.into(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.into(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext { name: NAME.into(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(NAME.into()),
        ..Kubeconfig::default()
    };
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(Error::inventory)?;
    // What may be sent again is for the store to decide.
    config.default_retry = false;
    kube::Client::try_from(config).map_err(Error::inventory)
}

/// Has tokens made by an inventory elsewhere.
struct Remote {
    client: kube::Client,
    address: String,
}

#[async_trait]
impl Minting for Remote {
    async fn mint(&self, wanted: &[Wanted], lifetime: Duration) -> Result<Vec<Option<Minted>>, Unminted> {
        let item = |it: &Wanted| json!({"entry": it.entry, "reconciler": it.reconciler, "lease": it.lease});
        let items: Vec<Value> = wanted.iter().map(item).collect();
        let body = json!({"items": items, "ttl_seconds": lifetime.as_secs().max(1)}).to_string();
        let unavailable = |why: &dyn std::fmt::Display| Unminted::Unavailable(why.to_string());
        let request = http::Request::post(format!("{BASE}tokens"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(Body::from(body.into_bytes()))
            .map_err(|error| unavailable(&error))?;
        let response = self.client.send(request).await.map_err(|error| unavailable(&error))?;
        let status = response.status();
        let bytes = response.into_body().collect_bytes().await.map_err(|error| unavailable(&error))?;
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if !status.is_success() {
            let why = answer["detail"].as_str().unwrap_or(status.as_str()).to_owned();
            let is_refused = matches!(status.as_u16(), 401 | 403);
            return Err(if is_refused { Unminted::Refused(why) } else { Unminted::Unavailable(why) });
        }
        let tokens = answer["tokens"].as_array().filter(|it| it.len() == wanted.len());
        let tokens =
            tokens.ok_or_else(|| Unminted::Unavailable("it does not answer what was asked".into()))?;
        Ok(tokens.iter().map(minted).collect())
    }

    fn url(&self, entry: &str) -> String {
        format!("{}{BASE}entries/{entry}", self.address)
    }
}

fn minted(value: &Value) -> Option<Minted> {
    let expires_at = value["expires_at"].as_str().and_then(time::parse)?;
    Some(Minted { token: value["token"].as_str()?.to_owned(), expires_at })
}
