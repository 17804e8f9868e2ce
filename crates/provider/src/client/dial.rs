//! Dialling: TCP or a unix socket, TLS with the certificates of the moment, and back-off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint as Transport};

use super::endpoint::{Endpoint, Place, Target};
use super::link::{Connection, Links};
use crate::error::{Class, Error};
use crate::tls::{self, Files};

/// How old the knowledge of the certificate files may be.
const FILES_FRESH: Duration = Duration::from_secs(2);

/// First pause after a failed attempt.
const BACKOFF_MIN: Duration = Duration::from_millis(100);

/// Pings of HTTP/2 while calls are under way: as often as the common servers allow by default.
const PING_INTERVAL: Duration = Duration::from_secs(310);

/// Probes of TCP without an answer that end a connection.
const PROBES: u32 = 3;

/// Makes channels, and connections for them.
pub(crate) struct Dialer {
    endpoint: Endpoint,
    pub(crate) target: Target,
    pub(crate) links: Links,
    state: Mutex<State>,
    failures: Arc<Mutex<Failures>>,
}

struct State {
    channel: Option<Channel>,
    /// How many were made.
    channels: u64,
    files: Files,
    checked: Option<Instant>,
}

/// What the last attempts came to.
#[derive(Default)]
struct Failures {
    pause: Duration,
    until: Option<Instant>,
    last: String,
}

impl Dialer {
    pub(crate) fn new(endpoint: Endpoint) -> Result<Self, Error> {
        let target = endpoint.target()?;
        if target.is_tls {
            endpoint.tls.check()?;
        }
        Ok(Self {
            endpoint,
            target,
            links: Links::new(),
            state: Mutex::new(State { channel: None, channels: 0, files: Files::default(), checked: None }),
            failures: Arc::default(),
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The channel to use now: another one once the certificates changed. Calls under way on the old
    /// one finish there.
    pub(crate) fn channel(&self) -> Result<Channel, Error> {
        let mut state = self.state.lock().expect("nobody panics with the channel in hand");
        let is_fresh = state.checked.is_some_and(|at| now() < at + FILES_FRESH);
        if let Some(channel) = state.channel.as_ref().filter(|_| is_fresh || !self.target.is_tls) {
            return Ok(channel.clone());
        }
        let files = if self.target.is_tls { self.endpoint.tls.read()? } else { Files::default() };
        state.checked = Some(now());
        if let Some(channel) = state.channel.as_ref().filter(|_| state.files == files) {
            return Ok(channel.clone());
        }
        let number = state.channels + 1;
        let channel = self.make(&files, number, state.channel.clone())?;
        (state.files, state.channels, state.channel) = (files, number, Some(channel.clone()));
        Ok(channel)
    }

    fn make(&self, files: &Files, number: u64, before: Option<Channel>) -> Result<Channel, Error> {
        let tls =
            if self.target.is_tls { Some(TlsConnector::from(tls::client_config(files)?)) } else { None };
        let transport = Transport::from_shared(self.target.uri())
            .map_err(|e| {
                Error::new(Class::Terminal, format!("{:?} is no endpoint: {e}", self.endpoint.address))
            })?
            .http2_keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(Duration::from_secs(20))
            .http2_adaptive_window(true);
        let attempt = Attempt {
            target: self.target.clone(),
            tls,
            links: self.links.clone(),
            timeout: self.endpoint.connect_timeout,
            keep_alive: self.endpoint.keep_alive,
            backoff_max: self.endpoint.backoff_max,
            failures: Arc::clone(&self.failures),
            number,
            before: Mutex::new(before),
        };
        let attempt = Arc::new(attempt);
        Ok(transport.connect_with_connector_lazy(tower::service_fn(move |_| {
            let attempt = Arc::clone(&attempt);
            async move { attempt.run().await }
        })))
    }
}

/// Everything one attempt to connect needs.
struct Attempt {
    target: Target,
    tls: Option<TlsConnector>,
    links: Links,
    timeout: Duration,
    keep_alive: Duration,
    backoff_max: Duration,
    failures: Arc<Mutex<Failures>>,
    /// Of the channel that it is for.
    number: u64,
    /// The channel before it, kept until it is known whether this one connects: its connection would be gone
    /// before there is another, and taken for lost.
    before: Mutex<Option<Channel>>,
}

impl Attempt {
    /// Connects, unless it is too soon after the last failure: then that is the answer.
    async fn run(&self) -> Result<TokioIo<Connection<Box<dyn ByteStream>>>, std::io::Error> {
        if let Some(last) = self.too_soon() {
            return Err(std::io::Error::other(last));
        }
        let result = match tokio::time::timeout(self.timeout, self.connect()).await {
            Ok(result) => result,
            Err(_) => Err(std::io::Error::other(format!("no connection within {:?}", self.timeout))),
        };
        let mut failures = self.failures.lock().expect("nobody panics with the failures in hand");
        let result = result.map(|stream| self.links.up(stream, self.number));
        // If this failed, what is lost with it is what everybody should hear of.
        drop(self.before.lock().expect("nobody panics with the channel in hand").take());
        match result {
            Ok(connection) => {
                *failures = Failures::default();
                Ok(TokioIo::new(connection))
            }
            Err(e) => {
                failures.pause = (failures.pause * 2).clamp(BACKOFF_MIN, self.backoff_max.max(BACKOFF_MIN));
                failures.until = Some(now() + failures.pause);
                failures.last = e.to_string();
                Err(e)
            }
        }
    }

    fn too_soon(&self) -> Option<String> {
        let failures = self.failures.lock().expect("nobody panics with the failures in hand");
        failures.until.filter(|until| now() < *until).map(|_| failures.last.clone())
    }

    async fn connect(&self) -> std::io::Result<Box<dyn ByteStream>> {
        let (host, port) = match &self.target.place {
            Place::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            Place::Tcp { host, port } => (host.as_str(), *port),
        };
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        notice_loss(&stream, self.keep_alive)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

/// Has the operating system end a connection whose peer is gone without a word.
fn notice_loss(stream: &TcpStream, keep_alive: Duration) -> std::io::Result<()> {
    let interval = (keep_alive / 2).max(Duration::from_secs(1));
    let probes = socket2::TcpKeepalive::new().with_time(keep_alive).with_interval(interval);
    let socket = socket2::SockRef::from(stream);
    socket.set_tcp_keepalive(&probes.with_retries(PROBES))?;
    // Nothing is probed while something that was sent waits to be acknowledged: then this long, and else many
    // minutes.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(keep_alive + interval * PROBES))?;
    Ok(())
}

/// What HTTP/2 needs of a connection.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

#[expect(
    clippy::disallowed_methods,
    reason = "sockets live in real time; nothing that is stored depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_to_who_is_gone_ends_the_connection_as_soon_as_probes_would() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        notice_loss(&stream, Duration::from_secs(10)).unwrap();
        let socket = socket2::SockRef::from(&stream);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(25)));
        assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(10));
    }
}
