//! `concert history`: every write of an object, by whom and when.

use concert_model::Address;
use serde_json::{Value, json};

use super::Run;
use super::objects::meant_one;
use crate::cli::{Advice, say};
use crate::client::{Ask, Error, Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

/// Most writes that a server shows at once.
const PAGE_MAX: usize = 500;

#[derive(clap::Args)]
pub struct History {
    /// KIND/NAME
    #[arg(required = true, value_name = "KIND/NAME")]
    what: Vec<String>,
    /// How many writes, counted from the newest
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// The form of the answer; name is the revisions alone
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for History {
    const NAME: &'static str = "history";
    const ABOUT: &'static str = "Show who wrote an object, and when";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let (resource, name) = meant_one(&session, &self.what).await?;
            let object = resource.object(session.namespace(), &name);
            let history = object.clone().step("history");
            let writes = match read(&session, &history, self.limit as usize).await {
                Ok(writes) => writes,
                // An object that exists was written, so a server that knows of no writes keeps none.
                Err(error) if error.is_not_found() && session.find(&Ask::get(object)).await?.is_some() => {
                    let what = format!("{} keeps no history", session.server());
                    return Err(
                        Advice::new(what, format!("concert events {}/{name}", resource.singular)).into()
                    );
                }
                Err(error) => return Err(error.into()),
            };
            match self.output {
                Output::Json => print::out(&print::json(&whole(writes)))?,
                Output::Yaml => print::out(&print::yaml(&whole(writes)))?,
                _ if writes.is_empty() => say("no history"),
                Output::Wide => print::out(&table(&writes, true).to_text())?,
                Output::Table => print::out(&table(&writes, false).to_text())?,
                Output::Name => print::out(&revisions(&writes))?,
            }
            Ok(Exit::Done)
        })
    }
}

/// As many writes as asked for, newest first, one page after the other.
async fn read(session: &Session, history: &Address, limit: usize) -> Result<Vec<Value>, Error> {
    let mut all: Vec<Value> = Vec::new();
    while all.len() < limit {
        let count = PAGE_MAX.min(limit - all.len());
        let before = all.last().and_then(|it| cell(&it["revision"]));
        let page = history.clone().with("limit", &count.to_string()).with_some("before", before.as_deref());
        let writes = writes(session.value(&Ask::get(page)).await?);
        let is_last = writes.len() < count;
        all.extend(writes);
        if is_last {
            break;
        }
    }
    Ok(all)
}

fn writes(mut answer: Value) -> Vec<Value> {
    let items = answer.get_mut("items").map(Value::take);
    match items.unwrap_or(answer) {
        Value::Array(writes) => writes,
        _ => Vec::new(),
    }
}

fn whole(writes: Vec<Value>) -> Value {
    json!({"kind": "History", "apiVersion": "concert.dev/v1alpha1", "items": writes})
}

/// One a line.
fn revisions(writes: &[Value]) -> String {
    let all = writes.iter().filter_map(|it| cell(&it["revision"]));
    all.map(|it| print::plain(&it) + "\n").collect()
}

fn table(writes: &[Value], is_wide: bool) -> Table {
    let mut columns = vec!["REVISION", "TIME", "WHAT", "GENERATION", "BY", "WHY"];
    if is_wide {
        columns.extend(["MANAGER", "UID"]);
    }
    let mut table = Table::new(&columns);
    for write in writes {
        let text = |name: &str| cell(&write[name]).unwrap_or_default();
        let mut cells = vec![
            text("revision"),
            text("time"),
            text("act").to_lowercase(),
            text("generation"),
            text("actor"),
            text("reason"),
        ];
        if is_wide {
            cells.extend([text("manager"), text("uid")]);
        }
        table.row(cells);
    }
    table
}

fn cell(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_line_for_each_write() {
        let write = json!({"revision": "41", "time": "2026-11-15T12:00:00Z", "act": "Update", "generation": 2,
            "actor": "jo\u{7}", "reason": "apply", "uid": "u"});
        let shown = writes(json!({"items": [write]}));
        let text = table(&shown, false).to_text();
        assert_eq!(
            text,
            "REVISION   TIME                   WHAT     GENERATION   BY        WHY\n\
             41         2026-11-15T12:00:00Z   update   2            jo\\u{7}   apply\n"
        );
        assert_eq!(table(&shown, true).rows[0].len(), 8);
        assert_eq!(revisions(&shown), "41\n");
        assert_eq!(writes(json!([write])), shown);
        assert!(writes(json!({})).is_empty());
    }
}
