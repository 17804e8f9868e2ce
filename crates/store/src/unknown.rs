//! Fields that no schema knows, and where warnings about a write go.

use std::sync::{Arc, Mutex, PoisonError};

use concert_model::FieldPath;

/// Most warnings of one write: an answer need not repeat a megabyte of mistakes.
const WARNINGS_MAX: usize = 100;

/// What becomes of a write with fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// They are dropped without a word.
    #[default]
    Drop,
    /// They are dropped, and each is warned about.
    Warn,
    /// The write is refused with [`crate::Error::Unknown`].
    Refuse,
}

/// Where a write leaves what its author should hear although it succeeded. Clones share one list; the
/// default keeps nothing and costs nothing.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Option<Arc<Mutex<Vec<String>>>>);

impl Warnings {
    /// An empty list that keeps what it is told.
    pub fn collect() -> Self {
        Self(Some(Arc::default()))
    }

    /// Adds a warning, unless it is there already. One list keeps at most a hundred.
    pub fn add(&self, warning: impl Into<String>) {
        let Some(list) = &self.0 else { return };
        let (mut list, warning) = (list.lock().unwrap_or_else(PoisonError::into_inner), warning.into());
        // A write that is tried again says the same again.
        if list.len() < WARNINGS_MAX && !list.contains(&warning) {
            list.push(warning);
        }
    }

    /// All warnings so far, in order; the list is empty afterwards.
    pub fn take(&self) -> Vec<String> {
        let Some(list) = &self.0 else { return Vec::new() };
        std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Two are equal if they are the same list, or both keep nothing.
impl PartialEq for Warnings {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for Warnings {}

/// `unknown field "spec.colour"`: what Kubernetes says.
pub(crate) fn unknown_field(field: &FieldPath) -> String {
    format!("unknown field {:?}", field.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_one_list_and_the_default_keeps_nothing() {
        let warnings = Warnings::collect();
        let shared = warnings.clone();
        shared.add("a");
        shared.add("a");
        shared.add("b");
        assert_eq!(warnings, shared);
        assert_ne!(warnings, Warnings::collect());
        assert_eq!(warnings.take(), ["a", "b"]);
        assert!(shared.take().is_empty());
        let silent = Warnings::default();
        silent.add("a");
        assert!(silent.take().is_empty());
    }

    #[test]
    fn a_list_is_bounded() {
        let warnings = Warnings::collect();
        for i in 0..1000 {
            warnings.add(i.to_string());
        }
        assert_eq!(warnings.take().len(), WARNINGS_MAX);
    }
}
