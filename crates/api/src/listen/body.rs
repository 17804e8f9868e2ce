//! Bodies: what comes in has an end, what goes out holds its place until it is sent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use concert_store::Clock;
use futures_util::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::pace::Turn;
use super::quota::Permit;

/// Why a body could not be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It is larger than this: answer 413.
    #[error("Request entity too large: limit is {max}")]
    TooLarge {
        /// Bytes allowed.
        max: u64,
    },
    /// It did not come in time: answer 408.
    #[error("the body did not come in time")]
    TooSlow,
    /// The client hung up or sent nonsense.
    #[error("the body broke off")]
    Broken(#[source] hyper::Error),
}

/// The body of a request: at most so many bytes, in at most so much time.
pub struct Inbound {
    body: Incoming,
    left: u64,
    max: u64,
    time: Duration,
    clock: Arc<dyn Clock>,
    /// Started when the body is first waited for.
    deadline: Option<BoxFuture<'static, ()>>,
}

impl Inbound {
    pub(super) fn new(body: Incoming, max: u64, time: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { body, left: max, max, time, clock, deadline: None }
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let frame = match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let deadline = this.deadline.get_or_insert_with(|| this.clock.sleep(this.time));
                ready!(deadline.as_mut().poll(context));
                return Poll::Ready(Some(Err(BodyError::TooSlow)));
            }
        };
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(BodyError::Broken)?;
            let bytes = frame.data_ref().map_or(0, |data| data.remaining() as u64);
            this.left = this.left.checked_sub(bytes).ok_or(BodyError::TooLarge { max: this.max })?;
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What a request holds until its answer is sent.
pub(super) struct Hold {
    pub(super) _turn: Turn,
    pub(super) _permit: Permit,
}

/// The body of an answer.
pub struct Outbound<B> {
    content: Content<B>,
    _hold: Option<Hold>,
    /// Ends a watch in order when the server stops; it would not end by itself.
    until: Option<BoxFuture<'static, ()>>,
}

enum Content<B> {
    Service(Pin<Box<B>>),
    Own(Option<Bytes>),
}

impl<B> Outbound<B> {
    pub(super) fn service(body: B, hold: Hold, until: Option<BoxFuture<'static, ()>>) -> Self {
        Self { content: Content::Service(Box::pin(body)), _hold: Some(hold), until }
    }

    pub(super) fn own(text: Bytes) -> Self {
        Self { content: Content::Own(Some(text)), _hold: None, until: None }
    }
}

impl<B: Body<Data = Bytes>> Body for Outbound<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        match &mut this.content {
            Content::Own(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Content::Service(body) => match body.as_mut().poll_frame(context) {
                Poll::Pending => match &mut this.until {
                    Some(until) => {
                        ready!(until.as_mut().poll(context));
                        this.content = Content::Own(None);
                        Poll::Ready(None)
                    }
                    None => Poll::Pending,
                },
                ready => ready,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Own(text) => text.is_none(),
            Content::Service(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, |it| it.len() as u64)),
            Content::Service(body) => body.size_hint(),
        }
    }
}
