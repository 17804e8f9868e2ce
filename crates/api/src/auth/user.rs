//! Who calls.

use std::sync::Arc;

/// Whoever did not say who they are.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// May do everything, whatever the roles say: the way back in when they are broken.
pub(super) const MASTERS: &str = "system:masters";

/// Somebody whose word was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `admin`, `system:serviceaccount:NAMESPACE:NAME`, `system:anonymous`.
    pub name: Arc<str>,
    /// Which incarnation of the account, where there is one.
    pub uid: Arc<str>,
    /// `system:masters`, `system:authenticated`, and those that the account is in.
    pub groups: Vec<Arc<str>>,
    /// Who sent the request, where that is somebody else who may act as this user.
    pub sender: Option<Arc<str>>,
}

impl User {
    /// Somebody who said nothing of themselves.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".into()];
        Self { name: ANONYMOUS.into(), uid: "".into(), groups, sender: None }
    }

    /// Somebody by name, in these groups and in that of everybody who is known.
    pub fn known(name: impl Into<Arc<str>>, groups: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut all: Vec<Arc<str>> = Vec::new();
        for group in groups.into_iter().chain(["system:authenticated".into()]) {
            if !all.contains(&group) {
                all.push(group);
            }
        }
        Self { name: name.into(), uid: "".into(), groups: all, sender: None }
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str, uid: impl Into<Arc<str>>) -> Self {
        let groups = [
            Arc::from("system:serviceaccounts"),
            Arc::from(format!("system:serviceaccounts:{namespace}").as_str()),
        ];
        Self { uid: uid.into(), ..Self::known(account_name(namespace, name), groups) }
    }

    /// True if nobody knows who it is.
    pub fn is_anonymous(&self) -> bool {
        &*self.name == ANONYMOUS
    }

    /// True if no role is asked.
    pub(super) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| &**group == MASTERS)
    }
}

/// The user name of a service account.
pub(super) fn account_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// Namespace and name of the account that a user name stands for.
pub(super) fn account_of(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}
