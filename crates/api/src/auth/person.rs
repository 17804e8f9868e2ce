//! People: `User` objects, as they are at this moment.

use concert_model::{GroupKind, Object};
use serde_json::Value;

use super::User;
use super::user::MASTERS;

/// The label that carries the integer id.
const ID: &str = "no8s.concert.dev/id";

/// The kind that people are kept in.
pub fn person_kind() -> GroupKind {
    GroupKind::new("concert.dev", "User")
}

/// The group of plugin hosts, who may read and change resources of all types; their role is called so too.
pub const PLUGIN_HOSTS: &str = "system:plugin-hosts";

/// The group of everybody who has the custom role with this id. By id, which is never used again: a role
/// of the same name that comes later is another one.
pub fn role_group(id: u64) -> String {
    format!("no8s:role:{id}")
}

/// What a `User` object says.
#[derive(Clone, PartialEq, Eq)]
pub struct Person {
    /// None if nobody has given it one yet: then nobody logs in.
    pub id: Option<u64>,
    /// The name of the object.
    pub name: String,
    /// Which incarnation.
    pub uid: String,
    /// May do everything.
    pub is_admin: bool,
    /// Not suspended.
    pub is_active: bool,
    /// `manual`.
    pub source: String,
    /// The one custom role.
    pub custom_role_id: Option<u64>,
    /// None if there is no password to log in with.
    pub password_hash: Option<String>,
}

impl Person {
    /// Reads it. What makes no sense gives nothing.
    pub fn read(object: &Object) -> Self {
        let spec = object.spec();
        let text = |field: &str| spec.get(field).and_then(Value::as_str).filter(|it| !it.is_empty());
        Self {
            id: object.labels().get(ID).and_then(|id| id.parse().ok()),
            name: object.name().to_owned(),
            uid: object.uid().map(|uid| uid.0.to_string()).unwrap_or_default(),
            is_admin: spec.get("isAdmin").and_then(Value::as_bool).unwrap_or(false),
            is_active: matches!(text("status"), None | Some("active")) && object.deleted_at().is_none(),
            source: text("source").unwrap_or("manual").to_owned(),
            custom_role_id: spec.get("customRoleId").and_then(Value::as_u64),
            password_hash: text("passwordHash").map(str::to_owned),
        }
    }

    /// The groups that it is in by what it says.
    pub fn groups(&self) -> Vec<String> {
        let admin = self.is_admin.then(|| MASTERS.to_owned());
        admin.into_iter().chain(self.custom_role_id.map(role_group)).collect()
    }

    /// Who calls, when this person does.
    pub fn user(&self) -> User {
        let groups = self.groups().into_iter().map(Into::into);
        User { uid: self.uid.as_str().into(), ..User::known(self.name.as_str(), groups) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn person(spec: Value) -> Person {
        let metadata = json!({"name": "ann", "uid": "u", "labels": {ID: "7"}});
        let whole =
            json!({"apiVersion": "concert.dev/v1alpha1", "kind": "User", "metadata": metadata, "spec": spec});
        Person::read(&Object::from_value(whole).unwrap())
    }

    #[test]
    fn what_is_not_said_gives_nothing() {
        let nothing = person(json!({}));
        assert_eq!((nothing.id, nothing.is_admin, nothing.is_active), (Some(7), false, true));
        assert_eq!(nothing.password_hash, None);
        assert!(nothing.groups().is_empty());
        assert!(!person(json!({"isAdmin": "true"})).is_admin);
        assert!(!person(json!({"status": "suspended"})).is_active);
        assert!(!person(json!({"status": "somehow"})).is_active);
    }

    #[test]
    fn rights_are_groups() {
        let user = person(json!({"isAdmin": true, "customRoleId": 3})).user();
        let groups: Vec<&str> = user.groups.iter().map(|it| &**it).collect();
        assert_eq!(groups, ["system:masters", "no8s:role:3", "system:authenticated"]);
        assert_eq!((&*user.name, &*user.uid), ("ann", "u"));
    }
}
