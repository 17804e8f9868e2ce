//! What became of the owners that an object names, by a fresh read each.

use concert_model::{Encoded, GroupKind, GroupVersionKind, ObjectKey, OwnerReference};
use concert_store::{Error, PageRequest, Query};

use super::super::finalizers;
use super::decide::Verdict;
use super::index::{Fate, is_in_reach};
use super::run::Owners;

/// Namespaces looked at in one go.
const PAGE_NAMESPACES: usize = 500;

impl Owners {
    /// What became of one owner of `dependent`.
    pub(super) async fn judge(
        &self,
        dependent: &ObjectKey,
        reference: &OwnerReference,
    ) -> Result<Verdict, Error> {
        let Ok(named) = GroupVersionKind::parse(&reference.api_version, &reference.kind) else {
            return Ok(Verdict::Unresolvable);
        };
        let kind = named.group_kind;
        let is_namespaced = match self.store.kind(&kind).await {
            Ok(kind) => kind.is_namespaced,
            // Its objects cannot be read. Only one that was seen to go is certainly not there.
            Err(Error::UnknownKind { .. }) => return Ok(self.witnessed(dependent, reference)),
            Err(error) => return Err(error),
        };
        if is_namespaced && dependent.namespace.is_empty() {
            return Ok(Verdict::Unresolvable);
        }
        let namespace = if is_namespaced { dependent.namespace.clone() } else { "".into() };
        let owner = ObjectKey::namespaced(kind.clone(), namespace, reference.name.as_str());
        if let Some(found) = self.find(&owner, reference).await? {
            let is_waiting = finalizers::is_foreground(&found);
            return Ok(if is_waiting { Verdict::Waiting } else { Verdict::Solid });
        }
        let fate = self.index().fate(&reference.uid);
        match fate {
            Fate::Gone(_) => Ok(self.witnessed(dependent, reference)),
            Fate::Nowhere => Ok(Verdict::Absent),
            Fate::Unknown if !is_namespaced => Ok(Verdict::Absent),
            Fate::Unknown => self.search(&kind, dependent, reference).await,
        }
    }

    /// What the watches saw of an owner that cannot be found.
    fn witnessed(&self, dependent: &ObjectKey, reference: &OwnerReference) -> Verdict {
        match self.index().fate(&reference.uid) {
            Fate::Gone(namespace) if is_in_reach(&namespace, dependent) => Verdict::Absent,
            _ => Verdict::Unresolvable,
        }
    }

    /// Looks for an owner in all other namespaces: one that lives there was never this object's owner,
    /// whatever the object says, so it does not go with it. Each uid is looked for once.
    async fn search(
        &self,
        kind: &GroupKind,
        dependent: &ObjectKey,
        reference: &OwnerReference,
    ) -> Result<Verdict, Error> {
        let namespaces = Query::all(GroupKind::new("", "Namespace"));
        let mut page = PageRequest { limit: Some(PAGE_NAMESPACES), token: None };
        loop {
            let listed = self.store.list(&namespaces, &page).await?;
            let others = listed.items.iter().filter(|it| it.key().name != dependent.namespace);
            for namespace in others {
                let name = namespace.key().name.clone();
                let elsewhere = ObjectKey::namespaced(kind.clone(), name, reference.name.as_str());
                if self.find(&elsewhere, reference).await?.is_some() {
                    return Ok(Verdict::Unresolvable);
                }
            }
            match listed.next {
                Some(token) => page.token = Some(token),
                None => break,
            }
        }
        self.index().set_nowhere(&reference.uid);
        Ok(Verdict::Absent)
    }

    /// The very object that a reference means, if it is at `key`.
    async fn find(&self, key: &ObjectKey, reference: &OwnerReference) -> Result<Option<Encoded>, Error> {
        match self.store.get(key).await {
            Ok(found) => Ok(Some(found).filter(|it| it.head().uid == reference.uid)),
            Err(Error::NotFound { .. } | Error::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
