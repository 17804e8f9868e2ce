//! `concert events`: what was told about an object, or about all of a namespace.

use concert_model::{Address, Timestamp};
use concert_server::Clock as _;
use concert_server::explain::{Told, span};
use serde_json::Value;

use super::Run;
use super::objects::{meant_one, text};
use crate::cli::say;
use crate::client::{Ask, Error, Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

#[derive(clap::Args)]
pub struct Events {
    /// KIND/NAME; without it all events of the namespace
    #[arg(value_name = "KIND/NAME")]
    what: Vec<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Events {
    const NAME: &'static str = "events";
    const ABOUT: &'static str = "Show what was told about an object";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let mut all = if self.what.is_empty() {
                let namespace = if self.all_namespaces { None } else { Some(session.namespace()) };
                list(&session, namespace, "").await?
            } else {
                let (resource, name) = meant_one(&session, &self.what).await?;
                let namespace = if resource.is_namespaced { session.namespace() } else { "" };
                of_object(&session, &resource.kind, namespace, &name).await?
            };
            all.sort_by_key(|it| Told::of(it).map(|it| it.at));
            match self.output {
                Output::Table | Output::Wide if all.is_empty() => say("no events"),
                Output::Table | Output::Wide => print::out(&table(&all, session.clock.now()).to_text())?,
                Output::Name => print::out(&names(&all))?,
                output => print::out(&text(all, false, output))?,
            }
            Ok(Exit::Done)
        })
    }
}

/// The events about one object. Those about cluster-scoped ones are in the namespace `default`, or where
/// whoever told them has put them.
pub async fn of_object(
    session: &Session,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Vec<Value>, Error> {
    let fields = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let place = Some(namespace).filter(|it| !it.is_empty());
    list(session, place, &fields).await
}

async fn list(session: &Session, namespace: Option<&str>, fields: &str) -> Result<Vec<Value>, Error> {
    let mut address = Address::new("/api/v1");
    if let Some(namespace) = namespace {
        address = address.step("namespaces").step(namespace);
    }
    let address = address.step("events").with_some("fieldSelector", Some(fields));
    let mut answer = session.value(&Ask::get(address)).await?;
    Ok(match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}

fn table(events: &[Value], now: Timestamp) -> Table {
    let mut table = Table::new(&["LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "FROM", "MESSAGE"]);
    for event in events {
        let told = Told::of(event);
        let age = told.as_ref().map(|it| span(now.duration_since(it.at).unsigned_abs()));
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let object =
            format!("{}/{}", text("/involvedObject/kind").to_lowercase(), text("/involvedObject/name"));
        let from = [text("/reportingComponent"), text("/source/component")];
        let from = from.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        let count = told.map_or(1, |it| it.count).to_string();
        let age = age.unwrap_or_else(|| "unknown".to_owned());
        table.row([age, text("/type"), text("/reason"), object, count, from, text("/message")]);
    }
    table
}

fn names(events: &[Value]) -> String {
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    events.iter().map(|it| format!("event/{}\n", print::plain(&name(it)))).collect()
}

/// Used by `explain` as well: the newest first.
pub fn told(events: &[Value]) -> Vec<Told> {
    let mut all: Vec<Told> = events.iter().filter_map(Told::of).collect();
    all.sort_by_key(|it| std::cmp::Reverse(it.at));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_lined_up() {
        let event = json!({"type": "Warning", "reason": "CannotCreate", "message": "quota\nexceeded", "count": 3,
            "involvedObject": {"kind": "Bucket", "name": "a"}, "source": {"component": "managed"},
            "lastTimestamp": "2026-11-15T12:00:00Z", "metadata": {"name": "a.1"}});
        let now = "2026-11-15T12:01:30Z".parse().unwrap();
        assert_eq!(
            table(std::slice::from_ref(&event), now).to_text(),
            "LAST SEEN   TYPE      REASON         OBJECT     COUNT   FROM      MESSAGE\n\
             1m30s       Warning   CannotCreate   bucket/a   3       managed   quota\\nexceeded\n"
        );
        assert_eq!(names(&[event]), "event/a.1\n");
    }
}
