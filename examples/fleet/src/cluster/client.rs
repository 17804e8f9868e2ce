//! Requests to one cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use concert_model::Address;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::document::Access;
use super::kinds::{Kind, Place};

/// Longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest answer: a list of one namespace.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Whose fields they are that are applied here.
const MANAGER: &str = "concert-fleet";

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

/// Why there is no good answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The credentials are not, or no longer, accepted.
    #[error("the cluster does not accept the credentials")]
    Unauthorized,
    #[error("it does not exist")]
    Absent,
    #[error("{message} (HTTP {code})")]
    Refused { code: u16, message: String },
    #[error("the cluster cannot be reached: {0}")]
    Unreachable(String),
}

/// One cluster, and who we are to it.
#[derive(Clone)]
pub struct Client(kube::Client);

impl Client {
    /// The cluster that a file of this machine leads to.
    pub async fn from_file(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let opened = Self::from_text(&text).await;
        opened.map_err(anyhow::Error::msg).with_context(|| format!("{} cannot be used", path.display()))
    }

    /// The cluster that a stranger's kubeconfig leads to, as far as it was accepted.
    pub async fn open(access: &Access) -> Result<Self, Trouble> {
        access.check_address().await.map_err(Trouble::Unreachable)?;
        Self::from_text(&access.to_document().to_string()).await.map_err(Trouble::Unreachable)
    }

    /// Says nothing of the text in its errors.
    async fn from_text(text: &str) -> Result<Self, String> {
        let unusable = "the kubeconfig cannot be used";
        let file = Kubeconfig::from_yaml(text).map_err(|_| unusable)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|_| unusable)?;
        Ok(Self(kube::Client::try_from(config).map_err(|_| unusable)?))
    }

    /// Answers if the cluster does, and accepts who we are.
    pub async fn whoami(&self) -> Result<String, Trouble> {
        let review =
            serde_json::json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let address = Address::new("/apis/authentication.k8s.io/v1/selfsubjectreviews");
        let seen = self.post(&address, &review).await?;
        Ok(seen["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned())
    }

    /// The object, or none.
    pub async fn get(&self, place: &Place) -> Result<Option<Value>, Trouble> {
        match self.ask(Method::GET, &place.address(), None).await {
            Ok(object) => Ok(Some(object)),
            Err(Trouble::Absent) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    /// Objects with a label; none where the kind does not exist.
    pub async fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        label: Option<&str>,
    ) -> Result<Vec<Value>, Trouble> {
        let address = kind.list(namespace).with_some("labelSelector", label);
        match self.ask(Method::GET, &address, None).await {
            Ok(mut list) => match list["items"].take() {
                Value::Array(items) => Ok(items),
                _ => Ok(Vec::new()),
            },
            Err(Trouble::Absent) => Ok(Vec::new()),
            Err(trouble) => Err(trouble),
        }
    }

    /// Server-side apply: afterwards what `object` says is so, and what others say stays.
    pub async fn apply(&self, object: &Value) -> Result<Value, Trouble> {
        let place = Place::of(object).ok_or_else(|| unknown(object))?;
        let address = place.address().with("fieldManager", MANAGER).with("force", "true");
        self.ask(Method::PATCH, &address, Some((APPLY, object))).await
    }

    /// Creates something, such as a request for a token.
    pub async fn post(&self, address: &Address, body: &Value) -> Result<Value, Trouble> {
        self.ask(Method::POST, address, Some((JSON, body))).await
    }

    /// A merge patch of an object, or of its status.
    pub async fn merge(&self, place: &Place, part: Option<&str>, patch: &Value) -> Result<Value, Trouble> {
        let address = place.address();
        let address = part.map_or(address.clone(), |part| address.step(part));
        self.ask(Method::PATCH, &address, Some((MERGE, patch))).await
    }

    /// Deletes an object; one that is not there is fine.
    pub async fn delete(&self, place: &Place) -> Result<(), Trouble> {
        match self.ask(Method::DELETE, &place.address(), None).await {
            Ok(_) | Err(Trouble::Absent) => Ok(()),
            Err(trouble) => Err(trouble),
        }
    }

    async fn ask(
        &self,
        method: Method,
        address: &Address,
        content: Option<(&str, &Value)>,
    ) -> Result<Value, Trouble> {
        let exchange = async {
            let mut request = Request::builder().method(method).uri(address.as_str());
            let mut body = Body::empty();
            if let Some((kind, content)) = content {
                request = request.header(CONTENT_TYPE, kind);
                body = Body::from(content.to_string().into_bytes());
            }
            let request = request.body(body).map_err(|error| unreachable(&error))?;
            let response = self.0.send(request).await.map_err(|error| unreachable(&error))?;
            let code = response.status().as_u16();
            let body = Limited::new(response.into_body(), BYTES_MAX).collect().await;
            let body = body.map_err(|error| unreachable(&*error))?.to_bytes();
            judge(code, &body)
        };
        let late = |_| Trouble::Unreachable(format!("no answer within {} s", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, exchange).await.map_err(late)?
    }
}

fn judge(code: u16, body: &Bytes) -> Result<Value, Trouble> {
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    match code {
        200..300 => Ok(parsed),
        401 => Err(Trouble::Unauthorized),
        404 => Err(Trouble::Absent),
        _ => {
            let message = parsed["message"].as_str().unwrap_or("no reason was given").to_owned();
            Err(Trouble::Refused { code, message })
        }
    }
}

fn unknown(object: &Value) -> Trouble {
    let message = format!("{} is of no kind that is known here", object["kind"]);
    Trouble::Refused { code: 400, message }
}

/// The causes, which name hosts and ports and no credentials.
fn unreachable(error: &dyn std::error::Error) -> Trouble {
    let causes = std::iter::successors(Some(error), |it| it.source());
    Trouble::Unreachable(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
}
