use std::sync::Arc;

use async_trait::async_trait;

use super::*;
use crate::tests::stage::{Running, bucket};
use crate::*;

const SAMPLE: &str = "
apiVersion: example.dev/v1
kind: Bucket
metadata: {name: a}
spec: {forProvider: {size: 3}}
---
apiVersion: example.dev/v1
kind: Bucket
metadata: {name: a}
spec: {forProvider: {size: 4}}
";

fn options() -> Options {
    Options { samples: read_samples(SAMPLE).unwrap(), patience: Duration::ZERO, ..Options::new("run") }
}

#[tokio::test]
async fn a_good_provider_passes_in_both_protocols() {
    for (protocol, skips) in [(Protocol::V1, 0), (Protocol::V1Alpha1, 7)] {
        let server = Running::of(Arc::new(Memory::new([bucket()]))).await;
        let report = run(&server.client_of(protocol), &options()).await;
        assert!(report.is_ok(), "{report}");
        assert_eq!(report.count(Verdict::Skip), skips, "{report}");
        assert!(report.count(Verdict::Pass) > 10, "{report}");
    }
}

#[tokio::test]
async fn samples_are_made_from_the_schema() {
    let mut served = Served::new(bucket());
    served.schema =
        Some(serde_json::json!({"properties": {"spec": {"type": "object", "required": ["size", "mode"],
        "properties": {"size": {"type": "integer", "minimum": 2}, "mode": {"enum": ["a"]}, "other": {}}}}}));
    let sample = samples::find(&[], &served).unwrap();
    assert_eq!(sample.object.spec(), &serde_json::json!({"size": 2, "mode": "a"}));
    assert!(samples::find(&[], &Served::new(bucket())).is_none());
    assert!(read_samples("kind: [").is_err() && read_samples("a: b").is_err());
}

/// Forgets tokens, so that a repeated create makes two.
struct Forgetful(Memory, std::sync::atomic::AtomicU64);

type Result<T> = std::result::Result<T, Error>;

#[async_trait]
impl Provider for Forgetful {
    fn handshake(&self) -> Handshake {
        self.0.handshake()
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        self.0.observe(object, account).await
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        self.0.plan(object, account).await
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        _: &Token,
        call: &Call,
    ) -> Result<Created> {
        let count = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.create(object, account, &Token(count.to_string().into()), call).await
    }

    async fn update(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Updated> {
        self.0.update(object, account, call).await
    }

    async fn delete(&self, _: &Object, _: Option<&Configuration>, _: &Call) -> Result<Deleted> {
        Err(Error::new(Class::Transient, "deletes nothing"))
    }
}

#[tokio::test]
async fn a_bad_provider_is_found_out() {
    let provider = Arc::new(Forgetful(Memory::new([bucket()]), 0.into()));
    let report = run(&InProcess::new(provider), &options()).await;
    let failed: Vec<_> =
        report.outcomes.iter().filter(|it| it.verdict == Verdict::Fail).map(|it| it.name).collect();
    for name in ["create-twice", "lookup-found", "delete", "observe-deleted"] {
        assert!(failed.contains(&name), "{name} in {report}");
    }
    assert_eq!(report.to_json()["ok"], false);
}

/// Plans something else than what differs, and refuses its own sample.
struct Fanciful(Memory);

#[async_trait]
impl Provider for Fanciful {
    fn handshake(&self) -> Handshake {
        self.0.handshake()
    }

    async fn validate(&self, _: &Object) -> Result<()> {
        Err(Error::new(Class::Terminal, "spec.forProvider.size: not today"))
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        self.0.observe(object, account).await
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        let mut plan = self.0.plan(object, account).await?;
        plan.changes.iter_mut().for_each(|it| it.path.push_str(".elsewhere"));
        Ok(plan)
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        call: &Call,
    ) -> Result<Created> {
        self.0.create(object, account, token, call).await
    }

    async fn update(&self, _: &Object, _: Option<&Configuration>, _: &Call) -> Result<Updated> {
        Ok(Updated::default())
    }

    async fn delete(&self, object: &Object, account: Option<&Configuration>, call: &Call) -> Result<Deleted> {
        self.0.delete(object, account, call).await
    }
}

#[tokio::test]
async fn a_plan_that_is_not_what_differs_is_found_out() {
    let server = Running::of(Arc::new(Fanciful(Memory::new([bucket()])))).await;
    let report = run(&server.client(), &options()).await;
    let failed: Vec<_> =
        report.outcomes.iter().filter(|it| it.verdict == Verdict::Fail).map(|it| it.name).collect();
    for name in ["validate", "plan-is-the-diff", "update-was-applied", "plan-was-applied"] {
        assert!(failed.contains(&name), "{name} in {report}");
    }
}
