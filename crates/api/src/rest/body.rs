//! The fields of a request's body, read one by one.
//!
//! A reader takes what it knows and remembers what is wrong, so that one answer names all of it. Null
//! counts as absent. What nobody asks for is left alone, as FastAPI does.

use std::sync::LazyLock;

use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::error::{Error, Wrong};
use crate::kube::content::content_type;

/// Reads a body as JSON; an empty one is null.
///
/// # Errors
/// 422 for what is not JSON.
pub fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Error> {
    if bytes.trim_ascii().is_empty() {
        return Ok(Value::Null);
    }
    let kind = content_type(headers);
    let is_json = kind.is_empty() || kind == "application/json" || kind.ends_with("+json");
    if !is_json {
        return Err(Error::fields(vec![not_an_object(vec![json!("body")], Value::Null)]));
    }
    serde_json::from_slice(bytes).map_err(|error| {
        let at = offset(bytes, error.line(), error.column());
        Error::fields(vec![Wrong {
            kind: "json_invalid",
            place: vec![json!("body"), json!(at)],
            message: "JSON decode error".into(),
            input: json!({}),
            context: Some(json!({"error": error.to_string()})),
        }])
    })
}

/// How many bytes stand before a line and column that both count from one.
fn offset(bytes: &[u8], line: usize, column: usize) -> usize {
    let before: usize =
        bytes.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1)).map(<[u8]>::len).sum();
    (before + column.saturating_sub(1)).min(bytes.len())
}

fn not_an_object(place: Vec<Value>, input: Value) -> Wrong {
    Wrong {
        kind: "model_attributes_type",
        place,
        message: "Input should be a valid dictionary or object to extract fields from".into(),
        input,
        context: None,
    }
}

/// The fields of one JSON object of a request, and what is wrong with them.
#[derive(Debug)]
pub struct Fields<'a> {
    all: &'a Map<String, Value>,
    place: Vec<Value>,
    wrong: Vec<Wrong>,
}

impl<'a> Fields<'a> {
    /// The fields of a whole body.
    ///
    /// # Errors
    /// 422 if it is no object.
    pub fn of(body: &'a Value) -> Result<Self, Error> {
        let place = vec![json!("body")];
        match body {
            Value::Object(all) => Ok(Self { all, place, wrong: Vec::new() }),
            Value::Null => Err(Error::fields(vec![missing(place, Value::Null)])),
            other => Err(Error::fields(vec![not_an_object(place, other.clone())])),
        }
    }

    /// The same, where no body at all means that no field is given.
    ///
    /// # Errors
    /// As [`Fields::of`].
    pub fn of_optional(body: &'a Value) -> Result<Self, Error> {
        static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        match body {
            Value::Null => Ok(Self { all: &EMPTY, place: vec![json!("body")], wrong: Vec::new() }),
            other => Self::of(other),
        }
    }

    /// The fields of one object inside a body, which is at `place`. None, and noted, if it is no object.
    pub fn inside(&mut self, place: Vec<Value>, value: &'a Value) -> Option<Fields<'a>> {
        match value {
            Value::Object(all) => Some(Fields { all, place, wrong: Vec::new() }),
            other => {
                self.wrong.push(not_an_object(place, other.clone()));
                None
            }
        }
    }

    /// Takes over what was found wrong inside.
    pub fn absorb(&mut self, inner: Fields<'_>) {
        self.wrong.extend(inner.wrong);
    }

    /// What was sent under a name; none for null.
    pub fn value(&self, name: &str) -> Option<&'a Value> {
        self.all.get(name).filter(|value| !value.is_null())
    }

    /// True if the field was sent, be it as null.
    pub fn has(&self, name: &str) -> bool {
        self.all.contains_key(name)
    }

    /// Where a field is.
    pub fn place(&self, name: &str) -> Vec<Value> {
        self.place.iter().cloned().chain([json!(name)]).collect()
    }

    /// An optional text.
    pub fn text(&mut self, name: &str) -> Option<&'a str> {
        let value = self.value(name)?;
        let text = value.as_str();
        if text.is_none() {
            self.note(name, "string_type", "Input should be a valid string");
        }
        text
    }

    /// A text that must be there; empty if it is not.
    pub fn required_text(&mut self, name: &str) -> &'a str {
        if self.is_missing(name, "string_type", "Input should be a valid string") {
            return "";
        }
        self.text(name).unwrap_or_default()
    }

    /// A text that must be there, of a length between these bounds.
    pub fn bounded_text(&mut self, name: &str, min: usize, max: usize) -> &'a str {
        let text = self.required_text(name);
        if self.is_noted(name) {
            return text;
        }
        let count = text.chars().count();
        let s = |n: usize| if n == 1 { "" } else { "s" };
        if count < min {
            let message = format!("String should have at least {min} character{}", s(min));
            self.note_with(name, "string_too_short", message, json!({"min_length": min}));
        } else if count > max {
            let message = format!("String should have at most {max} character{}", s(max));
            self.note_with(name, "string_too_long", message, json!({"max_length": max}));
        }
        text
    }

    /// An optional yes or no.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        let flag = value.as_bool();
        if flag.is_none() {
            let kind = if value.is_string() { "bool_parsing" } else { "bool_type" };
            self.note(name, kind, "Input should be a valid boolean");
        }
        flag
    }

    /// An optional whole number.
    pub fn integer(&mut self, name: &str) -> Option<i64> {
        let value = self.value(name)?;
        let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
        let number = value.as_i64().or_else(|| value.as_f64().and_then(whole));
        if number.is_none() {
            let kind = if value.is_string() { "int_parsing" } else { "int_type" };
            self.note(name, kind, "Input should be a valid integer");
        }
        number
    }

    /// An optional whole number between these bounds.
    pub fn bounded_integer(&mut self, name: &str, min: i64, max: i64) -> Option<i64> {
        let number = self.integer(name)?;
        if number < min {
            let message = format!("Input should be greater than or equal to {min}");
            self.note_with(name, "greater_than_equal", message, json!({"ge": min}));
        } else if number > max {
            let message = format!("Input should be less than or equal to {max}");
            self.note_with(name, "less_than_equal", message, json!({"le": max}));
        }
        Some(number)
    }

    /// An optional number.
    pub fn number(&mut self, name: &str) -> Option<f64> {
        let value = self.value(name)?;
        let number = value.as_f64();
        if number.is_none() {
            self.note(name, "float_type", "Input should be a valid number");
        }
        number
    }

    /// An optional object.
    pub fn object(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        let value = self.value(name)?;
        let object = value.as_object();
        if object.is_none() {
            self.note(name, "dict_type", "Input should be a valid dictionary");
        }
        object
    }

    /// An object that must be there.
    pub fn required_object(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        if self.is_missing(name, "dict_type", "Input should be a valid dictionary") {
            return None;
        }
        self.object(name)
    }

    /// An optional list.
    pub fn list(&mut self, name: &str) -> Option<&'a [Value]> {
        let value = self.value(name)?;
        let list = value.as_array();
        if list.is_none() {
            self.note(name, "list_type", "Input should be a valid list");
        }
        list.map(Vec::as_slice)
    }

    /// An optional list of texts.
    pub fn texts(&mut self, name: &str) -> Option<Vec<&'a str>> {
        let list = self.list(name)?;
        let mut texts = Vec::with_capacity(list.len());
        for (index, item) in list.iter().enumerate() {
            match item.as_str() {
                Some(text) => texts.push(text),
                None => self.wrong.push(Wrong {
                    kind: "string_type",
                    place: self.place(name).into_iter().chain([json!(index)]).collect(),
                    message: "Input should be a valid string".into(),
                    input: item.clone(),
                    context: None,
                }),
            }
        }
        Some(texts)
    }

    /// An optional text that is one of these.
    pub fn choice(&mut self, name: &str, known: &[&str]) -> Option<&'a str> {
        let text = self.text(name)?;
        if !known.contains(&text) {
            let quoted: Vec<String> = known.iter().map(|it| format!("'{it}'")).collect();
            let expected = match quoted.split_last() {
                Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
                _ => quoted.concat(),
            };
            let message = format!("Input should be {expected}");
            self.note_with(name, "enum", message, json!({"expected": expected}));
        }
        Some(text)
    }

    /// Notes that a field breaks a rule of ours.
    pub fn refuse(&mut self, name: &str, rule: &str) {
        let wrong = Wrong::value(self.place(name), rule, self.sent(name));
        self.wrong.push(wrong);
    }

    /// The same, without repeating what was sent: it is too much.
    pub fn refuse_unshown(&mut self, name: &str, rule: &str) {
        let wrong = Wrong::value(self.place(name), rule, Value::Null);
        self.wrong.push(wrong);
    }

    /// True if something is wrong with this field already.
    pub fn is_noted(&self, name: &str) -> bool {
        self.wrong.iter().any(|wrong| wrong.place.get(self.place.len()) == Some(&json!(name)))
    }

    /// Nothing was wrong, or all of it.
    ///
    /// # Errors
    /// 422 that names each field.
    pub fn check(self) -> Result<(), Error> {
        if self.wrong.is_empty() { Ok(()) } else { Err(Error::fields(self.wrong)) }
    }

    fn sent(&self, name: &str) -> Value {
        self.all.get(name).cloned().unwrap_or_default()
    }

    /// Notes a field that is not there at all, or null where null is no value.
    fn is_missing(&mut self, name: &str, kind: &'static str, message: &str) -> bool {
        match self.all.get(name) {
            None => {
                let wrong = missing(self.place(name), Value::Object(self.all.clone()));
                self.wrong.push(wrong);
                true
            }
            Some(Value::Null) => {
                self.note(name, kind, message);
                true
            }
            Some(_) => false,
        }
    }

    fn note(&mut self, name: &str, kind: &'static str, message: &str) {
        let (place, input) = (self.place(name), self.sent(name));
        self.wrong.push(Wrong { kind, place, message: message.into(), input, context: None });
    }

    fn note_with(&mut self, name: &str, kind: &'static str, message: String, context: Value) {
        let (place, input) = (self.place(name), self.sent(name));
        self.wrong.push(Wrong { kind, place, message, input, context: Some(context) });
    }
}

fn missing(place: Vec<Value>, input: Value) -> Wrong {
    Wrong { kind: "missing", place, message: "Field required".into(), input, context: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_wrong_is_named_at_once() {
        let body =
            json!({"username": "admin", "is_admin": "yes", "limit": 1.5, "spec": [], "tags": ["a", 1]});
        let mut fields = Fields::of(&body).unwrap();
        assert_eq!(fields.required_text("username"), "admin");
        assert_eq!(fields.bounded_text("password", 8, 100), "");
        assert_eq!(fields.flag("is_admin"), None);
        assert_eq!(fields.integer("limit"), None);
        assert_eq!(fields.object("spec"), None);
        assert_eq!(fields.texts("tags"), Some(vec!["a"]));
        let detail = fields.check().unwrap_err().detail;
        let kinds: Vec<_> =
            detail.as_array().unwrap().iter().map(|it| it["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["missing", "bool_parsing", "int_type", "dict_type", "string_type"]);
        assert_eq!(
            detail[0],
            json!({"type": "missing", "loc": ["body", "password"], "msg": "Field required", "input": body})
        );
        assert_eq!(detail[4]["loc"], json!(["body", "tags", 1]));
    }

    #[test]
    fn a_short_text_says_how_short() {
        let body = json!({"password": "x"});
        let mut fields = Fields::of(&body).unwrap();
        fields.bounded_text("password", 8, 100);
        assert_eq!(
            fields.check().unwrap_err().detail,
            json!([{"type": "string_too_short", "loc": ["body", "password"],
                "msg": "String should have at least 8 characters", "input": "x", "ctx": {"min_length": 8}}])
        );
    }

    #[test]
    fn what_is_no_json_says_where() {
        let headers = HeaderMap::new();
        let detail = parse(&headers, b"{\"a\":\n x}").unwrap_err().detail;
        assert_eq!((&detail[0]["type"], &detail[0]["loc"]), (&json!("json_invalid"), &json!(["body", 7])));
        assert_eq!(parse(&headers, b" ").unwrap(), Value::Null);
        assert_eq!(Fields::of(&Value::Null).unwrap_err().detail[0]["type"], "missing");
        assert_eq!(Fields::of(&json!([])).unwrap_err().detail[0]["type"], "model_attributes_type");
        assert!(Fields::of_optional(&Value::Null).is_ok());
    }

    #[test]
    fn a_choice_names_what_could_be_chosen() {
        let body = json!({"status": "asleep"});
        let mut fields = Fields::of(&body).unwrap();
        fields.choice("status", &["active", "suspended"]);
        let detail = fields.check().unwrap_err().detail;
        assert_eq!(detail[0]["msg"], "Input should be 'active' or 'suspended'");
    }
}
