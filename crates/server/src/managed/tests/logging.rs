//! Where logs go.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

use super::objects::{declare, define_providers};
use super::*;
use crate::managed::Controller;
use crate::managed::provider::warn_of_plain_text;

/// Keeps the messages it hears.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn has(&self, message: &str) -> bool {
        self.0.lock().unwrap().iter().any(|it| it == message)
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Heard {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn each_reconciler_logs_to_the_place_it_was_given() {
    let heard = [Heard::default(), Heard::default()];
    let mut running = Vec::new();
    for heard in &heard {
        let (store, cloud) = (store(), Cloud::default());
        let options = options(&store, &cloud).with_leader_election(false);
        let options = options.with_logger(Dispatch::new(heard.clone()));
        running.push(Controller::new(config(), options).start().await.unwrap());
    }
    // Said by a task that was started on the way.
    until("both are heard", async || heard.iter().all(|it| it.has("provider is up"))).await;
    let [first, second] = <[_; 2]>::try_from(running).unwrap();
    first.stop().await;
    assert!(heard[0].has("stopped") && !heard[1].has("stopped"));
    second.stop().await;
    assert!(heard[1].has("stopped"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_warned_of_like_the_configuration_if_its_provider_is_spoken_to_in_clear() {
    const WARNING: &str = "no TLS: what is sent to these providers can be read on the way";
    let (store, cloud, heard) = (store(), Cloud::default(), Heard::default());
    define_providers(&store).await;
    let options = options(&store, &cloud).with_leader_election(false);
    // Whoever is the first to say something while somebody begins to listen may go unheard for good, and
    // others say this, too.
    warn_of_plain_text(config().providers.iter());
    let logger = Dispatch::new(heard.clone());
    tracing::callsite::rebuild_interest_cache();
    let options = options.with_logger(logger);
    let nobody = ControllerConfig { providers: Vec::new() };
    let running = Controller::new(nobody, options).start().await.unwrap();
    declare(&store, "private", json!({"endpoint": "unix:/run/p.sock"})).await;
    until("the private one is declared", async || heard.has("provider declared")).await;
    assert!(!heard.has(WARNING));
    declare(&store, "plain", json!({"endpoint": "b:1"})).await;
    until("the plain one is warned of", async || heard.has(WARNING)).await;
    running.stop().await;
}
