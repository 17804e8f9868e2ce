//! Whose an external thing is.
//!
//! Whoever may write an external name on an object, an application team through its claim for one, must not
//! get at somebody else's password by naming somebody else's thing. So each thing remembers the object that
//! it was made for. Another object sees that it exists; to have its password, to change it and to remove it
//! takes an annotation that only those can set who may write managed objects.

use concert_model::Object;
use concert_provider::{Class, Error};
use serde::{Deserialize, Serialize};

use crate::Result;

pub(crate) const EXTERNAL_NAME: &str = "crossplane.io/external-name";

/// Says that an object takes over what was made for another, or by hand.
pub(crate) const TAKE_OVER: &str = "local.concert.dev/take-over";

/// The object that a thing was made for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    /// Its name, with its namespace if it has one.
    pub(crate) object: String,
}

impl Owner {
    pub(crate) fn of(object: &Object) -> Self {
        let name = match object.namespace() {
            "" => object.name().to_owned(),
            namespace => format!("{namespace}/{}", object.name()),
        };
        Self { uid: object.uid().map(|uid| uid.to_string()).unwrap_or_default(), object: name }
    }

    /// Whether `object` may know and do everything.
    pub(crate) fn admits(&self, object: &Object) -> bool {
        let is_same = !self.uid.is_empty() && Self::of(object).uid == self.uid;
        is_same || takes_over(object)
    }

    /// The same, as a refusal.
    pub(crate) fn check(&self, object: &Object, thing: &str) -> Result<()> {
        if self.admits(object) {
            return Ok(());
        }
        let whose = match self.object.as_str() {
            "" => "was not made by this provider".to_owned(),
            // Which one is its own business: this is told to whoever named the thing.
            _ => "belongs to another object".to_owned(),
        };
        let message = format!(
            "{thing} {whose}: to take it over, annotate the object with {TAKE_OVER}=true; \
             to leave it alone, let spec.managementPolicies be [Observe]"
        );
        Err(Error::new(Class::NeedsHuman, message))
    }
}

/// Whether `object` takes over what is not its own.
pub(crate) fn takes_over(object: &Object) -> bool {
    object.annotation(TAKE_OVER) == Some("true")
}

/// The external name that an object has, if it has one.
pub(crate) fn external_name(object: &Object) -> Option<&str> {
    object.annotation(EXTERNAL_NAME).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str) -> Object {
        let whole = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "uid": uid}});
        Object::from_value(whole).unwrap()
    }

    #[test]
    fn a_thing_is_for_its_owner_and_for_who_takes_it_over() {
        let owner = Owner::of(&object("1"));
        assert!(owner.admits(&object("1")) && !owner.admits(&object("2")) && !owner.admits(&object("")));
        let error = owner.check(&object("2"), "redis a-1").unwrap_err();
        assert_eq!(error.class, Class::NeedsHuman);
        assert!(error.message.starts_with("redis a-1 belongs to another object: to take it over"), "{error}");
        let mut other = object("2");
        other.set_annotation(TAKE_OVER, "true");
        assert!(owner.admits(&other));
    }

    #[test]
    fn what_nobody_owns_is_not_owned_by_an_object_without_uid() {
        assert!(!Owner::default().admits(&object("")));
    }
}
