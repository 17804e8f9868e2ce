//! One request and its answer, bounded in time and size, over connections that are kept.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::error::Error;

/// Longest answer: a claim of a thousand items.
const BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest that an answer may take which nobody waits for on purpose.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Longest time that a server may ask us to stay away.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60 * 60);

/// A request in the making.
pub(crate) struct Ask<'a> {
    pub method: Method,
    /// The whole address.
    pub url: String,
    pub token: Option<&'a HeaderValue>,
    pub if_match: Option<u64>,
    pub body: Option<&'a Value>,
    pub patience: Duration,
}

/// What came back, if it was no refusal.
pub(crate) struct Good {
    pub body: Value,
    /// The version in `ETag`.
    pub version: Option<u64>,
}

/// Connections to any server, all verified with the same authorities.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Http {
    /// Trusts the certificates in `authority` (PEM), or those of the operating system.
    pub fn new(authority: Option<&[u8]>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        match authority {
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let usable = certificate.ok().and_then(|it| roots.add(it).ok());
                    usable.ok_or_else(|| Error::Unusable("the authority is no certificate in PEM".into()))?;
                }
                if roots.is_empty() {
                    return Err(Error::Unusable("the authority has no certificate".to_owned()));
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        let ring = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(ring).with_safe_default_protocol_versions();
        let tls = tls.expect("ring has the default versions of TLS").with_root_certificates(roots);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Asks once.
    pub async fn ask(&self, ask: Ask<'_>) -> Result<Good, Error> {
        let uri: Uri = ask.url.parse().map_err(|_| Error::Unusable(format!("{} is no address", ask.url)))?;
        let server = uri.authority().map_or_else(|| ask.url.clone(), ToString::to_string);
        let unreachable = |why| Error::Unreachable { server: server.clone(), why };
        let mut request = Request::builder().method(ask.method).uri(uri);
        request = request.header(ACCEPT, "application/json").header(USER_AGENT, "concert-worker");
        if let Some(token) = ask.token {
            request = request.header(AUTHORIZATION, token);
        }
        if let Some(version) = ask.if_match {
            request = request.header(IF_MATCH, format!("\"{version}\""));
        }
        let mut content = Bytes::new();
        if let Some(body) = ask.body {
            request = request.header(CONTENT_TYPE, "application/json");
            content = body.to_string().into();
        }
        let request = request.body(Full::new(content)).map_err(|error| unreachable(error.into()))?;
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| unreachable(error.into()))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, BYTES_MAX).collect().await.map_err(unreachable)?;
            Ok::<_, Error>((head, body.to_bytes()))
        };
        let late = |_| unreachable(format!("no answer within {} s", ask.patience.as_secs()).into());
        let (head, body) = tokio::time::timeout(ask.patience, exchange).await.map_err(late)??;
        if !head.status.is_success() {
            let (status, retry_after) = (head.status.as_u16(), retry_after(&head.headers));
            return Err(Error::Refused { status, detail: detail(&body), retry_after });
        }
        let version = head.headers.get(ETAG).and_then(|it| it.to_str().ok());
        let version = version.and_then(|it| it.trim_start_matches("W/").trim_matches('"').parse().ok());
        if body.is_empty() {
            return Ok(Good { body: Value::Null, version });
        }
        let body = serde_json::from_slice(&body).map_err(|_| Error::Odd { server: server.clone() })?;
        Ok(Good { body, version })
    }
}

/// After what time to ask again. A date is not understood, and nobody is believed who says days.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// The server's own words.
fn detail(body: &[u8]) -> String {
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    match parsed.get("detail").or(parsed.get("message")) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "no reason was given".to_owned(),
    }
}

/// A token as it goes over the wire, and into no log.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Error::Unusable("the token has characters that no token has".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}
