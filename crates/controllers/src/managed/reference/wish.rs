//! What an object asks for where it refers to others. Touches nothing.

use concert_model::{FieldPath, LabelSelector, Object};
use concert_provider::Reference;
use serde_json::Value;

use super::path::Path;

/// What is to be looked up for one reference.
pub(super) struct Wish {
    /// The objects named, or the selector.
    pub target: Target,
    /// Whether it replaces what an earlier selection wrote.
    pub is_selected_anew: bool,
}

/// What a reference points at.
pub(super) enum Target {
    /// Objects by name, in their order.
    Named(Vec<Named>),
    /// Objects by label.
    Selected(Selector),
}

/// One object by name.
pub(super) struct Named {
    pub name: String,
    pub namespace: String,
    pub is_optional: bool,
}

/// Objects by label.
pub(super) struct Selector {
    pub labels: LabelSelector,
    pub namespace: String,
    pub must_share_controller: bool,
    pub is_optional: bool,
}

/// The fields of one reference.
pub(super) struct Fields<'a> {
    pub value: Path<'a>,
    pub reference: Path<'a>,
    pub selector: Path<'a>,
}

impl<'a> Fields<'a> {
    pub fn of(reference: &'a Reference) -> Result<Self, String> {
        Ok(Self {
            value: Path::parse_in_spec(&reference.field)?,
            reference: Path::parse_in_spec(&reference.reference_field)?,
            selector: Path::parse_in_spec(&reference.selector_field)?,
        })
    }
}

/// What to look up; none if there is nothing to do.
///
/// # Errors
/// What is malformed.
pub(super) fn wish(
    object: &Object,
    reference: &Reference,
    fields: &Fields<'_>,
) -> Result<Option<Wish>, String> {
    let selector = Some(fields.selector.get(object)).filter(|it| !it.is_null());
    let references = listed(fields.reference.get(object));
    // The policy of a selector hides that of a reference, which may be what it selected before.
    let is_always = match selector {
        Some(selector) => is_policy(selector, "resolve", "Always"),
        None => references.iter().any(|it| is_policy(it, "resolve", "Always")),
    };
    if is_set(fields.value.get(object)) && !is_always {
        return Ok(None);
    }
    let target = match selector {
        Some(selector) if is_always || references.is_empty() => {
            Target::Selected(read_selector(selector, &reference.selector_field)?)
        }
        _ if references.is_empty() => return Ok(None),
        _ => Target::Named(read_named(&references, reference)?),
    };
    Ok(Some(Wish { is_selected_anew: is_always && matches!(target, Target::Selected(_)), target }))
}

/// The objects that are named, whether there is anything to do about them or not.
///
/// # Errors
/// What is malformed.
pub(super) fn named(
    object: &Object,
    reference: &Reference,
    fields: &Fields<'_>,
) -> Result<Vec<Named>, String> {
    read_named(&listed(fields.reference.get(object)), reference)
}

/// A list, or one thing as a list of one.
fn listed(value: &Value) -> Vec<&Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn is_policy(of: &Value, field: &str, wanted: &str) -> bool {
    of.get("policy").and_then(|it| it.get(field)).and_then(Value::as_str) == Some(wanted)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn read_named(references: &[&Value], of: &Reference) -> Result<Vec<Named>, String> {
    if references.len() > 1 && !of.is_many {
        return Err(format!("{} must be one reference and not a list", of.reference_field));
    }
    let read = |reference: &&Value| {
        if text(reference, "name").is_empty() {
            return Err(format!("{}.name must not be empty", of.reference_field));
        }
        Ok(Named {
            name: text(reference, "name").to_owned(),
            namespace: text(reference, "namespace").to_owned(),
            is_optional: is_policy(reference, "resolution", "Optional"),
        })
    };
    references.iter().map(read).collect()
}

fn read_selector(selector: &Value, field: &str) -> Result<Selector, String> {
    if !selector.is_object() {
        return Err(format!("{field} must be an object"));
    }
    let labels = match selector.get("matchLabels") {
        None | Some(Value::Null) => LabelSelector::everything(),
        Some(labels) => {
            let json = serde_json::json!({ "matchLabels": labels });
            LabelSelector::from_json(&FieldPath::new(field), &json)
                .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))?
        }
    };
    Ok(Selector {
        labels,
        namespace: text(selector, "namespace").to_owned(),
        must_share_controller: selector.get("matchControllerRef") == Some(&Value::Bool(true)),
        is_optional: is_policy(selector, "resolution", "Optional"),
    })
}
