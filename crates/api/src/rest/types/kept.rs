//! Schemas, compiled once for each state of a type.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use concert_model::GroupKind;
use concert_store::{Error, Local, Store};

use super::{Type, definition_key};
use crate::rest::draft7::Schema;

/// A type and its schema.
pub struct Typed {
    /// The type.
    pub kind: Type,
    /// Its schema; what cannot be compiled, which no door lets in, allows everything.
    pub schema: Option<Schema>,
}

/// The types that were asked for, as of the newest state that was seen of each.
#[derive(Default)]
pub struct Kept {
    types: RwLock<HashMap<GroupKind, Arc<Typed>>>,
}

impl Kept {
    /// The type of a kind as it is now; none for a kind that is no resource type.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn of(&self, store: &Local, kind: &GroupKind) -> Result<Option<Arc<Typed>>, Error> {
        let card = match store.card(kind) {
            Ok(card) => card,
            Err(Error::UnknownKind { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let definition = match store.get(&definition_key(&card.kind.plural, &kind.group)).await {
            Ok(definition) => definition,
            Err(Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let known = self.types.read().unwrap_or_else(PoisonError::into_inner).get(kind).cloned();
        if let Some(known) = known.filter(|it| it.kind.resource_version == *definition.resource_version()) {
            return Ok(Some(known));
        }
        let Some(read) = Type::read(&definition) else { return Ok(None) };
        let typed = Arc::new(Typed { schema: Schema::compile(&read.schema()).ok(), kind: read });
        let mut types = self.types.write().unwrap_or_else(PoisonError::into_inner);
        types.retain(|kind, _| store.card(kind).is_ok());
        types.insert(kind.clone(), typed.clone());
        Ok(Some(typed))
    }
}
