//! Which groups, versions and resources there are.
//!
//! In the form that every client understands, one request for each group, and in the aggregated form
//! that newer ones ask for.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::answer::text;
use super::catalogue::{Group, Resource, Version};
use super::hash::Hashed;
use super::reviews::{self, Review};

/// What can be done with objects of every resource.
pub(crate) const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// All documents, written.
#[derive(Debug)]
pub(crate) struct Discovery {
    /// `/api`.
    pub(crate) core: Hashed,
    /// `/apis`.
    pub(crate) groups: Hashed,
    /// `/api`, aggregated.
    pub(crate) core_aggregated: Hashed,
    /// `/apis`, aggregated.
    pub(crate) groups_aggregated: Hashed,
    by_group: HashMap<Arc<str>, Hashed>,
    by_version: HashMap<Arc<str>, Hashed>,
}

impl Discovery {
    pub(crate) fn new(groups: &[Group]) -> Self {
        let (core, named): (Vec<&Group>, Vec<&Group>) = groups.iter().partition(|g| g.name.is_empty());
        let versions: Vec<&str> = core.iter().flat_map(|g| &g.versions).map(|v| &*v.name).collect();
        let core_versions =
            json!({"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": []});
        let list: Vec<Value> = named.iter().map(|g| group(g)).collect();
        let with_type = |mut one: Value| {
            one["kind"] = json!("APIGroup");
            one["apiVersion"] = json!("v1");
            Hashed::new(text(&one))
        };
        let all = groups.iter().flat_map(|g| g.versions.iter().map(move |version| (g, version)));
        Self {
            core: Hashed::new(text(&core_versions)),
            groups: Hashed::new(text(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": list}))),
            core_aggregated: aggregated(&core),
            groups_aggregated: aggregated(&named),
            by_group: named.iter().map(|g| (g.name.clone(), with_type(group(g)))).collect(),
            by_version: all.map(|(g, v)| (v.api_version.clone(), resources(g, v))).collect(),
        }
    }

    /// `/apis/GROUP`.
    pub(crate) fn group(&self, name: &str) -> Option<&Hashed> {
        self.by_group.get(name)
    }

    /// `/api/v1` and `/apis/GROUP/VERSION`.
    pub(crate) fn resources(&self, api_version: &str) -> Option<&Hashed> {
        self.by_version.get(api_version)
    }
}

fn group(group: &Group) -> Value {
    let version = |v: &Arc<Version>| json!({"groupVersion": &*v.api_version, "version": &*v.name});
    let versions: Vec<Value> = group.versions.iter().map(version).collect();
    json!({"name": &*group.name, "preferredVersion": versions.first(), "versions": versions})
}

fn resources(group: &Group, version: &Version) -> Hashed {
    let mut all: Vec<Value> = Vec::new();
    for resource in version.resources.values() {
        let entry = named(
            resource,
            json!({
                "name": resource.plural(), "singularName": &*resource.card().singular,
                "namespaced": resource.is_namespaced(), "kind": &*resource.group_kind().kind, "verbs": VERBS,
            }),
        );
        all.push(entry);
        if resource.view().has_status {
            all.push(json!({
                "name": format!("{}/status", resource.plural()), "singularName": "",
                "namespaced": resource.is_namespaced(), "kind": &*resource.group_kind().kind,
                "verbs": STATUS_VERBS,
            }));
        }
        if resource.is_core("ServiceAccount") {
            all.push(json!({
                "name": "serviceaccounts/token", "singularName": "", "namespaced": true, "kind": "TokenRequest",
                "group": "authentication.k8s.io", "version": "v1", "verbs": ["create"],
            }));
        }
    }
    for review in reviews::of(&group.name, &version.name) {
        let Review { resource, kind, singular, .. } = review;
        all.push(json!({"name": resource, "singularName": singular, "namespaced": false, "kind": kind, "verbs": ["create"]}));
    }
    let api_version = &*version.api_version;
    Hashed::new(text(
        &json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": all}),
    ))
}

/// `entry` with the short names and categories of `resource`, where it has any.
fn named(resource: &Resource, mut entry: Value) -> Value {
    let card = resource.card();
    for (field, names) in [("shortNames", &card.short_names), ("categories", &card.categories)] {
        if !names.is_empty() {
            entry[field] = names.iter().map(|name| Value::from(&**name)).collect();
        }
    }
    entry
}

fn aggregated(groups: &[&Group]) -> Hashed {
    let one = |group: &&Group| {
        let mut metadata = Map::new();
        if !group.name.is_empty() {
            metadata.insert("name".into(), json!(&*group.name));
        }
        let versions: Vec<Value> = group.versions.iter().map(|v| aggregated_version(group, v)).collect();
        json!({"metadata": metadata, "versions": versions})
    };
    let items: Vec<Value> = groups.iter().map(one).collect();
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    Hashed::new(text(&list))
}

fn aggregated_version(group: &Group, version: &Version) -> Value {
    let response = |kind: &str| json!({"group": &*group.name, "version": &*version.name, "kind": kind});
    let mut all: Vec<Value> = Vec::new();
    for resource in version.resources.values() {
        let kind = response(&resource.group_kind().kind);
        let scope = if resource.is_namespaced() { "Namespaced" } else { "Cluster" };
        let mut entry = named(
            resource,
            json!({
                "resource": resource.plural(), "responseKind": kind, "scope": scope,
                "singularResource": &*resource.card().singular, "verbs": VERBS,
            }),
        );
        if resource.view().has_status {
            entry["subresources"] =
                json!([{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}]);
        }
        if resource.is_core("ServiceAccount") {
            let kind = json!({"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"});
            entry["subresources"] =
                json!([{"subresource": "token", "responseKind": kind, "verbs": ["create"]}]);
        }
        all.push(entry);
    }
    for review in reviews::of(&group.name, &version.name) {
        all.push(json!({
            "resource": review.resource, "responseKind": response(review.kind), "scope": "Cluster",
            "singularResource": review.singular, "verbs": ["create"],
        }));
    }
    json!({"version": &*version.name, "freshness": "Current", "resources": all})
}
