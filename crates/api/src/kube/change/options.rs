//! What every write may be told: dry run, manager, what becomes of unknown fields.

use concert_model::{FieldError, FieldPath, Rule};
use concert_store::{By, UnknownFields, Warnings};
use http::header::USER_AGENT;
use serde_json::json;

use super::undecodable;
use crate::error::Error;
use crate::kube::api::Call;
use crate::kube::content::Document;

/// Parameters of a creation or an update.
pub(super) const PARAMS: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "includeObject"];

/// Longest name of a field manager: Kubernetes' own bound.
const MANAGER_CHARS_MAX: usize = 128;

/// How a write is to be done.
pub(crate) struct WriteOptions {
    pub(super) by: By,
}

impl WriteOptions {
    /// Reads them; `kind` is what errors call them.
    pub(super) fn read(call: &Call<'_>, kind: &str, verb: &str) -> Result<Self, Error> {
        let (mut errors, params) = (Vec::new(), call.params);
        let is_dry_run = read_dry_run(params.text("dryRun"), &mut errors);
        let unknown_fields = match params.text("fieldValidation") {
            None | Some("Warn") => UnknownFields::Warn,
            Some("Ignore") => UnknownFields::Drop,
            Some("Strict") => UnknownFields::Refuse,
            Some(other) => {
                errors.push(unsupported("fieldValidation", other, r#""Ignore", "Warn", "Strict""#));
                UnknownFields::Refuse
            }
        };
        let manager = params.text("fieldManager");
        check_manager(manager.unwrap_or_default(), &mut errors);
        if !errors.is_empty() {
            return Err(Error::invalid_options(kind, errors));
        }
        let warnings = match unknown_fields {
            UnknownFields::Warn => Warnings::collect(),
            UnknownFields::Drop | UnknownFields::Refuse => Warnings::default(),
        };
        let by = By {
            actor: call.user.name.clone(),
            reason: verb.into(),
            manager: manager.unwrap_or_else(|| agent(call)).into(),
            is_dry_run,
            unknown_fields,
            warnings,
            keeps_namespaces: true,
            ..By::default()
        };
        Ok(Self { by })
    }

    /// Fields that were sent twice count as unknown ones do.
    pub(super) fn check(&self, call: &Call<'_>, document: &Document) -> Result<(), Error> {
        let texts = document.duplicates.iter().map(|field| format!("duplicate field {field:?}"));
        match self.by.unknown_fields {
            UnknownFields::Drop => Ok(()),
            UnknownFields::Warn => {
                texts.for_each(|text| self.by.warnings.add(text));
                Ok(())
            }
            UnknownFields::Refuse if document.duplicates.is_empty() => Ok(()),
            UnknownFields::Refuse => {
                let texts: Vec<String> = texts.collect();
                Err(undecodable(call, &format!("strict decoding error: {}", texts.join(", "))))
            }
        }
    }
}

pub(super) fn read_dry_run(value: Option<&str>, errors: &mut Vec<FieldError>) -> bool {
    match value {
        None => false,
        Some("All") => true,
        Some(other) => {
            errors.push(unsupported("dryRun", other, r#""All""#));
            true
        }
    }
}

pub(super) fn unsupported(field: &str, value: &str, supported: &str) -> FieldError {
    let detail = format!("supported values: {supported}");
    FieldError::new(FieldPath::new(field), Rule::NotSupported, &json!(value), detail)
}

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    let field = FieldPath::new("fieldManager");
    if manager.chars().count() > MANAGER_CHARS_MAX {
        errors.push(FieldError::too_long(field, MANAGER_CHARS_MAX));
    } else if manager.chars().any(char::is_control) {
        errors.push(FieldError::invalid_text(field, manager, "should only contain printable characters"));
    }
}

/// The program that calls, as it names itself: `kubectl` of `kubectl/v1.34 (linux)`.
fn agent<'a>(call: &Call<'a>) -> &'a str {
    let agent = call.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let name = agent.split(['/', ' ']).next().unwrap_or_default();
    name.get(..MANAGER_CHARS_MAX).unwrap_or(name)
}
