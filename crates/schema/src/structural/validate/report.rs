//! Where the walk puts what it finds.

use concert_model::field::FieldError;

use super::ERRORS_MAX;

/// Counts errors and, when asked to, keeps them.
///
/// A branch of `anyOf` is often tried only to learn whether it fits: then nothing is put into words.
pub(super) struct Report {
    found: usize,
    errors: Option<Vec<FieldError>>,
}

impl Report {
    pub(super) fn collecting() -> Self {
        Self { found: 0, errors: Some(Vec::new()) }
    }

    pub(super) fn counting() -> Self {
        Self { found: 0, errors: None }
    }

    pub(super) fn add(&mut self, error: impl FnOnce() -> FieldError) {
        self.found += 1;
        if let Some(errors) = &mut self.errors
            && errors.len() < ERRORS_MAX
        {
            errors.push(error());
        }
    }

    pub(super) fn is_collecting(&self) -> bool {
        self.errors.is_some()
    }

    pub(super) fn found(&self) -> usize {
        self.found
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.errors.unwrap_or_default()
    }
}
