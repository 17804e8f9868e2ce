//! What a write changes, place by place.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::Fields;
use super::node::{Child, Node, Shape};
use crate::structural::order;

/// The places that differ between two objects.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) added: Fields,
    pub(super) modified: Fields,
    pub(super) removed: Fields,
}

impl Changes {
    /// Where there is now something that was not there before.
    pub(super) fn written(&self) -> Fields {
        let mut written = self.added.clone();
        written.union(&self.modified);
        written
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    fn put(&mut self, step: &str, below: Changes) {
        self.added.put(step, below.added);
        self.modified.put(step, below.modified);
        self.removed.put(step, below.removed);
    }
}

pub(super) fn compare(node: Node<'_>, old: &Value, new: &Value) -> Changes {
    match (node.shape(old), node.shape(new)) {
        (Shape::Inner(from, olds), Shape::Inner(to, news)) if from == to => {
            if olds.is_empty() && news.is_empty() { Changes::default() } else { compare_below(&olds, &news) }
        }
        (Shape::Inner(_, olds), Shape::Null) if !olds.is_empty() => compare_below(&olds, &[]),
        (Shape::Null, Shape::Inner(_, news)) if !news.is_empty() => compare_below(&[], &news),
        (before, after) => replaced(&before, &after, is_same(old, new)),
    }
}

/// Everything in a value, with all that it is in: what a value brings along that was not there before.
pub(super) fn everything(node: Node<'_>, value: &Value) -> Fields {
    let mut fields = Fields::leaf();
    if let Shape::Inner(_, children) = node.shape(value) {
        for child in children {
            fields.put(child.step, everything(child.node, child.value));
        }
    }
    fields
}

fn is_same(old: &Value, new: &Value) -> bool {
    order::compare(old, new).is_eq()
}

fn compare_below(olds: &[Child<'_, '_>], news: &[Child<'_, '_>]) -> Changes {
    type Side<'c, 'a, 'v> = Vec<&'c Child<'a, 'v>>;
    let mut by_step: BTreeMap<&str, (Side<'_, '_, '_>, Side<'_, '_, '_>)> = BTreeMap::new();
    for old in olds {
        by_step.entry(&old.step).or_default().0.push(old);
    }
    for new in news {
        by_step.entry(&new.step).or_default().1.push(new);
    }
    let mut changes = Changes::default();
    for (step, (olds, news)) in by_step {
        let below = match (&olds[..], &news[..]) {
            ([], [new]) => Changes { added: everything(new.node, new.value), ..Changes::default() },
            ([old], []) => Changes { removed: everything(old.node, old.value), ..Changes::default() },
            ([old], [new]) => compare(new.node, old.value, new.value),
            _ => compare_repeated(&olds, &news),
        };
        changes.put(step, below);
    }
    changes
}

/// Elements that should be unique and are not, in objects from before a schema said so: nobody can tell
/// which is which, so they count as one thing.
fn compare_repeated(olds: &[&Child<'_, '_>], news: &[&Child<'_, '_>]) -> Changes {
    let is_unchanged =
        olds.len() == news.len() && olds.iter().zip(news).all(|(old, new)| is_same(old.value, new.value));
    match (olds.is_empty(), news.is_empty()) {
        _ if is_unchanged => Changes::default(),
        (true, _) => Changes { added: Fields::leaf(), ..Changes::default() },
        (_, true) => Changes { removed: Fields::leaf(), ..Changes::default() },
        _ => Changes { modified: Fields::leaf(), ..Changes::default() },
    }
}

/// One value in the place of another: what was below is gone, and what is below is new.
fn replaced(before: &Shape<'_, '_>, after: &Shape<'_, '_>, is_same: bool) -> Changes {
    if is_same {
        return Changes::default();
    }
    let mut changes = match (before, after) {
        (Shape::Inner(_, olds), Shape::Inner(_, news)) => {
            let gone = compare_below(olds, &[]);
            Changes { removed: gone.removed, ..compare_below(&[], news) }
        }
        (Shape::Inner(_, olds), _) => compare_below(olds, &[]),
        (_, Shape::Inner(_, news)) => compare_below(&[], news),
        _ => Changes::default(),
    };
    changes.modified.is_owned = true;
    changes
}
