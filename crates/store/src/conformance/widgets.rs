//! A kind made for one case, and short ways to work with its objects.

use std::sync::Arc;

use concert_model::condition::{self, Status};
use concert_model::{
    Encoded, FieldSelector, GroupKind, GroupVersionKind, Object, ObjectKey, Patch, ResourceVersion,
};
use serde_json::{Value, json};

use super::Subject;
use super::expect::next;
use crate::contract::{By, Delete, Deleted, Event, Events, Page, PageRequest, Part, Query, Result, Store};
use crate::error::Error;
use crate::local::{DEFINITION_GROUP, DEFINITION_KIND};

/// What a CustomResourceDefinition shall say.
#[derive(Clone, Debug)]
pub struct Definition {
    spec: Value,
}

impl Definition {
    /// Namespaced, one version `v1`, status apart, a few typed fields and one free one.
    pub fn usual() -> Self {
        let properties = json!({
            "n": {"type": "integer", "format": "int64"},
            "text": {"type": "string", "maxLength": 2_000_000},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        });
        Self::of(json!({"type": "object", "properties": properties}))
    }

    /// The same, with this schema for `spec`.
    pub fn of(spec: Value) -> Self {
        let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "n": {"type": "integer"}, "phase": {"type": "string"}}});
        let extra = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let schema =
            json!({"type": "object", "properties": {"spec": spec, "status": status, "extra": extra}});
        let version = json!({"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": schema}});
        let names = json!({"kind": "Widget", "listKind": "WidgetList", "plural": "widgets",
            "singular": "widget"});
        Self { spec: json!({"scope": "Namespaced", "names": names, "versions": [version]}) }
    }

    /// The same, without a status subresource.
    pub fn without_status(mut self) -> Self {
        self.spec["versions"][0]["subresources"] = json!({});
        self
    }

    /// The same, for objects outside of namespaces.
    pub fn cluster_scoped(mut self) -> Self {
        self.spec["scope"] = json!("Cluster");
        self
    }

    /// The same, with `change` made to its `spec`.
    pub fn changed(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.spec);
        self
    }

    pub(super) fn is_namespaced(&self) -> bool {
        self.spec["scope"] == "Namespaced"
    }

    /// The object that makes it so, for kinds of `group`.
    pub fn object(&self, group: &str, run: &str) -> Object {
        let plural = self.spec["names"]["plural"].as_str().unwrap_or_default();
        let mut object = Object::new(&definitions().at_version("v1"), "", &format!("{plural}.{group}"));
        let mut spec = self.spec.clone();
        spec["group"] = json!(group);
        object.set("spec", spec);
        object.set_metadata("labels", json!({"conformance": run}));
        object
    }
}

/// The kind of definitions.
pub(super) fn definitions() -> GroupKind {
    GroupKind::new(DEFINITION_GROUP, DEFINITION_KIND)
}

/// Objects of one kind in one namespace.
pub struct Widgets {
    /// Where they live.
    pub store: Arc<dyn Store>,
    /// Their kind.
    pub kind: GroupKind,
    /// Their namespace; empty for kinds without.
    pub namespace: Arc<str>,
    /// Their definition.
    pub definition: ObjectKey,
    by: By,
}

impl Widgets {
    pub(super) async fn define(subject: &Subject, definition: Definition, namespace: Arc<str>) -> Self {
        let group = format!("{}.conformance.concert.dev", subject.unique("g"));
        let object = definition.object(&group, subject.run());
        let kind = object.spec()["names"]["kind"].as_str().unwrap_or_default().to_owned();
        let (store, by) = (subject.store.clone(), By::actor("suite"));
        let definition = store.create(object, &by).await.unwrap().key().clone();
        let widgets = Self { store, kind: GroupKind::new(group, kind), namespace, definition, by };
        widgets.wait_until_served(subject).await;
        widgets.wait_until_watched(subject).await;
        widgets
    }

    /// Waits until a watch goes on from where a list was. Kubernetes may list a kind that is new before it
    /// has begun to remember its changes, and what is older than that memory is too old for it.
    async fn wait_until_watched(&self, subject: &Subject) {
        let probe = self.object("probe", json!({}));
        // Selected, so that nobody else shares it.
        let query = self.query().with_fields(FieldSelector::field("metadata.name", "probe"));
        loop {
            let position = self.list().await.position;
            let watch = self.store.watch(&query, Some(&position)).await;
            // Where a spec must say more, the case can do without.
            if self.try_create(probe.clone()).await.is_err() {
                return;
            }
            let told = match watch {
                Ok(mut events) => events.next().await,
                Err(error) => Some(Err(error)),
            };
            self.store.delete(&self.key("probe"), &Delete::default(), &self.by).await.unwrap();
            match told {
                Some(Ok(_)) => return,
                Some(Err(Error::Expired)) | None => subject.moment().await,
                Some(Err(error)) => panic!("the watch failed: {error}"),
            }
        }
    }

    /// Waits for the definition to be established, by watching it, and the kind to be there.
    pub async fn wait_until_served(&self, subject: &Subject) {
        let name = FieldSelector::field("metadata.name", &self.definition.name);
        let mut events = self.store.watch(&Query::all(definitions()).with_fields(name), None).await.unwrap();
        let is_established = |event: &Event| {
            let status = event.object().map(|object| object.decode().status().clone()).unwrap_or_default();
            condition::find(&status, "Established").is_some_and(|c| c.status == Status::True)
        };
        while !is_established(&next(&mut events).await) {}
        while self.store.kind(&self.kind).await.is_err() {
            subject.moment().await;
        }
    }

    /// The kind in one of its versions.
    pub fn at_version(&self, version: &str) -> GroupVersionKind {
        self.kind.at_version(version)
    }

    /// A new object that is nowhere stored.
    pub fn object(&self, name: &str, spec: Value) -> Object {
        let mut object = Object::new(&self.at_version("v1"), &self.namespace, name);
        object.set("spec", spec);
        object
    }

    /// The key of a name.
    pub fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(self.kind.clone(), self.namespace.clone(), name)
    }

    /// All of them, in their namespace.
    pub fn query(&self) -> Query {
        let all = Query::all(self.kind.clone());
        if self.namespace.is_empty() { all } else { all.in_namespace(self.namespace.clone()) }
    }

    /// Creates one.
    pub async fn create(&self, name: &str, spec: Value) -> Encoded {
        self.store.create(self.object(name, spec), &self.by).await.unwrap()
    }

    /// Creates one with labels.
    pub async fn create_labelled(&self, name: &str, labels: Value) -> Encoded {
        let mut object = self.object(name, json!({"n": 1}));
        object.set_metadata("labels", labels);
        self.store.create(object, &self.by).await.unwrap()
    }

    /// Creates one with finalizers.
    pub async fn create_finalized(&self, name: &str, finalizers: &[&str]) -> Encoded {
        let mut object = self.object(name, json!({"n": 1}));
        object.set_metadata("finalizers", json!(finalizers));
        self.store.create(object, &self.by).await.unwrap()
    }

    /// Tries to create `object`.
    pub async fn try_create(&self, object: Object) -> Result<Encoded> {
        self.store.create(object, &self.by).await
    }

    /// The stored one.
    pub async fn get(&self, name: &str) -> Encoded {
        self.store.get(&self.key(name)).await.unwrap()
    }

    /// True if it is not there.
    pub async fn is_gone(&self, name: &str) -> bool {
        matches!(self.store.get(&self.key(name)).await, Err(crate::Error::NotFound { .. }))
    }

    /// Changes what was read.
    pub async fn try_update(&self, read: &Encoded, change: impl FnOnce(&mut Object)) -> Result<Encoded> {
        let mut object = read.decode();
        change(&mut object);
        self.store.update(object, &self.by).await
    }

    /// Changes what was read, which nobody else has written since.
    pub async fn update(&self, read: &Encoded, change: impl FnOnce(&mut Object)) -> Encoded {
        self.try_update(read, change).await.unwrap()
    }

    /// Sets `spec.n` of what was read.
    pub async fn set_n(&self, read: &Encoded, n: i64) -> Encoded {
        self.update(read, |object| object.get_mut("spec")["n"] = json!(n)).await
    }

    /// Sets the status of what was read.
    pub async fn try_status(&self, read: &Encoded, status: Value) -> Result<Encoded> {
        let mut object = read.decode();
        object.set("status", status);
        self.store.update_status(object, &self.by).await
    }

    /// Lays `patch` over a stored one.
    pub async fn try_merge(&self, name: &str, part: Part, patch: Value) -> Result<Encoded> {
        self.store.patch(&self.key(name), part, &Patch::merge(patch).unwrap(), &self.by).await
    }

    /// Lays `patch` over a stored one.
    pub async fn merge(&self, name: &str, patch: Value) -> Encoded {
        self.try_merge(name, Part::Main, patch).await.unwrap()
    }

    /// Does the operations of a JSON patch.
    pub async fn try_operations(&self, name: &str, operations: Value) -> Result<Encoded> {
        self.store.patch(&self.key(name), Part::Main, &Patch::json(operations).unwrap(), &self.by).await
    }

    /// Tries to delete one.
    pub async fn try_delete(&self, name: &str, options: &Delete) -> Result<Deleted> {
        self.store.delete(&self.key(name), options, &self.by).await
    }

    /// Deletes one.
    pub async fn delete(&self, name: &str) -> Deleted {
        self.try_delete(name, &Delete::default()).await.unwrap()
    }

    /// All of them at once.
    pub async fn list(&self) -> Page {
        self.store.list(&self.query(), &PageRequest::whole()).await.unwrap()
    }

    /// Their names.
    pub async fn names(&self) -> Vec<String> {
        names_of(&self.list().await.items)
    }

    /// Watches them from a position.
    pub async fn watch_from(&self, position: &ResourceVersion) -> Events {
        self.store.watch(&self.query(), Some(position)).await.unwrap()
    }

    /// Watches them from now on.
    pub async fn watch(&self) -> Events {
        let position = self.list().await.position;
        self.watch_from(&position).await
    }
}

/// The names of `objects`.
pub(super) fn names_of(objects: &[Encoded]) -> Vec<String> {
    objects.iter().map(|object| object.key().name.to_string()).collect()
}
