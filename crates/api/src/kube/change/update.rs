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
    replace(call, part, body, form, |_| {}).await
}

/// `PUT …/namespaces/NAME/finalize`: what the namespace still waits for.
pub(crate) async fn finalize(call: &Call<'_>, body: &[u8], form: Form) -> Result<Answer, Error> {
    let name_all = |namespace: &mut Object| {
        // Here silence means none; in other updates it means that they stay.
        if namespace.pointer("/spec/finalizers").is_none_or(serde_json::Value::is_null) {
            let mut spec = namespace.spec().as_object().cloned().unwrap_or_default();
            spec.insert("finalizers".into(), json!([]));
            namespace.set("spec", spec.into());
        }
    };
    replace(call, Part::Main, body, form, name_all).await
}

async fn replace(
    call: &Call<'_>,
    part: Part,
    body: &[u8],
    form: Form,
    change: impl FnOnce(&mut Object),
) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let options = WriteOptions::read(call, "UpdateOptions", "update")?;
    let document = content::read_sent(call.headers, body)?;
    options.check(call, &document)?;
    let mut object = subject::read(call, document.value)?;
    change(&mut object);
    let written = commit(call, &call.naming(), Operation::Update(object, part), &options).await?;
    answer(call, &written.into_object(), form, &options)
}
