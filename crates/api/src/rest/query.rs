//! Query parameters, with errors in the shape of this door.

use serde_json::{Value, json};

use super::error::{Error, Wrong};
use crate::kube::params::Params;

/// Most things of one page.
pub const LIMIT_MAX: i64 = 10_000;

/// The parameters of one request, and what is wrong with them.
pub struct Query<'a> {
    params: &'a Params<'a>,
    wrong: Vec<Wrong>,
}

impl<'a> Query<'a> {
    pub(crate) fn new(params: &'a Params<'a>, known: &[&str]) -> Self {
        let unknown = params.names().filter(|name| !known.contains(name));
        let wrong = unknown.map(|name| Wrong {
            kind: "extra_forbidden",
            place: place(name),
            message: "Extra inputs are not permitted".into(),
            input: json!(params.text(name)),
            context: None,
        });
        Self { wrong: wrong.collect(), params }
    }

    /// A text; none if it is absent or empty.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.params.text(name)
    }

    /// A text that is one of these.
    pub fn choice(&mut self, name: &str, known: &[&str]) -> Option<&'a str> {
        let text = self.text(name)?;
        if !known.contains(&text) {
            let expected = known.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>().join(" or ");
            let context = Some(json!({"expected": expected}));
            self.note(name, "enum", format!("Input should be {expected}"), context);
        }
        Some(text)
    }

    /// True or false.
    pub fn flag(&mut self, name: &str) -> Option<bool> {
        match self.text(name)? {
            "true" | "True" | "1" | "yes" | "on" => Some(true),
            "false" | "False" | "0" | "no" | "off" => Some(false),
            _ => {
                let message = "Input should be a valid boolean, unable to interpret input".into();
                self.note(name, "bool_parsing", message, None);
                None
            }
        }
    }

    /// A whole number between these bounds.
    pub fn integer(&mut self, name: &str, otherwise: i64, min: i64, max: i64) -> usize {
        let number = match self.text(name).map(str::parse::<i64>) {
            None => otherwise,
            Some(Ok(number)) => number,
            Some(Err(_)) => {
                let message = "Input should be a valid integer, unable to parse string as an integer".into();
                self.note(name, "int_parsing", message, None);
                otherwise
            }
        };
        if number < min {
            let message = format!("Input should be greater than or equal to {min}");
            self.note(name, "greater_than_equal", message, Some(json!({"ge": min})));
        } else if number > max {
            let message = format!("Input should be less than or equal to {max}");
            self.note(name, "less_than_equal", message, Some(json!({"le": max})));
        }
        usize::try_from(number).unwrap_or_default()
    }

    /// `limit`: at most so many, which may be none.
    pub fn limit(&mut self, otherwise: i64) -> usize {
        self.integer("limit", otherwise, 0, LIMIT_MAX)
    }

    /// `offset`: so many are left out first.
    pub fn offset(&mut self) -> usize {
        self.integer("offset", 0, 0, i64::MAX)
    }

    /// Notes a parameter that breaks a rule of ours.
    pub fn refuse(&mut self, name: &str, rule: &str) {
        self.wrong.push(Wrong::value(place(name), rule, json!(self.params.text(name))));
    }

    /// Nothing was wrong, or all of it.
    ///
    /// # Errors
    /// 422 that names each parameter.
    pub fn check(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.wrong) {
            wrong if wrong.is_empty() => Ok(()),
            wrong => Err(Error::fields(wrong)),
        }
    }

    fn note(&mut self, name: &str, kind: &'static str, message: String, context: Option<Value>) {
        let input = json!(self.params.text(name));
        self.wrong.push(Wrong { kind, place: place(name), message, input, context });
    }
}

fn place(name: &str) -> Vec<Value> {
    vec![json!("query"), json!(name)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_types_are_told() {
        let params = Params::read(Some("limit=-1&offset=x&other=1&status=asleep"), 100).unwrap();
        let mut query = Query::new(&params, &["limit", "offset", "status"]);
        query.limit(100);
        query.offset();
        query.choice("status", &["ready", "failed"]);
        let detail = query.check().unwrap_err().detail;
        let said: Vec<_> = detail.as_array().unwrap().iter().map(|it| (&it["type"], &it["loc"][1])).collect();
        let expected = [
            (json!("extra_forbidden"), json!("other")),
            (json!("greater_than_equal"), json!("limit")),
            (json!("int_parsing"), json!("offset")),
            (json!("enum"), json!("status")),
        ];
        assert_eq!(said, expected.iter().map(|(kind, name)| (kind, name)).collect::<Vec<_>>());
    }
}
