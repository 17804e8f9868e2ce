//! Workers come, are shown, and go.

use std::collections::BTreeSet;

use concert_engine::workers::HostView;
use concert_model::no8s::names;
use concert_model::{GroupKind, Object, ObjectKey, name, time};
use concert_store::{By, Delete, Error as StoreError, PageRequest, Query, Store};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::door::{Inner, answer};
use super::{component, entry};
use crate::auth::User;
use crate::inventory::ensure;
use crate::kube::Body;
use crate::rest::{Error, Fields};

/// Tries at a registration: nobody but us writes the status of a worker meanwhile.
const TRIES_MAX: usize = 8;

/// Fields of a registration and of the object: with the same meaning, in the words of each.
const NUMBERS: [(&str, &str, i64); 4] = [
    ("concurrency", "concurrency", 100_000),
    ("resync_seconds", "resyncSeconds", 31_536_000),
    ("lease_seconds", "leaseSeconds", 86_400),
    ("deadline_seconds", "deadlineSeconds", 604_800),
];

fn kind() -> GroupKind {
    GroupKind::new("concert.dev", "Worker")
}

fn key(worker: &str) -> ObjectKey {
    ObjectKey::cluster(kind(), names::worker_object(worker))
}

/// What the worker calls itself.
pub(super) fn called(worker: &Object) -> &str {
    worker.spec()["name"].as_str().filter(|it| !it.is_empty()).unwrap_or(worker.name())
}

impl Inner {
    pub async fn register(&self, user: &User, body: &Value) -> Result<Response<Body>, Error> {
        let mut fields = Fields::of(body)?;
        let worker = fields.bounded_text("name", 1, 63);
        // Without a '/': it is part of the finalizer and of the path of whoever is called so.
        if !fields.is_noted("name") && name::check_label_value(worker).is_err() {
            fields.refuse("name", "name must consist of letters, digits, '-', '_' or '.'");
        }
        let host = fields.text("host_id");
        let mut spec = spec(&mut fields, worker);
        let grant = component::read(&mut fields, &mut spec);
        fields.check()?;
        let turn = self.registering.lock().await;
        let others = self.workers().await?;
        let known = others.iter().find(|it| called(it) == worker);
        self.permit(user, if known.is_some() { "update" } else { "create" }, worker).await?;
        check_claims(worker, &spec, &others)?;
        let watched = component::watched(&spec);
        match &grant {
            Some(grant) => {
                entry::check_reading(worker, grant, &watched)?;
                ensure(&*self.parts.fleet.inventory, &self.parts.gate, user, worker, grant).await?;
            }
            None => self.permit_reading(worker, &watched).await?,
        }
        let view = self.parts.board.view(worker);
        let left = known.map_or_else(Vec::new, |it| left_behind(it.spec(), &spec, host, &view.hosts));
        let (object, code) = self.store_worker(user, worker, known, spec).await?;
        drop(turn);
        if !left.is_empty() {
            tracing::warn!(
                worker,
                hosts = ?left,
                "a worker handles something else from now on, and other hosts of it are still there"
            );
        }
        if let Some(host) = host {
            self.parts.board.touch(worker, &host.into());
        }
        Ok(answer(code, &self.shown(&object)))
    }

    pub async fn list(&self, user: &User) -> Result<Response<Body>, Error> {
        self.permit(user, "list", "").await?;
        let all: Vec<Value> = self.workers().await?.iter().map(|it| self.shown(it)).collect();
        Ok(answer(StatusCode::OK, &json!(all)))
    }

    pub async fn get(&self, user: &User, worker: &str) -> Result<Response<Body>, Error> {
        self.permit(user, "get", worker).await?;
        Ok(answer(StatusCode::OK, &self.shown(&self.worker(worker).await?)))
    }

    pub async fn deregister(&self, user: &User, worker: &str) -> Result<Response<Body>, Error> {
        self.permit(user, "delete", worker).await?;
        self.worker(worker).await?;
        let by = By::actor(user.name.clone()).because("deregistered");
        self.parts.store.delete(&key(worker), &Delete::default(), &by).await?;
        Ok(crate::kube::answer::whole(StatusCode::NO_CONTENT, "application/json", ""))
    }

    /// The object of a worker that is registered.
    pub async fn worker(&self, worker: &str) -> Result<Object, Error> {
        match self.parts.store.get(&key(worker)).await {
            Ok(object) => Ok(object.decode()),
            Err(StoreError::NotFound { .. }) => Err(Error::not_found("Worker not found")),
            Err(error) => Err(error.into()),
        }
    }

    async fn workers(&self) -> Result<Vec<Object>, Error> {
        let page = self.parts.store.list(&Query::all(kind()), &PageRequest::whole()).await?;
        Ok(page.items.iter().map(concert_model::Encoded::decode).collect())
    }

    async fn store_worker(
        &self,
        user: &User,
        worker: &str,
        known: Option<&Object>,
        spec: Value,
    ) -> Result<(Object, StatusCode), Error> {
        let by = By::actor(user.name.clone()).because("registered");
        let store = &self.parts.store;
        let Some(known) = known else {
            let version = kind().at_version("v1alpha1");
            let mut object = Object::new(&version, "", &names::worker_object(worker));
            object.set("spec", spec);
            return Ok((store.create(object, &by).await?.decode(), StatusCode::CREATED));
        };
        let mut object = known.clone();
        for _ in 0..TRIES_MAX {
            object.set("spec", spec.clone());
            match store.update(object, &by).await {
                Err(StoreError::Conflict { .. }) => object = self.worker(worker).await?,
                written => return Ok((written?.decode(), StatusCode::OK)),
            }
        }
        Err(Error::conflict("the worker is being changed by somebody else"))
    }

    fn shown(&self, worker: &Object) -> Value {
        let view = self.parts.board.view(called(worker));
        let host = |it: &HostView| {
            let last_seen = time::micros(it.last_seen);
            json!({"host_id": it.host, "last_seen": last_seen, "leases": it.leases, "status": it.phase()})
        };
        let hosts: Vec<Value> = view.hosts.iter().map(host).collect();
        let mut shown = json!({
            "name": called(worker),
            "handles": handles_shown(worker.spec()),
            "status": view.phase(),
            "hosts": hosts,
            "running": view.leases,
            "waiting": (self.parts.waiting)(called(worker)),
        });
        for (field, stored, _) in NUMBERS {
            shown[field] = worker.spec()[stored].clone();
        }
        component::show(worker.spec(), &mut shown);
        shown
    }
}

fn spec(fields: &mut Fields<'_>, worker: &str) -> Value {
    let mut spec = json!({"name": worker, "handles": handles(fields)});
    for (field, stored, max) in NUMBERS {
        if let Some(number) = fields.bounded_integer(field, 1, max) {
            spec[stored] = json!(number);
        }
    }
    if let Some(version) = fields.text("version") {
        spec["version"] = json!(version);
    }
    spec
}

fn handles(fields: &mut Fields<'_>) -> Vec<Value> {
    let Some(list) = fields.list("handles") else {
        fields.refuse("handles", "handles must be a list of resource types or actions");
        return Vec::new();
    };
    let mut handles = Vec::new();
    for handle in list {
        let text = |field: &str| handle[field].as_str().filter(|it| !it.is_empty());
        let stored = match (text("resource_type"), text("action")) {
            (Some(name), None) if names::check_type_name(name).is_ok() => json!({"resourceType": name}),
            (None, Some(action)) if name::check_label_value(action).is_ok() => json!({"action": action}),
            (None, None) if text("kind").is_some_and(|it| name::check_label(it).is_ok()) => {
                json!({"entryKind": handle["kind"]})
            }
            _ => {
                fields.refuse("handles", "each must have a resource_type, an action, or a kind of entries");
                return Vec::new();
            }
        };
        if !matches!(handle["version"], Value::Null | Value::String(_)) {
            fields.refuse("handles", "the version of each must be a text");
            return Vec::new();
        }
        let mut stored = stored;
        if let Some(version) = text("version") {
            stored["version"] = json!(version);
        }
        handles.push(stored);
    }
    handles
}

fn handles_shown(spec: &Value) -> Vec<Value> {
    let list = spec["handles"].as_array().map_or(&[][..], Vec::as_slice);
    let shown = |it: &Value| match (it["action"].as_str(), it["entryKind"].as_str()) {
        (Some(action), _) => json!({"action": action}),
        (None, Some(kind)) => json!({"kind": kind}),
        (None, None) => json!({"resource_type": it["resourceType"], "version": it["version"]}),
    };
    list.iter().map(shown).collect()
}

/// The other hosts of a worker that are there while it comes to handle something else. They are lent what
/// they may know nothing of, and what only they know is lent to nobody.
fn left_behind<'a>(before: &Value, after: &Value, host: Option<&str>, hosts: &'a [HostView]) -> Vec<&'a str> {
    let handles = |spec: &Value| -> BTreeSet<String> {
        spec["handles"].as_array().into_iter().flatten().map(Value::to_string).collect()
    };
    if handles(before) == handles(after) {
        return Vec::new();
    }
    let is_other = |it: &&HostView| Some(&*it.host) != host && it.phase() == "Ready";
    hosts.iter().filter(is_other).map(|it| &*it.host).collect()
}

/// Nobody claims what somebody else has.
fn check_claims(worker: &str, spec: &Value, others: &[Object]) -> Result<(), Error> {
    let list = |spec: &Value| spec["handles"].as_array().cloned().unwrap_or_default();
    let wanted: BTreeSet<String> = list(spec).iter().map(Value::to_string).collect();
    for other in others.iter().filter(|it| called(it) != worker) {
        for theirs in list(other.spec()) {
            for ours in wanted.iter().filter_map(|it| serde_json::from_str::<Value>(it).ok()) {
                if !is_overlapping(&ours, &theirs) {
                    continue;
                }
                let owner = called(other);
                return Err(Error::conflict(match ours["resourceType"].as_str() {
                    Some(name) => format!(
                        "Resource type '{name}' is already claimed by reconciler '{owner}'. Cannot register '{worker}'."
                    ),
                    None => format!(
                        "Action plugin '{}' is already run by worker '{owner}'. Cannot register '{worker}'.",
                        ours["action"].as_str().unwrap_or_default()
                    ),
                }));
            }
        }
    }
    Ok(())
}

fn is_overlapping(ours: &Value, theirs: &Value) -> bool {
    let is_same = |field: &str| !ours[field].is_null() && ours[field] == theirs[field];
    let versions = [&ours["version"], &theirs["version"]];
    is_same("action")
        || is_same("resourceType") && (versions.iter().any(|it| it.is_null()) || is_same("version"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn hosts_that_another_registration_leaves_behind_are_known() {
        let host = |name: &str, seconds| HostView {
            host: name.into(),
            silent_for: Duration::from_secs(seconds),
            last_seen: concert_model::Timestamp::MIN,
            leases: 0,
        };
        let hosts = [host("new", 0), host("old", 30), host("gone", 300)];
        let of = |types: &[&str]| {
            let handles: Vec<Value> = types.iter().map(|it| json!({"resourceType": it})).collect();
            json!({"handles": handles})
        };
        let before = of(&["A", "B"]);
        assert_eq!(left_behind(&before, &of(&["A"]), Some("new"), &hosts), ["old"]);
        assert_eq!(left_behind(&before, &of(&["A", "B", "C"]), None, &hosts), ["new", "old"]);
        assert!(left_behind(&before, &of(&["B", "A"]), Some("new"), &hosts).is_empty());
        assert!(left_behind(&before, &of(&["A"]), Some("new"), &hosts[..1]).is_empty());
    }
}
