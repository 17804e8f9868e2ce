//! The description of this door: `/openapi.json`, and a page to read it on.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use super::routes::{ROUTES, Route, Who};

/// The page at `/docs`: it reads `/openapi.json` and nothing else.
pub(crate) const PAGE: &str = include_str!("docs.html");

/// OpenAPI 3.1 of all routes.
pub(crate) fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(build)
}

fn build() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Concert", "version": env!("CARGO_PKG_VERSION"), "description":
            "Resource types, resources, plugins and events. The same objects are served in Kubernetes' shape under /apis."},
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.summary, "tags": [tag(route.path)], "operationId": operation_id(route),
        "parameters": parameters(route), "responses": responses(route),
    });
    if !route.body.is_empty() {
        let schema = json!({"application/json": {"schema": reference(route.body)}});
        // All of it may be left out, and so may the body.
        operation["requestBody"] = json!({"required": route.body != "Delay", "content": schema});
    }
    if route.who != Who::Public {
        operation["security"] = json!([{"bearer": []}]);
    }
    let who = match route.who {
        Who::Public => "Everybody.",
        Who::Known => "Everybody who is known.",
        Who::Admin => "Administrators.",
        Who::Permitted(what) => return described(operation, &format!("Who has the permission {what}.")),
    };
    described(operation, who)
}

fn described(mut operation: Value, text: &str) -> Value {
    operation["description"] = json!(text);
    operation
}

fn tag(path: &str) -> &str {
    path.strip_prefix("/api/v1/").map_or("health", |rest| rest.split('/').next().unwrap_or_default())
}

fn operation_id(route: &Route) -> String {
    let path = route.path.replace("/api/v1/", "").replace(['/', '-', '{', '}'], "_");
    format!("{}_{}", route.method.to_ascii_lowercase(), path.trim_matches('_'))
}

fn parameters(route: &Route) -> Value {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str, place: &str| {
        let is_number = name.ends_with("_id") || matches!(name, "limit" | "offset");
        let kind = if is_number { "integer" } else { "string" };
        json!({"name": name, "in": place, "required": place == "path", "schema": {"type": kind}})
    };
    let in_query = route.query.iter().map(|name| parameter(name, "query"));
    in_path.map(|name| parameter(name, "path")).chain(in_query).collect()
}

fn responses(route: &Route) -> Value {
    let (code, schema) = route.answer;
    let success = match schema {
        "" => json!({"description": "Done"}),
        "Stream" => json!({"description": "Server-sent events", "content": {"text/event-stream": {}}}),
        schema => {
            json!({"description": "Done", "content": {"application/json": {"schema": reference(schema)}}})
        }
    };
    let mut responses = Map::new();
    responses.insert(code.to_string(), success);
    let is_known = route.who != Who::Public;
    let always = [(401, is_known), (422, true)].into_iter().filter_map(|(code, is)| is.then_some(code));
    for code in route.refusals.iter().copied().chain(always) {
        let schema = if code == 422 { "ValidationError" } else { "Error" };
        let refusal =
            json!({"description": "Refused", "content": {"application/json": {"schema": reference(schema)}}});
        responses.insert(code.to_string(), refusal);
    }
    Value::Object(responses)
}

fn reference(schema: &str) -> Value {
    match schema.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(item) => json!({"type": "array", "items": reference(item)}),
        None => json!({"$ref": format!("#/components/schemas/{schema}")}),
    }
}

/// An object with these fields (`name:type`), of which the first `required` must be there. A type that
/// ends in `?` may be null.
fn object(required: usize, fields: &str) -> Value {
    let fields: Vec<(&str, &str)> = fields.split_whitespace().filter_map(|it| it.split_once(':')).collect();
    let properties: Map<String, Value> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), field(kind))).collect();
    let required: Vec<&str> = fields.iter().take(required).map(|(name, _)| *name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn field(kind: &str) -> Value {
    match kind {
        "time" => json!({"type": "string", "format": "date-time"}),
        "texts" => json!({"type": "array", "items": {"type": "string"}}),
        other if other.starts_with('[') || other.starts_with(char::is_uppercase) => reference(other),
        other => match other.strip_suffix('?') {
            Some("time") => json!({"type": ["string", "null"], "format": "date-time"}),
            Some(plain) => json!({"type": [plain, "null"]}),
            None => json!({"type": other}),
        },
    }
}

fn schemas() -> Value {
    let mut all = Map::new();
    let mut put = |name: &str, schema: Value| drop(all.insert(name.to_owned(), schema));
    put("Any", json!({"type": "object"}));
    put("Delay", object(0, "delay_seconds:number"));
    put("Error", object(1, "detail:string"));
    put("Wrong", object(4, "type:string loc:texts msg:string input:Any ctx:Any"));
    put("ValidationError", json!({"type": "object", "properties": {"detail": reference("[Wrong]")}}));
    put("Health", object(1, "status:string"));
    put("Accepted", object(2, "message:string resource_id:integer"));
    put("Outputs", object(1, "outputs:object"));
    put("Finalizers", object(0, "add:texts remove:texts"));
    put("Plugin", object(2, "name:string version:string"));
    put("Reconciler", object(3, "name:string version:string resource_types:texts"));
    let others = account_schemas().into_iter().chain(webhook_schemas()).chain(worker_schemas());
    for (name, schema) in resource_schemas().into_iter().chain(others).chain(node_schemas()) {
        put(name, schema);
    }
    Value::Object(all)
}

fn resource_schemas() -> Vec<(&'static str, Value)> {
    let condition = object(
        6,
        "type:string status:string reason:string message:string lastTransitionTime:time \
         observedGeneration:integer",
    );
    let resource = object(
        24,
        "id:integer name:string resource_type_name:string resource_type_version:string \
         action_plugin:string spec:object plugin_config:object metadata:object labels:object \
         status:string status_message:string? generation:integer observed_generation:integer \
         spec_hash:string retry_count:integer finalizers:texts conditions:[Condition] \
         outputs:object created_at:time updated_at:time deleted_at:time? \
         last_reconcile_time:time? next_reconcile_time:time?",
    );
    let attempt = object(
        10,
        "id:integer resource_id:integer generation:integer success:boolean phase:string \
         error_message:string? resources_created:integer resources_updated:integer \
         resources_deleted:integer reconcile_time:time trigger_reason:string? \
         duration_seconds:number drift_detected:boolean plan_output:string? \
         apply_output:string?",
    );
    let create = object(
        3,
        "name:string resource_type_name:string resource_type_version:string spec:object \
         action_plugin:string? plugin_config:object? metadata:object?",
    );
    let kind = object(
        9,
        "id:integer name:string version:string schema:object description:string? status:string \
         metadata:object created_at:time updated_at:time",
    );
    let kind_create =
        object(3, "name:string version:string schema:object description:string? metadata:object?");
    vec![
        ("Condition", condition),
        ("Resource", resource),
        ("Attempt", attempt),
        ("ResourceCreate", create),
        ("ResourceUpdate", object(0, "spec:object? plugin_config:object? metadata:object?")),
        ("ResourceType", kind),
        ("ResourceTypeCreate", kind_create),
        (
            "ResourceTypeUpdate",
            object(0, "schema:object? description:string? status:string? metadata:object?"),
        ),
        ("OutputsWrite", object(1, "outputs:object fence:integer?")),
        (
            "StatusWrite",
            object(1, "status:string message:string? observed_generation:integer? fence:integer?"),
        ),
        (
            "ConditionWrite",
            object(
                1,
                "status:string reason:string? message:string? observed_generation:integer? fence:integer?",
            ),
        ),
    ]
}

fn webhook_schemas() -> Vec<(&'static str, Value)> {
    let webhook = object(
        12,
        "id:integer name:string resource_type_name:string? resource_type_version:string? \
         webhook_url:string webhook_type:string operations:texts timeout_seconds:integer \
         failure_policy:string ordering:integer created_at:time? updated_at:time?",
    );
    let create = object(
        4,
        "name:string webhook_url:string webhook_type:string operations:texts \
         resource_type_name:string? resource_type_version:string? timeout_seconds:integer? \
         failure_policy:string? ordering:integer?",
    );
    let update = object(
        0,
        "name:string? webhook_url:string? webhook_type:string? operations:texts \
         resource_type_name:string? resource_type_version:string? timeout_seconds:integer? \
         failure_policy:string? ordering:integer?",
    );
    vec![("Webhook", webhook), ("WebhookCreate", create), ("WebhookUpdate", update)]
}

/// What resources and entries of a fleet have in common is named; the rest is in the reference of workers.
fn worker_schemas() -> Vec<(&'static str, Value)> {
    let worker = object(
        6,
        "name:string handles:[WorkerHandle] status:string hosts:[WorkerHost] running:integer \
         waiting:integer concurrency:integer? resync_seconds:integer? lease_seconds:integer? \
         deadline_seconds:integer? watches:[Any] cluster_events:[Any]",
    );
    let create = object(
        2,
        "name:string handles:[WorkerHandle] host_id:string? concurrency:integer? \
         resync_seconds:integer? lease_seconds:integer? deadline_seconds:integer? version:string? \
         watches:[Any] cluster_events:[Any] grants:object?",
    );
    let claim = object(
        0,
        "limit:integer? wait_seconds:number? host_id:string? resource_types:texts claim_id:string?",
    );
    let write = object(
        3,
        "item:string fence:integer op:string status:string? message:string? \
         observed_generation:integer? type:string? reason:string? outputs:object? finalizer:string? \
         success:boolean? requeue_after:number? duration_seconds:number? trigger_reason:string? \
         drift_detected:boolean? plan_output:string? apply_output:string? phase:string? \
         resources_created:integer? resources_updated:integer? resources_deleted:integer?",
    );
    let result = object(
        3,
        "item:string fence:integer outcome:string status:string? message:string? \
         observed_generation:integer? observed_revision:integer? error_class:string? \
         retry_after:number? outputs:object? conditions:[Any] waits_for:[Any]",
    );
    let mut answer = object(1, "status:integer finalizers:texts deleted:boolean");
    // A sentence, or a list of what is wrong.
    answer["properties"]["detail"] = json!({});
    vec![
        ("Worker", worker),
        ("WorkerCreate", create),
        ("WorkerHandle", object(0, "resource_type:string? version:string? action:string? kind:string?")),
        ("WorkerHost", object(4, "host_id:string last_seen:time leases:integer status:string")),
        ("WorkerClaim", claim),
        ("WorkerItems", object(1, "items:[WorkerItem]")),
        (
            "WorkerItem",
            object(5, "item:string object:Any lease:WorkerToken attempt:integer reasons:texts inventory:Any"),
        ),
        ("WorkerToken", object(3, "token:string fence:integer expires_at:time")),
        ("WorkerHeartbeat", object(0, "host_id:string? items:[WorkerLease]")),
        ("WorkerLease", object(2, "item:string fence:integer expires_at:time reason:string")),
        ("WorkerLeases", object(2, "items:[WorkerLease] lost:[WorkerLease]")),
        ("WorkerWrites", object(1, "writes:[WorkerWrite]")),
        ("WorkerWrite", write),
        ("WorkerResults", object(1, "results:[WorkerResult]")),
        ("WorkerResult", result),
        ("WorkerAnswers", object(1, "results:[WorkerAnswer]")),
        ("WorkerAnswer", answer),
    ]
}

fn node_schemas() -> Vec<(&'static str, Value)> {
    let node = object(
        8,
        "node_id:string hostname:string pid:integer? status:string role:string age:string? \
         first_seen:time? last_heartbeat:time? is_leaving:boolean shares:integer shares_max:integer \
         address:string version:string",
    );
    let nodes =
        object(4, "this_instance_id:string this_instance_is_leader:boolean leader_lock:object? nodes:[Node]");
    vec![("Node", node), ("Nodes", nodes)]
}

fn account_schemas() -> Vec<(&'static str, Value)> {
    let user = object(
        8,
        "id:integer username:string source:string is_admin:boolean status:string \
         created_at:time updated_at:time last_login_at:time? email:string? \
         display_name:string? last_synced_at:time? custom_role_id:integer?",
    );
    let permission = object(
        0,
        "operations:texts resource_type_name:string resource_type_version:string id:integer \
         role_id:integer created_at:time",
    );
    vec![
        ("Login", object(2, "username:string password:string")),
        ("Token", object(4, "access_token:string token_type:string username:string is_admin:boolean")),
        ("Password", object(1, "password:string current_password:string?")),
        ("User", user),
        (
            "UserCreate",
            object(
                2,
                "username:string password:string email:string? display_name:string? is_admin:boolean \
         custom_role_id:integer?",
            ),
        ),
        (
            "UserUpdate",
            object(
                0,
                "email:string? display_name:string? is_admin:boolean? status:string? \
         custom_role_id:integer?",
            ),
        ),
        ("Permission", permission),
        (
            "Role",
            object(
                5,
                "id:integer name:string description:string? system_permissions:texts \
         permissions:[Permission] created_at:time updated_at:time",
            ),
        ),
        (
            "RoleCreate",
            object(1, "name:string description:string? system_permissions:texts permissions:[Permission]"),
        ),
        ("RoleUpdate", object(0, "name:string? description:string? system_permissions:texts")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|it| references(it, found));
            }
            Value::Array(items) => items.iter().for_each(|it| references(it, found)),
            _ => {}
        }
    }

    #[test]
    fn every_route_is_described_and_every_reference_leads_somewhere() {
        let document = document();
        for route in ROUTES {
            let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
            assert_eq!(operation["summary"], route.summary);
            assert!(operation["responses"].get(route.answer.0.to_string()).is_some());
        }
        let mut found = Vec::new();
        references(document, &mut found);
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
    }

    #[test]
    fn what_is_sent_and_answered_is_described() {
        // There is no directory, so nothing is answered there.
        for route in ROUTES.iter().filter(|it| !it.path.ends_with("/ldap-sync")) {
            assert!(!route.body.contains("Any") && !route.answer.1.contains("Any"), "{}", route.path);
        }
    }

    #[test]
    fn the_page_needs_nobody_else() {
        for outside in ["http://", "https://", "src=", "@import", "//cdn"] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
        assert!(PAGE.contains("/openapi.json"));
    }
}
