//! The run of one entry: under its lease, from the claim to the result.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tracing::{Instrument as _, info, info_span, warn};

use super::claim::Item;
use super::leases::Lease;
use super::results::Results;
use crate::answer::{self, Class, Failed, Outcome};
use crate::component::Component;
use crate::http::Http;
use crate::inventory::Inventory;

/// Reconciles and reports. A lease that is lost ends it where it stands.
pub(crate) async fn run<C: Component>(
    component: &C,
    http: &Http,
    item: &Item,
    mut lease: Lease,
    results: &Results,
) {
    let span = info_span!("reconcile", item = %item.name, fence = item.fence);
    let work = async {
        let body = result(component, http, item).await;
        results.send(body).await;
    };
    tokio::select! {
        () = work.instrument(span) => {}
        reason = lease.lost() => warn!(item = %item.name, reason, "the lease is lost, so the work is dropped"),
    }
}

async fn result<C: Component>(component: &C, http: &Http, item: &Item) -> Value {
    let access = &item.inventory;
    let (outcome, revision) = match Inventory::new(http, &access.url, &access.token, access.revision) {
        Ok(inventory) => {
            let run = AssertUnwindSafe(component.reconcile(&item.entry, &inventory)).catch_unwind();
            let outcome = run.await.unwrap_or_else(|_| Err(Failed::transient("the reconciler panicked")));
            (outcome, inventory.observed())
        }
        Err(error) => (Err(Failed::from(error)), access.revision),
    };
    note(item, &outcome);
    let mut body = answer::to_json(&outcome, revision);
    body.insert("item".into(), json!(&*item.name));
    body.insert("fence".into(), json!(item.fence));
    Value::Object(body)
}

fn note(item: &Item, outcome: &Outcome) {
    let (entry, reasons) = (item.entry.id.as_str(), item.entry.reasons.join(","));
    match outcome {
        Ok(it) if it.is_ready() => info!(entry, reasons, message = it.message(), "ready"),
        Ok(it) => info!(entry, reasons, message = it.message(), "not yet ready"),
        Err(it) if it.class() == Class::Busy => {
            info!(entry, reasons, message = it.message(), "not yet ready");
        }
        Err(it) => warn!(entry, reasons, message = it.message(), class = ?it.class(), "failed"),
    }
}
