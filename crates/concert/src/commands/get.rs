//! `concert get`: objects as the server's columns, or as they are.

use serde_json::Value;

use super::Run;
use super::objects::{Meant, Scope, label, meant, text};
use crate::client::{Ask, Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

/// How many objects are asked for at once.
const PAGE: &str = "500";

#[derive(clap::Args)]
pub struct Get {
    /// KIND, KIND NAME…, KIND/NAME… or KIND,KIND; kinds by any of their names, or by category
    #[arg(required = true, value_name = "KIND[/NAME]")]
    what: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
    /// Say nothing about what does not exist
    #[arg(long)]
    ignore_not_found: bool,
}

impl Run for Get {
    const NAME: &'static str = "get";
    const ABOUT: &'static str = "Show objects";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let meant = meant(&session, &self.what).await?;
            match self.output {
                Output::Table | Output::Wide => self.tables(&session, meant).await,
                _ => self.whole(&session, meant).await,
            }
        })
    }
}

impl Get {
    async fn tables(&self, session: &Session, meant: Vec<Meant>) -> anyhow::Result<Exit> {
        let is_mixed = meant.iter().any(|it| it.resource != meant[0].resource);
        let mut texts = Vec::new();
        // Objects of one kind that were named one by one are one table.
        let mut last: Option<(String, Table)> = None;
        for one in meant {
            let Some(answer) = self.ask(session, &one, true).await? else { continue };
            let table = self.table(&one, &answer, is_mixed);
            if table.rows.is_empty() {
                continue;
            }
            last = match last.take() {
                Some((plural, mut open))
                    if plural == one.resource.label() && open.columns == table.columns =>
                {
                    open.rows.extend(table.rows);
                    Some((plural, open))
                }
                other => {
                    texts.extend(other.map(|(_, table)| table.to_text()));
                    Some((one.resource.label(), table))
                }
            };
        }
        texts.extend(last.map(|(_, table)| table.to_text()));
        if texts.is_empty() && !self.ignore_not_found {
            crate::cli::say("nothing found");
        }
        print::out(&texts.join("\n"))?;
        Ok(Exit::Done)
    }

    async fn whole(&self, session: &Session, meant: Vec<Meant>) -> anyhow::Result<Exit> {
        let is_one = matches!(&meant[..], [Meant { name: Some(_), .. }]);
        let (mut objects, mut names) = (Vec::new(), String::new());
        for one in meant {
            let Some(answer) = self.ask(session, &one, false).await? else { continue };
            let items = if one.name.is_some() { vec![answer] } else { items(answer) };
            for mut object in items {
                // The items of a list do not say what they are.
                object["apiVersion"] = one.resource.api_version().into();
                object["kind"] = one.resource.kind.clone().into();
                names += &(label(&one.resource, &object) + "\n");
                objects.push(object);
            }
        }
        if objects.is_empty() && is_one {
            return Ok(Exit::Done);
        }
        print::out(&if self.output == Output::Name { names } else { text(objects, is_one, self.output) })?;
        Ok(Exit::Done)
    }

    /// One object, or all pages of a list as one; none if it does not exist and that is fine.
    async fn ask(&self, session: &Session, one: &Meant, is_table: bool) -> anyhow::Result<Option<Value>> {
        let form = |ask: Ask| if is_table { ask.in_columns() } else { ask };
        if let Some(name) = &one.name {
            let ask = form(Ask::get(one.resource.object(session.namespace(), name)));
            if self.ignore_not_found {
                return Ok(session.find(&ask).await?);
            }
            return Ok(Some(session.value(&ask).await?));
        }
        let address = self.scope.collection(session, &one.resource).with("limit", PAGE);
        let mut whole = session.value(&form(Ask::get(address.clone()))).await?;
        while let Some(token) = next(&whole) {
            let page = session.value(&form(Ask::get(address.clone().with("continue", &token)))).await?;
            whole["metadata"] = page["metadata"].clone();
            append(&mut whole, page);
        }
        Ok(Some(whole))
    }

    fn table(&self, one: &Meant, answer: &Value, is_mixed: bool) -> Table {
        let mut table = table(answer, self.output == Output::Wide);
        if is_mixed {
            let prefix = format!("{}/", one.resource.label());
            for name in table.rows.iter_mut().filter_map(|it| it.first_mut()) {
                name.insert_str(0, &prefix);
            }
        }
        if self.scope.all_namespaces && one.resource.is_namespaced {
            return table.with_first("NAMESPACE", namespaces(answer));
        }
        table
    }
}

fn items(mut list: Value) -> Vec<Value> {
    match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

fn next(page: &Value) -> Option<String> {
    page["metadata"]["continue"].as_str().filter(|it| !it.is_empty()).map(str::to_owned)
}

fn append(whole: &mut Value, mut page: Value) {
    for field in ["items", "rows"] {
        if let (Some(all), Value::Array(more)) = (whole[field].as_array_mut(), page[field].take()) {
            all.extend(more);
        }
    }
}

/// What the server made of it; names and times where it makes no tables.
pub fn table(answer: &Value, is_wide: bool) -> Table {
    Table::of_server(answer, is_wide).unwrap_or_else(|| {
        let mut table = Table::new(&["NAME", "CREATED"]);
        for object in objects(answer) {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            table.row([text("name"), text("creationTimestamp")]);
        }
        table
    })
}

fn objects(answer: &Value) -> Vec<&Value> {
    answer["items"].as_array().map_or_else(|| vec![answer], |items| items.iter().collect())
}

/// The namespace of each row.
pub fn namespaces(answer: &Value) -> Vec<String> {
    let rows = answer["rows"].as_array().map(|rows| rows.iter().map(|it| &it["object"]).collect());
    let objects = rows.unwrap_or_else(|| objects(answer));
    objects.iter().map(|it| it["metadata"]["namespace"].as_str().unwrap_or_default().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_server_without_tables_gives_names_and_times() {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "creationTimestamp": "t"}});
        let list = json!({"kind": "BucketList", "items": [object]});
        for answer in [object, list] {
            assert_eq!(table(&answer, false).rows, [["a", "t"]]);
            assert_eq!(namespaces(&answer), ["n"]);
        }
    }

    #[test]
    fn pages_become_one_answer() {
        let mut whole = json!({"metadata": {"continue": "x"}, "items": [1]});
        assert_eq!(next(&whole).as_deref(), Some("x"));
        append(&mut whole, json!({"metadata": {"continue": ""}, "items": [2, 3]}));
        assert_eq!(whole["items"], json!([1, 2, 3]));
        let table = json!({"kind": "Table", "rows": [{"object": {"metadata": {"namespace": "n"}}}]});
        assert_eq!(namespaces(&table), ["n"]);
    }
}
