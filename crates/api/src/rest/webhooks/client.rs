//! One question to one webhook: bounded in time and size, to an address that was looked at.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use concert_store::Clock;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio_rustls::TlsConnector;

use super::address::{self, Address};

/// Longest answer.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Questions under way at one time: each holds a connection.
const CALLS_MAX: usize = 64;

/// Why there is no answer, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer(pub String);

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn failed(what: &str) -> impl Fn(&dyn fmt::Display) -> NoAnswer {
    let what = what.to_owned();
    move |error| NoAnswer(format!("{what}: {error}"))
}

/// Posts JSON. Follows nothing, remembers nothing, keeps no connection.
pub struct Client {
    clock: Arc<dyn Clock>,
    calls: Semaphore,
    /// Read at the first question that needs it; those of the operating system.
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Client {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, calls: Semaphore::new(CALLS_MAX), tls: OnceLock::new() }
    }

    #[cfg(test)]
    /// The same, trusting these certificates instead of those of the operating system.
    pub fn trusting(self, roots: RootCertStore) -> Self {
        let tls = OnceLock::from(Arc::new(config(roots)));
        Self { tls, ..self }
    }

    /// Posts `body` and waits for the whole answer, for no longer than `patience`.
    ///
    /// # Errors
    /// Whatever kept the answer from coming.
    pub async fn post(
        &self,
        address: &Address,
        body: Vec<u8>,
        patience: Duration,
    ) -> Result<(StatusCode, Bytes), NoAnswer> {
        let late = || NoAnswer(format!("no answer within {} seconds", patience.as_secs()));
        tokio::select! {
            answer = self.ask(address, body) => answer,
            () = self.clock.sleep(patience) => Err(late()),
        }
    }

    async fn ask(&self, address: &Address, body: Vec<u8>) -> Result<(StatusCode, Bytes), NoAnswer> {
        let _call = self.calls.acquire().await.map_err(|error| failed("cannot call")(&error))?;
        let stream = connect(address).await?;
        if !address.is_tls {
            return exchange(stream, address, body).await;
        }
        let name = ServerName::try_from(address.host.clone())
            .map_err(|error| failed("the host cannot have a certificate")(&error))?;
        let connector = TlsConnector::from(self.tls());
        let stream = connector.connect(name, stream).await.map_err(|error| failed("TLS")(&error))?;
        exchange(stream, address, body).await
    }

    fn tls(&self) -> Arc<ClientConfig> {
        let read = || {
            let mut roots = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            for error in &found.errors {
                tracing::warn!(%error, "a certificate authority of the system cannot be read");
            }
            roots.add_parsable_certificates(found.certs);
            Arc::new(config(roots))
        };
        self.tls.get_or_init(read).clone()
    }
}

fn config(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("ring has the default versions of TLS");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

/// To the first address of the host that answers. All of them must be fine: what a name leads to may be
/// different the next time, and whoever can make it lead anywhere forbidden is not asked at all.
async fn connect(address: &Address) -> Result<TcpStream, NoAnswer> {
    let found = lookup_host((address.host.as_str(), address.port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| failed("cannot find the host")(&error))?.collect();
    for place in &found {
        address::check(place.ip()).map_err(|error| NoAnswer(error.to_string()))?;
    }
    let mut last = NoAnswer("the host has no address".to_owned());
    for place in found {
        match TcpStream::connect(place).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = failed("cannot connect")(&error),
        }
    }
    Err(last)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: &Address,
    body: Vec<u8>,
) -> Result<(StatusCode, Bytes), NoAnswer> {
    let broken = failed("the connection broke");
    let request = Request::post(&address.path_and_query)
        .header(HOST, &address.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, "concert")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| failed("webhook_url")(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    let mut answer = Box::pin(async {
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let code = response.status();
        let limited = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        let bytes = limited.map_err(|error| failed("the answer cannot be read")(&error))?.to_bytes();
        Ok((code, bytes))
    });
    tokio::select! {
        answer = &mut answer => answer,
        // Whoever closes the connection has often said everything before.
        _ = connection => answer.await,
    }
}
