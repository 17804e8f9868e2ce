//! Which crate may use which.
//!
//! The compiler refuses cycles, but not an arrow that points the wrong way for the first time. This
//! table is the design; a manifest that says something else fails. The same pass asks that every
//! crate takes the workspace's lints, since a crate without them escapes every ban silently.

use toml::{Table, Value};

use crate::Tree;

/// What one crate may depend on inside the workspace.
struct Rule {
    name: &'static str,
    uses: Uses,
    /// Further crates its tests may use.
    tests_use: &'static [&'static str],
}

enum Uses {
    Only(&'static [&'static str]),
    Anything,
}

const fn only(name: &'static str, uses: &'static [&'static str]) -> Rule {
    Rule { name, uses: Uses::Only(uses), tests_use: &[] }
}

const fn free(name: &'static str) -> Rule {
    Rule { name, uses: Uses::Anything, tests_use: &[] }
}

/// From the ground up. Nothing that is shipped may use what is not: `testbed`, `sim`, `bench` and `tidy`;
/// tests may use what their row says.
const RULES: &[Rule] = &[
    only("model", &[]),
    only("schema", &["model"]),
    Rule { tests_use: &["testbed"], ..only("store", &["model", "schema"]) },
    Rule { tests_use: &["testbed"], ..only("provider", &["model"]) },
    // Authors of component reconcilers have nothing of the server in their programs.
    only("worker", &["model"]),
    only("engine", &["model", "store"]),
    Rule {
        tests_use: &["testbed", "provider-example"],
        ..only("controllers", &["model", "schema", "store", "engine", "provider"])
    },
    only("api", &["model", "schema", "store", "engine"]),
    Rule {
        tests_use: &["testbed"],
        ..only("server", &["model", "schema", "store", "provider", "engine", "controllers", "api"])
    },
    // The provider for its demonstration.
    Rule {
        tests_use: &["testbed", "store"],
        ..only("concert", &["server", "model", "provider", "provider-example"])
    },
    only("testbed", &[]),
    free("provider-example"),
    // The control planes that its claims are made on, and another cloud beside it.
    Rule {
        tests_use: &["server", "testbed", "provider-example"],
        ..only("provider-local", &["model", "store", "provider"])
    },
    // The store for its clock and its chance.
    Rule { tests_use: &["testbed"], ..only("example-fleet", &["model", "store", "worker"]) },
    free("sim"),
    free("bench"),
    free("tidy"),
];

/// Findings for all manifests of the workspace.
#[must_use]
pub fn check(tree: &Tree) -> Vec<String> {
    let mut findings = Vec::new();
    for folder in tree.packages() {
        let path = format!("{folder}/Cargo.toml");
        match tree.text(&path).unwrap_or_default().parse::<Table>() {
            Ok(manifest) => {
                let found = check_manifest(&name_of(folder), &manifest);
                findings.extend(found.into_iter().map(|it| format!("{path}: {it}")));
            }
            Err(error) => findings.push(format!("{path}: {}", error.message())),
        }
    }
    findings
}

/// The name of a package without `concert-`: `providers/example` is `provider-example`.
fn name_of(folder: &str) -> String {
    match folder.split_once('/') {
        Some(("providers", name)) => format!("provider-{name}"),
        Some(("examples", name)) => format!("example-{name}"),
        _ => folder.strip_prefix("crates/").unwrap_or(folder).to_owned(),
    }
}

fn check_manifest(name: &str, manifest: &Table) -> Vec<String> {
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
        return vec![format!(
            "`{name}` is unknown: add it to the table in crates/tidy/src/direction.rs and to ARCHITECTURE.md"
        )];
    };
    let mut findings = Vec::new();
    if !takes_workspace_lints(manifest) {
        findings.push("add `[lints]` with `workspace = true`".to_owned());
    }
    let package = if name == "concert" { name.to_owned() } else { format!("concert-{name}") };
    if manifest.get("package").and_then(|it| it.get("name")).and_then(Value::as_str) != Some(&package) {
        findings.push(format!("the package must be called `{package}`, after its folder"));
    }
    for (section, dependencies) in sections(manifest) {
        for (key, value) in dependencies {
            let renamed = value.get("package").and_then(Value::as_str);
            if renamed.and_then(own_crate).is_some() {
                findings.push(format!("`{key}` renames one of our crates: use its own name"));
            }
            let Some(used) = own_crate(renamed.unwrap_or(key)) else { continue };
            if !rule.permits(used, section) {
                findings.push(format!("`{name}` must not use `{used}` ({section})"));
            }
        }
    }
    findings
}

impl Rule {
    fn permits(&self, used: &str, section: &str) -> bool {
        match self.uses {
            Uses::Anything => true,
            Uses::Only(names) => {
                names.contains(&used)
                    || section == DEV && (self.tests_use.contains(&used) || used == self.name)
            }
        }
    }
}

const DEV: &str = "dev-dependencies";
const SECTIONS: [&str; 3] = ["dependencies", "build-dependencies", DEV];

/// All dependency tables of a manifest, those for single targets included.
fn sections(manifest: &Table) -> Vec<(&'static str, &Table)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let per_target = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut found = Vec::new();
    for table in std::iter::once(manifest).chain(per_target) {
        for section in SECTIONS {
            found.extend(table.get(section).and_then(Value::as_table).map(|it| (section, it)));
        }
    }
    found
}

/// The folder name of one of our crates, from its package name.
fn own_crate(package: &str) -> Option<&str> {
    if package == "concert" { Some(package) } else { package.strip_prefix("concert-") }
}

fn takes_workspace_lints(manifest: &Table) -> bool {
    manifest.get("lints").and_then(|it| it.get("workspace")).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, dependencies: &str) -> Vec<String> {
        let manifest =
            format!("[package]\nname = \"concert-{name}\"\n[lints]\nworkspace = true\n{dependencies}\n");
        check_manifest(name, &manifest.parse().unwrap())
    }

    #[test]
    fn arrows_of_the_table_pass() {
        let uses = "[dependencies]\nconcert-model.workspace = true\nconcert-store = { path = \"../store\" }\nbytes = \"1\"";
        assert_eq!(findings("engine", uses), [""; 0]);
        assert_eq!(findings("sim", "[dependencies]\nconcert-engine.workspace = true"), [""; 0]);
    }

    #[test]
    fn an_arrow_upwards_is_found_in_every_section() {
        for section in [
            "dependencies",
            "dev-dependencies",
            "build-dependencies",
            "target.'cfg(unix)'.dependencies",
            "target.'cfg(unix)'.dev-dependencies",
        ] {
            let uses = format!("[{section}]\nconcert-engine.workspace = true");
            assert_eq!(findings("store", &uses).len(), 1, "{section}");
        }
    }

    #[test]
    fn tests_of_a_shipped_crate_do_not_use_the_simulation() {
        let uses = "[dev-dependencies]\nconcert-sim.workspace = true";
        assert_eq!(findings("engine", uses), ["`engine` must not use `sim` (dev-dependencies)"]);
    }

    #[test]
    fn tests_of_a_crate_may_use_it_with_other_features() {
        let uses = "[dev-dependencies]\nconcert-store = { path = \".\", features = [\"conformance\"] }";
        assert_eq!(findings("store", uses), [""; 0]);
    }

    #[test]
    fn a_rename_does_not_hide_an_arrow() {
        let uses = "[dependencies]\nharmless = { package = \"concert-api\", path = \"../api\" }";
        assert_eq!(
            findings("controllers", uses),
            [
                "`harmless` renames one of our crates: use its own name",
                "`controllers` must not use `api` (dependencies)"
            ]
        );
    }

    #[test]
    fn an_unknown_crate_is_found() {
        assert!(findings("attic", "")[0].contains("add it to the table"));
    }

    #[test]
    fn a_crate_without_the_lints_or_with_another_name_is_found() {
        let tree = Tree::from([("crates/model/Cargo.toml", "[package]\nname = \"model\"")]);
        assert_eq!(
            check(&tree),
            [
                "crates/model/Cargo.toml: add `[lints]` with `workspace = true`",
                "crates/model/Cargo.toml: the package must be called `concert-model`, after its folder"
            ]
        );
    }

    #[test]
    fn a_provider_is_named_after_its_folder_and_used_by_nothing_that_is_shipped() {
        let manifest = "[package]\nname = \"concert-provider-example\"\n[lints]\nworkspace = true\n\
                        [dependencies]\nconcert-store.workspace = true\n";
        assert_eq!(check(&Tree::from([("providers/example/Cargo.toml", manifest)])), [""; 0]);
        let uses = "[dependencies]\nconcert-provider-example.workspace = true";
        assert_eq!(findings("server", uses), ["`server` must not use `provider-example` (dependencies)"]);
    }

    #[test]
    fn an_example_has_only_what_an_author_has() {
        let uses = |name: &str| {
            let manifest = format!(
                "[package]\nname = \"concert-example-fleet\"\n[lints]\nworkspace = true\n\
                 [dependencies]\nconcert-{name}.workspace = true\n"
            );
            check(&Tree::from([("examples/fleet/Cargo.toml", manifest.as_str())])).len()
        };
        assert_eq!((uses("worker"), uses("server")), (0, 1));
    }

    #[test]
    fn a_manifest_that_is_not_toml_is_found() {
        assert_eq!(check(&Tree::from([("bench/Cargo.toml", "[package")])).len(), 1);
    }
}
