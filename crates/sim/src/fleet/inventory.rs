//! The inventory as hosts meet it: its shipped door, through bad weather.
//!
//! A door is opened anew with each process, over a store that outlives it: what it knows only in memory is
//! forgotten whenever a process begins. In some lives that store is not the one of the mothership.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_api::audit::Audit;
use concert_api::auth::{Gate, Keys};
use concert_api::inventory::{self, Door, Minter, Minting, Wanted};
use concert_api::kube::{Api, Limits};
use concert_api::rest::{self, Ids, Node};
use concert_engine::workers::Claimed;
use concert_model::inventory::Lease;
use concert_model::{Timestamp, Uid};
use concert_store::{Chance, Clock, Error};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;

use crate::faults::Remote;

/// Longer than all naps of a host: it is the claim that must shut it out, and not the time.
const TOKEN: Duration = Duration::from_secs(3600);

/// The inventory of one process.
pub struct Inventory {
    api: Api,
    minter: Minter,
    remote: Arc<Remote>,
}

/// Why a host got no answer that is of use to it.
pub enum Refused {
    /// Somebody else has the item by now.
    Late,
    /// Anything else.
    Otherwise,
}

impl From<Error> for Refused {
    fn from(_: Error) -> Self {
        Self::Otherwise
    }
}

impl Inventory {
    /// Opens the door at the other end of `remote`.
    pub fn open(remote: Arc<Remote>, clock: Arc<dyn Clock>, chance: Chance) -> Self {
        let (store, gate, audit) = (remote.store().clone(), Gate::open(), Audit::off());
        let keys = Keys::new(b"the same in every process", TOKEN);
        let door = Door::new(inventory::Parts {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            keys,
            audit: audit.clone(),
        });
        let minter = door.minter("");
        let started_at = Timestamp::UNIX_EPOCH;
        let rest = rest::Parts {
            ids: Ids::new(store.clone()),
            node: Node { id: "sim".into(), hostname: "sim".into(), pid: 1, started_at },
            company: None,
            webhooks: Arc::new(()),
            admissions: vec![Arc::new(door.admit())],
            annexes: vec![Arc::new(door)],
        };
        let (extensions, limits) = (Arc::new(()), Limits::default());
        let parts = concert_api::kube::Parts { store, gate, clock, chance, extensions, audit, limits };
        Self { api: Api::with_rest(parts, rest), minter, remote }
    }

    /// A token for a claim; none if there is no such entry any more, or no answer.
    pub async fn mint(&self, reconciler: &str, item: &Claimed, has_lease: bool) -> Option<String> {
        let uid = item.context["item"].as_str().unwrap_or_default();
        let lease = Lease { item: Uid(uid.into()), fence: item.fence };
        let (entry, reconciler) = (item.key.name.to_string(), reconciler.to_owned());
        let wanted = [Wanted { entry, reconciler, lease: has_lease.then_some(lease) }];
        let minted = self.remote.carry(async { Ok(self.minter.mint(&wanted, TOKEN).await.ok()) }).await;
        let minted = minted.ok().flatten()?;
        minted.into_iter().next().flatten().map(|it| it.token)
    }

    /// Asks something of the inventory.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refused> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("/inventory/v1/entries/{path}"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| Refused::Otherwise)?;
        let (code, bytes) = self.remote.carry(self.answer(request)).await?;
        match code {
            StatusCode::OK => serde_json::from_slice(&bytes).map_err(|_| Refused::Otherwise),
            StatusCode::CONFLICT => Err(Refused::Late),
            _ => Err(Refused::Otherwise),
        }
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes), Error> {
        let answer = self.api.handle(request).await;
        let code = answer.status();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|_| Error::unavailable("the answer broke off"))?;
        Ok((code, body.to_bytes()))
    }
}
