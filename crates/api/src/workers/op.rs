//! What a worker may write, as it says it.

use std::time::Duration;

use concert_engine::workers::Report;
use concert_model::no8s::{self, Phase};
use serde_json::{Map, Value, json};

use crate::rest::{Error, Fields};

/// Fields of a result that are written down as they come.
const DETAILS: [&str; 9] = [
    "duration_seconds",
    "trigger_reason",
    "drift_detected",
    "plan_output",
    "apply_output",
    "phase",
    "resources_created",
    "resources_updated",
    "resources_deleted",
];

/// Longest wait that a result asks for: a year.
const REQUEUE_MAX: f64 = 31_536_000.0;

/// One thing that a worker does to its item.
#[derive(Clone, Debug)]
pub(super) enum Op {
    Status(no8s::Report),
    Condition {
        kind: String,
        status: String,
        reason: String,
        message: String,
        observed: Option<i64>,
    },
    Outputs(Value),
    AddFinalizer(String),
    RemoveFinalizer(String),
    GetFinalizers,
    HardDelete,
    /// Ends the lease as if it had never been.
    Release,
    Result(Report),
}

impl Op {
    /// Reads one, by its field `op`.
    pub fn read(value: &Value) -> Result<Self, Error> {
        let mut fields = Fields::of(value)?;
        let known = [
            "status",
            "condition",
            "outputs",
            "add_finalizer",
            "remove_finalizer",
            "get_finalizers",
            "hard_delete",
            "release",
            "result",
        ];
        let op = match fields.choice("op", &known) {
            Some("status") => Self::status(&mut fields),
            Some("condition") => {
                let kind = fields.bounded_text("type", 1, 316).to_owned();
                Self::condition(&mut fields, kind)
            }
            Some("outputs") => Self::outputs(&mut fields),
            Some("add_finalizer") => Self::AddFinalizer(fields.bounded_text("finalizer", 1, 316).to_owned()),
            Some("remove_finalizer") => {
                Self::RemoveFinalizer(fields.bounded_text("finalizer", 1, 316).to_owned())
            }
            Some("get_finalizers") => Self::GetFinalizers,
            Some("hard_delete") => Self::HardDelete,
            Some("release") => Self::Release,
            Some("result") => Self::Result(report(&mut fields)),
            _ => {
                if !fields.is_noted("op") {
                    fields.required_text("op");
                }
                Self::GetFinalizers
            }
        };
        fields.check()?;
        Ok(op)
    }

    pub fn status(fields: &mut Fields<'_>) -> Self {
        let word = fields.required_text("status");
        let phase = word.parse();
        if let (Err(error), false) = (&phase, fields.is_noted("status")) {
            let error: &no8s::UnknownPhase = error;
            fields.refuse("status", &error.to_string());
        }
        Self::Status(no8s::Report {
            phase: phase.unwrap_or(Phase::Pending),
            message: fields.text("message").map(str::to_owned),
            observed_generation: fields.integer("observed_generation"),
        })
    }

    pub fn condition(fields: &mut Fields<'_>, kind: String) -> Self {
        let status = fields.choice("status", &["True", "False", "Unknown"]);
        if status.is_none() && !fields.is_noted("status") {
            fields.required_text("status");
        }
        Self::Condition {
            kind,
            status: status.unwrap_or_default().to_owned(),
            reason: fields.text("reason").unwrap_or_default().to_owned(),
            message: fields.text("message").unwrap_or_default().to_owned(),
            observed: fields.integer("observed_generation"),
        }
    }

    pub fn outputs(fields: &mut Fields<'_>) -> Self {
        Self::Outputs(json!(fields.required_object("outputs").cloned().unwrap_or_default()))
    }
}

fn report(fields: &mut Fields<'_>) -> Report {
    let mut details = Map::new();
    for field in DETAILS {
        if let Some(value) = fields.value(field) {
            details.insert(field.to_owned(), value.clone());
        }
    }
    let requeue_after = fields.number("requeue_after");
    Report {
        success: fields.flag("success"),
        message: fields.text("message").unwrap_or_default().to_owned(),
        // None of it is a reason to refuse a result: a plugin's mistake must not cost its lease.
        requeue_after: requeue_after
            .map(|it| Duration::from_secs_f64(if it > 0.0 { it.min(REQUEUE_MAX) } else { 0.0 })),
        waits: Vec::new(),
        details,
    }
}
