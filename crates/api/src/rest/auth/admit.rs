//! What is asked of users, roles and webhooks, whichever door they come through.

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object, time};
use serde_json::{Value, json};

use super::Accounts;
use crate::auth::{Person, User, custom_role_kind, has_other_way_in, person_kind};
use crate::rest::roles::{PERMISSIONS, definition_kind};
use crate::rest::webhooks::{Address, webhook_kind};
use crate::write::{Act, Admission, Denied, Written};

/// What is answered to who would lock everybody out.
pub(in crate::rest) const LAST_ADMIN: &str = "Cannot remove the last active administrator";

#[async_trait]
impl Admission for Accounts {
    fn concerns(&self, kind: &GroupKind) -> bool {
        [person_kind(), custom_role_kind(), webhook_kind(), definition_kind()].contains(kind)
    }

    async fn admit(
        &self,
        _user: &User,
        _act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
        is_dry_run: bool,
    ) -> Result<(), Denied> {
        let Some(object) = new.as_deref().or(old) else { return Ok(()) };
        let Some(("concert.dev", _)) = object.api_version().split_once('/') else { return Ok(()) };
        let kind = object.kind().to_owned();
        match (&*kind, new) {
            ("User", new) => self.admit_user(old, new.as_deref()).await,
            ("CustomRole", Some(new)) if !is_dry_run => self.number_permissions(new).await,
            ("AdmissionWebhook", Some(new)) => check_address(new),
            _ => Ok(()),
        }
    }

    async fn committed(&self, act: Act, _old: Option<&Encoded>, written: Written) -> Written {
        let kind = written.object().key().kind.clone();
        let is_concerned = kind == custom_role_kind()
            || kind == definition_kind() && (act != Act::Update || is_type(written.object()));
        if is_concerned && let Err(error) = self.0.roles.sync().await {
            tracing::error!(%error, "custom roles are not up to date; the next change of one tries again");
        }
        written
    }
}

impl Accounts {
    async fn admit_user(&self, old: Option<&Object>, new: Option<&Object>) -> Result<(), Denied> {
        let is_admin = |object: &Object| {
            let person = Person::read(object);
            person.is_admin && person.is_active
        };
        let was = old.is_some_and(is_admin);
        if !was || new.is_some_and(is_admin) || self.0.gate.is_open() {
            return Ok(());
        }
        let name = old.map_or("", Object::name);
        match has_other_way_in(&self.0.store, &*self.0.clock, name).await? {
            true => Ok(()),
            false => Err(Denied::Forbidden(LAST_ADMIN.to_owned())),
        }
    }

    /// Gives numbers to the permissions of a role that have none.
    async fn number_permissions(&self, role: &mut Object) -> Result<(), Denied> {
        let mut permissions = role.spec()["permissions"].as_array().cloned().unwrap_or_default();
        let mut has_changed = false;
        for permission in &mut permissions {
            let Value::Object(fields) = permission else { continue };
            if !fields.contains_key("id") {
                fields.insert("id".into(), json!(self.0.ids.draw(PERMISSIONS).await?));
                fields.insert("createdAt".into(), json!(time::micros(self.0.clock.now())));
                has_changed = true;
            }
        }
        if has_changed {
            role.get_mut("spec")["permissions"] = permissions.into();
        }
        Ok(())
    }
}

fn check_address(webhook: &Object) -> Result<(), Denied> {
    let url = webhook.spec()["url"].as_str().unwrap_or_default();
    let wrong = |detail: String| Denied::Invalid { field: "spec.url", detail };
    Address::parse(url).map(drop).map_err(|error| wrong(error.to_string()))
}

fn is_type(definition: &Encoded) -> bool {
    definition.key().name.ends_with(concert_model::no8s::names::GROUP)
}
