//! Dotted paths into objects, as providers declare them: `spec.forProvider.vpcId`.

use concert_model::Object;
use serde_json::{Value, json};

/// A path that was checked.
pub(super) struct Path<'a>(Vec<&'a str>);

impl<'a> Path<'a> {
    /// # Errors
    /// Why it is not a path that can be followed.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        if text.contains(['[', ']']) {
            return Err(format!("field path {text:?} leads into a list, which is not supported"));
        }
        let steps: Vec<&str> = text.split('.').collect();
        if steps.iter().any(|it| it.is_empty()) {
            return Err(format!("field path {text:?} has an empty part"));
        }
        Ok(Self(steps))
    }

    /// As [`Path::parse`], for a field that is written.
    ///
    /// # Errors
    /// Also for paths outside of `spec`: the rest is not for a reference to change.
    pub fn parse_in_spec(text: &'a str) -> Result<Self, String> {
        let path = Self::parse(text)?;
        if path.0.len() < 2 || path.0[0] != "spec" {
            return Err(format!("field path {text:?} must start with \"spec.\""));
        }
        Ok(path)
    }

    /// The value; null if there is none.
    pub fn get<'o>(&self, object: &'o Object) -> &'o Value {
        let inside = self.0[1..].iter().try_fold(object.get(self.0[0]), |value, step| value.get(step));
        inside.unwrap_or(&Value::Null)
    }

    /// Sets the value, making the objects on the way; null removes it.
    ///
    /// # Errors
    /// Something on the way is not an object.
    pub fn set(&self, object: &mut Object, value: Value) -> Result<(), String> {
        let [first, between @ .., last] = &self.0[..] else { return Err("field path is too short".into()) };
        if value.is_null() && self.get(object).is_null() {
            return Ok(());
        }
        let mut place = object.get_mut(first);
        for step in between {
            let Value::Object(fields) = place else { return Err(self.blocked()) };
            place = fields.entry(*step).or_insert_with(|| json!({}));
        }
        let Value::Object(fields) = place else { return Err(self.blocked()) };
        if value.is_null() {
            fields.remove(*last);
        } else {
            fields.insert((*last).to_owned(), value);
        }
        Ok(())
    }

    fn blocked(&self) -> String {
        format!("field path {:?} leads through something that is not an object", self.0.join("."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_cannot_be_followed_say_why() {
        let error = |text| Path::parse_in_spec(text).err().unwrap();
        assert!(error("spec.subnets[*].id").contains("leads into a list"));
        assert!(error("spec..id").contains("empty part"));
        assert!(error("status.id").contains("must start with"));
        assert!(error("spec").contains("must start with"));
    }

    #[test]
    fn writing_makes_the_way_and_stops_at_what_is_in_it() {
        let object = json!({"apiVersion": "v1", "kind": "A", "spec": {"text": "x"}});
        let mut object = Object::from_value(object).unwrap();
        Path::parse("spec.a.b").unwrap().set(&mut object, json!(1)).unwrap();
        assert_eq!(object.spec(), &json!({"text": "x", "a": {"b": 1}}));
        Path::parse("spec.a.b").unwrap().set(&mut object, Value::Null).unwrap();
        Path::parse("spec.none.b").unwrap().set(&mut object, Value::Null).unwrap();
        assert_eq!(object.spec(), &json!({"text": "x", "a": {}}));
        let error = Path::parse("spec.text.b").unwrap().set(&mut object, json!(1)).unwrap_err();
        assert!(error.contains("not an object"), "{error}");
    }
}
