//! One rule of a role: what it allows, and which other rules it covers.
//!
//! Plain functions, as Kubernetes defines them.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Access;

const ALL: &str = "*";

/// Single permissions looked at to see whether one set of rules covers another. Real roles have a few
/// hundred; the product of four long lists has no bound.
const PERMISSIONS_MAX: usize = 10_000;

/// One entry of `rules`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rule {
    /// What may be done; `*` for everything.
    #[serde(deserialize_with = "texts")]
    pub verbs: Vec<String>,
    /// In which API groups; empty text for the core, `*` for all.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// `buckets`, `buckets/status`, `*/status`, `*`.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Only these objects; empty for all.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Paths; a `*` at the end stands for whatever follows.
    #[serde(rename = "nonResourceURLs", deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
}

/// A list of texts, where null is as good as none.
fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::<Vec<String>>::deserialize(from)?.unwrap_or_default())
}

impl Rule {
    /// The rules of a `rules` field; null is none.
    ///
    /// # Errors
    /// It is no list of rules.
    pub fn read_all(value: &Value) -> Result<Vec<Self>, serde_json::Error> {
        Ok(Option::<Vec<Self>>::deserialize(value)?.unwrap_or_default())
    }

    /// Whether this rule allows `access`. Where it holds is the business of its binding.
    pub fn allows(&self, access: &Access<'_>) -> bool {
        match access {
            Access::Path { verb, path } => {
                has(&self.verbs, verb) && self.non_resource_urls.iter().any(|url| is_under(url, path))
            }
            Access::Resource { verb, group, resource, subresource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|it| is_resource(it, resource, subresource))
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|it| it == name))
            }
        }
    }

    /// Whether whoever has this rule has all of `other`.
    fn covers(&self, other: &Self) -> bool {
        let has_names = match other.resource_names.is_empty() {
            true => self.resource_names.is_empty(),
            false => {
                self.resource_names.is_empty()
                    || other.resource_names.iter().all(|name| self.resource_names.contains(name))
            }
        };
        let has_resource = |wanted: &String| match wanted.split_once('/') {
            _ if has(&self.resources, wanted) => true,
            Some((_, part)) => self.resources.iter().any(|it| it.strip_prefix("*/") == Some(part)),
            None => false,
        };
        has_names
            && other.verbs.iter().all(|verb| has(&self.verbs, verb))
            && other.api_groups.iter().all(|group| has(&self.api_groups, group))
            && other.resources.iter().all(has_resource)
            && other.non_resource_urls.iter().all(|path| {
                self.non_resource_urls
                    .iter()
                    .any(|url| url == path || url.ends_with('*') && is_under(url, path))
            })
    }

    /// This rule as rules of one permission each; none if there are too many.
    fn break_down(&self) -> Option<Vec<Self>> {
        let names = self.resource_names.len().max(1);
        let resources = self.api_groups.len().checked_mul(self.resources.len())?.checked_mul(names)?;
        let count = resources.checked_add(self.non_resource_urls.len())?.checked_mul(self.verbs.len())?;
        if count > PERMISSIONS_MAX {
            return None;
        }
        let mut all = Vec::with_capacity(count);
        for verb in &self.verbs {
            let one = Self { verbs: vec![verb.clone()], ..Self::default() };
            for url in &self.non_resource_urls {
                all.push(Self { non_resource_urls: vec![url.clone()], ..one.clone() });
            }
            for group in &self.api_groups {
                for resource in &self.resources {
                    let api_groups = vec![group.clone()];
                    let one = Self { api_groups, resources: vec![resource.clone()], ..one.clone() };
                    match self.resource_names.is_empty() {
                        true => all.push(one),
                        false => all.extend(
                            self.resource_names
                                .iter()
                                .map(|name| Self { resource_names: vec![name.clone()], ..one.clone() }),
                        ),
                    }
                }
            }
        }
        Some(all)
    }
}

/// What of `wanted` somebody who has `held` does not have. Empty if they have all of it.
pub fn covers(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let is_held = |rule: &Rule| held.iter().any(|it| it.covers(rule));
    let mut missing = Vec::new();
    for rule in wanted.iter().filter(|rule| !is_held(rule)) {
        match rule.break_down() {
            Some(single) => missing.extend(single.into_iter().filter(|rule| !is_held(rule))),
            None => missing.push(rule.clone()),
        }
    }
    missing
}

/// In the words of Kubernetes' refusals.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("ResourceNames", &self.resource_names),
            ("NonResourceURLs", &self.non_resource_urls),
            ("Verbs", &self.verbs),
        ];
        f.write_str("{")?;
        let named = parts.iter().filter(|(_, texts)| !texts.is_empty());
        for (i, (name, texts)) in named.enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name}:{texts:?}")?;
        }
        f.write_str("}")
    }
}

fn has(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|it| it == ALL || it == wanted)
}

fn is_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == ALL {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    rule.split_once('/').is_some_and(|(of, part)| part == subresource && (of == ALL || of == resource))
}

fn is_under(url: &str, path: &str) -> bool {
    match url.ends_with('*') {
        true => path.starts_with(url.trim_end_matches('*')),
        false => url == path,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(value: &Value) -> Rule {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn object<'a>(text: &'a str) -> Access<'a> {
        let [verb, group, resource, subresource, name]: [&str; 5] =
            text.split(' ').map(|it| if it == "-" { "" } else { it }).collect::<Vec<_>>().try_into().unwrap();
        Access::Resource { verb, group, resource, subresource, namespace: "default", name }
    }

    #[test]
    fn what_a_rule_allows_for_objects() {
        let read = json!({"verbs": ["get", "list"], "apiGroups": ["a.dev"], "resources": ["buckets"]});
        let named = json!({"verbs": ["get"], "apiGroups": ["a.dev"], "resources": ["buckets"], "resourceNames": ["one"]});
        let status = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/status", "keys/scale"]});
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let core = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]});
        for (rule_json, access, is_allowed) in [
            (&read, "get a.dev buckets - x", true),
            (&read, "list a.dev buckets - -", true),
            (&read, "update a.dev buckets - x", false),
            (&read, "get b.dev buckets - x", false),
            (&read, "get - buckets - x", false),
            (&read, "get a.dev keys - x", false),
            (&read, "get a.dev buckets status x", false),
            (&named, "get a.dev buckets - one", true),
            (&named, "get a.dev buckets - two", false),
            (&named, "get a.dev buckets - -", false),
            (&status, "patch b.dev buckets status x", true),
            (&status, "patch b.dev buckets - x", false),
            (&status, "patch b.dev buckets scale x", false),
            (&status, "patch b.dev keys scale x", true),
            (&all, "impersonate - users - root", true),
            (&all, "get a.dev buckets status x", true),
            (&core, "get - secrets - x", true),
            (&core, "get a.dev secrets - x", false),
            (&json!({}), "get a.dev buckets - x", false),
            (&json!({"verbs": ["*"], "nonResourceURLs": ["*"]}), "get a.dev buckets - x", false),
        ] {
            assert_eq!(rule(rule_json).allows(&object(access)), is_allowed, "{rule_json} {access}");
        }
    }

    #[test]
    fn what_a_rule_allows_for_paths() {
        for (url, path, is_allowed) in [
            ("/healthz", "/healthz", true),
            ("/healthz", "/healthz/etcd", false),
            ("/healthz/*", "/healthz/etcd", true),
            ("/healthz/*", "/healthz", false),
            ("/health*", "/healthz", true),
            ("*", "/anything", true),
            ("/*/x", "/a/x", false),
            ("", "/a", false),
        ] {
            let rule = rule(&json!({"verbs": ["get"], "nonResourceURLs": [url]}));
            assert_eq!(rule.allows(&Access::Path { verb: "get", path }), is_allowed, "{url} {path}");
            assert!(!rule.allows(&Access::Path { verb: "post", path }));
        }
    }

    #[test]
    fn a_set_of_rules_covers_another_permission_by_permission() {
        let held = [
            json!({"verbs": ["get"], "apiGroups": ["a", "b"], "resources": ["x", "*/status"]}),
            json!({"verbs": ["list"], "apiGroups": ["a"], "resources": ["x"], "resourceNames": ["one", "two"]}),
            json!({"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}),
        ]
        .map(|it| rule(&it));
        for (wanted, is_covered) in [
            (json!({"verbs": ["get"], "apiGroups": ["a"], "resources": ["x"]}), true),
            (json!({"verbs": ["get"], "apiGroups": ["a"], "resources": ["x", "y/status"]}), true),
            (json!({"verbs": ["get"], "apiGroups": ["a"], "resources": ["x"], "resourceNames": ["q"]}), true),
            (
                json!({"verbs": ["get", "list"], "apiGroups": ["a"], "resources": ["x"], "resourceNames": ["one"]}),
                true,
            ),
            (json!({"verbs": ["get", "list"], "apiGroups": ["a"], "resources": ["x"]}), false),
            (
                json!({"verbs": ["list"], "apiGroups": ["b"], "resources": ["x"], "resourceNames": ["one"]}),
                false,
            ),
            (json!({"verbs": ["*"], "apiGroups": ["a"], "resources": ["x"]}), false),
            (json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["x"]}), false),
            (json!({"verbs": ["get"], "apiGroups": ["a"], "resources": ["*"]}), false),
            (json!({"verbs": ["get"], "nonResourceURLs": ["/logs/a", "/logs/b/*"]}), true),
            (json!({"verbs": ["get"], "nonResourceURLs": ["/log"]}), false),
            (json!({"verbs": ["get"], "nonResourceURLs": ["*"]}), false),
            (json!({"verbs": [], "apiGroups": ["z"], "resources": ["x"]}), true),
        ] {
            assert_eq!(covers(&held, &[rule(&wanted)]).is_empty(), is_covered, "{wanted}");
        }
    }

    #[test]
    fn a_product_without_bound_is_not_computed() {
        let many: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
        let huge = Rule { verbs: many.clone(), api_groups: many.clone(), resources: many, ..Rule::default() };
        assert_eq!(covers(&[], std::slice::from_ref(&huge)), [huge]);
    }

    #[test]
    fn null_is_as_good_as_none_and_anything_else_is_refused() {
        assert_eq!(Rule::read_all(&Value::Null).unwrap(), []);
        assert_eq!(Rule::read_all(&json!([{"verbs": null}])).unwrap(), [Rule::default()]);
        assert!(Rule::read_all(&json!([{"verbs": "get"}])).is_err());
        let text = rule(&json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})).to_string();
        assert_eq!(text, r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#);
    }
}
