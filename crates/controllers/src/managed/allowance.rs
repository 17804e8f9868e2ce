//! How often a provider may be called: as a whole, and for each account.
//!
//! Clouds limit calls by account, and bill for them. A call waits for its turn as long as its own time
//! allows, and is throttled otherwise: nobody's failure, so back-off stays as it was. Several processes that
//! share the work have an equal part each.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::members::Shares;
use concert_engine::{Authority, Budget, Budgets, Lane};
use concert_model::{Encoded, GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Connector, Created, Deleted, Enumerate, Error, External, Founds,
    Handshake, Lookup, Observation, Plan, Token, Updated,
};
use concert_store::Clock;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Most calls to a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Allowance {
    /// Of all objects together; none for any number.
    pub provider: Option<Budget>,
    /// Of the objects of each account; none for any number.
    pub account: Option<Budget>,
}

impl Allowance {
    /// The way to a provider, with calls counted; as it is where there is nothing to count.
    pub fn meter(
        self,
        name: &Arc<str>,
        connector: Arc<dyn Connector>,
        clock: &Arc<dyn Clock>,
        authority: &Authority,
    ) -> Arc<dyn Connector> {
        if self == Self::default() {
            return connector;
        }
        let budgets = Budgets::new();
        if let Some(budget) = self.provider {
            budgets.set(name.clone(), budget);
        }
        if let Some(budget) = self.account {
            budgets.set_otherwise(budget);
        }
        let meter = Meter {
            name: name.clone(),
            allowance: self,
            budgets,
            clock: clock.clone(),
            authority: authority.clone(),
        };
        Arc::new(Metered { connector, meter: Arc::new(meter) })
    }
}

struct Meter {
    name: Arc<str>,
    allowance: Allowance,
    budgets: Budgets,
    clock: Arc<dyn Clock>,
    authority: Authority,
}

impl Meter {
    /// Waits for a turn. Returns the call with what is left of its time.
    async fn wait(&self, account: Option<&Arc<str>>, lane: Lane, call: &Call) -> Result<Call> {
        let whole = self.allowance.provider.is_some().then(|| self.name.clone());
        let account = account.filter(|_| self.allowance.account.is_some()).cloned();
        let labels: Vec<Arc<str>> = whole.into_iter().chain(account).collect();
        let end = self.clock.elapsed() + call.timeout;
        loop {
            let now = self.clock.elapsed();
            let crowd = self.authority.shares().map_or(1, Shares::crowd);
            let Err(due) = self.budgets.take_part(&labels, lane, now, crowd) else {
                let timeout = end.saturating_sub(now).max(Duration::from_millis(1));
                return Ok(Call { timeout, ..call.clone() });
            };
            // Half of its time is for the call itself.
            if due.saturating_sub(now) > end.saturating_sub(now) / 2 {
                let budget = labels.last().map(ToString::to_string);
                let text = format!("no more calls for now within the rate limit of {}", self.name);
                let error = Error::new(Class::Throttled, text).after(due.saturating_sub(now));
                return Err(Error { budget, ..error });
            }
            self.clock.sleep(due.saturating_sub(now)).await;
        }
    }
}

struct Metered {
    connector: Arc<dyn Connector>,
    meter: Arc<Meter>,
}

/// Never the name of a provider, which has no slash.
fn account_of(configuration: Option<&Arc<Configuration>>) -> Option<Arc<str>> {
    configuration.map(|it| format!("account/{}", it.name).into())
}

#[async_trait]
impl Connector for Metered {
    async fn handshake(&self, call: &Call) -> Result<Handshake> {
        self.connector.handshake(call).await
    }

    async fn connect(
        &self,
        object: &Object,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Box<dyn External>> {
        let external = self.connector.connect(object, configuration, call).await?;
        let turn = Turn { meter: self.meter.clone(), account: account_of(configuration) };
        Ok(Box::new(MeteredExternal { external, turn }))
    }

    async fn glance(
        &self,
        object: &Encoded,
        version: &str,
        configuration: Option<&Arc<Configuration>>,
        call: &Call,
    ) -> Result<Observation> {
        let call = self.meter.wait(account_of(configuration).as_ref(), Lane::Poll, call).await?;
        self.connector.glance(object, version, configuration, &call).await
    }

    async fn lost(&self) {
        self.connector.lost().await;
    }

    async fn watch(&self, kind: &GroupVersionKind) -> Result<Changes> {
        self.connector.watch(kind).await
    }

    async fn enumerate(&self, what: &Enumerate, call: &Call) -> Result<Founds> {
        self.connector.enumerate(what, call).await
    }
}

struct MeteredExternal {
    external: Box<dyn External>,
    turn: Turn,
}

/// Whose turn is waited for.
struct Turn {
    meter: Arc<Meter>,
    account: Option<Arc<str>>,
}

impl Turn {
    async fn wait(&self, call: &Call) -> Result<Call> {
        self.meter.wait(self.account.as_ref(), Lane::Event, call).await
    }
}

#[async_trait]
impl External for MeteredExternal {
    async fn observe(&mut self, object: &Object, call: &Call) -> Result<Observation> {
        let call = self.turn.wait(call).await?;
        self.external.observe(object, &call).await
    }

    async fn validate(&mut self, object: &Object, call: &Call) -> Result<()> {
        let call = self.turn.wait(call).await?;
        self.external.validate(object, &call).await
    }

    async fn plan(&mut self, object: &Object, call: &Call) -> Result<Plan> {
        let call = self.turn.wait(call).await?;
        self.external.plan(object, &call).await
    }

    async fn create(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Created> {
        let call = self.turn.wait(call).await?;
        self.external.create(object, token, &call).await
    }

    async fn update(&mut self, object: &Object, call: &Call) -> Result<Updated> {
        let call = self.turn.wait(call).await?;
        self.external.update(object, &call).await
    }

    async fn delete(&mut self, object: &Object, call: &Call) -> Result<Deleted> {
        let call = self.turn.wait(call).await?;
        self.external.delete(object, &call).await
    }

    async fn lookup(&mut self, object: &Object, token: &Token, call: &Call) -> Result<Lookup> {
        let call = self.turn.wait(call).await?;
        self.external.lookup(object, token, &call).await
    }

    async fn disconnect(self: Box<Self>, call: &Call) -> Result<()> {
        self.external.disconnect(call).await
    }
}

#[cfg(test)]
mod tests {
    use concert_store::SystemClock;

    use super::*;

    fn meter(allowance: Allowance) -> Meter {
        let budgets = Budgets::new();
        if let Some(budget) = allowance.provider {
            budgets.set("cloud", budget);
        }
        if let Some(budget) = allowance.account {
            budgets.set_otherwise(budget);
        }
        let clock = Arc::new(SystemClock::new());
        Meter { name: "cloud".into(), allowance, budgets, clock, authority: Authority::Alone }
    }

    #[tokio::test]
    async fn an_account_that_is_out_of_calls_does_not_hold_up_another() {
        let meter = meter(Allowance { provider: None, account: Some(Budget::new(0.001, 1.0)) });
        let (one, two): (Arc<str>, Arc<str>) = ("account/one".into(), "account/two".into());
        let call = Call::within(Duration::from_secs(10));
        assert!(meter.wait(Some(&one), Lane::Event, &call).await.is_ok());
        let refused = meter.wait(Some(&one), Lane::Event, &call).await.unwrap_err();
        assert_eq!((refused.class, refused.budget.as_deref()), (Class::Throttled, Some("account/one")));
        assert!(refused.retry_after.is_some_and(|it| it > Duration::from_secs(60)), "{refused:?}");
        assert!(meter.wait(Some(&two), Lane::Event, &call).await.is_ok());
        assert!(meter.wait(None, Lane::Event, &call).await.is_ok(), "nobody's account has no limit");
    }

    #[tokio::test]
    async fn a_call_waits_for_its_turn_while_it_has_the_time() {
        let meter = meter(Allowance { provider: Some(Budget::new(50.0, 1.0)), account: None });
        let call = Call::within(Duration::from_secs(10));
        for _ in 0..3 {
            let left = meter.wait(None, Lane::Poll, &call).await.unwrap();
            assert!(left.timeout <= call.timeout);
        }
    }
}
