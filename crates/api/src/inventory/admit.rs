//! The rules of the inventory for objects that come through another door.
//!
//! Whoever edits a section with kubectl changes its contents; version, hash, writer and time are set here,
//! as the inventory's own door sets them, and what was edited of them is set back. Contents of secret
//! sections go through the inventory's own door only.

use std::sync::Arc;

use async_trait::async_trait;
use concert_model::inventory::{Changed, Expected, Kept};
use concert_model::inventory::{Entry, Grant, Section, SectionType, decide, names};
use concert_model::{Encoded, FieldError, GroupKind, LabelSelector, Object, time};
use concert_store::{By, Clock, Local, PageRequest, Query, Store};
use serde_json::{Value, json};

use super::contents::{Contents, Place, Schemas, compile};
use super::door::find;
use super::grants::{all, other_writer, second_writer};
use super::write::{drop_secret, lower};
use crate::auth::{Keys, User};
use crate::write::{Act, Admission, Denied, Written};

/// Judges entries, sections, their types, and grants.
pub struct Admit {
    store: Local,
    clock: Arc<dyn Clock>,
    keys: Keys,
    schemas: Schemas,
}

impl Admit {
    /// Judges what is to be written to `store`.
    pub(super) fn new(store: Local, clock: Arc<dyn Clock>, keys: Keys) -> Self {
        Self { store, clock, keys, schemas: Schemas::default() }
    }

    /// Completes a section.
    async fn section(&self, user: &User, old: Option<&Object>, new: &mut Object) -> Result<(), Denied> {
        let section = Section(new);
        let (entry, name) = (section.entry().to_owned(), section.name().to_owned());
        if names::parse_section_object(new.name()) != Some((&entry, &name)) {
            return Err(invalid("a section must be called ENTRY.SECTION, after its spec"));
        }
        if old.is_some_and(|it| Section(it).entry() != entry || Section(it).name() != name) {
            return Err(invalid("a section cannot become another one"));
        }
        let Some(entry) = find(&self.store, &names::entry_key(&entry)).await? else {
            return Err(invalid(&format!("there is no entry '{entry}'")));
        };
        let entry = entry.decode();
        let kind = find(&self.store, &names::section_type_key(&name)).await?.map(|it| it.decode());
        let is_secret = kind.as_ref().is_some_and(|it| SectionType(it).is_secret());
        let spec = match (is_secret, old) {
            (true, Some(old)) if section.data().is_null() => old.spec().clone(),
            (true, _) => {
                let path = format!("/inventory/v1/entries/{}/sections/{name}", Entry(&entry).id());
                return Err(invalid(&format!("the section is secret: write its contents to {path}")));
            }
            (false, old) => self.spec(user, &entry, old, new, kind.as_ref())?,
        };
        let fresh = Section::of(Entry(&entry), &name);
        for (key, value) in fresh.labels() {
            new.set_label(&key, &value);
        }
        new.set_metadata("ownerReferences", fresh.metadata("ownerReferences").clone());
        new.set("spec", spec);
        Ok(())
    }

    /// What a section has that is not secret: as it was if its contents are.
    fn spec(
        &self,
        user: &User,
        entry: &Object,
        old: Option<&Object>,
        new: &Object,
        kind: Option<&Object>,
    ) -> Result<Value, Denied> {
        let name = Section(new).name();
        let data = if Section(new).data().is_null() { json!({}) } else { Section(new).data().clone() };
        let uid = Entry(entry).uid();
        let place = Place { entry: &uid, section: name };
        let contents = Contents::check(&place, &data, kind, &self.schemas, &self.keys);
        let contents = contents.map_err(|error| invalid(&error.text()))?;
        let kept = Kept::of(old.map(Section), Entry(entry).floor(name));
        let changed = decide(kept, Expected::Anything, &contents.hash, false);
        match (changed, old) {
            (Ok(Changed::Not(_)), Some(old)) => Ok(old.spec().clone()),
            (Ok(Changed::To(version) | Changed::Not(version)), old) => {
                let mut spec = json!({
                    "entry": Entry(entry).id(), "section": name, "secret": false, "data": data,
                    "version": version, "hash": contents.hash, "writer": &*user.name,
                    "updatedAt": time::micros(self.clock.now()),
                });
                // Whoever was too late stays so, although somebody else has written since.
                if let Some(lease) = old.and_then(|it| Section(it).lease()) {
                    spec["lease"] = json!(lease);
                }
                Ok(spec)
            }
            (Err(moved), _) => Err(invalid(&moved.to_string())),
        }
    }

    /// Whether sections of a name are secret cannot change while there are any.
    async fn kind(&self, old: Option<&Object>, new: Option<&Object>) -> Result<(), Denied> {
        let is_secret = |it: Option<&Object>| it.is_some_and(|it| SectionType(it).is_secret());
        if let Some(new) = new {
            names::check_section(new.name()).map_err(|rule| invalid(&format!("metadata.name: {rule}")))?;
            if let Some(schema) = SectionType(new).schema() {
                compile(schema).map_err(|errors| invalid(&joined(&errors)))?;
            }
        }
        let name = new.or(old).map(Object::name).unwrap_or_default();
        if is_secret(old) == is_secret(new) || !self.has_sections(name).await? {
            return Ok(());
        }
        let detail = format!("there are sections '{name}': whether they are secret cannot change");
        Err(Denied::Invalid { field: "spec.secret", detail })
    }

    async fn has_sections(&self, name: &str) -> Result<bool, Denied> {
        let query = Query::all(names::section_kind()).with_labels(LabelSelector::label(names::SECTION, name));
        let page = PageRequest { limit: Some(1), token: None };
        Ok(!self.store.list(&query, &page).await?.items.is_empty())
    }

    async fn grant(&self, new: &Object) -> Result<(), Denied> {
        let grant = Grant::of(new);
        for section in grant.read.iter().chain(&grant.write) {
            names::check_section(section).map_err(|rule| invalid(&format!("section {section:?}: {rule}")))?;
        }
        let all = all(&self.store).await?;
        match other_writer(&all, new.name(), &grant) {
            None => Ok(()),
            Some(second) => Err(Denied::Invalid { field: "spec.write", detail: second_writer(second) }),
        }
    }
}

#[async_trait]
impl Admission for Admit {
    fn concerns(&self, kind: &GroupKind) -> bool {
        &*kind.group == names::GROUP
    }

    async fn admit(
        &self,
        user: &User,
        act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
        is_dry_run: bool,
    ) -> Result<(), Denied> {
        let kind = new.as_deref().or(old).map(|it| it.kind().to_owned()).unwrap_or_default();
        match (kind.as_str(), new) {
            ("Cluster", Some(new)) if act == Act::Create => {
                names::check_entry(new.name()).map_err(|rule| invalid(&format!("metadata.name: {rule}")))
            }
            // What is on its way out only loses its finalizers.
            ("Section", Some(new)) if new.deleted_at().is_none() => self.section(user, old, new).await,
            ("Section", None) if !is_dry_run => match old {
                // Left behind even if the section then stays, which costs a number and nothing else.
                Some(old) => Ok(lower(&self.store, old, &by(user)).await?),
                None => Ok(()),
            },
            ("SectionType", new) => self.kind(old, new.as_deref()).await,
            ("Grant", Some(new)) => self.grant(new).await,
            _ => Ok(()),
        }
    }

    async fn committed(&self, act: Act, old: Option<&Encoded>, written: Written) -> Written {
        if let (Act::Delete, Some(old), Written::Deleted(concert_store::Deleted::Gone(_))) =
            (act, old, &written)
            && old.key().kind == names::section_kind()
            && let Some(secret) = Section(&old.decode()).secret_name()
        {
            drop_secret(&self.store, secret, &By::actor("concert").because("section removed")).await;
        }
        written
    }
}

fn by(user: &User) -> By {
    By::actor(user.name.clone()).because("section removed")
}

fn invalid(detail: &str) -> Denied {
    Denied::Invalid { field: "spec", detail: detail.to_owned() }
}

fn joined(errors: &[FieldError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
