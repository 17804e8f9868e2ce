//! Identity: which kind, which object.
//!
//! An object is identified by (group, kind, namespace, name). Versions are views of the same object
//! and so are not part of the key.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::SyntaxError;

/// A kind of any version: `Widget.example.com`; `Secret` for the core group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: Arc<str>,
    /// In the singular, with a capital: `Widget`.
    pub kind: Arc<str>,
}

impl GroupKind {
    /// A kind of `group`, which is empty for the core group.
    pub fn new(group: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }

    /// This kind in one version.
    pub fn at_version(&self, version: impl Into<Arc<str>>) -> GroupVersionKind {
        GroupVersionKind { group_kind: self.clone(), version: version.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// A kind in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// Group and kind.
    pub group_kind: GroupKind,
    /// `v1`, `v1beta1`, …
    pub version: Arc<str>,
}

impl GroupVersionKind {
    /// From an object's `apiVersion` (`v1` or `group/v1`) and `kind`.
    pub fn parse(api_version: &str, kind: &str) -> Result<Self, SyntaxError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if version.is_empty() || version.contains('/') {
            return Err(SyntaxError("must be VERSION or GROUP/VERSION"));
        }
        if kind.is_empty() {
            return Err(SyntaxError("a kind must not be empty"));
        }
        Ok(GroupKind::new(group, kind).at_version(version))
    }

    /// The `apiVersion` of objects of this kind.
    pub fn api_version(&self) -> String {
        if self.group_kind.group.is_empty() {
            return self.version.to_string();
        }
        format!("{}/{}", self.group_kind.group, self.version)
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.group_kind.kind)
    }
}

/// Which object. Two keys are equal exactly when they mean the same place in a store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// What kind of object.
    #[serde(flatten)]
    pub kind: GroupKind,
    /// Empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Unique within kind and namespace.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// The key of a cluster-scoped object.
    pub fn cluster(kind: GroupKind, name: impl Into<Arc<str>>) -> Self {
        Self { kind, namespace: "".into(), name: name.into() }
    }

    /// The key of a namespaced object.
    pub fn namespaced(kind: GroupKind, namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// Identity of one incarnation of an object: a name may be used again, a uid never.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Uid(pub Arc<str>);

impl Uid {
    /// Formats 128 random bits as a version 4 UUID.
    pub fn from_random(bits: u128) -> Self {
        let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Self(parts.join("-").into())
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Opaque token of one write. Compare for equality; never parse, never order.
/// What can be ordered is a store's own [`Revision`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceVersion(pub Arc<str>);

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Revision> for ResourceVersion {
    fn from(revision: Revision) -> Self {
        Self(revision.to_string().into())
    }
}

/// A store's ordered number: each write that changes anything gets the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_with_and_without_a_group() {
        let widget = GroupVersionKind::parse("example.com/v1", "Widget").unwrap();
        assert_eq!(widget.to_string(), "example.com/v1, Kind=Widget");
        assert_eq!(widget.group_kind.to_string(), "Widget.example.com");
        let secret = GroupVersionKind::parse("v1", "Secret").unwrap();
        assert_eq!((secret.api_version().as_str(), secret.group_kind.to_string().as_str()), ("v1", "Secret"));
        for (api_version, kind) in [("", "A"), ("a/", "A"), ("a/b/c", "A"), ("v1", "")] {
            assert!(GroupVersionKind::parse(api_version, kind).is_err(), "{api_version} {kind}");
        }
    }

    #[test]
    fn uids_are_version_4_uuids() {
        let uid = Uid::from_random(u128::MAX).to_string();
        assert_eq!(uid, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Uid::from_random(0).to_string(), "00000000-0000-4000-8000-000000000000");
    }
}
