//! Label and field selectors.
//!
//! The text form is what clients send (`app=web,tier in (a,b),!old`), the JSON form is what objects
//! hold (`matchLabels`, `matchExpressions`).

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::field::{FieldError, FieldPath};
use crate::name;

/// Labels of one object.
pub type Labels = BTreeMap<String, String>;

/// Longest selector text taken, in bytes: far above what people write, far below what hurts.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Selects objects by their labels; the empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

/// The text form, which [`LabelSelector::parse`] reads back.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Requirement { key, test }) in self.0.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "," })?;
            match test {
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => f.write_str(key)?,
                Test::Absent => write!(f, "!{key}")?,
                Test::Greater(bound) => write!(f, "{key}>{bound}")?,
                Test::Less(bound) => write!(f, "{key}<{bound}")?,
            }
        }
        Ok(())
    }
}

impl LabelSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects objects whose label `key` is `value`.
    pub fn label(key: &str, value: &str) -> Self {
        Self(vec![Requirement { key: key.to_owned(), test: Test::In(vec![value.to_owned()]) }])
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// Names what is wrong with which requirement.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let fail = |detail: String| FieldError::invalid_text(FieldPath::new("labelSelector"), text, detail);
        if text.len() > TEXT_BYTES_MAX {
            return Err(FieldError::too_long(FieldPath::new("labelSelector"), TEXT_BYTES_MAX));
        }
        if text.trim().is_empty() {
            return Ok(Self::everything());
        }
        let parts = split_outside_parentheses(text).map_err(|e| fail(e.to_owned()))?;
        let requirements = parts.into_iter().map(|part| {
            let requirement = parse_requirement(part.trim()).map_err(&fail)?;
            requirement.check().map_err(fail)?;
            Ok(requirement)
        });
        Ok(Self(requirements.collect::<Result<_, FieldError>>()?))
    }

    /// Reads the JSON form (`matchLabels`, `matchExpressions`) found at `field`.
    ///
    /// # Errors
    /// One error for each malformed part.
    pub fn from_json(field: &FieldPath, value: &Value) -> Result<Self, Vec<FieldError>> {
        let mut requirements = Vec::new();
        let mut errors = Vec::new();
        let Some(map) = value.as_object() else {
            return Err(vec![FieldError::invalid(field.clone(), value, "must be an object")]);
        };
        for unknown in map.keys().filter(|k| !matches!(k.as_str(), "matchLabels" | "matchExpressions")) {
            errors.push(FieldError::forbidden(field.child(unknown), "unknown field"));
        }
        // What has the wrong type is not the same as what is absent: that would select everything.
        match map.get("matchLabels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                read_labels(&field.child("matchLabels"), labels, &mut requirements, &mut errors);
            }
            Some(other) => {
                errors.push(FieldError::invalid(
                    field.child("matchLabels"),
                    other,
                    "must be a map of strings",
                ));
            }
        }
        match map.get("matchExpressions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => {
                read_expressions(&field.child("matchExpressions"), list, &mut requirements, &mut errors);
            }
            Some(other) => {
                errors.push(FieldError::invalid(field.child("matchExpressions"), other, "must be a list"));
            }
        }
        for requirement in &requirements {
            if let Err(detail) = requirement.check() {
                errors.push(FieldError::invalid_text(field.clone(), &requirement.key, detail));
            }
        }
        if errors.is_empty() { Ok(Self(requirements)) } else { Err(errors) }
    }

    /// True if it selects everything.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// True if an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|r| r.matches(labels.get(&r.key).map(String::as_str)))
    }
}

impl Requirement {
    fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|v| v.parse::<i64>().ok());
        match &self.test {
            Test::In(wanted) => value.is_some_and(|v| wanted.iter().any(|w| w == v)),
            // An object without the label is not one with a forbidden value: Kubernetes' rule.
            Test::NotIn(unwanted) => value.is_none_or(|v| unwanted.iter().all(|u| u != v)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Greater(bound) => number().is_some_and(|n| n > *bound),
            Test::Less(bound) => number().is_some_and(|n| n < *bound),
        }
    }

    fn check(&self) -> Result<(), String> {
        name::check_qualified(&self.key).map_err(|e| format!("key {:?}: {e}", self.key))?;
        let (Test::In(values) | Test::NotIn(values)) = &self.test else { return Ok(()) };
        for value in values {
            name::check_label_value(value).map_err(|e| format!("value {value:?}: {e}"))?;
        }
        Ok(())
    }
}

fn split_outside_parentheses(text: &str) -> Result<Vec<&str>, &'static str> {
    let mut parts = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for (i, c) in text.char_indices() {
        match c {
            '(' if is_inside => return Err("'(' inside parentheses"),
            ')' if !is_inside => return Err("')' without '('"),
            '(' => is_inside = true,
            ')' => is_inside = false,
            ',' if !is_inside => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if is_inside {
        return Err("'(' without ')'");
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn parse_requirement(part: &str) -> Result<Requirement, String> {
    let requirement = |key: &str, test| Ok(Requirement { key: key.trim().to_owned(), test });
    if let Some(key) = part.strip_prefix('!') {
        return requirement(key, Test::Absent);
    }
    if let Some((head, list)) = part.strip_suffix(')').and_then(|p| p.split_once('(')) {
        let values = list.split(',').map(|v| v.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => requirement(key, Test::In(values)),
            (Some(key), Some("notin"), None) => requirement(key, Test::NotIn(values)),
            _ => Err(format!("{part:?} must be 'KEY in (…)' or 'KEY notin (…)'")),
        };
    }
    for operator in ["!=", "==", "=", ">", "<"] {
        let Some((key, value)) = part.split_once(operator) else { continue };
        let value = value.trim();
        let number =
            || value.parse::<i64>().map_err(|_| format!("{value:?} must be an integer after '{operator}'"));
        return match operator {
            "!=" => requirement(key, Test::NotIn(vec![value.to_owned()])),
            ">" => requirement(key, Test::Greater(number()?)),
            "<" => requirement(key, Test::Less(number()?)),
            _ => requirement(key, Test::In(vec![value.to_owned()])),
        };
    }
    requirement(part, Test::Exists)
}

fn read_labels(
    field: &FieldPath,
    labels: &Map<String, Value>,
    requirements: &mut Vec<Requirement>,
    errors: &mut Vec<FieldError>,
) {
    for (key, wanted) in labels {
        match wanted.as_str() {
            Some(wanted) => {
                requirements.push(Requirement { key: key.clone(), test: Test::In(vec![wanted.to_owned()]) });
            }
            None => errors.push(FieldError::invalid(field.key(key), wanted, "must be a string")),
        }
    }
}

fn read_expressions(
    field: &FieldPath,
    list: &[Value],
    requirements: &mut Vec<Requirement>,
    errors: &mut Vec<FieldError>,
) {
    for (i, expression) in list.iter().enumerate() {
        match parse_expression(expression) {
            Ok(requirement) => requirements.push(requirement),
            Err(detail) => errors.push(FieldError::invalid(field.index(i), expression, detail)),
        }
    }
}

fn parse_expression(expression: &Value) -> Result<Requirement, String> {
    let key = expression["key"].as_str().ok_or("key is required")?.to_owned();
    let values: Vec<String> = match &expression["values"] {
        Value::Null => Vec::new(),
        Value::Array(list) => list
            .iter()
            .map(|v| v.as_str().map(str::to_owned).ok_or("values must be strings"))
            .collect::<Result<_, _>>()?,
        _ => return Err("values must be a list".to_owned()),
    };
    let test = match (expression["operator"].as_str(), values.is_empty()) {
        (Some("In"), false) => Test::In(values),
        (Some("NotIn"), false) => Test::NotIn(values),
        (Some("Exists"), true) => Test::Exists,
        (Some("DoesNotExist"), true) => Test::Absent,
        (Some("In" | "NotIn"), true) => return Err("values must not be empty for In and NotIn".to_owned()),
        (Some("Exists" | "DoesNotExist"), false) => {
            return Err("values must be empty for Exists and DoesNotExist".to_owned());
        }
        _ => return Err("operator must be In, NotIn, Exists or DoesNotExist".to_owned()),
    };
    Ok(Requirement { key, test })
}

/// Selects objects by fields, with `=` and `!=` only; which fields there are is a matter of the kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// One `field=value` or `field!=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// A dotted path such as `metadata.name`.
    pub field: String,
    /// The value it must (not) have.
    pub value: String,
    /// False for `!=`.
    pub is_equal: bool,
}

impl FieldSelector {
    /// Selects everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Selects objects whose `field` is `value`.
    pub fn field(field: &str, value: &str) -> Self {
        Self(vec![FieldRequirement { field: field.to_owned(), value: value.to_owned(), is_equal: true }])
    }

    /// The same, and `field` is `value`.
    #[must_use]
    pub fn and_field(mut self, field: &str, value: &str) -> Self {
        self.0.extend(Self::field(field, value).0);
        self
    }

    /// The value that `field` must have, if it must have one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|it| it.is_equal && it.field == field).map(|it| it.value.as_str())
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// Names the requirement that has no operator or no field.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(FieldError::too_long(FieldPath::new("fieldSelector"), TEXT_BYTES_MAX));
        }
        let parts = text.split(',').filter(|p| !p.trim().is_empty());
        let requirement = |part: &str| {
            let split = |operator| part.split_once(operator);
            let (field, value, is_equal) = match (split("!="), split("=="), split("=")) {
                (Some((field, value)), _, _) => (field, value, false),
                (None, Some((field, value)), _) | (None, None, Some((field, value))) => (field, value, true),
                (None, None, None) => ("", "", true),
            };
            if field.trim().is_empty() {
                let detail = format!("{part:?} must be FIELD=VALUE or FIELD!=VALUE");
                return Err(FieldError::invalid_text(FieldPath::new("fieldSelector"), text, detail));
            }
            let (field, value) = (field.trim().to_owned(), value.trim().to_owned());
            Ok(FieldRequirement { field, value, is_equal })
        };
        Ok(Self(parts.map(requirement).collect::<Result<_, _>>()?))
    }

    /// True if it selects everything.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// What is asked for, to check the fields against those the kind offers.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.0
    }

    /// True if an object is selected whose fields `lookup` tells; a missing field reads as empty.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.0.iter().all(|r| (lookup(&r.field).unwrap_or_default() == r.value) == r.is_equal)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_text_form_reads_back_as_the_same() {
        for text in [
            "",
            "a=b",
            "a in (b,c)",
            "a notin (b)",
            "a!=b",
            "a",
            "!a",
            "a>1",
            "a<-2",
            "a.dev/b=c,!d,e in (f,g)",
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(LabelSelector::parse(&selector.to_string()).unwrap(), selector, "{text}");
        }
    }

    #[test]
    fn every_operator_of_the_text_form() {
        let object = labels(&[("app", "web"), ("tier", "b"), ("n", "5")]);
        let yes = ["", " ", "app=web", "app==web", "app = web", "app!=db", "tier in (a,b)", "tier in ( b )"];
        let yes_too =
            ["tier notin (a)", "gone notin (a)", "gone!=a", "app", "!gone", "n>4", "n<6", "app=web,!gone"];
        for text in yes.iter().chain(&yes_too) {
            assert!(LabelSelector::parse(text).unwrap().matches(&object), "{text}");
        }
        for text in ["app=db", "app!=web", "tier in (a,c)", "tier notin (b)", "gone", "!app", "n>5", "app>1"]
        {
            assert!(!LabelSelector::parse(text).unwrap().matches(&object), "{text}");
        }
    }

    #[test]
    fn malformed_texts_are_refused_with_the_reason() {
        for text in
            ["a in b", "a in (b", "a)b", "=x", "a=b=c", "a>x", "!", "a,,b", "a b", "-a=1", "a=ä", "a ((b))"]
        {
            let error = LabelSelector::parse(text).unwrap_err();
            assert_eq!(error.field.as_str(), "labelSelector", "{text}");
        }
    }

    #[test]
    fn the_json_form_means_the_same() {
        let json = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "old", "operator": "DoesNotExist"},
        ]});
        let selector = LabelSelector::from_json(&FieldPath::new("spec.selector"), &json).unwrap();
        assert_eq!(selector, LabelSelector::parse("app=web,tier in (a,b),!old").unwrap());
        let bad = json!({"matchLables": {}, "matchExpressions": [{"key": "a", "operator": "Is"}]});
        let errors = LabelSelector::from_json(&FieldPath::new("s"), &bad).unwrap_err();
        let fields: Vec<_> = errors.iter().map(|e| e.field.as_str()).collect();
        assert_eq!(fields, ["s.matchLables", "s.matchExpressions[0]"]);
    }

    #[test]
    fn what_has_the_wrong_type_does_not_select_everything() {
        let parts = ["matchLabels", "matchExpressions"];
        for wrong in [json!("app=web"), json!(7), json!(true), json!([["app", "web"]]), json!({"app": 7})] {
            for part in parts {
                let selector = json!({part: wrong});
                let errors = LabelSelector::from_json(&FieldPath::new("s"), &selector).unwrap_err();
                assert!(errors[0].field.as_str().starts_with(&format!("s.{part}")), "{selector}: {errors:?}");
            }
        }
        for absent in [json!({}), json!({"matchLabels": null, "matchExpressions": null})] {
            assert!(LabelSelector::from_json(&FieldPath::new("s"), &absent).unwrap().is_everything());
        }
    }

    #[test]
    fn field_selectors_compare_for_equality_only() {
        let lookup = |field: &str| (field == "metadata.name").then_some("a");
        assert!(FieldSelector::parse("metadata.name=a,type!=x").unwrap().matches(lookup));
        assert!(!FieldSelector::parse("metadata.name!=a").unwrap().matches(lookup));
        assert!(FieldSelector::parse("metadata.name").is_err());
        assert!(FieldSelector::parse("=a").is_err());
    }
}
