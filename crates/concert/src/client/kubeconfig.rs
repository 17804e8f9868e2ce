//! kubeconfig files, as documents: which entries a context means, and one file that holds just those.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cli::Advice;

/// Fields of a cluster or user that name a file, and the field that holds its content instead.
const FILES: &[(&str, &str)] = &[
    ("certificate-authority", "certificate-authority-data"),
    ("client-certificate", "client-certificate-data"),
    ("client-key", "client-key-data"),
];

/// How one server is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Direct {
    pub server: String,
    pub token: Option<String>,
    pub certificate_authority: Option<PathBuf>,
    pub is_unverified: bool,
    pub namespace: Option<String>,
}

impl Direct {
    /// A file with this one context.
    pub fn to_document(&self) -> Value {
        let mut cluster = json!({"server": self.server});
        if let Some(path) = &self.certificate_authority {
            cluster["certificate-authority"] = json!(path);
        }
        if self.is_unverified {
            cluster["insecure-skip-tls-verify"] = json!(true);
        }
        let user = self.token.as_ref().map_or_else(|| json!({}), |token| json!({ "token": token }));
        document("concert", cluster, user, self.namespace.as_deref())
    }
}

/// A file with one context that has all three names alike.
fn document(name: &str, cluster: Value, user: Value, namespace: Option<&str>) -> Value {
    let mut context = json!({"cluster": name, "user": name});
    if let Some(namespace) = namespace {
        context["namespace"] = json!(namespace);
    }
    json!({"apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}], "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}]})
}

/// Reads files of a list such as `KUBECONFIG` is: what an earlier one says counts. Those that are not
/// there are skipped; none if no one is.
pub fn read(paths: &[PathBuf]) -> Result<Option<Value>, Advice> {
    let mut merged: Option<Value> = None;
    for path in paths {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unreadable(path, &error.to_string())),
        };
        let document = parse(&text).map_err(|why| unreadable(path, &why))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let document = anchored(document, folder);
        merged = Some(match merged {
            None => document,
            Some(first) => merge(first, document),
        });
    }
    Ok(merged)
}

fn unreadable(path: &Path, why: &str) -> Advice {
    let what = format!("{} is no kubeconfig: {why}", path.display());
    Advice::new(what, "concert kubeconfig --server URL prints one; --kubeconfig FILE uses another")
}

fn parse(text: &str) -> Result<Value, String> {
    let documents = concert_server::managed::config::documents(text)?;
    match documents.into_iter().next() {
        Some(document @ Value::Object(_)) => Ok(document),
        _ => Err("it holds no map".to_owned()),
    }
}

/// Paths in a file are relative to it.
fn anchored(mut document: Value, folder: &Path) -> Value {
    for (list, part) in [("clusters", "cluster"), ("users", "user")] {
        for entry in document[list].as_array_mut().into_iter().flatten() {
            for field in FILES.iter().map(|(field, _)| *field).chain(["tokenFile"]) {
                let path = entry[part][field].as_str().filter(|it| !it.is_empty()).map(|it| folder.join(it));
                if let Some(path) = path {
                    entry[part][field] = json!(path);
                }
            }
        }
    }
    document
}

fn merge(mut first: Value, second: Value) -> Value {
    for list in ["clusters", "users", "contexts"] {
        let has = |name: &Value| first[list].as_array().into_iter().flatten().any(|it| it["name"] == *name);
        let more: Vec<Value> = entries(&second, list).filter(|it| !has(&it["name"])).cloned().collect();
        match first[list].as_array_mut() {
            Some(all) => all.extend(more),
            None => first[list] = json!(more),
        }
    }
    if first["current-context"].as_str().is_none_or(str::is_empty) {
        first["current-context"] = second["current-context"].clone();
    }
    first
}

fn entries<'a>(document: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    document[list].as_array().into_iter().flatten()
}

/// A file with nothing but what `context`, or else the current one, means.
pub fn pick(document: &Value, context: Option<&str>) -> Result<Value, Advice> {
    let current = document["current-context"].as_str().filter(|it| !it.is_empty());
    let names: Vec<&str> = entries(document, "contexts").filter_map(|it| it["name"].as_str()).collect();
    let all = names.join(", ");
    let Some(name) = context.or(current) else {
        return Err(Advice::new(
            "the kubeconfig has no current context",
            format!("--context NAME, one of: {all}"),
        ));
    };
    let find = |list: &str, part: &str, name: &Value| {
        let entry = entries(document, list).find(|it| it["name"] == *name)?;
        entry.get(part).filter(|it| it.is_object()).cloned()
    };
    let Some(meant) = find("contexts", "context", &json!(name)) else {
        let what = format!("the kubeconfig has no context {name}");
        return Err(Advice::new(what, format!("--context NAME, one of: {all}")));
    };
    let Some(cluster) = find("clusters", "cluster", &meant["cluster"]) else {
        let what =
            format!("context {name} names a cluster that the kubeconfig does not have: {}", meant["cluster"]);
        return Err(Advice::new(what, "--context NAME chooses another; --server URL needs none"));
    };
    let user = find("users", "user", &meant["user"]).unwrap_or_else(|| Value::Object(Map::new()));
    Ok(document_of(name, cluster, user, meant["namespace"].as_str()))
}

fn document_of(name: &str, cluster: Value, user: Value, namespace: Option<&str>) -> Value {
    document(name, cluster, user, namespace.filter(|it| !it.is_empty()))
}

/// The one cluster of a file that [`pick`] made.
pub fn server(picked: &Value) -> &str {
    picked.pointer("/clusters/0/cluster/server").and_then(Value::as_str).unwrap_or_default()
}

/// The namespace of its one context.
pub fn namespace(picked: &Value) -> Option<&str> {
    picked.pointer("/contexts/0/context/namespace").and_then(Value::as_str)
}

/// The same with the content of files in the place of their names, so that it works elsewhere.
///
/// # Errors
/// Says which file cannot be read.
pub fn embed(mut picked: Value) -> Result<Value, Advice> {
    for place in ["/clusters/0/cluster", "/users/0/user"] {
        let Some(part) = picked.pointer_mut(place).and_then(Value::as_object_mut) else { continue };
        for (field, data) in FILES {
            if let Some(Value::String(path)) = part.remove(*field) {
                let bytes = std::fs::read(&path).map_err(|error| {
                    Advice::new(
                        format!("cannot read {path}: {error}"),
                        "--kubeconfig FILE uses another kubeconfig",
                    )
                })?;
                part.insert((*data).to_owned(), json!(base64(&bytes)));
            }
        }
    }
    Ok(picked)
}

/// The standard alphabet, with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) as usize & 63;
            text.push(if place <= group.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
current-context: b
clusters:
- {name: c, cluster: {server: 'https://c:1', certificate-authority: ca.crt}}
users:
- {name: u, user: {token: secret}}
contexts:
- {name: a, context: {cluster: c, user: u, namespace: team}}
- {name: b, context: {cluster: gone, user: u}}
";

    #[test]
    fn a_context_means_its_cluster_and_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, FILE).unwrap();
        std::fs::write(folder.path().join("ca.crt"), "pem").unwrap();
        let document = read(&[folder.path().join("absent"), path]).unwrap().unwrap();
        let picked = pick(&document, Some("a")).unwrap();
        assert_eq!((server(&picked), namespace(&picked)), ("https://c:1", Some("team")));
        assert_eq!(picked["users"][0]["user"]["token"], "secret");
        let cluster = &embed(picked).unwrap()["clusters"][0]["cluster"];
        assert_eq!(cluster["certificate-authority-data"], "cGVt");
        assert_eq!(cluster["certificate-authority"], Value::Null);
        assert!(pick(&document, None).unwrap_err().to_string().contains("\"gone\""));
        assert!(pick(&document, Some("x")).unwrap_err().hint.contains("a, b"));
    }

    #[test]
    fn earlier_files_count_first() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name)
        };
        let one = write("one", "clusters: [{name: c, cluster: {server: 'https://one'}}]");
        let two = write(
            "two",
            "current-context: x\nclusters: [{name: c, cluster: {server: 'https://two'}}]\ncontexts: [{name: x, context: {cluster: c}}]",
        );
        let picked = pick(&read(&[one, two]).unwrap().unwrap(), None).unwrap();
        assert_eq!(server(&picked), "https://one");
        assert_eq!(read(&[folder.path().join("absent")]).unwrap(), None);
        let broken = write("broken", "a: [");
        assert!(read(&[broken]).unwrap_err().to_string().contains("no kubeconfig"));
    }

    #[test]
    fn bytes_are_encoded_with_padding() {
        for (bytes, text) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[255, 254, 253]), "//79");
    }
}
