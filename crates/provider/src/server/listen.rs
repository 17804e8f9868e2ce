//! Accepting connections: sockets, TLS with the certificates of the moment, and who is there.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::Connected;

use super::peer::Peer;
use crate::contract::Result;
use crate::error::{Class, Error};
use crate::tls::{self, Files, Tls};

/// How long a TLS handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Most TLS handshakes at a time; more wait in the kernel's queue.
const HANDSHAKES_MAX: usize = 256;

/// A socket that is bound.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Binds `host:port`, `:port` or `unix:PATH`.
    pub(crate) async fn bind(address: &str) -> Result<Self> {
        let failed = |e: io::Error| Error::new(Class::Terminal, format!("cannot listen on {address}: {e}"));
        if let Some(path) = address.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            // What a dead process left behind would be in the way for ever. Sockets only.
            if let Ok(left) = std::fs::metadata(path) {
                use std::os::unix::fs::FileTypeExt;
                if left.file_type().is_socket() && std::os::unix::net::UnixStream::connect(path).is_err() {
                    std::fs::remove_file(path).map_err(failed)?;
                }
            }
            return Ok(Self::Unix(UnixListener::bind(path).map_err(failed)?));
        }
        let listener = match address.strip_prefix(':') {
            Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
                Ok(listener) => Ok(listener),
                Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
            },
            None => TcpListener::bind(address).await,
        };
        Ok(Self::Tcp(listener.map_err(failed)?))
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    async fn accept(&self) -> io::Result<(Raw, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((Raw::Tcp(stream), Some(from)))
            }
            Self::Unix(listener) => Ok((Raw::Unix(Box::new(listener.accept().await?.0)), None)),
        }
    }
}

enum Raw {
    Tcp(TcpStream),
    Unix(Box<dyn ByteStream>),
}

/// Accepts until the receiver is gone. A slow or hostile handshake holds up nobody else.
pub(crate) async fn accept(listener: Listener, tls: Option<Tls>, to: mpsc::Sender<io::Result<Accepted>>) {
    let mut certificates = Certificates::default();
    let mut handshakes = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if handshakes.len() < HANDSHAKES_MAX => match accepted {
                // A peer that hung up at once, or no file descriptors left: both pass.
                Err(e) => {
                    tracing::warn!(error = %e, "accept failed");
                    tokio::task::yield_now().await;
                }
                Ok((raw, from)) => match acceptor(tls.as_ref(), &mut certificates) {
                    Ok(acceptor) => handshakes.push(greet(raw, from, acceptor)),
                    Err(e) => tracing::error!(error = %e, "connection refused: certificates cannot be used"),
                },
            },
            Some(greeted) = handshakes.next() => match greeted {
                Ok(accepted) => if to.send(Ok(accepted)).await.is_err() { return },
                Err(e) => tracing::info!(error = %e, "TLS handshake failed"),
            },
            () = to.closed() => return,
        }
    }
}

#[derive(Default)]
struct Certificates {
    files: Files,
    acceptor: Option<TlsAcceptor>,
}

/// The files are read for each connection: connections are few and live long.
fn acceptor(tls: Option<&Tls>, last: &mut Certificates) -> Result<Option<TlsAcceptor>> {
    let Some(tls) = tls else { return Ok(None) };
    let files = tls.read()?;
    if last.acceptor.is_none() || files != last.files {
        let acceptor = TlsAcceptor::from(tls::server_config(&files)?);
        *last = Certificates { files, acceptor: Some(acceptor) };
    }
    Ok(last.acceptor.clone())
}

async fn greet(raw: Raw, from: Option<SocketAddr>, acceptor: Option<TlsAcceptor>) -> io::Result<Accepted> {
    let (stream, peer): (Box<dyn ByteStream>, Peer) = match (raw, acceptor) {
        (Raw::Unix(stream), _) => (stream, Peer::plain(None)),
        (Raw::Tcp(stream), None) => (Box::new(stream), Peer::plain(from)),
        (Raw::Tcp(stream), Some(acceptor)) => {
            let stream = tokio::time::timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await??;
            let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
            let peer = Peer::verified(certificate);
            (Box::new(stream), peer)
        }
    };
    Ok(Accepted { stream, peer: Arc::new(peer) })
}

/// What HTTP/2 needs of a connection.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

/// A connection and who is at its other end.
pub(crate) struct Accepted {
    stream: Box<dyn ByteStream>,
    peer: Arc<Peer>,
}

impl Connected for Accepted {
    type ConnectInfo = Arc<Peer>;

    fn connect_info(&self) -> Arc<Peer> {
        Arc::clone(&self.peer)
    }
}

impl AsyncRead for Accepted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Accepted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
