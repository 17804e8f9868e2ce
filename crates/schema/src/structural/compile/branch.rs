//! The branches of `allOf`, `anyOf`, `oneOf` and `not`: value validations and nothing else.
//!
//! One exception: an int-or-string may spell out its two types in `anyOf`, or in the `anyOf` of its
//! first `allOf`, as generated schemas do.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Compiler;
use super::keywords::Keywords;
use crate::structural::checks::{Branch, Branches, Checks};
use crate::structural::path::Path;
use crate::structural::schema::{Schema, Type};

/// Whose junctors are read, which decides where the int-or-string pattern may stand.
#[derive(Clone, Copy)]
pub(super) enum Junctors<'a> {
    /// Those of a node: the pattern may be its `anyOf`, or that of its first `allOf`.
    Structural(&'a Schema),
    /// Those of the first `allOf` of a node: the pattern may be its `anyOf`.
    FirstAllOf,
    /// Those of any other branch.
    Nested,
}

/// What a branch may not say, unless it says nothing by it.
const FORBIDDEN: [(&str, &str); 14] = [
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("externalDocs", "must be undefined to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

impl Compiler {
    pub(super) fn branches(
        &mut self,
        keywords: &Keywords<'_>,
        junctors: Junctors<'_>,
    ) -> Option<Box<Branches>> {
        let first = match junctors {
            Junctors::Structural(_) => Junctors::FirstAllOf,
            Junctors::FirstAllOf | Junctors::Nested => Junctors::Nested,
        };
        let any_of = match junctors {
            // The type check of an int-or-string has seen to it already.
            Junctors::Structural(schema) if schema.int_or_string && is_int_or_string(keywords) => vec![],
            Junctors::Structural(_) | Junctors::FirstAllOf if is_int_or_string(keywords) => {
                vec![of_type(Type::Integer), of_type(Type::String)]
            }
            _ => self.branch_list(keywords, "anyOf", Junctors::Nested),
        };
        let branches = Branches {
            any_of,
            all_of: self.branch_list(keywords, "allOf", first),
            one_of: self.branch_list(keywords, "oneOf", Junctors::Nested),
            not: keywords
                .get("not")
                .and_then(|source| self.branch(source, Junctors::Nested, &keywords.path().child("not"))),
        };
        let is_empty = branches.any_of.is_empty()
            && branches.all_of.is_empty()
            && branches.one_of.is_empty()
            && branches.not.is_none();
        if is_empty { None } else { Some(Box::new(branches)) }
    }

    /// The branches of one junctor; `first` is how the first of them is read.
    fn branch_list(&mut self, keywords: &Keywords<'_>, keyword: &str, first: Junctors<'_>) -> Vec<Branch> {
        let list = keywords.list(keyword, self);
        let place = keywords.path().child(keyword);
        let mut branches = Vec::with_capacity(list.len());
        for (index, source) in list.iter().enumerate() {
            let junctors = if index == 0 { first } else { Junctors::Nested };
            branches.extend(self.branch(source, junctors, &place.index(index)));
        }
        branches
    }

    fn branch(&mut self, source: &Value, junctors: Junctors<'_>, path: &Path<'_>) -> Option<Branch> {
        self.enter(path, |compiler| {
            let keywords = Keywords::read(source, path, compiler)?;
            compiler.check_forbidden(&keywords);
            Some(Branch {
                kind: None,
                properties: compiler.branch_properties(&keywords),
                items: keywords
                    .get("items")
                    .and_then(|items| compiler.branch(items, Junctors::Nested, &path.child("items")))
                    .map(Box::new),
                checks: compiler.checks(&keywords, None, junctors),
            })
        })
    }

    fn check_forbidden(&mut self, keywords: &Keywords<'_>) {
        for (keyword, why) in FORBIDDEN {
            let says_something = match keywords.get(keyword) {
                None | Some(Value::Bool(false)) => false,
                Some(Value::String(text)) => !text.is_empty(),
                Some(Value::Array(list)) => !list.is_empty(),
                Some(_) => true,
            };
            if says_something {
                self.forbid(&keywords.path().child(keyword), why);
            }
        }
        if keywords.flag("uniqueItems", self) {
            self.forbid(&keywords.path().child("uniqueItems"), "must be false to be structural");
        }
    }

    fn branch_properties(&mut self, keywords: &Keywords<'_>) -> BTreeMap<String, Branch> {
        let path = keywords.path().child("properties");
        let mut properties = BTreeMap::new();
        for (name, source) in keywords.object("properties", self).into_iter().flatten() {
            if name == "metadata" {
                self.forbid(&path.key(name), "must not be specified in a nested context");
            }
            if let Some(branch) = self.branch(source, Junctors::Nested, &path.key(name)) {
                properties.insert(name.clone(), branch);
            }
        }
        properties
    }
}

fn of_type(kind: Type) -> Branch {
    Branch { kind: Some(kind), ..Branch::default() }
}

/// True when `anyOf` is exactly the types integer and string, in this order.
fn is_int_or_string(keywords: &Keywords<'_>) -> bool {
    let is = |branch: &Value, kind: Type| {
        branch.as_object().is_some_and(|branch| {
            branch.len() == 1 && branch.get("type").is_some_and(|found| found == kind.name())
        })
    };
    match keywords.get("anyOf") {
        Some(Value::Array(list)) => {
            matches!(list.as_slice(), [a, b] if is(a, Type::Integer) && is(b, Type::String))
        }
        _ => false,
    }
}

/// Reports what the branches at the root speak of and the schema itself does not specify.
///
/// Only from the root: Kubernetes lets it pass further down, and a schema that works there must here.
pub(super) fn check_complete(schema: &Schema, path: &Path<'_>, compiler: &mut Compiler) {
    check_branches(&schema.checks, schema, path, path, compiler);
}

fn check_branches(
    checks: &Checks,
    schema: &Schema,
    path: &Path<'_>,
    branch_path: &Path<'_>,
    compiler: &mut Compiler,
) {
    let Some(branches) = &checks.branches else { return };
    let junctors = [("allOf", &branches.all_of), ("anyOf", &branches.any_of), ("oneOf", &branches.one_of)];
    for (name, list) in junctors {
        let place = branch_path.child(name);
        for (index, branch) in list.iter().enumerate() {
            check_branch(branch, schema, path, &place.index(index), compiler);
        }
    }
    if let Some(not) = &branches.not {
        check_branch(not, schema, path, &branch_path.child("not"), compiler);
    }
}

fn check_branch(
    branch: &Branch,
    schema: &Schema,
    path: &Path<'_>,
    branch_path: &Path<'_>,
    compiler: &mut Compiler,
) {
    check_branches(&branch.checks, schema, path, branch_path, compiler);
    let (place, branch_place) = (path.child("properties"), branch_path.child("properties"));
    for (name, branch) in &branch.properties {
        let (place, branch_place) = (place.key(name), branch_place.key(name));
        match schema.properties.get(name) {
            Some(schema) => check_branch(branch, schema, &place, &branch_place, compiler),
            None => compiler.require(&place, format!("because it is defined in {}", branch_place.field())),
        }
    }
    if let Some(branch) = &branch.items {
        let (place, branch_place) = (path.child("items"), branch_path.child("items"));
        match schema.items() {
            Some(schema) => check_branch(branch, schema, &place, &branch_place, compiler),
            None => compiler.require(&place, format!("because it is defined in {}", branch_place.field())),
        }
    }
}
