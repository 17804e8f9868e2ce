//! What a reconciler may read and write. Whatever is not granted is denied.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object::Object;

/// What somebody wants to do with a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// See its contents.
    Read,
    /// Set its contents, or take it away.
    Write,
}

/// Sections that a reconciler may read and write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Those that it may read.
    pub read: BTreeSet<String>,
    /// Those that it may write; it may read them, too.
    pub write: BTreeSet<String>,
}

impl Grant {
    /// What an object grants.
    pub fn of(object: &Object) -> Self {
        let names = |field: &str| -> BTreeSet<String> {
            let list = object.spec()[field].as_array().map_or(&[][..], Vec::as_slice);
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self { read: names("read"), write: names("write") }
    }

    /// Whether it allows this.
    pub fn allows(&self, right: Right, section: &str) -> bool {
        self.write.contains(section) || right == Right::Read && self.read.contains(section)
    }

    /// Whether both allow the same, in whichever words.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let readable = |it: &Self| it.read.union(&it.write).cloned().collect::<BTreeSet<_>>();
        self.write == other.write && readable(self) == readable(other)
    }
}

/// A section that two grants would both write; each has one writer at most.
pub fn shared_writer<'a>(one: &'a Grant, other: &'a Grant) -> Option<&'a str> {
    one.write.intersection(&other.write).next().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(read: &[&str], write: &[&str]) -> Grant {
        let set = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        Grant { read: set(read), write: set(write) }
    }

    #[test]
    fn what_is_not_granted_is_denied() {
        let grant = grant(&["network"], &["cluster"]);
        for (right, section, is_allowed) in [
            (Right::Read, "network", true),
            (Right::Write, "network", false),
            (Right::Read, "cluster", true),
            (Right::Write, "cluster", true),
            (Right::Read, "credentials", false),
            (Right::Write, "credentials", false),
            (Right::Read, "", false),
        ] {
            assert_eq!(grant.allows(right, section), is_allowed, "{right:?} {section}");
        }
    }

    #[test]
    fn a_section_has_one_writer() {
        let shoot = grant(&["network"], &["cluster"]);
        assert_eq!(shared_writer(&shoot, &grant(&["cluster"], &["network"])), None);
        assert_eq!(shared_writer(&shoot, &grant(&[], &["a", "cluster"])), Some("cluster"));
    }

    #[test]
    fn reading_what_one_writes_need_not_be_said() {
        assert!(grant(&["a"], &["b"]).is_same_as(&grant(&["a", "b"], &["b"])));
        assert!(!grant(&["a"], &["b"]).is_same_as(&grant(&["a", "b"], &[])));
        assert!(!grant(&["a"], &["b"]).is_same_as(&grant(&["b"], &["b"])));
    }
}
