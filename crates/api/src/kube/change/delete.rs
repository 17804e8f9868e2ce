//! `DELETE` of an object or of a collection.

use concert_model::{FieldError, FieldPath, ResourceVersion, Uid};
use concert_store::{By, Delete, Deleted, Page, Propagation};
use serde_json::{Map, Value, json};

use super::options::{WriteOptions, read_dry_run, unsupported};
use super::{answer, commit};
use crate::error::{Error, Reason};
use crate::kube::accept::Form;
use crate::kube::answer::Answer;
use crate::kube::api::Call;
use crate::kube::content;
use crate::kube::list::{self, ListOptions};
use crate::kube::table::Include;
use crate::write::{Operation, Written};

const PARAMS: &[&str] = &["dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"];

pub(crate) async fn delete(call: &Call<'_>, body: &[u8], form: Form) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let Asked { delete, is_dry_run } = Asked::read(call, body)?;
    let options = options(call, is_dry_run);
    match commit(call, &call.naming(), Operation::Delete(call.key(), delete), &options).await? {
        Written::Deleted(Deleted::Gone(object)) => {
            let mut details =
                json!({"name": call.name, "kind": call.resource.plural(), "uid": &*object.head().uid.0});
            if !call.resource.group_kind().group.is_empty() {
                details["group"] = json!(&*call.resource.group_kind().group);
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
            Ok(Answer::value(&status))
        }
        other => answer(call, &other.into_object(), form, &options),
    }
}

pub(crate) async fn delete_collection(call: &Call<'_>, body: &[u8], form: Form) -> Result<Answer, Error> {
    let known = [PARAMS, list::SELECTORS].concat();
    call.params.check(&known)?;
    let Asked { delete, is_dry_run } = Asked::read(call, body)?;
    if delete.uid.is_some() || delete.resource_version.is_some() {
        return Err(Error::bad_request("preconditions are not supported for a collection"));
    }
    let options = options(call, is_dry_run);
    let page = list::read(call.api, call.resource, &ListOptions::read(call, false)?).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for object in &page.items {
        let naming = call.resource.naming(&object.key().name);
        // This one, and not one that got its name meanwhile.
        let delete = Delete { uid: Some(object.head().uid.clone()), ..delete.clone() };
        match commit(call, &naming, Operation::Delete(object.key().clone(), delete), &options).await {
            Ok(written) => items.push(written.into_object()),
            Err(error) if matches!(error.reason, Reason::NotFound | Reason::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    let deleted = Page { items, ..page };
    Ok(Answer::ok(list::write(call, &deleted, None, form, Include::Metadata)))
}

fn options(call: &Call<'_>, is_dry_run: bool) -> WriteOptions {
    let by = By { actor: call.user.name.clone(), reason: "delete".into(), is_dry_run, ..By::default() };
    WriteOptions { by }
}

/// What DeleteOptions say, in the body or as parameters.
struct Asked {
    delete: Delete,
    is_dry_run: bool,
}

impl Asked {
    fn read(call: &Call<'_>, body: &[u8]) -> Result<Self, Error> {
        let fields = read_body(call, body)?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).or_else(|| call.params.text(name));
        let mut errors = Vec::new();
        let dry_run = match fields.get("dryRun").and_then(Value::as_array) {
            Some(all) => all.first().map(|one| one.as_str().unwrap_or_default()),
            None => call.params.text("dryRun"),
        };
        let is_dry_run = read_dry_run(dry_run, &mut errors);
        let orphan = match fields.get("orphanDependents") {
            Some(flag) => flag.as_bool(),
            None => call.params.flag("orphanDependents")?,
        };
        call.params.number("gracePeriodSeconds")?;
        let propagation = read_propagation(text("propagationPolicy"), orphan, &mut errors);
        if !errors.is_empty() {
            return Err(Error::invalid_options("DeleteOptions", errors));
        }
        let precondition = |field: &str| fields.get("preconditions")?.get(field)?.as_str().map(Into::into);
        let delete = Delete {
            uid: precondition("uid").map(Uid),
            resource_version: precondition("resourceVersion").map(ResourceVersion),
            propagation,
        };
        Ok(Self { delete, is_dry_run })
    }
}

/// The fields of the body, each known and of its type.
fn read_body(call: &Call<'_>, body: &[u8]) -> Result<Map<String, Value>, Error> {
    if body.trim_ascii().is_empty() {
        return Ok(Map::new());
    }
    let Value::Object(mut fields) = content::read_sent(call.headers, body)?.value else {
        return Err(Error::bad_request("DeleteOptions must be an object"));
    };
    fields.retain(|_, value| !value.is_null());
    let is_texts = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    for (name, value) in &fields {
        let is_right = match name.as_str() {
            "apiVersion" | "propagationPolicy" => value.is_string(),
            "kind" => value == "DeleteOptions",
            "orphanDependents" => value.is_boolean(),
            "gracePeriodSeconds" => value.as_i64().is_some_and(|seconds| seconds >= 0),
            "dryRun" => is_texts(value),
            "preconditions" => value.as_object().is_some_and(|fields| {
                fields.iter().all(|(name, value)| {
                    matches!(name.as_str(), "uid" | "resourceVersion")
                        && (value.is_string() || value.is_null())
                })
            }),
            _ => return Err(Error::bad_request(format!("DeleteOptions: unknown field {name:?}"))),
        };
        if !is_right {
            return Err(Error::bad_request(format!("DeleteOptions: {name} is malformed")));
        }
    }
    Ok(fields)
}

fn read_propagation(policy: Option<&str>, orphan: Option<bool>, errors: &mut Vec<FieldError>) -> Propagation {
    let field = "propagationPolicy";
    if policy.is_some() && orphan.is_some() {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::forbidden(FieldPath::new(field), detail));
    }
    match (policy, orphan) {
        (None, None) => Propagation::Unsaid,
        (Some("Background"), _) | (None, Some(false)) => Propagation::Background,
        (Some("Foreground"), _) => Propagation::Foreground,
        (Some("Orphan"), _) | (None, Some(true)) => Propagation::Orphan,
        (Some(other), _) => {
            errors.push(unsupported(field, other, r#""Foreground", "Background", "Orphan""#));
            Propagation::Background
        }
    }
}
