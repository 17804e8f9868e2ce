//! Everything in `Cargo.lock` satisfies `deny.toml`.
//!
//! The file has cargo-deny's form. We evaluate the part we use ourselves, from what cargo says about
//! the resolved packages, so that the test run needs no installed tool. Advisories are not here: they
//! need a database that changes without us, and a test must not turn red overnight.

use serde::Deserialize;

use crate::licence;

/// The rules of `deny.toml`. An unknown key or level is an error, since a rule that nobody evaluates
/// is worse than none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    licenses: Licences,
    bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Licences {
    allow: Vec<String>,
    #[serde(rename = "unused-allowed-license")]
    _unused: Allowed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bans {
    deny: Vec<Ban>,
    #[serde(rename = "multiple-versions")]
    _multiple_versions: Allowed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Denied,
    #[serde(rename = "unknown-git")]
    _unknown_git: Denied,
}

/// The one level that tidy implements for a key is the only one that can be written there.
#[derive(Deserialize)]
enum Allowed {
    #[serde(rename = "allow")]
    Allow,
}

#[derive(Deserialize)]
enum Denied {
    #[serde(rename = "deny")]
    Deny,
}

/// What `cargo metadata` says, as far as it matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// Set for every registry but the public one.
    registry: Option<String>,
}

/// Findings for all packages in the output of `cargo metadata --format-version 1`.
#[must_use]
pub fn check(rules: &str, metadata: &str) -> Vec<String> {
    let rules: Rules = match toml::from_str(rules) {
        Ok(rules) => rules,
        Err(error) => return vec![format!("deny.toml: {}", error.message())],
    };
    let metadata: Metadata = match serde_json::from_str(metadata) {
        Ok(metadata) => metadata,
        Err(error) => return vec![format!("cargo metadata: {error}")],
    };
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let is_member = metadata.workspace_members.contains(&package.id);
        let problems = [
            licence_problem(&rules.licenses, package),
            ban_problem(&rules.bans, package),
            source_problem(package, is_member),
        ];
        let label = format!("{} {}", package.name, package.version);
        findings.extend(problems.into_iter().flatten().map(|it| format!("{label}: {it}")));
    }
    findings
}

fn licence_problem(rules: &Licences, package: &Package) -> Option<String> {
    let Some(expression) = &package.license else {
        return Some("states no licence".to_owned());
    };
    match licence::permits(expression, &rules.allow) {
        Ok(true) => None,
        Ok(false) => Some(format!("the licence `{expression}` is not allowed by deny.toml")),
        Err(error) => Some(format!("the licence cannot be read: {error}")),
    }
}

fn ban_problem(rules: &Bans, package: &Package) -> Option<String> {
    let ban = rules.deny.iter().find(|ban| ban.name == package.name)?;
    Some(format!("banned: {} (hint: cargo tree --invert {})", ban.reason, ban.name))
}

/// Only members come from a path and only the public registry is known. Its name is not needed: cargo
/// gives a package of it a `registry+` source and leaves out the registry of a dependency on it.
fn source_problem(package: &Package, is_member: bool) -> Option<String> {
    let elsewhere = package.dependencies.iter().find(|it| it.registry.is_some());
    if let Some(dependency) = elsewhere {
        return Some(format!("takes `{}` from another registry", dependency.name));
    }
    match &package.source {
        None if is_member => None,
        None => Some("comes from a folder outside the workspace".to_owned()),
        Some(source) if source.starts_with("registry+") => None,
        Some(source) => Some(format!("comes from `{source}`, which is not the public registry")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT"]
        unused-allowed-license = "allow"
        [bans]
        multiple-versions = "allow"
        deny = [{ crate = "paste", reason = "unmaintained" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
    "#;

    /// Findings for one package, `x`, with `change` merged into a harmless description of it.
    fn findings(change: serde_json::Value) -> Vec<String> {
        let mut package = json!({
            "id": "x-id", "name": "x", "version": "1.0.0", "license": "MIT",
            "source": "registry+https://example.com/index", "dependencies": [],
        });
        let serde_json::Value::Object(change) = change else { unreachable!() };
        package.as_object_mut().unwrap().extend(change);
        check(RULES, &json!({ "packages": [package], "workspace_members": ["member"] }).to_string())
    }

    #[test]
    fn a_harmless_package_passes() {
        assert_eq!(findings(json!({})), [""; 0]);
        assert_eq!(findings(json!({ "id": "member", "source": null })), [""; 0]);
        assert_eq!(findings(json!({ "dependencies": [{ "name": "y", "registry": null }] })), [""; 0]);
    }

    #[test]
    fn a_licence_off_the_list_is_found() {
        let expected = ["x 1.0.0: the licence `GPL-3.0-only` is not allowed by deny.toml"];
        assert_eq!(findings(json!({ "license": "GPL-3.0-only" })), expected);
        assert_eq!(findings(json!({ "license": null })), ["x 1.0.0: states no licence"]);
        assert_eq!(findings(json!({ "license": "MIT OR" })).len(), 1);
    }

    #[test]
    fn a_banned_crate_is_found_with_the_reason() {
        let expected = ["paste 1.0.0: banned: unmaintained (hint: cargo tree --invert paste)"];
        assert_eq!(findings(json!({ "name": "paste" })), expected);
    }

    #[test]
    fn any_other_source_is_found() {
        for change in [
            json!({ "source": null }),
            json!({ "source": "git+https://example.com/x#abc" }),
            json!({ "source": "sparse+https://example.com/index/" }),
            json!({ "dependencies": [{ "name": "y", "registry": "https://example.com/index" }] }),
        ] {
            assert_eq!(findings(change.clone()).len(), 1, "{change}");
        }
    }

    #[test]
    fn rules_that_tidy_does_not_evaluate_are_refused() {
        for (from, to) in [
            ("[bans]", "[bans]\nwildcards = \"deny\""),
            ("multiple-versions = \"allow\"", "multiple-versions = \"deny\""),
            ("unknown-git = \"deny\"", "unknown-git = \"allow\""),
            ("[sources]", "[advisories]\n[sources]"),
            ("reason = \"unmaintained\"", "version = \"1\""),
        ] {
            let rules = RULES.replace(from, to);
            let findings = check(&rules, r#"{ "packages": [], "workspace_members": [] }"#);
            assert!(findings.len() == 1 && findings[0].starts_with("deny.toml: "), "{to}: {findings:?}");
        }
    }

    #[test]
    fn metadata_that_is_not_metadata_is_found() {
        assert!(check(RULES, "error: offline")[0].starts_with("cargo metadata: "));
    }
}
