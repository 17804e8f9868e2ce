//! The names of a kind: which of those a definition asks for it gets.
//!
//! Within a group, plurals, singulars and short names are words for resources, and no two kinds share
//! one; kinds and the kinds of their lists are another such set. Who has a name keeps it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::card::Card;

/// Names that other kinds of a group have.
#[derive(Debug, Default)]
pub(super) struct Taken {
    resources: BTreeSet<Arc<str>>,
    kinds: BTreeSet<Arc<str>>,
}

impl Taken {
    /// Takes note of the names of one more kind.
    pub(super) fn add(&mut self, card: &Card) {
        self.resources.extend([card.kind.plural.clone(), card.singular.clone()]);
        self.resources.extend(card.short_names.iter().cloned());
        self.kinds.extend([card.kind.group_kind.kind.clone(), card.list_kind.clone()]);
    }
}

/// Why a definition does not get all the names it asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clash {
    /// One word, as Kubernetes has it.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// What becomes of the names in `asked` (`spec.names`): each that is free is given, and for one that is
/// not, what the definition had before stays.
pub(super) fn accept(asked: &Value, had: Option<&Card>, taken: &Taken) -> (Value, Option<Clash>) {
    let had = had.map_or_else(|| json!({}), written);
    let mut given = asked.clone();
    let mut clash = None;
    for (field, reason, pool) in [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ] {
        let Some(name) = texts(&asked[field]).find(|name| pool.contains(*name)) else { continue };
        clash = Some(Clash { reason, message: format!("{name:?} is already in use") });
        given[field] = had[field].clone();
    }
    if let Value::Object(given) = &mut given {
        given.retain(|_, value| !value.is_null());
    }
    (given, clash)
}

/// The names on a card, as a definition has them.
fn written(card: &Card) -> Value {
    json!({"plural": &*card.kind.plural, "singular": &*card.singular, "shortNames": texts_of(&card.short_names),
        "kind": &*card.kind.group_kind.kind, "listKind": &*card.list_kind})
}

fn texts_of(names: &[Arc<str>]) -> Value {
    if names.is_empty() { Value::Null } else { names.iter().map(|name| Value::from(&**name)).collect() }
}

/// The texts in a text or a list of texts.
pub(super) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    list.iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken() -> Taken {
        let set = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        Taken { resources: set(&["widgets", "widget", "wd"]), kinds: set(&["Widget", "WidgetList"]) }
    }

    #[test]
    fn free_names_are_given() {
        let asked = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["g"]});
        assert_eq!(accept(&asked, None, &taken()), (asked, None));
    }

    #[test]
    fn each_sort_of_name_can_be_taken() {
        for (field, name, reason) in [
            ("plural", json!("wd"), "PluralConflict"),
            ("singular", json!("widgets"), "SingularConflict"),
            ("shortNames", json!(["g", "widget"]), "ShortNamesConflict"),
            ("kind", json!("WidgetList"), "KindConflict"),
            ("listKind", json!("Widget"), "ListKindConflict"),
        ] {
            let mut asked = json!({"plural": "gadgets", "singular": "gadget", "kind": "Gadget"});
            asked[field] = name;
            let (given, clash) = accept(&asked, None, &taken());
            assert_eq!(clash.unwrap().reason, reason);
            assert!(given.get(field).is_none(), "{given}");
        }
    }
}
