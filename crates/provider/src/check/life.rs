//! The life of one external thing: seen, made, seen again, changed, removed.

use std::collections::BTreeSet;
use std::time::Duration;

use concert_model::Object;
use serde_json::json;

use super::{Options, Report, Sample};
use crate::alpha::EXTERNAL_NAME;
use crate::answer::{Change, Lookup, Observation, PlanAction};
use crate::contract::{Call, Connector, External, Token};
use crate::error::{Class, Effect, Error};
use crate::handshake::{Handshake, Protocol};

/// One more than a double can hold.
const LARGE: i64 = 9_007_199_254_740_993;

/// Why nothing is said of plans.
const NO_PLANS: &str = "the provider makes no plans";

/// How long to wait before looking again.
const PAUSE: Duration = Duration::from_millis(250);

struct Life<'a> {
    external: Box<dyn External>,
    shake: &'a Handshake,
    options: &'a Options,
    report: &'a mut Report,
    kind: String,
    object: Object,
    token: Token,
}

/// A check's own way to fail.
type Checked = Result<(), String>;

pub(super) async fn run(
    connector: &dyn Connector,
    shake: &Handshake,
    sample: &Sample,
    options: &Options,
    report: &mut Report,
) {
    let kind = sample.object.gvk().map(|it| it.to_string()).unwrap_or_default();
    // Samples that are made up have one name for all kinds; a uid and a token are used by one of them.
    let made = sample.object.gvk().map(|it| it.group_kind.to_string().to_lowercase()).unwrap_or_default();
    let uid = format!("{}-{made}-{}", options.run, sample.object.name());
    let object = dressed(&sample.object, &uid);
    let call = Call::within(options.timeout);
    let external = match connector.connect(&object, options.configuration.as_ref(), &call).await {
        Ok(external) => external,
        Err(error) => return report.fail("connect", &kind, error.to_string()),
    };
    let token = Token(format!("{uid}-token").into());
    let mut life = Life { external, shake, options, report, kind, object, token };
    life.before().await;
    if life.make().await {
        life.after(sample.changed.as_ref()).await;
    }
    life.remove().await;
    let call = Call::within(options.timeout);
    if let Err(error) = life.external.disconnect(&call).await {
        life.report.fail("clean-end", &life.kind, error.to_string());
    } else {
        life.report.pass("clean-end", &life.kind);
    }
}

/// The sample with an identity, and with things no provider knows, which must not disturb it.
fn dressed(sample: &Object, uid: &str) -> Object {
    let mut object = sample.clone();
    object.set_metadata("uid", json!(uid));
    object.set_annotation("check.concert.dev/unknown", "kept");
    object.set("status", json!({"unknownToProvider": {"large": LARGE}}));
    object
}

impl Life<'_> {
    fn call(&self) -> Call {
        Call::within(self.options.timeout)
    }

    fn is_v1(&self) -> bool {
        self.shake.protocol == Protocol::V1
    }

    fn note(&mut self, name: &'static str, result: Checked) {
        match result {
            Ok(()) => self.report.pass(name, &self.kind),
            Err(detail) => self.report.fail(name, &self.kind, detail),
        }
    }

    /// What must hold before anything was made.
    async fn before(&mut self) {
        let call = self.call();
        if self.is_v1() {
            let valid = self.external.validate(&self.object, &call).await;
            self.note("validate", valid.map_err(|error| format!("the sample is refused: {}", text(error))));
        } else {
            self.report.skip("validate", &self.kind, "the protocol has no word for it");
        }
        let seen = self.external.observe(&self.object, &call).await;
        self.note(
            "observe-absent",
            seen.map_err(text).and_then(|seen| {
                if seen.exists {
                    Err("it exists already: choose a sample that does not".into())
                } else {
                    Ok(())
                }
            }),
        );
        if self.shake.capabilities.plan {
            let plan = self.external.plan(&self.object, &call).await;
            self.note(
                "plan-create",
                plan.map_err(text).and_then(|plan| expect(plan.action, PlanAction::Create)),
            );
        } else {
            self.report.skip("plan-create", &self.kind, NO_PLANS);
        }
    }

    /// Makes the thing; says whether there is one now.
    async fn make(&mut self) -> bool {
        let call = self.call();
        let made = match self.external.create(&self.object, &self.token, &call).await {
            Ok(made) => made,
            Err(error) => {
                self.note("create", Err(text(error)));
                return false;
            }
        };
        self.note("create", Ok(()));
        if let Some(status) = &made.delta.status
            && !self.is_v1()
        {
            let is_kept = status.get("unknownToProvider") == Some(&json!({"large": LARGE}));
            self.note(
                "unknown-fields-survive",
                if is_kept { Ok(()) } else { Err("status lost a field".into()) },
            );
        }
        let Some(first) = made.delta.external_name.clone() else {
            let has_name = self.object.annotation(EXTERNAL_NAME).is_some();
            self.note("identity", if has_name { Ok(()) } else { Err("create told no external name".into()) });
            return true;
        };
        self.note("identity", Ok(()));
        if self.is_v1() {
            let again = self.external.create(&self.object, &self.token, &call).await;
            self.note(
                "create-twice",
                again.map_err(text).and_then(|again| match again.delta.external_name {
                    Some(second) if second == first => Ok(()),
                    other => Err(format!("the same token made {first:?} and then {other:?}")),
                }),
            );
        } else {
            self.report.skip("create-twice", &self.kind, "the protocol has no tokens");
        }
        self.object.set_annotation(EXTERNAL_NAME, &first);
        true
    }

    /// What must hold once the thing is there.
    async fn after(&mut self, changed: Option<&Object>) {
        let appeared = self.until(true).await;
        self.note("observe-created", appeared);
        self.lookup().await;
        self.stranger().await;
        self.fence().await;
        self.size().await;
        let call = self.call();
        if self.shake.capabilities.plan {
            let plan = self.external.plan(&self.object, &call).await;
            self.note(
                "plan-nothing",
                plan.map_err(text).and_then(|plan| {
                    expect(plan.action, PlanAction::None)?;
                    if plan.changes.is_empty() { Ok(()) } else { Err("no action, but changes".into()) }
                }),
            );
        } else {
            self.report.skip("plan-nothing", &self.kind, NO_PLANS);
        }
        match changed {
            Some(changed) => self.change(changed).await,
            None => self.report.skip("update", &self.kind, "the sample has no second version"),
        }
    }

    async fn change(&mut self, changed: &Object) {
        self.object.set("spec", changed.spec().clone());
        let call = self.call();
        let seen = self.external.observe(&self.object, &call).await.map_err(text);
        self.note(
            "observe-change",
            seen.as_ref().map_err(Clone::clone).and_then(|seen| match (seen.exists, seen.is_up_to_date) {
                (true, false) => Ok(()),
                (exists, _) => Err(format!("it differs, and is said to be up to date (exists: {exists})")),
            }),
        );
        if self.shake.capabilities.plan {
            let diff = seen.map(|seen| seen.diff).unwrap_or_default();
            self.plan_change(&diff).await;
        } else {
            self.report.skip("plan-update", &self.kind, NO_PLANS);
        }
        let updated = self.external.update(&self.object, &call).await;
        self.note("update", updated.map(drop).map_err(text));
        let applied = self.until_up_to_date().await;
        self.note("update-was-applied", applied);
        if self.shake.capabilities.plan {
            let same = self.external.plan(&self.object, &call).await;
            self.note(
                "plan-was-applied",
                same.map_err(text).and_then(|plan| expect(plan.action, PlanAction::None)),
            );
        }
    }

    /// The plan of a change, and whether it is the difference that was seen.
    async fn plan_change(&mut self, diff: &[Change]) {
        let call = self.call();
        let plan = match self.external.plan(&self.object, &call).await {
            Ok(plan) => plan,
            Err(error) => return self.note("plan-update", Err(text(error))),
        };
        self.note(
            "plan-update",
            match plan.action {
                PlanAction::Update | PlanAction::Replace => Ok(()),
                other => Err(format!("it differs, yet the plan is {other:?}")),
            },
        );
        if diff.is_empty() {
            return self.report.skip("plan-is-the-diff", &self.kind, "it does not say which fields differ");
        }
        let (planned, seen) = (fields(&plan.changes), fields(diff));
        let result = if planned == seen {
            Ok(())
        } else {
            Err(format!("it would change {planned:?}, and {seen:?} differ"))
        };
        self.note("plan-is-the-diff", result);
    }

    async fn lookup(&mut self) {
        if !self.shake.capabilities.lookup {
            return self.report.skip("lookup", &self.kind, "the provider does not remember tokens");
        }
        let call = self.call();
        let name = self.object.annotation(EXTERNAL_NAME).map(str::to_owned);
        let found = self.external.lookup(&self.object, &self.token, &call).await;
        self.note(
            "lookup-found",
            found.map_err(text).and_then(|found| match found {
                Lookup::Found(delta) if delta.external_name == name => Ok(()),
                other => Err(format!("{other:?} rather than {name:?}")),
            }),
        );
        let fresh = Token(format!("{}-fresh", self.token).into());
        match self.external.lookup(&self.object, &fresh, &call).await {
            Ok(Lookup::CertainlyNone) => {
                let refused = self.external.create(&self.object, &fresh, &call).await;
                self.note(
                    "lookup-burns",
                    match refused {
                        Err(error) if error.effect == Effect::None => Ok(()),
                        Err(error) => Err(format!("refused, but in doubt: {error}")),
                        Ok(_) => Err("the token was said to be burnt, and yet it made something".into()),
                    },
                );
            }
            Ok(Lookup::Unknown) => self.report.skip("lookup-burns", &self.kind, "the provider cannot tell"),
            other => self.note("lookup-burns", Err(format!("{other:?} for a token nobody used"))),
        }
    }

    /// To delete something else must not remove this one.
    async fn stranger(&mut self) {
        let call = self.call();
        let mut stranger = self.object.clone();
        stranger.set_annotation(EXTERNAL_NAME, &format!("{}-stranger", self.options.run));
        stranger.set_metadata("uid", json!(format!("{}-stranger", self.options.run)));
        let deleted = self.external.delete(&stranger, &call).await;
        let is_refused = |error: &Error| error.effect == Effect::None && error.class != Class::Misbehaved;
        let result = match deleted {
            Err(error) if !is_refused(&error) => Err(text(error)),
            _ => match self.external.observe(&self.object, &call).await {
                Ok(seen) if seen.exists => Ok(()),
                Ok(_) => Err("deleting another identity removed this one".into()),
                Err(error) => Err(text(error)),
            },
        };
        self.note("delete-stranger", result);
    }

    async fn fence(&mut self) {
        if !self.is_v1() {
            return self.report.skip("fence", &self.kind, "the protocol has no claims");
        }
        let claim = |fence| Call { fence: Some(fence), ..Call::within(self.options.timeout) };
        let (newer, older) = (claim(2), claim(1));
        let result = match self.external.update(&self.object, &newer).await {
            Err(error) => Err(format!("update that changes nothing: {error}")),
            Ok(_) => match self.external.update(&self.object, &older).await {
                Err(error) if error.class == Class::Conflict => Ok(()),
                Err(error) => Err(format!("refused, but as {:?}: {error}", error.class)),
                Ok(_) => Err("a writer that was replaced was let in".into()),
            },
        };
        self.note("fence", result);
    }

    /// A large object may be refused; the provider must live on.
    async fn size(&mut self) {
        let call = self.call();
        let mut large = self.object.clone();
        large.set_annotation("check.concert.dev/large", &"x".repeat(12 << 20));
        let first = self.external.observe(&large, &call).await;
        let result = match self.external.observe(&self.object, &call).await {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("after a large object ({}): {error}", first.is_ok())),
        };
        self.note("large-object", result);
    }

    /// Removes the thing, twice.
    async fn remove(&mut self) {
        let call = self.call();
        let gone = self.external.delete(&self.object, &call).await.map(drop).map_err(text);
        self.note("delete", gone);
        let vanished = self.until(false).await;
        self.note("observe-deleted", vanished);
        let again = self.external.delete(&self.object, &call).await.map(drop).map_err(text);
        self.note("delete-missing", again);
    }

    /// Looks until the thing is there, or is not.
    async fn until(&mut self, exists: bool) -> Checked {
        let what = format!("not seen to {} in time", if exists { "appear" } else { "go" });
        self.until_seen(&what, |seen| seen.exists == exists).await
    }

    /// Looks until the thing is as declared.
    async fn until_up_to_date(&mut self) -> Checked {
        self.until_seen("not seen as declared in time", |seen| seen.exists && seen.is_up_to_date).await
    }

    async fn until_seen(&mut self, what: &str, is_it: impl Fn(&Observation) -> bool) -> Checked {
        let call = self.call();
        let mut left = self.options.patience;
        loop {
            match self.external.observe(&self.object, &call).await {
                Ok(seen) if is_it(&seen) => return Ok(()),
                Err(error) if error.class != Class::Transient => return Err(text(error)),
                _ if left.is_zero() => return Err(what.to_owned()),
                _ => {}
            }
            let pause = PAUSE.min(left);
            left -= pause;
            wait(pause).await;
        }
    }
}

/// The paths of some changes, in order.
fn fields(changes: &[Change]) -> BTreeSet<&str> {
    changes.iter().map(|it| it.path.as_str()).collect()
}

#[expect(clippy::disallowed_methods, reason = "a real provider takes real time")]
async fn wait(pause: Duration) {
    tokio::time::sleep(pause).await;
}

fn text(error: Error) -> String {
    format!("{:?}: {error}", error.class)
}

fn expect(is: PlanAction, wanted: PlanAction) -> Checked {
    if is == wanted { Ok(()) } else { Err(format!("the plan is {is:?} rather than {wanted:?}")) }
}
