//! Every check, applied to this repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use concert_tidy::{Tree, dependencies, direction, image, length, links, map, names, reach, words};

fn root() -> PathBuf {
    // Tests run in the folder of their package. A path from the build would be another clone's if both
    // share their build cache.
    Path::new("../..").canonicalize().expect("the workspace is there")
}

fn tree() -> Tree {
    Tree::read(&root()).expect("the repository can be read")
}

#[track_caller]
fn expect_none(findings: &[String]) {
    assert!(findings.is_empty(), "findings: {}\n  {}\n", findings.len(), findings.join("\n  "));
}

/// The other tests would pass on an empty tree, so this one asks for what is certainly there.
#[test]
fn the_tree_that_is_checked_is_this_repository() {
    let tree = tree();
    assert!(tree.has("Cargo.lock") && tree.has("crates/tidy/tests/tree.rs"));
    assert!(tree.packages().contains(&"crates/tidy") && tree.packages().contains(&"bench"));
}

#[test]
fn crates_depend_only_in_the_direction_of_the_design() {
    expect_none(&direction::check(&tree()));
}

#[test]
fn every_rust_file_is_reached_by_a_mod_line() {
    expect_none(&reach::check(&tree()));
}

#[test]
fn the_architecture_names_exactly_the_crates_there_are() {
    expect_none(&map::check(&tree()));
}

#[test]
fn dependencies_satisfy_deny_toml() {
    let rules = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    #[expect(clippy::disallowed_methods, reason = "cargo tells a test this way which cargo runs it")]
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    expect_none(&dependencies::check(&rules, &String::from_utf8_lossy(&output.stdout)));
}

#[test]
fn no_file_contains_a_forbidden_word() {
    expect_none(&words::check(&tree()));
}

#[test]
fn links_between_documents_lead_somewhere() {
    expect_none(&links::check(&tree()));
}

#[test]
fn no_folder_or_module_is_a_drawer() {
    expect_none(&names::check(&tree()));
}

#[test]
fn source_files_are_short_enough_to_be_read() {
    expect_none(&length::check(&tree()));
}

#[test]
fn the_image_is_built_from_everything_the_build_reads() {
    expect_none(&image::check(&tree()));
}
