//! `PATCH` of an object or of its status, by content type.

use concert_model::{FieldError, FieldPath, Patch, PatchError};
use concert_store::Part;
use http::StatusCode;

use super::options::WriteOptions;
use super::{answer, commit, subject};
use crate::error::Error;
use crate::kube::accept::{Form, Media};
use crate::kube::answer::Answer;
use crate::kube::api::Call;
use crate::kube::content;
use crate::write::{Change, Operation, Written};

const PARAMS: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force", "includeObject"];

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

pub(crate) async fn patch(call: &Call<'_>, part: Part, body: &[u8], form: Form) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let kind = content::content_type(call.headers);
    let is_built_in = call.resource.card().is_built_in;
    if !(matches!(kind, JSON | MERGE | APPLY) || kind == STRATEGIC && is_built_in) {
        let known: &[&str] =
            if is_built_in { &[JSON, MERGE, STRATEGIC, APPLY] } else { &[JSON, MERGE, APPLY] };
        return Err(Error::unsupported_media(known));
    }
    let verb = if kind == APPLY { "apply" } else { "patch" };
    let options = WriteOptions::read(call, "PatchOptions", verb)?;
    let is_forced = check_apply(call, kind == APPLY)?;
    let media = if kind == APPLY { Media::Yaml } else { Media::Json };
    // Every JSON document is YAML, and reading it as what it is takes a tenth of the time.
    let media = if body.trim_ascii_start().starts_with(b"{") { Media::Json } else { media };
    let document = content::read(body, media).or_else(|error| match kind {
        APPLY => content::read(body, Media::Yaml),
        _ => Err(error),
    })?;
    options.check(call, &document)?;
    let malformed = |error: PatchError| Error::bad_request(error.to_string());
    let change = |change| Operation::Patch(call.key(), part, change);
    let plain = |patch| change(Change::Plain { version: call.resource.version().to_owned(), patch });
    let operation = match kind {
        JSON => plain(Patch::json(document.value).map_err(malformed)?),
        MERGE => plain(Patch::merge(document.value).map_err(malformed)?),
        STRATEGIC if document.value.is_object() => change(Change::Strategic(document.value)),
        STRATEGIC => return Err(Error::bad_request("a strategic merge patch must be an object")),
        _ => Operation::Apply { object: subject::read(call, document.value)?, part, is_forced },
    };
    let written = commit(call, &call.naming(), operation, &options).await?;
    let is_new = matches!(written, Written::Created(_));
    let answer = answer(call, &written.into_object(), form, &options)?;
    Ok(if is_new { Answer { code: StatusCode::CREATED, ..answer } } else { answer })
}

/// What only an apply must and may be told; says whether it is forced.
fn check_apply(call: &Call<'_>, is_apply: bool) -> Result<bool, Error> {
    let force = call.params.flag("force")?;
    let invalid = |error: FieldError| Err(Error::invalid_options("PatchOptions", vec![error]));
    if is_apply && call.params.text("fieldManager").is_none() {
        return invalid(FieldError::required(FieldPath::new("fieldManager"), "is required for apply patch"));
    }
    if !is_apply && force.is_some() {
        let detail = "may not be specified for non-apply patch";
        return invalid(FieldError::forbidden(FieldPath::new("force"), detail));
    }
    Ok(force.unwrap_or_default())
}
