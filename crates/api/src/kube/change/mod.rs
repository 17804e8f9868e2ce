//! Writes: from a request to an operation, and from what came of it to an answer.

mod create;
mod delete;
mod options;
mod patch;
mod subject;
mod update;

use concert_model::{Encoded, FieldError, FieldPath, Rule};

pub(crate) use create::create;
pub(crate) use delete::{delete, delete_collection};
pub(crate) use patch::patch;
pub(crate) use update::{finalize, update};

use super::accept::Form;
use super::answer::Answer;
use super::api::Call;
use super::objects;
use super::table::Include;
use crate::error::{Error, Naming};
use crate::write::{Denied, Operation, Refused, Written};

/// Does `operation`, and says what came of it.
async fn commit(
    call: &Call<'_>,
    naming: &Naming<'_>,
    operation: Operation,
    options: &options::WriteOptions,
) -> Result<Written, Error> {
    let written = call.api.writer.write(call.user, operation, &options.by).await;
    written.map_err(|refused| match refused {
        Refused::Gate(refusal) => Error::refused(refusal, Some(naming)),
        Refused::Denied(denied) => denied_as(denied, naming),
        Refused::Store(error @ concert_store::Error::Unknown { .. }) => undecodable(call, &error.to_string()),
        Refused::Store(error) => Error::of_store(error, naming),
    })
}

/// An object that was not let in, in the words of this door.
fn denied_as(denied: Denied, naming: &Naming<'_>) -> Error {
    match denied {
        Denied::BadRequest(why) => Error::bad_request(why),
        Denied::Invalid { field, detail } => {
            let field = FieldPath::new(field);
            Error::invalid(naming, &[FieldError { field, rule: Rule::Invalid, value: None, detail }])
        }
        Denied::Forbidden(why) => Error::forbidden(naming, &why),
        Denied::Store(error) => Error::of_store(error, naming),
    }
}

/// A body that is an object, but not quite one of this kind.
fn undecodable(call: &Call<'_>, why: &str) -> Error {
    let (kind, version) = (&call.resource.group_kind().kind, call.resource.version());
    Error::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// One object in the form that the client wants, with what it should hear.
fn answer(
    call: &Call<'_>,
    object: &Encoded,
    form: Form,
    options: &options::WriteOptions,
) -> Result<Answer, Error> {
    let include = Include::read(call.params)?;
    Ok(Answer::ok(objects::write(call, object, form, include)).warning(options.by.warnings.take()))
}
