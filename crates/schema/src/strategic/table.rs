//! Which lists of the built-in kinds merge, and by what.

use concert_model::key::GroupKind;

/// What a patch does to a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merging {
    /// Takes its place.
    Replace,
    /// Adds values that are not there yet.
    Set,
    /// Merges the elements that have the same value in this field.
    Key(&'static str),
}

/// Lists that every kind has.
const EVERY_KIND: [(&str, Merging); 2] =
    [("metadata.finalizers", Merging::Set), ("metadata.ownerReferences", Merging::Key("uid"))];

/// Group, kind, path. A list that is not here is replaced: the rules of roles, the subjects of bindings,
/// the versions of definitions.
const BY_KIND: [(&str, &str, &str, Merging); 2] = [
    ("", "ServiceAccount", "secrets", Merging::Key("name")),
    ("", "Namespace", "status.conditions", Merging::Key("type")),
];

/// A place in an object of some kind. Elements of a list are at the place of the list.
pub(super) struct Place<'a> {
    kind: &'a GroupKind,
    path: String,
}

impl<'a> Place<'a> {
    pub(super) fn of(kind: &'a GroupKind) -> Self {
        Self { kind, path: String::new() }
    }

    pub(super) fn child(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { kind: self.kind, path }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn merging(&self) -> Merging {
        let of_kind = BY_KIND.iter().find(|(group, kind, path, _)| {
            *group == &*self.kind.group && *kind == &*self.kind.kind && *path == self.path
        });
        let of_every = EVERY_KIND.iter().find(|(path, _)| *path == self.path);
        of_kind
            .map(|(.., merging)| *merging)
            .or(of_every.map(|(_, merging)| *merging))
            .unwrap_or(Merging::Replace)
    }
}
