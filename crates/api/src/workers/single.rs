//! One write to one resource: by its worker with a fence, or by a user while nobody has it.

use concert_model::{Encoded, ObjectKey};
use concert_store::{By, Store};
use http::{Response, StatusCode};
use serde_json::Value;

use super::door::Inner;
use super::hands::Ground;
use super::op::Op;
use crate::auth::{Access, User};
use crate::kube::Body;
use crate::rest::call::{IfMatch, tagged};
use crate::rest::error::NOT_PERMITTED;
use crate::rest::{Error, Fields, Wrong};

impl Inner {
    /// `PUT /resources/{id}/status`, `/outputs`, `/conditions/{kind}`. `only` is for who has no fence: under
    /// one, the lease says who may write.
    pub async fn single(
        &self,
        user: &User,
        id: &str,
        part: &str,
        kind: &str,
        body: &Value,
        only: IfMatch<'_>,
    ) -> Result<Response<Body>, Error> {
        let number = number(id)?;
        let mut fields = Fields::of(body)?;
        let fence = fields.integer("fence").and_then(|it| u64::try_from(it).ok());
        let op = match part {
            "status" => Op::status(&mut fields),
            "outputs" => Op::outputs(&mut fields),
            _ => Op::condition(&mut fields, kind.to_owned()),
        };
        fields.check()?;
        let holder = self.parts.board.holder(&number.to_string());
        let key = match &holder {
            Some((_, leased)) => Some(leased.key.clone()),
            // Late, whether or not the resource is still there.
            None if fence.is_some() => {
                return Err(Error::conflict(format!("stale fence: no lease is held on item {number}")));
            }
            None => self.find(number).await?.map(|it| it.key().clone()),
        };
        let key = key.ok_or_else(|| Error::not_found("Resource not found"))?;
        match (fence, holder) {
            (Some(fence), Some((worker, leased))) => {
                self.permit(user, "update", &worker).await?;
                self.act(user, &worker, &leased.item, fence, op).await?;
            }
            (None, Some((worker, _))) => {
                self.permit_update(user, &key).await?;
                return Err(Error::conflict(format!(
                    "worker '{worker}' holds a lease on the resource: give its fence"
                )));
            }
            (_, None) => {
                self.permit_update(user, &key).await?;
                let by = By::actor(user.name.clone()).because("reported");
                let ground = Ground { by, uid: None, claimed: None, retries: None, rules: self.parts.rules };
                self.write_status(&key, &ground, &op, only).await?;
            }
        }
        let object = self.parts.store.get(&key).await?;
        let shown = (self.parts.show)(&object.decode());
        Ok(tagged(StatusCode::OK, &shown, &object.resource_version().0))
    }

    /// The resource with this number.
    pub async fn find(&self, id: u64) -> Result<Option<Encoded>, Error> {
        Ok(self.index.find(&self.parts.store, &self.parts.ids, id).await?)
    }

    async fn permit_update(&self, user: &User, key: &ObjectKey) -> Result<(), Error> {
        let card = self.parts.store.card(&key.kind)?;
        let access = Access::Resource {
            verb: "update",
            group: &key.kind.group,
            resource: &card.kind.plural,
            subresource: "",
            namespace: "",
            name: &key.name,
        };
        let answer = self.parts.gate.authorise(user, &access).await;
        answer.map_err(|refusal| Error::refused(refusal, NOT_PERMITTED))
    }
}

fn number(id: &str) -> Result<u64, Error> {
    id.parse().map_err(|_| {
        Error::fields(vec![Wrong {
            kind: "int_parsing",
            place: vec!["path".into(), "resource_id".into()],
            message: "Input should be a valid integer, unable to parse string as an integer".into(),
            input: id.into(),
            context: None,
        }])
    })
}
