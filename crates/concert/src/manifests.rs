//! Files with manifests: JSON, or YAML with any number of documents.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use concert_model::Object;
use serde_json::Value;

/// The objects of a file, or of standard input if it is called `-`.
///
/// # Errors
/// Says which file and which document.
pub fn read(path: &str) -> anyhow::Result<Vec<Object>> {
    let mut text = String::new();
    if path == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    }
    parse(&text).with_context(|| format!("{path} holds no manifests"))
}

/// The objects of files and folders, in the order of their names, and of folders in folders if
/// `is_recursive`.
///
/// # Errors
/// As [`read`]; also if there is no file.
pub fn read_all(paths: &[String], is_recursive: bool) -> anyhow::Result<Vec<Object>> {
    let mut objects = Vec::new();
    for path in paths {
        if !Path::new(path).is_dir() {
            objects.extend(read(path)?);
            continue;
        }
        let files = files(Path::new(path), is_recursive).with_context(|| format!("cannot read {path}"))?;
        anyhow::ensure!(!files.is_empty(), "{path} holds no file that ends in .yaml, .yml or .json");
        for file in files {
            objects.extend(read(&file.to_string_lossy())?);
        }
    }
    Ok(objects)
}

fn files(folder: &Path, is_recursive: bool) -> std::io::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>()?;
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        let is_manifest = path.extension().is_some_and(|it| it == "yaml" || it == "yml" || it == "json");
        // A link may lead back to where it is.
        if path.is_dir() && !path.is_symlink() && is_recursive {
            found.extend(files(&path, true)?);
        } else if is_manifest && path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

fn parse(text: &str) -> anyhow::Result<Vec<Object>> {
    let documents = concert_server::managed::config::documents(text).map_err(anyhow::Error::msg)?;
    let mut objects = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        for item in items(document) {
            let object = Object::from_value(item).with_context(|| format!("document {}", index + 1))?;
            anyhow::ensure!(!object.name().is_empty(), "document {}: metadata.name: must be set", index + 1);
            objects.push(object);
        }
    }
    anyhow::ensure!(!objects.is_empty(), "there is nothing in it");
    Ok(objects)
}

/// What `kubectl get -o yaml` prints is a list.
fn items(document: Value) -> Vec<Value> {
    match document {
        Value::Array(items) => items,
        // That of kubectl is a List, those of servers are a BucketList or the like.
        Value::Object(mut list)
            if list.get("kind").and_then(Value::as_str).is_some_and(|it| it.ends_with("List"))
                && list.get("items").is_some_and(Value::is_array) =>
        {
            match list.remove("items") {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        other => vec![other],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse(text).unwrap().iter().map(|it| it.name().to_owned()).collect()
    }

    #[test]
    fn reads_documents_lists_and_json() {
        let one = |name: &str| format!("apiVersion: g.io/v1\nkind: A\nmetadata:\n  name: {name}\n");
        assert_eq!(names(&one("a")), ["a"]);
        assert_eq!(names(&format!("{}---\n{}---\n", one("a"), one("b"))), ["a", "b"]);
        assert_eq!(names(r#"{"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "j"}}"#), ["j"]);
        let list = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "l"}}]}"#;
        assert_eq!(names(list), ["l"]);
    }

    #[test]
    fn folders_are_read_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, name: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("apiVersion: g.io/v1\nkind: A\nmetadata: {{name: {name}}}\n"))
                .unwrap();
        };
        for (path, name) in [("2.yml", "b"), ("1.yaml", "a"), ("sub/3.yaml", "c"), ("notes.txt", "x")] {
            write(path, name);
        }
        let paths = [folder.path().to_str().unwrap().to_owned()];
        let names = |is_recursive| -> Vec<String> {
            read_all(&paths, is_recursive).unwrap().iter().map(|it| it.name().to_owned()).collect()
        };
        assert_eq!(
            (names(false), names(true)),
            (vec!["a".into(), "b".into()], vec!["a".into(), "b".into(), "c".into()])
        );
        let empty = folder.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        let error = read_all(&[empty.to_str().unwrap().to_owned()], true).unwrap_err();
        assert!(error.to_string().contains("holds no file"), "{error}");
    }

    #[test]
    fn what_is_no_manifest_says_which_document() {
        for (text, part) in [
            ("", "nothing in it"),
            ("apiVersion: g.io/v1\nkind: A\n", "document 1: metadata.name"),
            ("a: [", "line"),
            ("{\"a\": ", "line 1"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(part), "{part} in: {error}");
        }
        let error = format!("{:#}", parse("apiVersion: v1\nmetadata: {name: a}\n").unwrap_err());
        assert!(error.contains("document 1") && error.contains("kind"), "{error}");
    }
}
