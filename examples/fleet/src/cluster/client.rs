//! Requests to one cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use concert_model::Address;
use concert_store::kubernetes::careful;
use concert_worker::Failed;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::response::Parts;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::document::Access;
use super::kinds::{Kind, Place};

/// Longest that an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longest that a cluster may ask us to stay away.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);
/// Longest answer: a list of one namespace.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Whose fields they are that are applied here.
const MANAGER: &str = "concert-fleet";

const UNUSABLE: &str = "the kubeconfig cannot be used";
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
    /// It has too much to do, and says perhaps for how long.
    #[error("the cluster has too much to do")]
    Busy(Option<Duration>),
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
        let opened = config(&text).await;
        let opened = opened.and_then(|it| kube::Client::try_from(it).map_err(|_| UNUSABLE)).map(Self);
        opened.map_err(anyhow::Error::msg).with_context(|| format!("{} cannot be used", path.display()))
    }

    /// The cluster that a stranger's kubeconfig leads to, as far as it was accepted.
    pub async fn open(access: &Access) -> Result<Self, Trouble> {
        access.check_address().await.map_err(Trouble::Unreachable)?;
        let config = config(&access.to_document().to_string()).await;
        // What the name of the server leads to is looked at again with each connection.
        let client = config.and_then(|it| careful(&it).map_err(|_| UNUSABLE));
        client.map(Self).map_err(|why| Trouble::Unreachable(why.to_owned()))
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
            let (head, body) = response.into_parts();
            let body = Limited::new(body, BYTES_MAX).collect().await;
            let body = body.map_err(|error| unreachable(&*error))?.to_bytes();
            judge(&head, &body)
        };
        let late = |_| Trouble::Unreachable(format!("no answer within {} s", PATIENCE.as_secs()));
        tokio::time::timeout(PATIENCE, exchange).await.map_err(late)?
    }
}

/// Says nothing of the text in its errors.
async fn config(text: &str) -> Result<kube::Config, &'static str> {
    let file = Kubeconfig::from_yaml(text).map_err(|_| UNUSABLE)?;
    let options = KubeConfigOptions::default();
    kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|_| UNUSABLE)
}

impl Trouble {
    /// What it is of a cluster that is not that of the entry, and whose silence is no reason to leave that one
    /// alone.
    pub fn elsewhere(self) -> Failed {
        match self {
            Self::Busy(_) => self.into(),
            _ => Failed::transient(self),
        }
    }
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        match &trouble {
            Trouble::Unreachable(_) => Self::unreachable(trouble),
            Trouble::Busy(Some(after)) => Self::busy(&trouble).again_after(*after),
            Trouble::Busy(None) => Self::busy(trouble),
            _ => Self::transient(trouble),
        }
    }
}

fn judge(head: &Parts, body: &Bytes) -> Result<Value, Trouble> {
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    match head.status.as_u16() {
        200..300 => Ok(parsed),
        401 => Err(Trouble::Unauthorized),
        404 => Err(Trouble::Absent),
        429 => {
            let seconds = head.headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.parse().ok());
            Err(Trouble::Busy(seconds.map(|it| Duration::from_secs(it).min(RETRY_AFTER_MAX))))
        }
        code => {
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

#[cfg(test)]
mod tests {
    use concert_worker::Class;

    use super::*;

    fn judged(code: u16, retry_after: Option<&str>) -> Trouble {
        let mut answer = http::Response::builder().status(code);
        if let Some(seconds) = retry_after {
            answer = answer.header(RETRY_AFTER, seconds);
        }
        let (head, ()) = answer.body(()).unwrap().into_parts();
        judge(&head, &Bytes::new()).unwrap_err()
    }

    #[test]
    fn r17_a_cluster_that_has_too_much_to_do_has_not_failed() {
        assert_eq!(judged(429, Some("7")), Trouble::Busy(Some(Duration::from_secs(7))));
        for wait in [None, Some("Wed, 21 Oct 2015 07:28:00 GMT")] {
            assert_eq!(judged(429, wait), Trouble::Busy(None));
        }
        assert_eq!(Failed::from(judged(429, Some("7"))).class(), Class::Busy);
        assert_eq!(Failed::from(judged(500, None)).class(), Class::Transient);
    }
}
