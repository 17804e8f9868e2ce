//! The type of all sections of one name.

use serde_json::Value;

use crate::object::Object;

/// An object read as the type of sections.
#[derive(Clone, Copy, Debug)]
pub struct SectionType<'a>(pub &'a Object);

impl<'a> SectionType<'a> {
    /// Which sections.
    pub fn section(self) -> &'a str {
        self.0.name()
    }

    /// Whether their contents lie in secrets.
    pub fn is_secret(self) -> bool {
        self.0.spec()["secret"].as_bool().unwrap_or_default()
    }

    /// What their contents must be; none if they are free.
    pub fn schema(self) -> Option<&'a Value> {
        Some(&self.0.spec()["schema"]).filter(|it| it.as_object().is_some_and(|it| !it.is_empty()))
    }
}
