//! Bytes that must not be seen: credentials and connection details.

use std::collections::BTreeMap;
use std::fmt;

/// Named bytes such as `password`. Printed as names only.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Details(BTreeMap<String, Vec<u8>>);

impl Details {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces one entry.
    pub fn set(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(name.into(), bytes.into());
    }

    /// The same with one more entry.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        self.set(name, bytes);
        self
    }

    /// One entry.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// All entries, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Vec<u8>)> for Details {
    fn from_iter<I: IntoIterator<Item = (String, Vec<u8>)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl fmt::Debug for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_printed() {
        let details = Details::new().with("password", "hunter2");
        assert_eq!(format!("{details:?}"), r#"{"password"}"#);
    }
}
