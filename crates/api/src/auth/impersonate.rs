//! Acting as somebody else, as `kubectl --as` and `--as-group` ask for it.
//!
//! Who asks needs the verb `impersonate` for each thing that they say of themselves: on `users` or
//! `serviceaccounts`, on `groups`, and on `uids` of `authentication.k8s.io`. From then on the request is that
//! of the other, and only the audit trail knows who sent it.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::Access;
use super::gate::Refusal;
use super::user::{self, User};

const PREFIX: &str = "impersonate-";
const NAME: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";

/// Most groups: each is asked about.
const GROUPS_MAX: usize = 64;

/// The headers that say who calls, and nothing else.
pub(crate) fn credentials(headers: &HeaderMap) -> HeaderMap {
    let ours = |name: &str| name == AUTHORIZATION.as_str() || name.starts_with(PREFIX);
    let ours = headers.iter().filter(|(name, _)| ours(name.as_str()));
    let mut kept = HeaderMap::new();
    for (name, value) in ours {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// True if the caller wants to be somebody else.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(PREFIX))
}

/// Whom the caller wants to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    name: &'a str,
    groups: Vec<&'a str>,
    uid: &'a str,
}

impl<'a> Wanted<'a> {
    /// Reads the headers; none if they ask for nothing of the kind.
    ///
    /// # Errors
    /// What they ask for cannot be had: it is refused, not left out.
    pub(super) fn read(headers: &'a HeaderMap) -> Result<Option<Self>, Refusal> {
        if !is_asked_for(headers) {
            return Ok(None);
        }
        let known = [NAME, GROUP, UID];
        if let Some(other) =
            headers.keys().find(|it| it.as_str().starts_with(PREFIX) && !known.contains(&it.as_str()))
        {
            return Err(refused(&format!("the header {} is not supported", other.as_str())));
        }
        let (names, groups) = (values(headers, NAME)?, values(headers, GROUP)?);
        let uids = values(headers, UID)?;
        let [name] = names[..] else {
            return Err(refused("Impersonate-User has to be there, once"));
        };
        if name.is_empty() || uids.len() > 1 || groups.len() > GROUPS_MAX {
            return Err(refused("one user, one uid and a few groups can be impersonated"));
        }
        Ok(Some(Self { name, groups, uid: uids.first().copied().unwrap_or_default() }))
    }

    /// What the caller has to be allowed.
    pub(super) fn accesses(&self) -> Vec<Access<'a>> {
        let impersonate = |group: &'a str, resource: &'a str, namespace: &'a str, name: &'a str| {
            Access::Resource { verb: "impersonate", group, resource, subresource: "", namespace, name }
        };
        let user = match user::account_of(self.name) {
            Some((namespace, name)) => impersonate("", "serviceaccounts", namespace, name),
            None => impersonate("", "users", "", self.name),
        };
        let mut all = vec![user];
        all.extend(self.groups.iter().copied().map(|group| impersonate("", "groups", "", group)));
        if !self.uid.is_empty() {
            all.push(impersonate("authentication.k8s.io", "uids", "", self.uid));
        }
        all
    }

    /// Who that is, for a request that `sender` sent.
    pub(super) fn user(&self, sender: &User) -> User {
        let nobody = User::anonymous();
        let own = self.groups.iter().map(|group| Arc::<str>::from(*group));
        let mut user = match user::account_of(self.name) {
            Some((namespace, name)) if self.groups.is_empty() => User::service_account(namespace, name, ""),
            _ if *self.name == *nobody.name => {
                let more: Vec<Arc<str>> = own.filter(|it| !nobody.groups.contains(it)).collect();
                User { groups: [nobody.groups.clone(), more].concat(), ..nobody }
            }
            _ => User::known(self.name, own),
        };
        user.uid = self.uid.into();
        user.sender = Some(sender.name.clone());
        user
    }
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> Result<Vec<&'a str>, Refusal> {
    let texts = headers.get_all(name).iter().map(|value| std::str::from_utf8(value.as_bytes()));
    texts.collect::<Result<_, _>>().map_err(|_| refused(&format!("the header {name} is not text")))
}

fn refused(why: &str) -> Refusal {
    Refusal::Forbidden(format!("cannot impersonate: {why}"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(values: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        values.iter().map(pair).collect()
    }

    #[test]
    fn each_thing_that_is_said_is_asked_about() {
        let headers = headers(&[(NAME, "jane"), (GROUP, "a"), (GROUP, "b"), (UID, "7")]);
        let wanted = Wanted::read(&headers).unwrap().unwrap();
        let asked: Vec<_> = wanted
            .accesses()
            .into_iter()
            .map(|it| match it {
                Access::Resource { verb: "impersonate", group, resource, namespace, name, .. } => {
                    [group, resource, namespace, name].join("/")
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(asked, ["/users//jane", "/groups//a", "/groups//b", "authentication.k8s.io/uids//7"]);
        let user = wanted.user(&User::known("root", []));
        assert_eq!((&*user.name, &*user.uid, user.sender.as_deref()), ("jane", "7", Some("root")));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"].map(Arc::from));
    }

    #[test]
    fn an_account_is_in_the_groups_of_accounts() {
        let headers = headers(&[(NAME, "system:serviceaccount:shop:till")]);
        let wanted = Wanted::read(&headers).unwrap().unwrap();
        assert!(matches!(
            wanted.accesses()[..],
            [Access::Resource { resource: "serviceaccounts", namespace: "shop", name: "till", .. }]
        ));
        let groups = wanted.user(&User::known("root", [])).groups;
        assert!(groups.contains(&"system:serviceaccounts:shop".into()), "{groups:?}");
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        assert_eq!(Wanted::read(&headers(&[("authorization", "Bearer x")])), Ok(None));
        for bad in [
            &[(GROUP, "system:masters")][..],
            &[(NAME, "a"), (NAME, "b")],
            &[(NAME, "")],
            &[(NAME, "a"), (UID, "1"), (UID, "2")],
            &[(NAME, "a"), ("impersonate-extra-scopes", "x")],
            &[(NAME, "a"), ("impersonate-other", "x")],
        ] {
            assert!(matches!(Wanted::read(&headers(bad)), Err(Refusal::Forbidden(_))), "{bad:?}");
        }
    }

    #[test]
    fn nobody_stays_nobody() {
        let headers = headers(&[(NAME, "system:anonymous")]);
        let user = Wanted::read(&headers).unwrap().unwrap().user(&User::known("root", []));
        assert!(user.is_anonymous() && user.groups == ["system:unauthenticated".into()], "{user:?}");
    }
}
