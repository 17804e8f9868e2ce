//! Does what a worker's op says, under its lease.

use concert_engine::workers::Leased;
use concert_model::no8s::{self, Moment, Resource, Rules};
use concert_model::{Object, ObjectKey, name};
use concert_store::{By, Error as StoreError, Store};
use serde_json::{Value, json};

use super::door::{Inner, stale};
use super::op::Op;
use crate::auth::User;
use crate::rest::Error;
use crate::rest::call::IfMatch;

/// Tries over what others write: they do so seldom.
const WRITES_MAX: usize = 16;

/// What a write of a status is based on.
pub(super) struct Ground {
    pub by: By,
    /// The incarnation; whichever is there if none.
    pub uid: Option<concert_model::Uid>,
    /// The generation that the worker was given; the one there is if none.
    pub claimed: Option<i64>,
    /// Failures in a row that the worker was given it with; those there are at the first look if none.
    pub retries: Option<u64>,
    pub rules: Rules,
}

impl Inner {
    /// Does `op` to an item that `worker` was lent under `fence`.
    pub async fn act(
        &self,
        user: &User,
        worker: &str,
        item: &str,
        fence: u64,
        op: Op,
    ) -> Result<Value, Error> {
        let board = &self.parts.board;
        if let Op::Result(report) = op {
            board.finish(worker, item, fence, report).await.map_err(|it| stale(&it))?;
            return Ok(json!({}));
        }
        let leased = board.check(worker, item, fence).map_err(|it| stale(&it))?;
        let ground = self.ground(user, worker, &leased);
        match op {
            Op::AddFinalizer(finalizer) => {
                if name::check_qualified(&finalizer).is_err() {
                    return Err(Error::unprocessable(format!("'{finalizer}' cannot be a finalizer")));
                }
                self.finalizers(&leased, &ground, |object| object.add_finalizer(&finalizer)).await
            }
            Op::RemoveFinalizer(finalizer) => {
                self.finalizers(&leased, &ground, |object| object.remove_finalizer(&finalizer)).await
            }
            Op::Release => {
                board.release(worker, item, fence).map_err(|it| stale(&it))?;
                Ok(json!({}))
            }
            Op::GetFinalizers => self.finalizers(&leased, &ground, |_| false).await,
            Op::HardDelete => {
                let left = self.read(&leased.key, &ground).await?;
                Ok(json!({"deleted": left.is_none()}))
            }
            op => {
                let said = match &op {
                    Op::Status(report) => Some(report.phase),
                    _ => None,
                };
                self.write_status(&leased.key, &ground, &op, IfMatch::default()).await?;
                if let Some(phase) = said {
                    board.note(worker, item, fence, phase.as_str()).map_err(|it| stale(&it))?;
                }
                Ok(json!({}))
            }
        }
    }

    fn ground(&self, user: &User, worker: &str, leased: &Leased) -> Ground {
        let rules = self.parts.rules;
        Ground {
            by: By::actor(user.name.clone()).because("reported").fenced(leased.fence.clone()),
            uid: leased.object.uid(),
            claimed: Some(leased.object.generation()),
            retries: Some(Resource(&leased.object).retry_count()),
            rules: Rules { drift: self.parts.board.terms(worker).resync.unwrap_or(rules.drift), ..rules },
        }
    }

    /// Writes a status over whatever others write meanwhile, as far as `only` lets it.
    pub async fn write_status(
        &self,
        key: &ObjectKey,
        ground: &Ground,
        op: &Op,
        only: IfMatch<'_>,
    ) -> Result<Object, Error> {
        let draw = self.parts.chance.fraction();
        let mut known = ground.retries;
        for _ in 0..WRITES_MAX {
            let Some(mut object) = self.read(key, ground).await? else {
                return Err(Error::not_found("Resource not found"));
            };
            if let Some(version) = object.resource_version() {
                only.check(&version.0)?;
            }
            let claimed = ground.claimed.unwrap_or(object.generation());
            // Who loses to another who says the same has not failed once more.
            let retries = *known.get_or_insert_with(|| Resource(&object).retry_count());
            let moment = Moment { now: self.parts.clock.now(), claimed, retries, rules: ground.rules, draw };
            let status = status(&object, op, &moment)?;
            if *object.status() == status {
                return Ok(object);
            }
            object.set("status", status);
            match self.parts.store.update_status(object, &ground.by).await {
                Ok(written) => return Ok(written.decode()),
                Err(StoreError::Conflict { .. }) => {}
                Err(StoreError::NotFound { .. }) => return Err(Error::not_found("Resource not found")),
                Err(error) => return Err(fenced(error)),
            }
        }
        Err(Error::conflict("the object was changed by somebody else meanwhile"))
    }

    /// Changes finalizers and says which are left; none of an object that is gone.
    async fn finalizers(
        &self,
        leased: &Leased,
        ground: &Ground,
        change: impl Fn(&mut Object) -> bool,
    ) -> Result<Value, Error> {
        for _ in 0..WRITES_MAX {
            let Some(mut object) = self.read(&leased.key, ground).await? else {
                return Ok(json!({"finalizers": []}));
            };
            if !change(&mut object) {
                return Ok(json!({"finalizers": object.finalizers()}));
            }
            match self.parts.store.update(object, &ground.by).await {
                Ok(written) => return Ok(json!({"finalizers": written.decode().finalizers()})),
                Err(StoreError::Conflict { .. }) => {}
                Err(StoreError::NotFound { .. }) => return Ok(json!({"finalizers": []})),
                Err(error) => return Err(fenced(error)),
            }
        }
        Err(Error::conflict("the object was changed by somebody else meanwhile"))
    }

    async fn read(&self, key: &ObjectKey, ground: &Ground) -> Result<Option<Object>, Error> {
        match self.parts.store.get(key).await {
            Ok(object) => {
                let is_it = ground.uid.as_ref().is_none_or(|uid| object.head().uid == *uid);
                Ok(is_it.then(|| object.decode()))
            }
            Err(StoreError::NotFound { .. } | StoreError::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

fn status(object: &Object, op: &Op, moment: &Moment) -> Result<Value, Error> {
    match op {
        Op::Status(report) => Ok(no8s::reported(object, report, moment)),
        Op::Outputs(outputs) => Ok(no8s::with_outputs(object, outputs.clone())),
        Op::Condition { kind, status, reason, message, observed } => {
            let set = no8s::conditioned(object, kind, status, (reason, message), *observed, moment.now);
            set.map_err(|bad| Error::unprocessable(bad.to_string()))
        }
        _ => Ok(object.status().clone()),
    }
}

/// The store found the fence too old: the same to a worker as if the board had.
fn fenced(error: StoreError) -> Error {
    match error {
        StoreError::Fenced { .. } => Error::conflict(format!("stale fence: {error}")),
        error => error.into(),
    }
}
