//! One request to another replica.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, IF_MATCH, RETRY_AFTER};
use http::request::Parts as Head;
use http::{HeaderName, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::RELAYED;
use crate::kube::Body;
use crate::kube::answer::whole;

/// Longest answer: what a worker can be lent at once fits.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What of a request the other one needs.
const PASSED_ON: [HeaderName; 4] = [AUTHORIZATION, CONTENT_TYPE, ACCEPT, IF_MATCH];

/// Another replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Where it answers, as in `https://host:port`.
    pub url: String,
    /// The certificates to verify it with, as PEM; the well-known ones if empty.
    pub trust: String,
}

/// Why there is no answer, in words.
#[derive(Debug)]
pub(super) struct NoAnswer(String);

impl NoAnswer {
    pub(super) fn late() -> Self {
        Self("no answer in time".to_owned())
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn failed(what: &'static str) -> impl Fn(&dyn fmt::Display) -> NoAnswer {
    move |error| NoAnswer(format!("{what}: {error}"))
}

/// Sends a request to `peer` as it came, and gives back what it answers.
pub(super) async fn pass_on(peer: &Peer, head: &Head, body: &Bytes) -> Result<Response<Body>, NoAnswer> {
    let url: Uri = peer.url.parse().map_err(|error| failed("its address")(&error))?;
    let authority = url.authority().ok_or_else(|| NoAnswer("it has no address".to_owned()))?;
    let is_tls = url.scheme_str() == Some("https");
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let path = head.uri.path_and_query().map_or("/", |it| it.as_str());
    let mut request = Request::builder().method(&head.method).uri(path).header(HOST, authority.as_str());
    request = request.header(RELAYED, HeaderValue::from_static("1"));
    // Who speaks for somebody else does so there as well.
    let is_passed_on =
        |name: &HeaderName| PASSED_ON.contains(name) || name.as_str().starts_with("impersonate-");
    for (name, value) in head.headers.iter().filter(|(name, _)| is_passed_on(name)) {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(body.clone())).map_err(|error| failed("the request")(&error))?;
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| failed("cannot connect")(&error))?;
    if !is_tls {
        return exchange(stream, request).await;
    }
    let name = ServerName::try_from(host).map_err(|error| failed("its name")(&error))?;
    let connector = TlsConnector::from(Arc::new(config(&peer.trust)?));
    let stream = connector.connect(name, stream).await.map_err(|error| failed("TLS")(&error))?;
    exchange(stream, request).await
}

/// Trusts what the peer says of itself in the store, to which only replicas have the key.
fn config(trust: &str) -> Result<ClientConfig, NoAnswer> {
    let mut roots = RootCertStore::empty();
    if trust.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    for certificate in CertificateDer::pem_slice_iter(trust.as_bytes()) {
        let certificate = certificate.map_err(|error| failed("its certificate")(&error))?;
        roots.add(certificate).map_err(|error| failed("its certificate")(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| failed("TLS")(&error))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Body>, NoAnswer> {
    let broken = failed("the connection broke");
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let mut answer = Box::pin(async {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, body) = response.into_parts();
        let limited = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
        let bytes = limited.map_err(|error| failed("the answer cannot be read")(&error))?.to_bytes();
        let mut response = whole(head.status, "application/json", bytes);
        for name in [CONTENT_TYPE, RETRY_AFTER] {
            if let Some(value) = head.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        Ok(response)
    });
    tokio::select! {
        answer = &mut answer => answer,
        // Whoever closes the connection has often said everything before.
        _ = connection => answer.await,
    }
}
