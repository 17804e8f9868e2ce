//! Several who are asked.

use async_trait::async_trait;
use concert_model::{Encoded, GroupKind, Object};

use super::{Act, Admission, Admissions, Denied, Written};
use crate::auth::User;

/// All of these, in this order; each about the kinds that concern it.
pub struct All(pub Vec<Admissions>);

impl All {
    fn about(&self, kind: Option<&GroupKind>) -> impl Iterator<Item = &Admissions> {
        self.0.iter().filter(move |it| kind.is_some_and(|kind| it.concerns(kind)))
    }
}

#[async_trait]
impl Admission for All {
    fn concerns(&self, kind: &GroupKind) -> bool {
        self.0.iter().any(|it| it.concerns(kind))
    }

    async fn admit(
        &self,
        user: &User,
        act: Act,
        old: Option<&Object>,
        mut new: Option<&mut Object>,
        is_dry_run: bool,
    ) -> Result<(), Denied> {
        let kind = new.as_deref().or(old).and_then(|object| object.gvk().ok()).map(|it| it.group_kind);
        for admission in self.about(kind.as_ref()) {
            admission.admit(user, act, old, new.as_deref_mut(), is_dry_run).await?;
        }
        Ok(())
    }

    async fn committed(&self, act: Act, old: Option<&Encoded>, mut written: Written) -> Written {
        let kind = written.object().key().kind.clone();
        for admission in self.about(Some(&kind)) {
            written = admission.committed(act, old, written).await;
        }
        written
    }
}
