//! The repository as a value: every text file by its path.
//!
//! Paths are relative to the root and use `/`. Reading is the only contact with the disk; the checks
//! work on the value, so their tests write small trees by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// Folders that hold what was built or fetched, not what was written.
const SKIPPED: &[&str] = &[".git", ".venv", "__pycache__", "node_modules", "target"];

/// Build tools put this file into their caches; cargo does, wherever its target folder is.
const CACHE_MARK: &str = "CACHEDIR.TAG";

/// Folders whose folders are packages.
pub(crate) const PARENTS: [&str; 3] = ["crates/", "providers/", "examples/"];

/// The text files of a repository.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads all files below `root` that are text.
    ///
    /// # Errors
    /// Whatever the file system says, except that a file may vanish between being listed and being
    /// read: editors do that all day.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        if folder.join(CACHE_MARK).exists() {
            return Ok(());
        }
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.read_folder(&entry.path(), &format!("{prefix}{name}/"))?;
            } else if kind.is_file() {
                match fs::read(entry.path()) {
                    Ok(bytes) => {
                        if let Ok(text) = String::from_utf8(bytes) {
                            self.files.insert(format!("{prefix}{name}"), text);
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The text of one file.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file or a folder of the tree. The empty path is the root.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        path.is_empty() || self.files.contains_key(path) || self.has_folder(path)
    }

    fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.files.range(prefix.clone()..).next().is_some_and(|(file, _)| file.starts_with(&prefix))
    }

    /// All files in the order of their paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files whose names end with `suffix`.
    pub fn ending(&self, suffix: &'static str) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(move |(path, _)| path.ends_with(suffix))
    }

    /// Folders of the workspace's packages: those of `crates/`, `providers/` and `examples/`, and `bench`.
    #[must_use]
    pub fn packages(&self) -> Vec<&str> {
        self.ending("/Cargo.toml")
            .filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"))
            .filter(|folder| *folder == "bench" || is_crate_folder(folder))
            .collect()
    }
}

fn is_crate_folder(folder: &str) -> bool {
    let mut names = PARENTS.iter().filter_map(|parent| folder.strip_prefix(parent));
    names.any(|name| !name.contains('/'))
}

impl<'a> FromIterator<(&'a str, &'a str)> for Tree {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(files: I) -> Self {
        let owned = files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
        Self { files: owned.collect() }
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Tree {
    fn from(files: [(&str, &str); N]) -> Self {
        files.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_text_and_leaves_out_caches_and_binaries() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write("a.md", b"hello");
        write("deep/er/b.rs", b"");
        write("picture.bin", &[0xff, 0xfe, 0x00]);
        write("target/debug/c.rs", b"");
        write("elsewhere/CACHEDIR.TAG", b"");
        write("elsewhere/d.rs", b"");

        let tree = Tree::read(root.path()).unwrap();

        assert_eq!(tree.files().map(|(path, _)| path).collect::<Vec<_>>(), ["a.md", "deep/er/b.rs"]);
        assert_eq!(tree.text("a.md"), Some("hello"));
    }

    #[test]
    fn a_folder_exists_when_a_file_is_below_it() {
        let tree = Tree::from([("docs/decisions/README.md", "")]);
        assert!(tree.has("docs") && tree.has("docs/decisions") && tree.has("docs/decisions/README.md"));
        assert!(!tree.has("doc") && !tree.has("docs/dec"));
    }

    #[test]
    fn packages_are_the_crates_the_providers_the_examples_and_the_benchmarks() {
        let tree = Tree::from([
            ("Cargo.toml", ""),
            ("bench/Cargo.toml", ""),
            ("crates/model/Cargo.toml", ""),
            ("crates/model/fixtures/Cargo.toml", ""),
            ("examples/fleet/Cargo.toml", ""),
            ("examples/fleet/toy/Cargo.toml", ""),
            ("examples/plugin/pyproject.toml", ""),
            ("providers/example/Cargo.toml", ""),
            ("providers/example/crds/Cargo.toml", ""),
        ]);
        assert_eq!(tree.packages(), ["bench", "crates/model", "examples/fleet", "providers/example"]);
    }
}
