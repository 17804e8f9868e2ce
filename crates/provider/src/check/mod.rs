//! Runs any provider through the contract.
//!
//! The checks create, change and remove one external thing for each sample object, so point them at an
//! account where that is welcome. What a check makes it removes, also when a later one fails.

mod life;
mod report;
mod samples;

use std::sync::Arc;
use std::time::Duration;

use concert_model::{GroupVersionKind, Object};

pub use report::{Outcome, Report, Verdict};
pub use samples::{Sample, read as read_samples};

use crate::contract::{Call, Configuration, Connector};
use crate::error::Class;
use crate::handshake::{Handshake, Protocol};

/// How to run the checks.
#[derive(Clone)]
pub struct Options {
    /// The objects to use; for kinds without one, an object is made from the schema if there is one.
    pub samples: Vec<Sample>,
    /// The account to act on.
    pub configuration: Option<Arc<Configuration>>,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long a new thing may take to show up, and a removed one to go.
    pub patience: Duration,
    /// Names this run, so that tokens and uids of two runs differ.
    pub run: String,
}

impl Options {
    /// No samples, no account, a minute for everything.
    pub fn new(run: impl Into<String>) -> Self {
        let minute = Duration::from_secs(60);
        Self { samples: Vec::new(), configuration: None, timeout: minute, patience: minute, run: run.into() }
    }
}

/// Runs every check that applies.
pub async fn run(connector: &dyn Connector, options: &Options) -> Report {
    let mut report = Report::default();
    let call = Call::within(options.timeout);
    let shake = match connector.handshake(&call).await {
        Ok(shake) => shake,
        Err(error) => {
            report.fail("handshake", "", format!("{:?}: {error}", error.class));
            return report;
        }
    };
    report.provider = describe(&shake);
    handshake(&shake, &mut report);
    unknown_kind(connector, options, &call, &mut report).await;
    for served in &shake.kinds {
        match samples::find(&options.samples, served) {
            Some(sample) => life::run(connector, &shake, &sample, options, &mut report).await,
            None => report.skip(
                "life",
                &served.kind.to_string(),
                "no sample of this kind and no schema to make one from",
            ),
        }
    }
    for sample in &options.samples {
        let kind = sample.object.gvk().ok();
        if !shake.kinds.iter().any(|served| Some(&served.kind) == kind.as_ref()) {
            report.fail("sample", sample.object.kind(), "the provider does not serve this kind".to_owned());
        }
    }
    report
}

fn describe(shake: &Handshake) -> String {
    let protocol = match shake.protocol {
        Protocol::V1 => "concert.provider.v1",
        Protocol::V1Alpha1 => "external.proto.v1alpha1",
    };
    format!("{} {} ({protocol})", shake.name, shake.version).trim_start().to_owned()
}

fn handshake(shake: &Handshake, report: &mut Report) {
    let mut kinds: Vec<_> = shake.kinds.iter().map(|it| &it.kind).collect();
    kinds.sort();
    let twice = kinds.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    if !shake.refused.is_empty() {
        report.fail("handshake", "", shake.refused.join("; "));
    } else if kinds.is_empty() {
        report.fail("handshake", "", "it serves no kind".to_owned());
    } else if let Some(kind) = twice {
        report.fail("handshake", "", format!("{kind} is served twice"));
    } else if shake.protocol == Protocol::V1 && (shake.name.is_empty() || shake.version.is_empty()) {
        report.fail("handshake", "", "it does not say its name and version".to_owned());
    } else {
        report.pass("handshake", "");
    }
}

/// An object of a kind that nobody serves must be refused, and as such.
async fn unknown_kind(connector: &dyn Connector, options: &Options, call: &Call, report: &mut Report) {
    let kind = GroupVersionKind::parse("check.concert.dev/v1", "NobodyServesThis").expect("a constant");
    let mut object = Object::new(&kind, "", "unknown");
    object.set_metadata("uid", serde_json::json!(format!("{}-unknown", options.run)));
    let error = match connector.connect(&object, options.configuration.as_ref(), call).await {
        Err(error) => Some(error),
        Ok(mut external) => external.observe(&object, call).await.err(),
    };
    match error {
        None => report.fail("unknown-kind", "", "it answered about a kind that it does not serve".to_owned()),
        Some(error) if error.class == Class::NotServed => report.pass("unknown-kind", ""),
        Some(error) => {
            let detail = format!("refused, but as {:?} rather than NotServed: {error}", error.class);
            // The prototype's providers answer everything with one code.
            report.skip("unknown-kind", "", &detail);
        }
    }
}

#[cfg(test)]
mod tests;
