//! What can be done with a resource, path by path.

use serde_json::{Map, Value, json};

use super::components::{DELETE_OPTIONS, PATCH, STATUS};
use super::schema::{name_of, type_of};
use super::{path_of, reference};
use crate::kube::catalogue::Resource;

pub(super) fn add(paths: &mut Map<String, Value>, resource: &Resource) {
    let root = format!("/{}", path_of(&resource.api_version));
    let (plural, scope) = (resource.plural(), Scope(resource));
    if resource.is_namespaced() {
        let everywhere = json!({"get": scope.list(false)});
        paths.insert(format!("{root}/{plural}"), everywhere);
    }
    let collection = match resource.is_namespaced() {
        true => format!("{root}/namespaces/{{namespace}}/{plural}"),
        false => format!("{root}/{plural}"),
    };
    paths.insert(format!("{collection}/{{name}}"), scope.single(""));
    if resource.view().has_status {
        paths.insert(format!("{collection}/{{name}}/status"), scope.single("status"));
    }
    paths.insert(collection, scope.collection());
}

struct Scope<'a>(&'a Resource);

impl Scope<'_> {
    fn collection(&self) -> Value {
        json!({
            "get": self.list(true),
            "post": self.operation("create", "post", &["dryRun", "fieldManager", "fieldValidation"], true, 201),
            "delete": self.delete("deletecollection", &LISTED),
            "parameters": self.places(false),
        })
    }

    fn single(&self, subresource: &str) -> Value {
        let mut patch = self.operation(
            "patch",
            "patch",
            &["dryRun", "fieldManager", "fieldValidation", "force"],
            false,
            200,
        );
        let body = json!({"schema": reference(PATCH)});
        patch["requestBody"] = json!({"required": true, "content": {
            "application/apply-patch+yaml": body, "application/json-patch+json": body,
            "application/merge-patch+json": body,
        }});
        let mut path = json!({
            "get": self.operation("get", "get", &["resourceVersion"], false, 200),
            "put": self.operation("update", "put", &["dryRun", "fieldManager", "fieldValidation"], true, 200),
            "patch": patch,
            "parameters": self.places(true),
        });
        if subresource.is_empty() {
            path["delete"] = self.delete("delete", &[]);
        }
        path
    }

    fn list(&self, is_whole: bool) -> Value {
        let mut parameters: Vec<&str> = LISTED.to_vec();
        parameters.extend(["continue", "limit", "watch", "allowWatchBookmarks", "sendInitialEvents"]);
        let mut operation = self.operation("list", "get", &parameters, false, 200);
        let list = reference(&name_of(self.0, &self.0.card().list_kind));
        operation["responses"]["200"]["content"] = content(&list);
        if !is_whole {
            operation["operationId"] = json!(format!("list{}ForAllNamespaces", self.0.group_kind().kind));
        }
        operation
    }

    fn delete(&self, action: &str, more: &[&str]) -> Value {
        let mut parameters = vec!["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];
        parameters.extend(more);
        let mut operation = self.operation(action, "delete", &parameters, false, 200);
        operation["requestBody"] = json!({"content": content(&reference(DELETE_OPTIONS))});
        operation["responses"]["200"]["content"] = content(&reference(STATUS));
        operation
    }

    fn operation(&self, action: &str, method: &str, names: &[&str], has_body: bool, code: u16) -> Value {
        let kind = &self.0.group_kind().kind;
        let schema = reference(&name_of(self.0, kind));
        let parameters: Vec<Value> = names.iter().map(|name| parameter(name)).collect();
        let mut operation = json!({
            "description": format!("{action} {kind}"),
            "operationId": format!("{method}{kind}-{action}"),
            "parameters": parameters,
            "responses": {
                "401": {"description": "Unauthorized"},
            },
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": type_of(self.0, kind),
        });
        operation["responses"][code.to_string()] = json!({"description": "OK", "content": content(&schema)});
        if has_body {
            operation["requestBody"] = json!({"required": true, "content": content(&schema)});
        }
        operation
    }

    fn places(&self, has_name: bool) -> Value {
        let place =
            |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
        let names = [("namespace", self.0.is_namespaced()), ("name", has_name)];
        names.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| place(name)).collect()
    }
}

const LISTED: [&str; 5] =
    ["fieldSelector", "labelSelector", "resourceVersion", "resourceVersionMatch", "timeoutSeconds"];

fn content(schema: &Value) -> Value {
    json!({"application/json": {"schema": schema}, "application/yaml": {"schema": schema}})
}

fn parameter(name: &str) -> Value {
    let (kind, description) = match name {
        "allowWatchBookmarks" => ("boolean", "A watch may send bookmarks."),
        "continue" => ("string", "The token of the page before."),
        "dryRun" => ("string", "All: do everything but the write."),
        "fieldManager" => ("string", "Who manages the fields that are written."),
        "fieldSelector" => ("string", "Only objects with these fields."),
        "fieldValidation" => ("string", "What becomes of unknown fields: Ignore, Warn or Strict."),
        "force" => ("boolean", "Take fields over from other managers."),
        "gracePeriodSeconds" => ("integer", "How long the object may take to go."),
        "labelSelector" => ("string", "Only objects with these labels."),
        "limit" => ("integer", "At most so many objects."),
        "orphanDependents" => ("boolean", "Replaced by propagationPolicy."),
        "propagationPolicy" => ("string", "What happens to owned objects: Background, Foreground or Orphan."),
        "resourceVersion" => ("string", "The moment to read or watch from."),
        "resourceVersionMatch" => ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
        "sendInitialEvents" => ("boolean", "A watch starts with the objects that are there."),
        "timeoutSeconds" => ("integer", "How long a watch lasts."),
        "watch" => ("boolean", "Changes instead of a list."),
        _ => ("string", ""),
    };
    json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
}
