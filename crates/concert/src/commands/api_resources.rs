//! `concert api-resources`: the kinds that a server has.

use super::Run;
use crate::client::{Flags, Kinds, Resource, Session};
use crate::exit::Exit;
use crate::print::{self, Table};

#[derive(clap::Args)]
pub struct ApiResources {
    /// Only those of a group; the core group is ""
    #[arg(long, value_name = "GROUP")]
    api_group: Option<String>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Columns
    Table,
    /// With what can be done to them, and categories
    Wide,
    /// Names, one a line
    Name,
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

fn text(kinds: &[&Resource], form: Form) -> String {
    if form == Form::Name {
        let name = |it: &&Resource| match it.group.as_str() {
            "" => format!("{}\n", it.plural),
            group => format!("{}.{group}\n", it.plural),
        };
        return kinds.iter().map(name).map(|it| print::plain(it.trim_end()) + "\n").collect();
    }
    let mut columns = vec!["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"];
    if form == Form::Wide {
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
        if form == Form::Wide {
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
            text(&[&bucket], Form::Table),
            "NAME      SHORTNAMES   APIVERSION     NAMESPACED   KIND\n\
             buckets   bkt          cloud.dev/v1   true         Bucket\n"
        );
        assert!(text(&[&bucket], Form::Wide).contains("get,list"));
        assert_eq!(text(&[&bucket], Form::Name), "buckets.cloud.dev\n");
    }
}
