//! `metadata.managedFields`: who owns what, one entry for each manager.

use std::cmp::Ordering;

use concert_model::time::{self, Timestamp};
use serde_json::{Map, Value};

use super::fields::Fields;
use super::{Conflict, Manager, Operation};

/// Most entries for updates. A controller whose name has a number in it would add one for each; beyond
/// this the oldest become one entry.
const UPDATERS_MAX: usize = 10;

/// The manager of what the oldest updates wrote.
const ANCIENT: &str = "ancient-changes";

/// One manager and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    manager: String,
    operation: Operation,
    api_version: String,
    subresource: String,
    time: Option<String>,
    pub(super) fields: Fields,
}

impl Entry {
    pub(super) fn new(manager: &Manager<'_>, fields: Fields) -> Self {
        Self {
            manager: manager.name.to_owned(),
            operation: manager.operation,
            api_version: manager.api_version.to_owned(),
            subresource: manager.subresource.to_owned(),
            time: Some(time::seconds(manager.time)),
            fields,
        }
    }

    /// The same manager. One that applies has one entry, whatever the version it applies in.
    fn is_of(&self, other: &Entry) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    /// As it is called in conflicts.
    fn shown(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text += &format!(" with subresource {:?}", self.subresource);
        }
        if self.operation == Operation::Update {
            text += &format!(" using {}", self.api_version);
        }
        text
    }

    fn read(source: &Value) -> Option<Self> {
        let source = source.as_object()?;
        let text = |name: &str| match source.get(name) {
            None | Some(Value::Null) => Some(String::new()),
            Some(value) => value.as_str().map(str::to_owned),
        };
        let operation = match source.get("operation")?.as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        if source.get("fieldsType")?.as_str()? != "FieldsV1" {
            return None;
        }
        let fields = match source.get("fieldsV1") {
            None | Some(Value::Null) => Fields::default(),
            Some(value) => Fields::from_value(value)?,
        };
        Some(Self {
            manager: text("manager")?,
            operation,
            api_version: text("apiVersion")?,
            subresource: text("subresource")?,
            time: Some(text("time")?).filter(|time| !time.is_empty()),
            fields,
        })
    }

    fn to_value(&self) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("apiVersion", Value::from(self.api_version.as_str()));
        put("fieldsType", Value::from("FieldsV1"));
        put("fieldsV1", self.fields.to_value());
        put("manager", Value::from(self.manager.as_str()));
        put("operation", Value::from(self.operation.name()));
        if !self.subresource.is_empty() {
            put("subresource", Value::from(self.subresource.as_str()));
        }
        if let Some(time) = &self.time {
            put("time", Value::from(time.as_str()));
        }
        Value::Object(map)
    }

    fn seconds(&self) -> i64 {
        self.time.as_deref().and_then(time::parse).map_or(0, Timestamp::as_second)
    }

    /// The order in which entries are written.
    fn order(&self, other: &Entry) -> Ordering {
        let names =
            |entry: &Entry| (entry.manager.clone(), entry.api_version.clone(), entry.subresource.clone());
        self.operation
            .cmp(&other.operation)
            .then_with(|| self.seconds().cmp(&other.seconds()))
            .then_with(|| names(self).cmp(&names(other)))
    }
}

/// All entries of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries(Vec<Entry>);

impl Entries {
    /// Those of `managedFields`; none when any of it is malformed.
    pub(super) fn read(source: &Value) -> Option<Self> {
        let mut entries = Entries::default();
        for source in source.as_array()? {
            entries.add(Entry::read(source)?);
        }
        Some(entries)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields of all managers together.
    pub(super) fn fields(&self) -> Fields {
        let mut all = Fields::default();
        for entry in &self.0 {
            all.union(&entry.fields);
        }
        all
    }

    /// Takes out the entry of `entry`'s manager.
    pub(super) fn take(&mut self, entry: &Entry) -> Option<Entry> {
        let at = self.0.iter().position(|found| found.is_of(entry))?;
        Some(self.0.remove(at))
    }

    /// Adds to what the manager has already, and takes over the time.
    pub(super) fn add(&mut self, mut entry: Entry) {
        if let Some(before) = self.take(&entry) {
            entry.fields.union(&before.fields);
        }
        self.0.push(entry);
    }

    /// Takes `fields` from everybody.
    pub(super) fn release(&mut self, fields: &Fields) {
        for entry in &mut self.0 {
            entry.fields.subtract(fields);
        }
    }

    /// Who owns which of `fields`.
    pub(super) fn conflicts(&self, fields: &Fields) -> Vec<Conflict> {
        let mut owners: Vec<&Entry> = self.0.iter().collect();
        owners.sort_by_cached_key(|entry| entry.shown());
        let conflicts = owners.into_iter().flat_map(|entry| {
            let contested = entry.fields.intersection(fields).paths();
            contested.into_iter().map(|field| Conflict { manager: entry.shown(), field })
        });
        conflicts.collect()
    }

    /// The same managers own the same fields; when they wrote them does not matter.
    pub(super) fn is_same(&self, other: &Entries) -> bool {
        let has = |entry: &Entry| {
            let found = other.0.iter().find(|found| found.is_of(entry));
            found.is_some_and(|found| found.fields == entry.fields && found.api_version == entry.api_version)
        };
        self.0.len() == other.0.len() && self.0.iter().all(has)
    }

    /// As `managedFields`: without managers that own nothing, and not more updaters than fit.
    pub(super) fn into_value(mut self) -> Option<Value> {
        self.0.retain(|entry| !entry.fields.is_empty());
        self.0.sort_by(Entry::order);
        self.merge_oldest();
        if self.0.is_empty() { None } else { Some(self.0.iter().map(Entry::to_value).collect()) }
    }

    /// Expects to be sorted; updates are last, the oldest of them first.
    fn merge_oldest(&mut self) {
        let updaters = self.0.iter().filter(|entry| entry.operation == Operation::Update).count();
        if updaters <= UPDATERS_MAX {
            return;
        }
        let first = self.0.len() - updaters;
        // One more than there are too many: the entry they become takes a place too.
        let oldest: Vec<Entry> = self.0.drain(first..=first + updaters - UPDATERS_MAX).collect();
        for entry in oldest {
            self.add(Entry { manager: ANCIENT.to_owned(), subresource: String::new(), ..entry });
        }
        self.0.sort_by(Entry::order);
    }
}
