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

/// `GET /cluster/nodes`. A data folder is held by one process, which leads for as long as it runs.
pub(crate) async fn nodes(call: &Call<'_>) -> Result<Response<Body>, Error> {
    call.query(&[]).check()?;
    call.admin("create").await?;
    let (node, now) = (&call.door.node, call.clock().now());
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
    fn ages_have_two_units() {
        for (seconds, expected) in [(0, "0s"), (42, "42s"), (79, "1m19s"), (3_600, "1h0m"), (190_800, "2d5h")]
        {
            assert_eq!(in_words(Duration::from_secs(seconds)), expected);
        }
    }
}
