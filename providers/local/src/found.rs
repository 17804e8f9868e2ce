//! What is there already, as objects that would import it.

use concert_model::{GroupVersionKind, Object};
use concert_provider::Found;
use serde_json::json;

use crate::owner::EXTERNAL_NAME;

/// An object that imports a thing without touching it, and without its password: whoever lists things is
/// not therefore entitled to that.
pub(crate) fn found(kind: &GroupVersionKind, external_name: &str) -> Found {
    let mut object = Object::new(kind, "", &object_name(external_name));
    object.set_annotation(EXTERNAL_NAME, external_name);
    object.set("spec", json!({"managementPolicies": ["Observe"], "forProvider": {}}));
    Found { external_name: external_name.to_owned(), object }
}

/// The nearest name that an object can have: databases may be called anything.
fn object_name(external_name: &str) -> String {
    let allowed = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let name: String = external_name.chars().map(allowed).collect();
    match name.trim_matches('-') {
        "" => "imported".to_owned(),
        name => name.chars().take(63).collect::<String>().trim_end_matches('-').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_thing_is_called_its_object_can_be_made() {
        for (external, name) in
            [("shop", "shop"), ("Shop_Orders", "shop-orders"), ("_x_", "x"), ("§", "imported")]
        {
            let found = found(&crate::kinds::postgresql_database(), external);
            assert_eq!((found.object.name(), found.external_name.as_str()), (name, external));
            assert_eq!(found.object.annotation(EXTERNAL_NAME), Some(external));
        }
        assert_eq!(object_name(&"x".repeat(100)).len(), 63);
    }
}
