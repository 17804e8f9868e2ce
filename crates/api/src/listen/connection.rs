//! One connection, from its first byte to its last.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_engine::{OnExit, Tasks};
use http::{Request, Response};
use http_body::Body;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::body::Inbound;
use super::pace::{Pace, Paced, Verdict};
use super::quota::Permit;
use super::request::{Peer, Shared};
use super::tls::Certificates;

/// Requests at a time on one HTTP/2 connection: what Go's servers allow.
const STREAMS_MAX: u32 = 250;
/// How often a quiet HTTP/2 connection is asked whether it still lives.
const PING_EVERY: Duration = Duration::from_secs(30);

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: Peer,
    pub(super) permit: Permit,
}

/// Serves one connection. Says why it ended only where that is worth a line.
pub(super) async fn serve<S, F, B>(
    accepted: Accepted,
    tls: Option<&Certificates>,
    shared: &Arc<Shared<S>>,
    tasks: &Tasks,
) where
    S: Fn(Request<Inbound>, Peer) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Accepted { stream, peer, permit: _permit } = accepted;
    // Small answers go out at once.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_http1(stream, peer, shared).await };
    let acceptor = TlsAcceptor::from(tls.current());
    let stream = tokio::select! {
        biased;
        greeted = acceptor.accept(stream) => match greeted {
            Ok(stream) => stream,
            Err(error) => return tracing::debug!(peer = %peer.address, %error, "TLS handshake failed"),
        },
        () = shared.clock.sleep(shared.limits.handshake_time) => {
            return tracing::debug!(peer = %peer.address, "TLS handshake took too long");
        }
        () = shared.shutdown.requested() => return,
    };
    match stream.get_ref().1.alpn_protocol() {
        Some(b"h2") => serve_http2(stream, peer, shared, tasks).await,
        _ => serve_http1(stream, peer, shared).await,
    }
}

async fn serve_http1<S, F, B>(stream: impl ByteStream, peer: Peer, shared: &Arc<Shared<S>>)
where
    S: Fn(Request<Inbound>, Peer) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let pace = Pace::new(shared.clock.clone(), true);
    let service = service_fn(|request| shared.answer(request, peer, &pace));
    let header_bytes = usize::try_from(shared.limits.header_bytes_max).unwrap_or(usize::MAX);
    let connection = http1::Builder::new()
        // `pace` has an eye on the headers.
        .header_read_timeout(None)
        .max_header_size(header_bytes)
        .serve_connection(TokioIo::new(Paced { stream, pace: pace.clone() }), service);
    drive(connection, http1::Connection::graceful_shutdown, peer, &pace, shared).await;
}

async fn serve_http2<S, F, B>(stream: impl ByteStream, peer: Peer, shared: &Arc<Shared<S>>, tasks: &Tasks)
where
    S: Fn(Request<Inbound>, Peer) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let pace = Pace::new(shared.clock.clone(), false);
    let (for_requests, paced) = (shared.clone(), pace.clone());
    let service = service_fn(move |request| {
        let (shared, pace) = (for_requests.clone(), paced.clone());
        async move { shared.answer(request, peer, &pace).await }
    });
    let connection = http2::Builder::new(Spawner(tasks.clone()))
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(shared.limits.header_bytes_max)
        .serve_connection(TokioIo::new(Paced { stream, pace: pace.clone() }), service);
    drive(connection, http2::Connection::graceful_shutdown, peer, &pace, shared).await;
}

/// Lets a connection run until it ends, is in the way, or the server stops.
async fn drive<C, S>(
    connection: C,
    finish: impl Fn(Pin<&mut C>),
    peer: Peer,
    pace: &Pace,
    shared: &Arc<Shared<S>>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = pin!(connection);
    let mut stop = pin!(shared.shutdown.requested());
    let (mut is_stopping, mut is_parting) = (false, false);
    loop {
        let wait = match pace.verdict(&shared.limits) {
            Verdict::Fine(wait) => wait,
            Verdict::Idle if !is_parting => {
                is_parting = true;
                finish(connection.as_mut());
                shared.limits.header_time
            }
            Verdict::Idle => return,
            Verdict::Slow(why) => return tracing::debug!(peer = %peer.address, why, "connection closed"),
        };
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(peer = %peer.address, %error, "connection broke");
                }
                return;
            }
            () = stop.as_mut(), if !is_stopping => {
                is_stopping = true;
                finish(connection.as_mut());
            }
            () = shared.clock.sleep(wait) => {}
        }
    }
}

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

/// Runs the requests of HTTP/2 connections as tasks that are owned and joined like all others.
#[derive(Clone)]
struct Spawner(Tasks);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, task: F) {
        self.0.spawn("http2 stream", OnExit::Log, task);
    }
}
