//! HTTP as somebody in particular: requests with a token, over TLS that is verified.

use http::Request;
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A server, and who we are to it.
pub struct Web {
    runtime: Runtime,
    client: kube::Client,
}

impl Web {
    /// What a kubeconfig leads to.
    pub fn open(kubeconfig: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let file = Kubeconfig::from_yaml(kubeconfig).unwrap();
            let options = KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options).await.unwrap();
            kube::Client::try_from(config).unwrap()
        });
        Self { runtime, client }
    }

    /// The status and the body, or why there is none.
    pub fn try_ask(&self, method: &str, path: &str, body: &Value) -> Result<(u16, Value), String> {
        self.runtime.block_on(async {
            let content = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            let request = Request::builder().method(method).uri(path);
            let request =
                request.header("content-type", "application/json").body(Body::from(content)).unwrap();
            let response = self.client.send(request).await.map_err(|error| error.to_string())?;
            let status = response.status().as_u16();
            let bytes = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
            let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
            Ok((status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text())))
        })
    }

    /// The same, where an answer must come.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.try_ask(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// The body of a good answer.
    pub fn good(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    pub fn get(&self, path: &str) -> Value {
        self.good("GET", path, &Value::Null)
    }
}

/// A kubeconfig for a server, as the owner of a token.
pub fn kubeconfig(server: &str, authority: &str, token: &str) -> String {
    let authority = concert_model::base64::encode(authority.as_bytes());
    serde_json::json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": server, "certificate-authority-data": authority}}],
        "users": [{"name": "x", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]})
    .to_string()
}
