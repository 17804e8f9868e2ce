//! Groups, labels and annotations, and how the name of a type becomes a kind.

use crate::name::{self, SyntaxError};

/// The group of the first version of each type; others have their version in front of it.
pub const GROUP: &str = "no8s.concert.dev";

/// Label: the number by which REST knows a resource.
pub const ID: &str = "no8s.concert.dev/id";
/// Label: the action plugin of a resource that has one, so that it can be selected by.
pub const ACTION: &str = "no8s.concert.dev/action";

/// Annotation of a definition: the name of the resource type.
pub const TYPE: &str = "no8s.concert.dev/type";
/// Annotation of a definition: the version of the resource type.
pub const VERSION: &str = "no8s.concert.dev/version";
/// Annotation of a definition: its JSON Schema (draft 7) as it was given.
pub const SCHEMA: &str = "no8s.concert.dev/schema";
/// Annotation of a definition: a text for people.
pub const DESCRIPTION: &str = "no8s.concert.dev/description";
/// Annotation of a definition: `active`, `deprecated` or any other word.
pub const STATUS: &str = "no8s.concert.dev/status";
/// Annotation of a definition: a JSON object that means nothing to us.
pub const METADATA: &str = "no8s.concert.dev/metadata";
/// Annotation of definitions and resources: when REST last wrote it.
pub const UPDATED_AT: &str = "no8s.concert.dev/updated-at";
/// Annotation of a resource: a run is asked for, at the time it says or else at once; another value asks for
/// another one.
pub const RECONCILE_AT: &str = "no8s.concert.dev/reconcile-at";
/// Annotation of a resource: the finalizer that it got for the worker of its type when it was made.
pub const FINALIZER: &str = "no8s.concert.dev/finalizer";

/// Longest name of a type: that of a kind.
const TYPE_BYTES_MAX: usize = 63;

/// Whether objects of this group are resources.
pub fn is_ours(group: &str) -> bool {
    group.strip_suffix(GROUP).is_some_and(|rest| rest.is_empty() || rest.len() > 1 && rest.ends_with('.'))
}

/// The group of a version of a type that is not the first one to come.
pub fn versioned_group(version: &str) -> String {
    format!("{version}.{GROUP}")
}

/// What many of a type are called in paths.
pub fn plural(type_name: &str) -> String {
    let mut plural = type_name.to_ascii_lowercase();
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| plural.ends_with(end));
    plural.push_str(if hisses { "es" } else { "s" });
    plural
}

/// The name of the object that stands for a worker. Workers are called as people like, such as
/// `dns_record`; what an object cannot be called is replaced, and what then could be mistaken gets a
/// number of its own.
pub fn worker_object(worker: &str) -> String {
    let fits = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let plain: String = worker.chars().map(fits).take(200).collect();
    if name::check_subdomain(worker).is_ok() {
        return worker.to_owned();
    }
    // FNV-1a: stable over versions and machines, which names must be.
    let hash = worker.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{}-{:08x}", plain.trim_matches('-'), hash >> 32).trim_start_matches('-').to_owned()
}

/// The name of a type must be able to be a kind.
///
/// # Errors
/// What would be right.
pub fn check_type_name(text: &str) -> Result<(), SyntaxError> {
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_well && text.len() <= TYPE_BYTES_MAX && text.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Ok(());
    }
    Err(SyntaxError("a resource type must be a letter followed by at most 62 letters or digits"))
}

/// The version of a type must be able to be the version of a kind: a DNS-1035 label.
///
/// # Errors
/// What would be right.
pub fn check_type_version(text: &str) -> Result<(), SyntaxError> {
    name::check_version(text)?;
    if text.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(SyntaxError("a version must start with a letter, such as v1 or v1beta1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_groups_are_one_and_those_below_it() {
        for (group, is) in [
            (GROUP, true),
            ("v2.no8s.concert.dev", true),
            ("xno8s.concert.dev", false),
            (".no8s.concert.dev", false),
            ("concert.dev", false),
            ("", false),
        ] {
            assert_eq!(is_ours(group), is, "{group}");
        }
        assert!(is_ours(&versioned_group("v2")));
    }

    #[test]
    fn plurals_are_english_enough() {
        for (name, many) in [
            ("DnsRecord", "dnsrecords"),
            ("Bus", "buses"),
            ("Box", "boxes"),
            ("Switch", "switches"),
            ("Mesh", "meshes"),
        ] {
            assert_eq!(plural(name), many);
        }
    }

    #[test]
    fn every_worker_has_an_object_of_its_own() {
        assert_eq!(worker_object("dns-record"), "dns-record");
        let odd = ["dns_record", "dns.record.", "DNS-record", "dns-Record", "_", "__", "ä", &"x".repeat(300)];
        let names: std::collections::BTreeSet<String> = odd.iter().map(|it| worker_object(it)).collect();
        assert_eq!(names.len(), odd.len());
        assert!(names.iter().all(|it| name::check_subdomain(it).is_ok()), "{names:?}");
        assert!(worker_object("dns_record").starts_with("dns-record-"));
    }

    #[test]
    fn types_are_kinds_and_versions_are_labels() {
        for good in ["DnsRecord", "a", "A9", &"a".repeat(63)] {
            assert!(check_type_name(good).is_ok(), "{good}");
        }
        for bad in ["", "9a", "Dns-Record", "Dns Record", "Dö", &"a".repeat(64)] {
            assert!(check_type_name(bad).is_err(), "{bad}");
        }
        for good in ["v1", "v1beta1", "stable", "a-b"] {
            assert!(check_type_version(good).is_ok(), "{good}");
        }
        for bad in ["", "1.0", "1", "V1", "v1.0", "v-", &"v".repeat(64)] {
            assert!(check_type_version(bad).is_err(), "{bad}");
        }
    }
}
