//! `/api/v1/cluster` and `/health`: how the server is.

use std::time::Duration;

use concert_model::Timestamp;
use concert_store::Local;
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::call::{Call, answer};
use super::error::Error;
use super::view::naive;
use crate::kube::Body;

/// The process that answers.
#[derive(Clone, Debug)]
pub struct Node {
    /// `hostname:pid:random`.
    pub id: String,
    /// Of the machine.
    pub hostname: String,
    /// Of the process.
    pub pid: u32,
    /// When it started.
    pub started_at: Timestamp,
}

/// All processes that serve the same objects.
pub trait Company: Send + Sync + 'static {
    /// Each of them, as it was seen last.
    fn seats(&self) -> Vec<Seat>;
}

/// One process among several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    /// `hostname:pid:random`.
    pub id: String,
    /// When it joined; none if it did not say.
    pub since: Option<Timestamp>,
    /// Whether it renews its place.
    pub is_live: bool,
    /// Whether it gives back what it has.
    pub is_leaving: bool,
    /// Whether it is the one that remote workers are lent work by.
    pub is_leader: bool,
    /// Which parts of all work it has, by number.
    pub shares: Vec<u16>,
    /// How many there are.
    pub shares_max: usize,
    /// Where it answers.
    pub address: String,
    /// Of the program.
    pub version: String,
}

/// `GET /cluster/health` and `GET /health`: whether the store answers.
pub(crate) async fn health(store: &Local) -> Response<Body> {
    match store.newest().await {
        Ok(_) => answer(StatusCode::OK, &json!({"status": "ok"})),
        Err(error) => {
            tracing::warn!(%error, "the store does not answer");
            answer(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": "disconnected"}))
        }
    }
}

/// `GET /cluster/nodes`. A data folder is held by one process, which leads for as long as it runs; a
/// database by any number.
pub(crate) async fn nodes(call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    call.admin("create").await?;
    let (node, now) = (&call.door.node, call.clock().now());
    if let Some(company) = &call.door.company {
        return Ok(answer(StatusCode::OK, &together(node, &company.seats(), now)));
    }
    let age = Duration::try_from(now.duration_since(node.started_at)).unwrap_or_default();
    let shown = json!({
        "node_id": node.id, "hostname": node.hostname, "pid": node.pid, "status": "Ready", "role": "leader",
        "age": in_words(age), "first_seen": naive(node.started_at), "last_heartbeat": naive(now),
    });
    let lock = json!({
        "holder_id": node.id, "acquired_at": naive(node.started_at), "expires_at": Value::Null, "is_valid": true,
    });
    let whole = json!({
        "this_instance_id": node.id, "this_instance_is_leader": true, "leader_lock": lock, "nodes": [shown],
    });
    Ok(answer(StatusCode::OK, &whole))
}

/// What several processes are, in the words for one.
fn together(node: &Node, seats: &[Seat], now: Timestamp) -> Value {
    let age = |since: Timestamp| Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let show = |it: &Seat| {
        let mut parts = it.id.splitn(3, ':');
        let (hostname, pid) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        json!({
            "node_id": it.id, "hostname": hostname, "pid": pid.parse::<u32>().ok(),
            "status": if it.is_live { "Ready" } else { "NotReady" },
            "role": if it.is_leader { "leader" } else { "follower" },
            "age": it.since.map(|since| in_words(age(since))), "first_seen": it.since.map(naive),
            "last_heartbeat": if it.is_live { json!(naive(now)) } else { Value::Null },
            "is_leaving": it.is_leaving, "shares": it.shares.len(), "shares_max": it.shares_max,
            "share_numbers": it.shares,
            "address": it.address, "version": it.version,
        })
    };
    let leader = seats.iter().find(|it| it.is_leader);
    let lock = leader.map(|it| {
        json!({"holder_id": it.id, "acquired_at": it.since.map(naive), "expires_at": null, "is_valid": true})
    });
    json!({
        "this_instance_id": node.id,
        "this_instance_is_leader": leader.is_some_and(|it| it.id == node.id),
        "leader_lock": lock, "nodes": seats.iter().map(show).collect::<Vec<_>>(),
    })
}

/// `2d5h`, `3h12m`, `1m19s`, `42s`.
fn in_words(age: Duration) -> String {
    let seconds = age.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_says_which_shares_it_has() {
        let (id, now) = ("a:7:x".to_owned(), Timestamp::UNIX_EPOCH);
        let seat = Seat {
            id: id.clone(),
            since: None,
            is_live: true,
            is_leaving: false,
            is_leader: true,
            shares: vec![3, 4, 90],
            shares_max: 128,
            address: String::new(),
            version: String::new(),
        };
        let node = Node { id, hostname: "a".into(), pid: 7, started_at: now };
        let shown = &together(&node, &[seat], now)["nodes"][0];
        assert_eq!((&shown["shares"], &shown["share_numbers"]), (&json!(3), &json!([3, 4, 90])));
        assert_eq!(shown["pid"], 7);
    }

    #[test]
    fn ages_have_two_units() {
        for (seconds, expected) in [(0, "0s"), (42, "42s"), (79, "1m19s"), (3_600, "1h0m"), (190_800, "2d5h")]
        {
            assert_eq!(in_words(Duration::from_secs(seconds)), expected);
        }
    }
}
