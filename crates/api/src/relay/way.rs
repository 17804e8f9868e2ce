//! Questions that every replica can answer, and one of them better.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_store::Clock;
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use serde_json::Value;

use super::client::{NoAnswer, pass_on};
use super::{Place, RELAYED, Whose};

/// How long the one who knows better may take: what is known here is not bad either.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the replica that knows better. Cheap to clone.
#[derive(Clone)]
pub struct Way {
    whose: Arc<dyn Whose>,
    clock: Arc<dyn Clock>,
}

impl Way {
    /// To wherever `whose` says.
    pub fn new(whose: Arc<dyn Whose>, clock: Arc<dyn Clock>) -> Self {
        Self { whose, clock }
    }

    /// What that one answers to this question, asked by the same person. None if it is this replica, or
    /// does not answer, or refuses: then what is known here must do.
    pub async fn ask(&self, uri: &Uri, headers: &HeaderMap) -> Option<Value> {
        if headers.contains_key(RELAYED) {
            return None;
        }
        let Place::There(peer) = self.whose.place().await else { return None };
        let (mut head, ()) = Request::get(uri.clone()).body(()).ok()?.into_parts();
        head.headers = headers.clone();
        head.headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let nothing = Bytes::new();
        let answer = tokio::select! {
            answer = pass_on(&peer, &head, &nothing) => answer,
            () = self.clock.sleep(PATIENCE) => Err(NoAnswer::late()),
        };
        match answer {
            Ok(answer) if answer.status() == StatusCode::OK => {
                let bytes = answer.into_body().collect().await.ok()?.to_bytes();
                serde_json::from_slice(&bytes).ok()
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(peer = %peer.url, %error, "cannot ask the replica that knows better");
                None
            }
        }
    }
}
