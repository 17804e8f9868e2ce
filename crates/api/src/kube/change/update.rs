//! `PUT` of an object, of its status, and of a namespace's end.

use concert_model::Object;
use concert_store::Part;
use serde_json::json;

use super::options::{PARAMS, WriteOptions};
use super::{answer, commit, subject};
use crate::error::Error;
use crate::kube::accept::Form;
use crate::kube::answer::Answer;
use crate::kube::api::Call;
use crate::kube::content;
use crate::write::Operation;

pub(crate) async fn update(call: &Call<'_>, part: Part, body: &[u8], form: Form) -> Result<Answer, Error> {
    replace(call, part, body, form, false).await
}

/// `PUT …/namespaces/NAME/finalize`: what the namespace still waits for.
pub(crate) async fn finalize(call: &Call<'_>, body: &[u8], form: Form) -> Result<Answer, Error> {
    replace(call, Part::Main, body, form, true).await
}

/// Here silence means none; in other updates they stay.
fn name_all_finalizers(namespace: &mut Object) {
    if namespace.pointer("/spec/finalizers").is_none_or(serde_json::Value::is_null) {
        let mut spec = namespace.spec().as_object().cloned().unwrap_or_default();
        spec.insert("finalizers".into(), json!([]));
        namespace.set("spec", spec.into());
    }
}

async fn replace(
    call: &Call<'_>,
    part: Part,
    body: &[u8],
    form: Form,
    is_finalize: bool,
) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let mut options = WriteOptions::read(call, "UpdateOptions", "update")?;
    let document = content::read_sent(call.headers, body)?;
    options.check(call, &document)?;
    let mut object = subject::read(call, document.value)?;
    if is_finalize {
        name_all_finalizers(&mut object);
        options.by.keeps_namespaces = false;
    }
    let written = commit(call, &call.naming(), Operation::Update(object, part), &options).await?;
    answer(call, &written.into_object(), form, &options)
}
