//! All that reconciles, on a whole control plane, ended half way.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::serve::tests::call;
use crate::serve::{Layer, Plane, Running};

/// One that never ends, as if its store did not answer.
struct Endless;

#[async_trait]
impl Post for Endless {
    fn name(&self) -> &'static str {
        "endless"
    }

    fn begin(&self, _: Option<Fence>) -> Result<(), Error> {
        Ok(())
    }

    async fn end(&self, _: bool) {
        std::future::pending::<()>().await;
    }
}

async fn begin(folder: &tempfile::TempDir) -> Running {
    let layer = Layer {
        data_dir: Some(folder.path().join("data")),
        listen: Some("127.0.0.1:0".into()),
        admin_listen: Some("0".into()),
        plugins: Some("off".into()),
        dev: Some(true),
        ..Layer::default()
    };
    Plane::new(layer.resolve().unwrap()).start().await.unwrap()
}

/// Follows it for so many steps, and drops it there.
async fn interrupt(end: impl Future<Output = ()>, steps: usize) {
    let mut end = pin!(end);
    let mut left = steps;
    poll_fn(|context| {
        if end.as_mut().poll(context).is_ready() || left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A membership that is lost drops the task that is in the middle of giving a share back.
#[tokio::test]
async fn wherever_its_end_is_interrupted_all_work_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let running = begin(&folder).await;
    let at = running.address();
    let worker = json!({"name": "shoot", "handles": [{"kind": "runtime"}], "resync_seconds": 3600,
        "host_id": "h", "watches": [], "grants": {"write": ["cluster"]},
        "cluster_events": [{"group": "services", "version": "v1", "kind": "ServiceInstance"}]});
    assert_eq!(call(at, "POST", "/api/v1/workers", worker).await.0, 201);
    let entry = json!({"id": "rt-1", "kind": "runtime", "tenant": "acme"});
    assert_eq!(call(at, "POST", "/inventory/v1/entries", entry).await.0, 201);
    let is_lent = async |after: usize| {
        let ask = json!({"limit": 5, "wait_seconds": 20, "host_id": "h"});
        let (code, lent) = call(at, "POST", "/api/v1/workers/shoot/claim", ask).await;
        assert_eq!((code, lent["items"][0]["item"].as_str()), (200, Some("rt-1/shoot")), "{after}: {lent}");
    };
    is_lent(0).await;
    for steps in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55] {
        interrupt(running.hands.end(true), steps).await;
        running.hands.end(true).await;
        running.hands.start(None).unwrap_or_else(|error| panic!("after {steps} steps: {error:?}"));
        is_lent(steps).await;
    }
    running.stop().await;
}

#[tokio::test]
async fn what_is_lost_ends_whatever_does_not_end_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let running = begin(&folder).await;
    running.hands.end(true).await;
    let hands = Hands {
        parts: running.hands.parts.clone(),
        duty: running.hands.duty.clone(),
        only: running.hands.only,
        posts: vec![Arc::new(Endless)],
        at_work: Mutex::default(),
    };
    hands.start(None).unwrap();
    assert!(hands.duty.registry().is_some());
    let is_ended = async {
        while hands.duty.registry().is_some() {
            tokio::task::yield_now().await;
        }
    };
    let first = async {
        tokio::select! {
            biased;
            () = hands.end(true) => panic!("its post does not end"),
            () = is_ended => {}
        }
    };
    timeout(Duration::from_secs(10), first).await.expect("providers are still called");
    running.stop().await;
}
