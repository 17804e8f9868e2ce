//! `concert.dev/v1alpha1 ClaimDefinition`: which kinds play together, and how a managed resource is made
//! of a claim and a class.
//!
//! [`parse`] reads one and says what is wrong by field; [`check`] looks at what it names. Both are plain
//! functions: an implementation that is wrong makes nothing new, and the others work.

mod check;
mod mapping;
pub mod served;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use concert_model::{FieldError, FieldPath, GroupKind, GroupVersionKind, Object};
use serde_json::Value;

pub use check::{Checked, Kinds, Known, Shortcoming, check, check_claim};
pub use mapping::{Path, Rule, Source};

/// The group of the kind.
pub const GROUP: &str = "concert.dev";
/// The kind.
pub const KIND: &str = "ClaimDefinition";

/// The kind of definitions.
pub fn kind() -> GroupKind {
    GroupKind::new(GROUP, KIND)
}

/// Which kinds play together.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its own name.
    pub name: Arc<str>,
    /// What applications ask for.
    pub claim: GroupVersionKind,
    /// What says in a namespace which class is the default.
    pub policy: Option<GroupVersionKind>,
    /// The ways to make it real, without those whose kinds cannot be read.
    pub implementations: Vec<Arc<Implementation>>,
}

impl Definition {
    /// All kinds that it names.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let made = self.implementations.iter().flat_map(|it| [&it.class, &it.managed]);
        let all = [Some(&self.claim), self.policy.as_ref()].into_iter().flatten().chain(made);
        all.map(|it| &it.group_kind)
    }
}

/// One way to make a claim real.
#[derive(Clone, Debug, PartialEq)]
pub struct Implementation {
    /// Where it stands in the definition.
    pub index: usize,
    /// What says how.
    pub class: GroupVersionKind,
    /// What stands for the external thing.
    pub managed: GroupVersionKind,
    /// How fields of the managed resource follow from claim and class, beyond `specTemplate`.
    pub mapping: Vec<Rule>,
    /// Whether a claim may say which external thing it means: whoever may, may take over any.
    pub allows_external_names: bool,
    /// What keeps it from making anything new.
    pub unusable: Option<Unusable>,
}

/// Why an implementation makes nothing new. What is bound by it is served all the same: claims that are
/// held need somebody to let them go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// In words, with what to do.
    pub why: String,
    /// Whether claims by its class are told so: not if another implementation has the class.
    pub has_class: bool,
    /// Whether there are objects of its managed kind to watch.
    pub has_managed: bool,
}

impl Implementation {
    /// Its place in the definition.
    pub fn place(&self) -> FieldPath {
        place(self.index)
    }

    /// Whether it is about claims by classes of this kind.
    pub fn has_class(&self, kind: &GroupKind) -> bool {
        self.class.group_kind == *kind && self.unusable.as_ref().is_none_or(|it| it.has_class)
    }
}

fn place(index: usize) -> FieldPath {
    FieldPath::new("spec").child("implementations").index(index)
}

/// Reads a definition. None if not even the claim can be read; what is wrong comes with it either way.
pub fn parse(object: &Object) -> (Option<Definition>, Vec<FieldError>) {
    let spec = object.spec();
    let field = FieldPath::new("spec");
    let mut errors = Vec::new();
    let claim = read_kind(spec, &field, "claim", &mut errors);
    let policy = match spec.get("policy").filter(|it| !it.is_null()) {
        Some(_) => read_kind(spec, &field, "policy", &mut errors),
        None => None,
    };
    let listed = spec.get("implementations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if listed.is_empty() {
        errors.push(FieldError::required(field.child("implementations"), "name at least one"));
    }
    let mut implementations: Vec<Arc<Implementation>> = Vec::new();
    for (index, value) in listed.iter().enumerate() {
        let before = errors.len();
        let Some(mut read) = read_implementation(index, value, &mut errors) else { continue };
        read.unusable = Unusable::because(&errors[before..]);
        let is_twin = |it: &Arc<Implementation>| {
            it.class.group_kind == read.class.group_kind || it.managed.group_kind == read.managed.group_kind
        };
        match implementations.iter().find(|it| is_twin(it)) {
            None => implementations.push(Arc::new(read)),
            Some(twin) => {
                let why = format!("shares its class or managed kind with {}", twin.place());
                errors.push(FieldError::forbidden(place(index), why));
            }
        }
    }
    let definition =
        claim.map(|claim| Definition { name: object.name().into(), claim, policy, implementations });
    (definition, errors)
}

fn read_kind(
    of: &Value,
    at: &FieldPath,
    field: &str,
    errors: &mut Vec<FieldError>,
) -> Option<GroupVersionKind> {
    let at = at.child(field);
    let Some(value) = of.get(field).filter(|it| it.is_object()) else {
        errors.push(FieldError::required(at, "name a kind with apiVersion and kind"));
        return None;
    };
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let parsed = GroupVersionKind::parse(text("apiVersion"), text("kind"));
    let refused =
        |error| FieldError::invalid_text(at, &format!("{} {}", text("apiVersion"), text("kind")), error);
    parsed.map_err(|error| errors.push(refused(error.to_string()))).ok()
}

fn read_implementation(index: usize, value: &Value, errors: &mut Vec<FieldError>) -> Option<Implementation> {
    let at = place(index);
    let class = read_kind(value, &at, "class", errors);
    let managed = read_kind(value, &at, "managed", errors);
    let listed = value.get("mapping").and_then(Value::as_array).into_iter().flatten();
    let mut mapping = Vec::new();
    for (number, rule) in listed.enumerate() {
        match Rule::read(rule, &at.child("mapping").index(number)) {
            Ok(rule) => mapping.push(rule),
            Err(error) => errors.push(error),
        }
    }
    let allows_external_names = value.get("allowExternalNames").and_then(Value::as_bool).unwrap_or_default();
    let (class, managed) = (class?, managed?);
    Some(Implementation { index, class, managed, mapping, allows_external_names, unusable: None })
}

impl Unusable {
    /// For all of these reasons; none if there are none.
    pub fn because<T: std::fmt::Display>(reasons: &[T]) -> Option<Self> {
        let why = reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        (!reasons.is_empty()).then_some(Self { why, has_class: true, has_managed: true })
    }
}
