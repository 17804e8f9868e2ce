//! Definitions of claims that cannot be right are refused where they are declared. On Kubernetes, where
//! nobody asks us, their status says the same.

use std::collections::BTreeMap;

use async_trait::async_trait;
use concert_api::auth::User;
use concert_api::write::{Act, Admission, Denied, Written};
use concert_controllers::claims::definition::{self, Definition, Kinds, Known};
use concert_model::{Encoded, GroupKind, Object, ObjectKey};
use concert_store::{Error, Local, Store as _};

/// Judges definitions of claims: what they say, and what they say of the kinds that are there already.
/// Kinds that are not may yet come.
pub(super) struct Declared(pub Local);

impl Declared {
    async fn kinds(&self, definition: &Definition) -> Result<Kinds, Error> {
        let mut kinds = BTreeMap::new();
        for kind in definition.kinds() {
            if let Some(known) = self.known(kind).await? {
                kinds.insert(kind.clone(), known);
            }
        }
        Ok(kinds)
    }

    async fn known(&self, kind: &GroupKind) -> Result<Option<Known>, Error> {
        let card = match self.0.card(kind) {
            Ok(card) => card,
            Err(Error::UnknownKind { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let definitions = GroupKind::new("apiextensions.k8s.io", "CustomResourceDefinition");
        let key = ObjectKey::cluster(definitions, format!("{}.{}", card.kind.plural, kind.group));
        match self.0.get(&key).await {
            Ok(found) => Ok(Some(Known::of(&found.decode()))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

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
        let (parsed, mut errors) = definition::parse(new);
        if let Some(parsed) = parsed.filter(|_| errors.is_empty()) {
            // What cannot be looked up now is judged when it is cast.
            let kinds = self.kinds(&parsed).await.unwrap_or_default();
            errors = definition::check(&parsed, &kinds).wrong();
        }
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
