//! The path and query of a request, put together piece by piece.

/// A path and its query. Names and values cannot leave their place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Starts with a path that needs no escapes.
    pub fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    /// The same, one step deeper.
    #[must_use]
    pub fn step(mut self, segment: &str) -> Self {
        self.0.push('/');
        escape(&mut self.0, segment);
        self
    }

    /// The same, with a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.contains('?') { '&' } else { '?' });
        self.0.push_str(name);
        self.0.push('=');
        escape(&mut self.0, value);
        self
    }

    /// The same, with a parameter if it has a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value.filter(|it| !it.is_empty()) {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// What to ask for.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What to ask for.
    pub fn into_path(self) -> String {
        self.0
    }
}

fn escape(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_cannot_leave_their_place() {
        let address = Address::new("/api/v1")
            .step("a/../b?c")
            .with("labelSelector", "a in (b,c)")
            .with_some("x", None)
            .with("y", "&=");
        assert_eq!(address.as_str(), "/api/v1/a%2F..%2Fb%3Fc?labelSelector=a%20in%20%28b%2Cc%29&y=%26%3D");
    }
}
