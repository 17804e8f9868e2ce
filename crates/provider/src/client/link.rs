//! Whether the connection is up, and which one it is.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// The state of the connection to a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Whether there is a connection.
    pub is_up: bool,
    /// Counts connections: another number is another connection, and perhaps another process.
    pub epoch: u64,
    /// Counts connections that were lost. One that made way for another, because of new certificates, was not.
    pub losses: u64,
    /// Which channel made it.
    channel: u64,
}

/// Where connections report that they come and go.
#[derive(Clone)]
pub(crate) struct Links(Arc<watch::Sender<Link>>);

impl Links {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Link::default())))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Link> {
        self.0.subscribe()
    }

    pub(crate) fn now(&self) -> Link {
        *self.0.borrow()
    }

    /// A new connection of this channel is up; it is up until the result is dropped.
    pub(crate) fn up<S>(&self, stream: S, channel: u64) -> Connection<S> {
        let mut epoch = 0;
        self.0.send_modify(|link| {
            // A channel makes another one when its last is gone, which may be noticed only later.
            let is_loss = link.is_up && link.channel == channel;
            epoch = link.epoch + 1;
            *link = Link { is_up: true, epoch, losses: link.losses + u64::from(is_loss), channel };
        });
        Connection { stream, links: self.clone(), epoch }
    }
}

/// A byte stream whose end is noticed. HTTP/2 reads all the time, so a peer that hangs up is noticed
/// at once and the stream is dropped.
pub(crate) struct Connection<S> {
    stream: S,
    links: Links,
    epoch: u64,
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        // An older connection that goes after its successor came is no loss.
        self.links.0.send_if_modified(|link| {
            let is_current = link.is_up && link.epoch == self.epoch;
            link.is_up &= !is_current;
            link.losses += u64::from(is_current);
            is_current
        });
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_connection_that_goes_late_is_no_loss() {
        let links = Links::new();
        let old = links.up((), 1);
        let new = links.up((), 2);
        drop(old);
        assert_eq!(links.now(), Link { is_up: true, epoch: 2, losses: 0, channel: 2 });
        drop(new);
        assert_eq!(links.now(), Link { is_up: false, epoch: 2, losses: 1, channel: 2 });
    }

    #[test]
    fn a_channel_that_connects_again_has_lost_its_connection_even_if_that_goes_late() {
        let links = Links::new();
        let old = links.up((), 1);
        let new = links.up((), 1);
        drop(old);
        assert_eq!(links.now(), Link { is_up: true, epoch: 2, losses: 1, channel: 1 });
        drop(new);
        assert_eq!(links.now().losses, 2);
    }
}
