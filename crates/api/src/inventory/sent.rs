//! What was sent, read field by field. What is wrong with it is said without repeating any of it: a body
//! may hold a kubeconfig.

use serde_json::{Map, Value};

use crate::kube::content::content_type;
use crate::rest::{Call, Error};

/// The fields of a body that are not taken yet.
pub(super) struct Sent(Map<String, Value>);

impl Sent {
    /// Reads a body that is an object of no fields but these. Null counts as absent.
    pub fn read(call: &Call<'_>, known: &[&str]) -> Result<Self, Error> {
        let kind = content_type(&call.head.headers);
        let is_json = kind.is_empty() || kind == "application/json" || kind.ends_with("+json");
        // The error of the reader says where, never what.
        let read = serde_json::from_slice::<Value>(call.bytes).ok().filter(|_| is_json);
        let Some(Value::Object(mut fields)) = read else {
            return Err(Error::unprocessable("the body must be a JSON object"));
        };
        fields.retain(|_, value| !value.is_null());
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self(fields)),
            // The name of a field that nobody knows may itself be part of what must not be repeated.
            Some(_) => Err(Error::unprocessable(format!("the body may have {} only", known.join(", ")))),
        }
    }

    /// A text; none if it is not there.
    pub fn text(&mut self, name: &str, bytes_max: usize) -> Result<Option<String>, Error> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= bytes_max => Ok(Some(text)),
            Some(_) => {
                Err(Error::unprocessable(format!("{name} must be a text of at most {bytes_max} bytes")))
            }
        }
    }

    /// True or false; none if it is not there.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, Error> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Error::unprocessable(format!("{name} must be true or false"))),
        }
    }

    /// A whole number; none if it is not there.
    pub fn integer(&mut self, name: &str, min: i64, max: i64) -> Result<Option<i64>, Error> {
        match self.0.remove(name).map(|it| it.as_i64()) {
            None => Ok(None),
            Some(Some(number)) if (min..=max).contains(&number) => Ok(Some(number)),
            Some(_) => {
                Err(Error::unprocessable(format!("{name} must be a whole number from {min} to {max}")))
            }
        }
    }

    /// A list; none if it is not there.
    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Error> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(Error::unprocessable(format!("{name} must be a list"))),
        }
    }

    /// A list of texts; none if it is not there.
    pub fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(list) = self.list(name)? else { return Ok(None) };
        let texts: Option<Vec<String>> = list.iter().map(|it| it.as_str().map(str::to_owned)).collect();
        texts.map(Some).ok_or_else(|| Error::unprocessable(format!("{name} must be a list of texts")))
    }

    /// An object; none if it is not there.
    pub fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, Error> {
        match self.0.remove(name) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(_) => Err(Error::unprocessable(format!("{name} must be a JSON object"))),
        }
    }
}
