//! Whether what a definition names is there, and as it must be.

use std::collections::BTreeMap;

use concert_model::condition::{self, Status};
use concert_model::{FieldError, FieldPath, GroupKind, GroupVersionKind, Object};
use concert_schema::{Expression, Schema};
use serde_json::Value;

use super::mapping::{NAMES, Path, Rule, Source};
use super::{Definition, Implementation};

/// What is known of the kinds that definitions name; those that are not defined are not in it.
pub type Kinds = BTreeMap<GroupKind, Known>;

/// What is known of one kind.
#[derive(Clone, Debug)]
pub struct Known {
    is_established: bool,
    is_namespaced: bool,
    versions: BTreeMap<String, Version>,
}

#[derive(Clone, Debug)]
struct Version {
    has_status: bool,
    schema: Option<Schema>,
}

/// Why an implementation, or a whole definition, cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub enum Shortcoming {
    /// It may yet come: whoever waits is woken by it.
    Missing {
        /// Which field names it.
        field: FieldPath,
        /// In words, with what to do.
        why: String,
    },
    /// It has to be changed.
    Wrong(FieldError),
}

impl Known {
    /// Reads a CustomResourceDefinition.
    pub fn of(definition: &Object) -> Self {
        let established = condition::find(definition.status(), "Established");
        let versions = definition.spec()["versions"].as_array().into_iter().flatten();
        let versions = versions.filter(|it| it["served"] == true).map(|it| {
            let has_status = it.pointer("/subresources/status").is_some_and(Value::is_object);
            let schema = it.pointer("/schema/openAPIV3Schema").and_then(|it| Schema::compile(it).ok());
            (it["name"].as_str().unwrap_or_default().to_owned(), Version { has_status, schema })
        });
        Self {
            is_established: established.is_some_and(|it| it.status == Status::True),
            is_namespaced: definition.spec()["scope"] == "Namespaced",
            versions: versions.collect(),
        }
    }

    fn schema(&self, version: &str) -> Option<&Schema> {
        self.versions.get(version)?.schema.as_ref()
    }
}

/// What stands in the way of a definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// Of all of it: without claims there is nothing to do.
    pub claim: Vec<Shortcoming>,
    /// Of making anything new.
    pub policy: Vec<Shortcoming>,
    /// Of each implementation.
    pub each: Vec<Vec<Shortcoming>>,
}

impl Checked {
    /// All that is to be changed, rather than waited for.
    pub fn wrong(self) -> Vec<FieldError> {
        let all = self.claim.into_iter().chain(self.policy).chain(self.each.into_iter().flatten());
        let wrong = all.filter_map(|it| match it {
            Shortcoming::Wrong(error) => Some(error),
            Shortcoming::Missing { .. } => None,
        });
        wrong.collect()
    }
}

/// What stands in the way of a definition.
pub fn check(definition: &Definition, kinds: &Kinds) -> Checked {
    let spec = FieldPath::new("spec");
    let policy = definition.policy.iter();
    let each = definition.implementations.iter().map(|it| check_implementation(definition, it, kinds));
    Checked {
        claim: check_claim(&definition.claim, kinds),
        policy: policy.flat_map(|it| check_kind(kinds, it, &spec.child("policy"), Role::Policy)).collect(),
        each: each.collect(),
    }
}

/// What stands in the way of claims of a kind.
pub fn check_claim(claim: &GroupVersionKind, kinds: &Kinds) -> Vec<Shortcoming> {
    check_kind(kinds, claim, &FieldPath::new("spec").child("claim"), Role::Claim)
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Claim,
    Policy,
    Class,
    Managed,
}

fn check_kind(kinds: &Kinds, kind: &GroupVersionKind, field: &FieldPath, role: Role) -> Vec<Shortcoming> {
    let missing = |why: String| vec![Shortcoming::Missing { field: field.clone(), why }];
    let wrong = |why: String| vec![Shortcoming::Wrong(FieldError::forbidden(field.clone(), why))];
    let name = &kind.group_kind;
    let Some(known) = kinds.get(name) else {
        return missing(format!("{name} is not defined: apply its CustomResourceDefinition"));
    };
    if !known.is_established {
        return missing(format!("the definition of {name} is not established"));
    }
    let Some(version) = known.versions.get(&*kind.version) else {
        return missing(format!("{name} is not served as {}", kind.version));
    };
    let is_in_namespace = matches!(role, Role::Claim | Role::Policy);
    if known.is_namespaced != is_in_namespace {
        let scope = if is_in_namespace { "Namespaced" } else { "Cluster" };
        return wrong(format!("{name} must have the scope {scope}"));
    }
    if matches!(role, Role::Claim | Role::Managed) && !version.has_status {
        return wrong(format!("{name} must have a status subresource"));
    }
    if role == Role::Managed && !is_bindable(version.schema.as_ref()) {
        return wrong(format!("{name} cannot be bound: its schema has no status.bindingPhase"));
    }
    let lost = version.schema.as_ref().map(|it| lost_in(it, role)).unwrap_or_default();
    if lost.is_empty() {
        Vec::new()
    } else {
        wrong(format!("{name} must have {} in its schema", lost.join(", ")))
    }
}

/// The fields in which objects of a role say what binds them.
fn fields(role: Role) -> &'static [&'static str] {
    match role {
        Role::Claim => &[
            "spec.classRef.apiVersion",
            "spec.classRef.kind",
            "spec.classRef.name",
            "spec.resourceRef.apiVersion",
            "spec.resourceRef.kind",
            "spec.resourceRef.name",
            "spec.writeConnectionSecretToRef.name",
            "status.bindingPhase",
            "status.conditions",
        ],
        Role::Policy => &["defaultClassRef.apiVersion", "defaultClassRef.kind", "defaultClassRef.name"],
        Role::Class => &["specTemplate.writeConnectionSecretsToNamespace"],
        Role::Managed => &[
            "spec.claimRef.apiVersion",
            "spec.claimRef.kind",
            "spec.claimRef.namespace",
            "spec.claimRef.name",
            "spec.claimRef.uid",
            "spec.classRef.apiVersion",
            "spec.classRef.kind",
            "spec.classRef.name",
            "spec.reclaimPolicy",
            "spec.writeConnectionSecretToRef.namespace",
            "spec.writeConnectionSecretToRef.name",
        ],
    }
}

/// Which of them a schema does not keep: what is written there is gone at once, and would be written again,
/// without end.
fn lost_in(schema: &Schema, role: Role) -> Vec<String> {
    let lost = |field: &&str| Some(Path::parse(field).ok()?.lost_in(schema)?.join("."));
    let mut lost: Vec<String> = fields(role).iter().filter_map(lost).collect();
    lost.dedup();
    lost
}

fn is_bindable(schema: Option<&Schema>) -> bool {
    let Some(status) = schema.and_then(|it| it.property("status")) else { return false };
    status.property("bindingPhase").is_some()
}

fn check_implementation(definition: &Definition, it: &Implementation, kinds: &Kinds) -> Vec<Shortcoming> {
    let place = it.place();
    let mut found = check_kind(kinds, &it.class, &place.child("class"), Role::Class);
    found.extend(check_kind(kinds, &it.managed, &place.child("managed"), Role::Managed));
    let schema = |kind: &GroupVersionKind| kinds.get(&kind.group_kind)?.schema(&kind.version);
    let sources = [schema(&definition.claim), schema(&it.class)];
    for rule in &it.mapping {
        found.extend(check_rule(rule, sources, schema(&it.managed)).into_iter().map(Shortcoming::Wrong));
    }
    found
}

/// Follows paths and expressions through the schemas, where those are known.
fn check_rule(rule: &Rule, sources: [Option<&Schema>; 2], target: Option<&Schema>) -> Option<FieldError> {
    let unknown = |field: &str, path: &dyn std::fmt::Display, part: &str| {
        let why = format!("there is no field {part:?}");
        FieldError::invalid_text(rule.place.child(field), &path.to_string(), why)
    };
    if let Some(part) = target.and_then(|schema| rule.to.unknown_in(schema)) {
        return Some(unknown("to", &rule.to, part));
    }
    match &rule.from {
        Source::Value(_) => None,
        Source::Path(path) => {
            let at = NAMES.iter().position(|name| *name == path.root())?;
            let below = path.below();
            let is_of_metadata = below.root() == "metadata";
            let part = sources[at].filter(|_| !is_of_metadata).and_then(|schema| below.unknown_in(schema))?;
            Some(unknown("from", path, part))
        }
        Source::Expression(it) => {
            let names = [(NAMES[0], sources[0]), (NAMES[1], sources[1])];
            let error = Expression::compile(it.source(), &names).err()?;
            Some(FieldError::invalid_text(rule.place.child("expression"), it.source(), error))
        }
    }
}

impl std::fmt::Display for Shortcoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shortcoming::Missing { field, why } => write!(f, "{field}: {why}"),
            Shortcoming::Wrong(error) => error.fmt(f),
        }
    }
}
