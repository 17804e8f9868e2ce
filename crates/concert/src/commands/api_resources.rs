//! `concert api-resources`: the kinds that a server has.

use serde_json::{Value, json};

use super::Run;
use crate::client::{Flags, Kinds, Resource, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

#[derive(clap::Args)]
pub struct ApiResources {
    /// Only those of a group; the core group is ""
    #[arg(long, value_name = "GROUP")]
    api_group: Option<String>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for ApiResources {
    const NAME: &'static str = "api-resources";
    const ABOUT: &'static str = "Show the kinds that the server has";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let kinds = Kinds::of(&session).await?;
            let is_meant = |it: &&Resource| self.api_group.as_ref().is_none_or(|group| *group == it.group);
            let kinds: Vec<&Resource> = kinds.0.iter().filter(is_meant).collect();
            print::out(&text(&kinds, self.output))?;
            Ok(Exit::Done)
        })
    }
}

fn text(kinds: &[&Resource], form: Output) -> String {
    match form {
        Output::Table | Output::Wide => table(kinds, form == Output::Wide),
        Output::Json => print::json(&list(kinds)),
        Output::Yaml => print::yaml(&list(kinds)),
        Output::Name => kinds.iter().map(|it| print::plain(&name(it)) + "\n").collect(),
    }
}

fn name(resource: &Resource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// As discovery has them, but all in one list.
fn list(kinds: &[&Resource]) -> Value {
    let one = |it: &&Resource| {
        json!({"name": it.plural, "singularName": it.singular, "namespaced": it.is_namespaced,
            "group": it.group, "version": it.version, "kind": it.kind, "verbs": it.verbs,
            "shortNames": it.short_names, "categories": it.categories})
    };
    let resources: Vec<Value> = kinds.iter().map(one).collect();
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "", "resources": resources})
}

fn table(kinds: &[&Resource], is_wide: bool) -> String {
    let mut columns = vec!["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"];
    if is_wide {
        columns.extend(["VERBS", "CATEGORIES"]);
    }
    let mut table = Table::new(&columns);
    for it in kinds {
        let mut cells = vec![
            it.plural.clone(),
            it.short_names.join(","),
            it.api_version(),
            it.is_namespaced.to_string(),
            it.kind.clone(),
        ];
        if is_wide {
            cells.extend([it.verbs.join(","), it.categories.join(",")]);
        }
        table.row(cells);
    }
    table.to_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_lined_up_or_named() {
        let bucket = Resource {
            group: "cloud.dev".into(),
            version: "v1".into(),
            plural: "buckets".into(),
            kind: "Bucket".into(),
            short_names: vec!["bkt".into()],
            is_namespaced: true,
            verbs: vec!["get".into(), "list".into()],
            ..Resource::default()
        };
        assert_eq!(
            text(&[&bucket], Output::Table),
            "NAME      SHORTNAMES   APIVERSION     NAMESPACED   KIND\n\
             buckets   bkt          cloud.dev/v1   true         Bucket\n"
        );
        assert!(text(&[&bucket], Output::Wide).contains("get,list"));
        assert_eq!(text(&[&bucket], Output::Name), "buckets.cloud.dev\n");
        let list: Value = serde_json::from_str(&text(&[&bucket], Output::Json)).unwrap();
        assert_eq!(list["kind"], "APIResourceList");
        assert_eq!(list["resources"][0]["name"], "buckets");
        assert_eq!(list["resources"][0]["shortNames"], json!(["bkt"]));
        assert!(text(&[&bucket], Output::Yaml).contains("kind: Bucket"));
    }
}
