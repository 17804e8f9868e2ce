//! Which objects a command is about, and printing them: what several commands share.

use concert_model::Address;
use serde_json::{Value, json};

use crate::cli::Advice;
use crate::client::{Kinds, Resource, Session, Target};
use crate::print::{self, Output};

/// Where a command looks.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Scope {
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Only those with these labels, as in: app=web,tier!=db
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub selector: Option<String>,
    /// Only those with these fields, as in: metadata.name=a
    #[arg(long, value_name = "FIELDS")]
    pub field_selector: Option<String>,
}

impl Scope {
    /// The collection of a kind, narrowed down.
    pub fn collection(&self, session: &Session, resource: &Resource) -> Address {
        let namespace = if self.all_namespaces { None } else { Some(session.namespace()) };
        let address = resource.collection(namespace);
        address
            .with_some("labelSelector", self.selector.as_deref())
            .with_some("fieldSelector", self.field_selector.as_deref())
    }
}

/// One kind, and one of its objects or all.
pub struct Meant {
    pub resource: Resource,
    pub name: Option<String>,
}

/// What arguments mean on this server.
pub async fn meant(session: &Session, arguments: &[String]) -> anyhow::Result<Vec<Meant>> {
    let targets = Target::all(arguments)?;
    let kinds = Kinds::of(session).await?;
    let mut all = Vec::new();
    for Target { kind, name } in targets {
        match name {
            Some(name) => all.push(Meant { resource: kinds.one(&kind)?.clone(), name: Some(name) }),
            None => {
                all.extend(
                    kinds.all(&kind)?.into_iter().map(|it| Meant { resource: it.clone(), name: None }),
                );
            }
        }
    }
    Ok(all)
}

/// The one object that arguments mean.
pub async fn meant_one(session: &Session, arguments: &[String]) -> anyhow::Result<(Resource, String)> {
    let (kind, name) = Target::one(arguments)?;
    Ok((Kinds::of(session).await?.one(&kind)?.clone(), name))
}

/// `bucket.cloud.concert.dev/a`.
pub fn label(resource: &Resource, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    print::plain(&format!("{}/{name}", resource.label()))
}

/// Objects as YAML or JSON: one as it is, several as a list.
pub fn text(objects: Vec<Value>, is_one: bool, output: Output) -> String {
    let value = match <[Value; 1]>::try_from(objects) {
        Ok([object]) if is_one => object,
        Ok([object]) => list(vec![object]),
        Err(objects) => list(objects),
    };
    if output == Output::Json { print::json(&value) } else { print::yaml(&value) }
}

fn list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// A time that may be waited, as in `90s`, `5m`.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    concert_model::duration::parse(text).map_err(|rule| rule.to_string())
}

/// An object that took too long.
pub fn too_late(what: &str, label: &str, limit: std::time::Duration) -> Advice {
    let seconds = limit.as_secs();
    Advice::new(format!("{label} {what} after {seconds} s"), format!("concert explain {label}"))
}
