//! The time that one call has left.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::status::{self, Verb};
use crate::contract::{Call, Result};

/// When a call must be over, across all that is done for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    at: Instant,
}

impl Deadline {
    #[expect(clippy::disallowed_methods, reason = "a deadline of a network call is real time")]
    pub(crate) fn of(call: &Call) -> Self {
        // Far beyond any call, and still a time that can be added to.
        let timeout = call.timeout.min(Duration::from_secs(24 * 3600));
        Self { at: Instant::now() + timeout }
    }

    #[expect(clippy::disallowed_methods, reason = "a deadline of a network call is real time")]
    fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// A request that tells the provider how long we wait.
    pub(crate) fn request<T>(self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(self.left());
        request
    }

    /// Waits for an answer for the time that is left.
    ///
    /// The call goes into a box at once: every future around it would be twice as large as the one within, and
    /// that of one observe was 144 KB.
    pub(crate) fn answer<T>(
        self,
        verb: Verb,
        answer: impl Future<Output = Result<Response<T>, Status>>,
    ) -> impl Future<Output = Result<T>> {
        let answer = Box::pin(answer);
        let told = async move { answer.await.map_err(|status| status::error(&status, verb)) };
        async move { self.within(verb, told).await.map(Response::into_inner) }
    }

    /// Waits for anything for the time that is left.
    pub(crate) async fn within<T>(self, verb: Verb, work: impl Future<Output = Result<T>>) -> Result<T> {
        match tokio::time::timeout_at(self.at, work).await {
            Ok(result) => result,
            Err(_) => Err(status::late(verb)),
        }
    }

    /// The later of two.
    pub(crate) fn or_later(self, other: Self) -> Self {
        if other.at > self.at { other } else { self }
    }
}
