//! `POST` of a collection.

use http::StatusCode;

use super::options::{PARAMS, WriteOptions};
use super::{answer, commit, subject};
use crate::error::Error;
use crate::kube::accept::Form;
use crate::kube::answer::{Answer, Made};
use crate::kube::api::Call;
use crate::kube::content;
use crate::write::Operation;

pub(crate) async fn create(call: &Call<'_>, body: &[u8], form: Form) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let options = WriteOptions::read(call, "CreateOptions", "create")?;
    let document = content::read_sent(call.headers, body)?;
    options.check(call, &document)?;
    let object = subject::read(call, document.value)?;
    let name = match object.name() {
        "" => object.metadata("generateName").as_str().unwrap_or_default().to_owned(),
        name => name.to_owned(),
    };
    let naming = call.resource.naming(&name);
    let written = commit(call, &naming, Operation::Create(object), &options).await?;
    let object = written.into_object();
    let answer = answer(call, &object, form, &options)?;
    Ok(Answer { code: StatusCode::CREATED, made: Some(Made(object.key().name.clone())), ..answer })
}
