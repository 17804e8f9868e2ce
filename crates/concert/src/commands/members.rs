//! `concert members`: the replicas of a control plane, and who has how much of the work.

use concert_model::{Address, GroupKind, ObjectKey};
use concert_server::Share;
use serde_json::Value;

use super::Run;
use super::objects::meant_one;
use crate::client::{Ask, Flags, Resource, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

#[derive(clap::Args)]
pub struct Members {
    /// KIND/NAME: only the member that works on this object
    #[arg(value_name = "KIND/NAME")]
    what: Vec<String>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Members {
    const NAME: &'static str = "members";
    const ABOUT: &'static str = "Show the replicas and who has how much of the work";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let mut answer = session.value(&Ask::get(Address::new("/api/v1/cluster/nodes"))).await?;
            if !self.what.is_empty() {
                let (resource, name) = meant_one(&session, &self.what).await?;
                narrow(&mut answer, Share::of(&key(&resource, session.namespace(), &name)));
            }
            print::out(&match self.output {
                Output::Json => print::json(&answer),
                Output::Yaml => print::yaml(&answer),
                Output::Name => names(&answer),
                Output::Table => table(&answer, false).to_text(),
                Output::Wide => table(&answer, true).to_text(),
            })?;
            Ok(Exit::Done)
        })
    }
}

/// What the work on an object is dealt out by.
fn key(resource: &Resource, namespace: &str, name: &str) -> ObjectKey {
    let kind = GroupKind::new(&*resource.group, &*resource.kind);
    match resource.is_namespaced {
        true => ObjectKey::namespaced(kind, namespace, name),
        false => ObjectKey::cluster(kind, name),
    }
}

/// Leaves only the member that has a share. A process that is alone has all of them.
fn narrow(answer: &mut Value, share: Share) {
    if let Some(nodes) = answer["nodes"].as_array_mut() {
        nodes.retain(|it| it["shares_max"].is_null() || numbers(it).contains(&share.number().into()));
    }
}

fn numbers(node: &Value) -> Vec<u64> {
    node["share_numbers"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

/// `0-3,7`.
fn ranges(numbers: &[u64]) -> String {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    let range = |run: &[u64]| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(ToString::to_string).collect(),
    };
    runs.map(range).collect::<Vec<_>>().join(",")
}

fn names(answer: &Value) -> String {
    let nodes = answer["nodes"].as_array().into_iter().flatten();
    nodes.map(|it| print::plain(it["node_id"].as_str().unwrap_or_default()) + "\n").collect()
}

fn table(answer: &Value, is_wide: bool) -> Table {
    let text = |value: &Value, field: &str| print::plain(value[field].as_str().unwrap_or_default());
    let columns = ["MEMBER", "STATUS", "SHARES", "LENDS WORK", "ADDRESS", "VERSION", "AGE", "SHARE NUMBERS"];
    let shown = columns.len() - usize::from(!is_wide);
    let mut table = Table::new(&columns[..shown]);
    for node in answer["nodes"].as_array().into_iter().flatten() {
        let status = match (node["status"].as_str(), node["is_leaving"].as_bool()) {
            (Some("Ready"), Some(true)) => "Leaving".to_owned(),
            _ => text(node, "status"),
        };
        // A process that is alone has everything.
        let shares = match (node["shares"].as_u64(), node["shares_max"].as_u64()) {
            (Some(shares), Some(max)) => format!("{shares}/{max}"),
            _ => "all".to_owned(),
        };
        let lends = if node["role"] == "leader" { "yes" } else { "" };
        let cells = [
            text(node, "node_id"),
            status,
            shares,
            lends.to_owned(),
            text(node, "address"),
            text(node, "version"),
            text(node, "age"),
            ranges(&numbers(node)),
        ];
        table.row(&cells[..shown]);
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_and_one_that_is_alone() {
        let answer = json!({"nodes": [
            {"node_id": "a:1:x", "status": "Ready", "role": "leader", "shares": 43, "shares_max": 128,
                "address": "https://a:8000", "version": "0.1.0", "age": "1m19s", "is_leaving": false},
            {"node_id": "b:2:y", "status": "Ready", "role": "follower", "shares": 1, "shares_max": 128,
                "address": "https://b:8000", "version": "0.1.0", "age": "5s", "is_leaving": true},
            {"node_id": "c:3:z", "status": "Ready", "role": "leader", "age": "5s"},
        ]});
        let text = table(&answer, false).to_text();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a:1:x", "Ready", "43/128", "yes", "https://a:8000", "0.1.0", "1m19s"]);
        assert_eq!(lines[2], ["b:2:y", "Leaving", "1/128", "https://b:8000", "0.1.0", "5s"]);
        assert_eq!(lines[3], ["c:3:z", "Ready", "all", "yes", "5s"]);
        assert_eq!(names(&answer), "a:1:x\nb:2:y\nc:3:z\n");
    }

    #[test]
    fn who_has_which_shares_and_so_which_objects() {
        let bucket = Resource {
            group: "example.com".into(),
            kind: "Bucket".into(),
            is_namespaced: true,
            ..Resource::default()
        };
        let share = Share::of(&key(&bucket, "default", "photos"));
        let number = u64::from(share.number());
        let with = |numbers: &[u64]| json!({"node_id": "a", "shares_max": 128, "share_numbers": numbers});
        let mut answer = json!({"nodes": [with(&[number + 1, number + 2]), with(&[number, number + 7])]});
        let wide = table(&answer, true).to_text();
        let last = |place: usize| wide.lines().nth(place).unwrap().split_whitespace().next_back().unwrap();
        assert_eq!(last(1), format!("{}-{}", number + 1, number + 2));
        assert_eq!(last(2), format!("{number},{}", number + 7));
        narrow(&mut answer, share);
        assert_eq!(answer["nodes"], json!([with(&[number, number + 7])]));
        let mut alone = json!({"nodes": [{"node_id": "a"}]});
        narrow(&mut alone, share);
        assert_eq!(names(&alone), "a\n");
    }
}
