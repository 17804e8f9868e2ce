//! What a server is really like.

use concert_model::Object;
use concert_provider::{Change, Delta, Details, Observation};
use serde_json::{Value, json};

use super::Redis;
use super::record::Record;
use super::resp::{Client, Fault};
use super::settings::{NAMES, Pairs, Wanted};
use crate::owner::takes_over;
use crate::plan::{change, drift, password, replacing};
use crate::status::{self, Readiness};
use crate::{Result, fields};

pub(super) const HOST: &str = "127.0.0.1";

/// How a server was found.
pub(super) enum State {
    Stopped,
    Running(Answer),
    /// It runs with another password than ours.
    Locked,
    /// It runs and does not answer, for this reason.
    Silent(String),
}

pub(super) struct Answer {
    version: String,
    is_loading: bool,
    pairs: Pairs,
}

impl Redis {
    /// Looks at a server.
    pub(super) async fn look(&self, record: &Record) -> State {
        if !self.is_running(record) {
            return State::Stopped;
        }
        match ask(record).await {
            Ok(answer) => State::Running(answer),
            Err(Fault::WrongPassword) => State::Locked,
            Err(fault) => State::Silent(fault.to_string()),
        }
    }
}

async fn ask(record: &Record) -> Result<Answer, Fault> {
    let mut client = Client::open(record.port, &record.password).await?;
    let about = client.about().await?;
    let mut pairs = Pairs::default();
    for (value, name) in pairs.iter_mut().zip(NAMES) {
        *value = client.setting(name).await?;
    }
    Ok(Answer {
        version: about.get("redis_version").cloned().unwrap_or_default(),
        is_loading: about.get("loading").is_some_and(|it| it == "1"),
        pairs,
    })
}

/// The port that an object asks for.
pub(super) fn asked_port(object: &Object) -> Result<Option<u16>> {
    let port = fields::whole(object, "port", 1024, 65535)?;
    Ok(port.and_then(|it| u16::try_from(it).ok()))
}

/// What is not as declared.
pub(super) fn differences(object: &Object, record: &Record, state: &State) -> Result<Vec<Change>> {
    let wanted = Wanted::of(object)?;
    let mut changes = match state {
        State::Running(answer) => wanted.differences(&answer.pairs),
        _ => wanted.differences(&record.settings.pairs()),
    };
    // It runs as wanted but would not start as wanted: somebody said the same by hand.
    if changes.is_empty() {
        changes = wanted.differences(&record.settings.pairs());
    }
    if let Some(port) = asked_port(object)?.filter(|port| *port != record.port) {
        changes.push(replacing(change("port", json!(record.port), json!(port))));
    }
    match state {
        State::Stopped => changes.push(drift("status.atProvider.state", "stopped", "running")),
        State::Locked => changes.push(password()),
        State::Running(_) | State::Silent(_) => {}
    }
    let uid = object.uid().map(|uid| uid.to_string()).unwrap_or_default();
    if takes_over(object) && record.owner.uid != uid {
        changes.push(drift("owner", record.owner.object.as_str(), object.name()));
    }
    Ok(changes)
}

/// What an object is told of its server.
pub(super) fn delta(object: &Object, record: &Record, state: &State) -> Delta {
    let (word, ready) = match state {
        State::Stopped => ("stopped", Readiness::Unavailable("redis-server does not run".to_owned())),
        State::Running(answer) if answer.is_loading => {
            ("loading", Readiness::Creating("redis-server reads its data".to_owned()))
        }
        State::Running(_) => ("running", Readiness::Ready),
        State::Locked => {
            let why = "somebody has changed the password of redis-server";
            ("locked", Readiness::Unavailable(why.to_owned()))
        }
        State::Silent(why) => ("silent", Readiness::Unavailable(format!("redis-server is there, but {why}"))),
    };
    let mut at_provider =
        json!({"name": record.name.as_str(), "state": word, "host": HOST, "port": record.port});
    if let State::Running(answer) = state {
        at_provider["version"] = Value::from(answer.version.as_str());
    }
    status::delta(object, record.name.as_str(), at_provider, &ready)
}

/// How to connect; without the password for who is not entitled to it.
pub(super) fn connection(object: &Object, record: &Record) -> Details {
    let details =
        Details::new().with("endpoint", HOST).with("host", HOST).with("port", record.port.to_string());
    if record.owner.admits(object) { details.with("password", record.password.as_str()) } else { details }
}

/// All of it.
pub(super) fn observation(object: &Object, record: &Record, state: &State) -> Observation {
    // An object that cannot be read is not as declared: the update says why, and it can still be deleted.
    let (is_readable, diff) = match differences(object, record, state) {
        Ok(diff) => (true, diff),
        Err(_) => (false, Vec::new()),
    };
    Observation {
        exists: true,
        is_up_to_date: is_readable && diff.is_empty(),
        diff,
        delta: delta(object, record, state),
        connection: connection(object, record),
    }
}
