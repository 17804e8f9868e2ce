//! All that play for one claim kind, whichever definitions they come from.

use std::sync::Arc;

use concert_model::{GroupKind, GroupVersionKind};

use super::definition::Implementation;

/// All that play for one claim kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Ensemble {
    /// What applications ask for.
    pub claim: GroupVersionKind,
    /// What says in a namespace which class is the default.
    pub policy: Option<GroupVersionKind>,
    /// The ways to make it real.
    pub implementations: Vec<Arc<Implementation>>,
    /// Those that make nothing new, and serve what is bound by them.
    pub unusable: Vec<Arc<Implementation>>,
}

impl Ensemble {
    /// All, whether they can make something new or not.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Implementation>> {
        self.implementations.iter().chain(&self.unusable)
    }

    /// Whether somebody sees to claims by classes of this kind.
    pub fn has_class(&self, kind: &GroupKind) -> bool {
        self.all().any(|it| it.has_class(kind))
    }

    /// Whether somebody sees to claims of managed resources of this kind.
    pub fn has_managed(&self, kind: &GroupKind) -> bool {
        self.all().any(|it| it.managed.group_kind == *kind)
    }

    /// The class kinds, for a sentence: `A or B`.
    pub fn classes(&self) -> String {
        either(self.implementations.iter().map(|it| &it.class))
    }

    /// The managed kinds, for a sentence.
    pub fn managed(&self) -> String {
        either(self.implementations.iter().map(|it| &it.managed))
    }
}

fn either<'k>(kinds: impl Iterator<Item = &'k GroupVersionKind>) -> String {
    kinds.map(|it| it.group_kind.to_string()).collect::<Vec<_>>().join(" or ")
}
