//! Files with manifests: JSON, or YAML with any number of documents.

use std::io::Read as _;

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
        Value::Object(mut list) if list.get("kind").is_some_and(|it| it == "List") => {
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
