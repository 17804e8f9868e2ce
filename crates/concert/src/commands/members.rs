//! `concert members`: the replicas of a control plane, and who has how much of the work.

use concert_model::Address;
use serde_json::Value;

use super::Run;
use crate::client::{Ask, Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Table};

#[derive(clap::Args)]
pub struct Members {
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Members {
    const NAME: &'static str = "members";
    const ABOUT: &'static str = "Show the replicas and who has how much of the work";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let answer = session.value(&Ask::get(Address::new("/api/v1/cluster/nodes"))).await?;
            print::out(&match self.output {
                Output::Json => print::json(&answer),
                Output::Yaml => print::yaml(&answer),
                Output::Table | Output::Wide | Output::Name => table(&answer).to_text(),
            })?;
            Ok(Exit::Done)
        })
    }
}

fn table(answer: &Value) -> Table {
    let text = |value: &Value, field: &str| print::plain(value[field].as_str().unwrap_or_default());
    let mut table = Table::new(&["MEMBER", "STATUS", "SHARES", "LENDS WORK", "ADDRESS", "VERSION", "AGE"]);
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
        table.row([
            text(node, "node_id"),
            status,
            shares,
            lends.to_owned(),
            text(node, "address"),
            text(node, "version"),
            text(node, "age"),
        ]);
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
        let text = table(&answer).to_text();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["a:1:x", "Ready", "43/128", "yes", "https://a:8000", "0.1.0", "1m19s"]);
        assert_eq!(lines[2], ["b:2:y", "Leaving", "1/128", "https://b:8000", "0.1.0", "5s"]);
        assert_eq!(lines[3], ["c:3:z", "Ready", "all", "yes", "5s"]);
    }
}
