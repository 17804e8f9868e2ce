//! `concert history`: every write of an object, by whom and when.

use serde_json::Value;

use super::Run;
use super::objects::meant_one;
use crate::cli::{Advice, say};
use crate::client::{Ask, Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

#[derive(clap::Args)]
pub struct History {
    /// KIND/NAME
    #[arg(required = true, value_name = "KIND/NAME")]
    what: Vec<String>,
    /// How many writes, counted from the newest
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: usize,
    /// The form of the answer
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
            let address = object.clone().step("history").with("limit", &self.limit.to_string());
            let answer = match session.value(&Ask::get(address)).await {
                Ok(answer) => answer,
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
                Output::Json => print::out(&print::json(&answer))?,
                Output::Yaml => print::out(&print::yaml(&answer))?,
                _ if writes(&answer).is_empty() => say("no history"),
                Output::Wide => print::out(&table(&answer, true).to_text())?,
                Output::Table | Output::Name => print::out(&table(&answer, false).to_text())?,
            }
            Ok(Exit::Done)
        })
    }
}

fn writes(answer: &Value) -> Vec<&Value> {
    let list = answer.as_array().or(answer["items"].as_array());
    list.into_iter().flatten().collect()
}

fn table(answer: &Value, is_wide: bool) -> Table {
    let mut columns = vec!["REVISION", "TIME", "WHAT", "GENERATION", "BY", "WHY"];
    if is_wide {
        columns.extend(["MANAGER", "UID"]);
    }
    let mut table = Table::new(&columns);
    for write in writes(answer) {
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
        let text = table(&json!({"items": [write]}), false).to_text();
        assert_eq!(
            text,
            "REVISION   TIME                   WHAT     GENERATION   BY        WHY\n\
             41         2026-11-15T12:00:00Z   update   2            jo\\u{7}   apply\n"
        );
        assert_eq!(table(&json!([write]), true).rows[0].len(), 8);
        assert!(writes(&json!({})).is_empty());
    }
}
