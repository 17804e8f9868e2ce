//! Definitions of claims that cannot be right are refused where they are declared. On Kubernetes, where
//! nobody asks us, their status says the same.

use async_trait::async_trait;
use concert_api::auth::User;
use concert_api::write::{Act, Admission, Denied, Written};
use concert_controllers::claims::definition;
use concert_model::{Encoded, GroupKind, Object};

/// Judges definitions of claims.
pub(super) struct Declared;

#[async_trait]
impl Admission for Declared {
    fn concerns(&self, kind: &GroupKind) -> bool {
        *kind == definition::kind()
    }

    async fn admit(
        &self,
        _user: &User,
        _act: Act,
        _old: Option<&Object>,
        new: Option<&mut Object>,
        _is_dry_run: bool,
    ) -> Result<(), Denied> {
        // One that is being deleted may be as wrong as it was.
        let Some(new) = new.filter(|it| it.deleted_at().is_none()) else { return Ok(()) };
        let (_, errors) = definition::parse(new);
        if errors.is_empty() {
            return Ok(());
        }
        let detail = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Err(Denied::Invalid { field: "spec", detail })
    }

    async fn committed(&self, _act: Act, _old: Option<&Encoded>, written: Written) -> Written {
        written
    }
}
