//! Nobody gives away more than they have.
//!
//! A role may only hold what its writer holds, unless they may `escalate`; a binding may only refer to
//! a role that its writer holds, unless they may `bind` it; a token may only be for somebody whom its
//! writer may `impersonate`, and so may a user who can log in. The write path asks before it commits, whatever kind of write it is.

use std::sync::Arc;

use concert_model::{GroupKind, Object};
use serde_json::Value;

use super::custom_role::{CustomRole, custom_role_kind};
use super::gate::Refusal;
use super::guard::{Guard, KINDS};
use super::index::{GROUP, role_place};
use super::person::{Person, person_kind};
use super::rule::{Rule, covers};
use super::token::{Held, token_kind};
use super::user::account_of;
use super::{Access, Gate, User, access, defaults};

/// Whether writes of this kind must go through [`Gate::check_write`].
pub fn is_sensitive(kind: &GroupKind) -> bool {
    (&*kind.group == GROUP && KINDS.contains(&&*kind.kind))
        || [token_kind(), person_kind(), custom_role_kind()].contains(kind)
}

impl Gate {
    /// Whether `user` may make `new` of `old`, as far as it gives rights away. `new` is the object as it
    /// would be stored. Whether they may write such objects at all is asked with [`Gate::authorise`].
    ///
    /// # Errors
    /// [`Refusal::Forbidden`], naming what they do not have.
    pub async fn check_write(&self, user: &User, old: Option<&Object>, new: &Object) -> Result<(), Refusal> {
        let is_same = |field: &str| old.is_some_and(|old| old.get(field) == new.get(field));
        match (new.kind(), new.api_version().split_once('/')) {
            ("Role" | "ClusterRole", Some((GROUP, _))) => {
                // Labels decide which aggregating roles have these rules as well.
                let is_relabelled = old.is_none_or(|old| old.labels() != new.labels());
                let is_untouched = is_same("rules") && is_same("aggregationRule");
                if is_untouched && (!is_relabelled || new.kind() == "Role") {
                    return Ok(());
                }
                let has_selector = !new.get("aggregationRule").is_null() && !is_same("aggregationRule");
                let rules = read_rules(new)?;
                self.check_role_change(user, new.namespace(), new.name(), &rules, has_selector).await
            }
            ("RoleBinding" | "ClusterRoleBinding", Some((GROUP, _))) => {
                if is_same("subjects") && is_same("roleRef") {
                    return Ok(());
                }
                self.check_binding(user, new.namespace(), new.name(), new.get("roleRef")).await
            }
            ("Token", Some(("concert.dev", _))) if !is_same("spec") => {
                let Some(holder) = Held::read(new).and_then(|held| held.user()) else { return Ok(()) };
                self.check_token(user, &holder.name, &given_groups(new)).await
            }
            ("User", Some(("concert.dev", _))) => {
                let (old, new) = (old.map(Person::read), Person::read(new));
                if old.as_ref() == Some(&new) {
                    return Ok(());
                }
                // Who may let somebody in, or out of suspension, or change what they may, may be them.
                self.check_token(user, &new.name, &new.groups()).await
            }
            ("CustomRole", Some(("concert.dev", _))) if !is_same("spec") => {
                let rules = CustomRole::read(new).ceiling();
                self.check_role_change(user, "", &format!("no8s:{}", new.name()), &rules, false).await
            }
            _ => Ok(()),
        }
    }

    /// Whether `user` may have a role in `namespace` (empty for a cluster role) say `rules`, and, with
    /// `has_selector`, whatever rules other roles will have.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`], naming what they do not have.
    pub async fn check_role_change(
        &self,
        user: &User,
        namespace: &str,
        name: &str,
        rules: &[Rule],
        has_selector: bool,
    ) -> Result<(), Refusal> {
        let Some(guard) = self.guarded_for(user) else { return Ok(()) };
        let resource = if namespace.is_empty() { "clusterroles" } else { "roles" };
        if guard.has(user, "escalate", GROUP, resource, namespace, name).await? {
            return Ok(());
        }
        let held = guard.fresh().await?.rules(user, namespace);
        let what = access::subject(GROUP, resource, name);
        if has_selector && !covers(&held, &defaults::everything()).is_empty() {
            let text = "must have cluster-admin privileges to use the aggregationRule";
            return Err(Refusal::Forbidden(format!("{what} is forbidden: {text}")));
        }
        check_held(user, &what, &covers(&held, rules))
    }

    /// Whether `user` may bind the role that `role_ref` names in `namespace`, or everywhere if it is empty.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`], naming what they do not have.
    pub async fn check_binding(
        &self,
        user: &User,
        namespace: &str,
        name: &str,
        role_ref: &Value,
    ) -> Result<(), Refusal> {
        let Some(guard) = self.guarded_for(user) else { return Ok(()) };
        let resource = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
        let what = access::subject(GROUP, resource, name);
        let Some((home, role)) = role_place(role_ref, &namespace.into()) else {
            return Err(Refusal::Forbidden(format!("{what} is forbidden: its roleRef names no role")));
        };
        let roles = if home.is_empty() { "clusterroles" } else { "roles" };
        if guard.has(user, "bind", GROUP, roles, namespace, &role).await? {
            return Ok(());
        }
        let index = guard.fresh().await?;
        let Some(rules) = index.rules_of(&home, &role) else {
            let role = access::subject(GROUP, roles, &role);
            return Err(Refusal::Forbidden(format!("{what} is forbidden: {role} not found")));
        };
        check_held(user, &what, &covers(&index.rules(user, namespace), &rules))
    }

    /// Whether `user` may have a token that says it is `for_user`, in `groups`.
    ///
    /// # Errors
    /// [`Refusal::Forbidden`], naming whom they may not speak for.
    pub async fn check_token(
        &self,
        user: &User,
        for_user: &str,
        groups: &[impl AsRef<str>],
    ) -> Result<(), Refusal> {
        if self.guarded_for(user).is_none() {
            return Ok(());
        }
        let (resource, namespace, name) = match account_of(for_user) {
            Some((namespace, name)) => ("serviceaccounts", namespace, name),
            None => ("users", "", for_user),
        };
        self.check_impersonation(user, resource, namespace, name).await?;
        for group in groups {
            self.check_impersonation(user, "groups", "", group.as_ref()).await?;
        }
        Ok(())
    }

    async fn check_impersonation(
        &self,
        user: &User,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Refusal> {
        let access =
            Access::Resource { verb: "impersonate", group: "", resource, subresource: "", namespace, name };
        self.authorise(user, &access).await
    }

    /// The guard, unless it lets `user` do everything.
    fn guarded_for(&self, user: &User) -> Option<&Guard> {
        self.guard().filter(|_| !user.is_master())
    }
}

impl Guard {
    async fn has(
        &self,
        user: &User,
        verb: &str,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<bool, Refusal> {
        let access = Access::Resource { verb, group, resource, subresource: "", namespace, name };
        match self.authorise(user, &access).await {
            Ok(()) => Ok(true),
            Err(unavailable @ Refusal::Unavailable(_)) => Err(unavailable),
            Err(_) => Ok(false),
        }
    }
}

fn check_held(user: &User, what: &str, missing: &[Rule]) -> Result<(), Refusal> {
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.iter().map(|rule| format!("\n{rule}")).collect::<String>();
    let groups = user.groups.iter().map(|group| format!("{group:?}")).collect::<Vec<_>>().join(" ");
    Err(Refusal::Forbidden(format!(
        "{what} is forbidden: user {:?} (groups=[{groups}]) is attempting to grant RBAC permissions not \
         currently held:{missing}",
        user.name
    )))
}

fn read_rules(role: &Object) -> Result<Vec<Rule>, Refusal> {
    let resource = if role.kind() == "Role" { "roles" } else { "clusterroles" };
    Rule::read_all(role.get("rules")).map_err(|error| {
        let what = access::subject(GROUP, resource, role.name());
        Refusal::Forbidden(format!("{what} is forbidden: its rules cannot be read: {error}"))
    })
}

/// The groups that a token names. Those that come with being an account are not given by it.
fn given_groups(token: &Object) -> Vec<Arc<str>> {
    let groups = token.spec().get("groups").and_then(Value::as_array).into_iter().flatten();
    groups.filter_map(|it| it.as_str().map(Arc::from)).collect()
}
