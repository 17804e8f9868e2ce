//! Who plays, given all definitions and all kinds. Touches nothing: `run.rs` has the hands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concert_model::condition::{Condition, Status};
use concert_model::{FieldError, GroupKind, GroupVersionKind};

use super::super::definition::{Definition, Implementation, Kinds, Shortcoming, check};
use super::super::ensemble::Ensemble;
use super::super::schedule::Manner;
use super::super::vocabulary::{condition, definition as reason};

/// One definition, as far as it can be read.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name.
    pub name: Arc<str>,
    /// What it says.
    pub definition: Option<Definition>,
    /// What is wrong with it.
    pub errors: Vec<FieldError>,
}

/// One controller.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Looks at policies, and after claims that nobody can do anything about.
    DefaultClass(Arc<Ensemble>),
    /// Chooses classes of one kind.
    Schedule(Manner, Arc<Ensemble>, Arc<Implementation>),
    /// Binds.
    Bind(GroupVersionKind, Arc<Implementation>),
}

impl Part {
    /// The name of the controller.
    pub fn name(&self) -> Arc<str> {
        let pair = |claim: &GroupVersionKind, it: &Implementation| {
            let (claim, managed) = (&claim.group_kind.kind, &it.managed.group_kind);
            format!("{claim}.{managed}").to_lowercase()
        };
        let name = match self {
            Part::DefaultClass(it) => format!("{}.defaultclass", it.claim.group_kind).to_lowercase(),
            Part::Schedule(Manner::Select, all, it) => format!("scheduler.{}", pair(&all.claim, it)),
            Part::Schedule(Manner::Default, all, it) => format!("defaulter.{}", pair(&all.claim, it)),
            Part::Bind(claim, it) => pair(claim, it),
        };
        format!("claims/{name}").into()
    }
}

/// Who plays, and what is said of each definition.
#[derive(Clone, Debug, Default)]
pub struct Cast {
    /// The controllers, by name.
    pub parts: BTreeMap<Arc<str>, Part>,
    /// The condition `Ready` of each definition.
    pub reports: BTreeMap<Arc<str>, Condition>,
    /// All claim kinds.
    pub claims: BTreeSet<GroupKind>,
    /// All managed kinds.
    pub managed: BTreeSet<GroupKind>,
}

/// Deals out the parts. Of two definitions that want the same, the first by name has it.
pub fn cast(declared: &[Declared], kinds: &Kinds) -> Cast {
    let mut ensembles: BTreeMap<GroupKind, Ensemble> = BTreeMap::new();
    let mut cast = Cast::default();
    let mut sorted: Vec<&Declared> = declared.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    for declared in sorted {
        let mut notes: Vec<Note> = declared.errors.iter().map(|it| Note::Invalid(it.to_string())).collect();
        if let Some(definition) = &declared.definition {
            join(definition, kinds, &mut ensembles, &mut notes);
        }
        cast.reports.insert(declared.name.clone(), report(&notes));
    }
    for (claim, ensemble) in ensembles {
        if !ensemble.implementations.is_empty() {
            cast.claims.insert(claim);
            cast.managed.extend(ensemble.implementations.iter().map(|it| it.managed.group_kind.clone()));
            let parts = parts(Arc::new(ensemble));
            cast.parts.extend(parts.into_iter().map(|it| (it.name(), it)));
        }
    }
    cast
}

/// What is not as it should be with a definition, from bad to not yet.
#[derive(Clone, Debug, PartialEq)]
enum Note {
    Invalid(String),
    Taken(String),
    Missing(String),
}

fn note(shortcoming: &Shortcoming) -> Note {
    match shortcoming {
        Shortcoming::Missing { .. } => Note::Missing(shortcoming.to_string()),
        Shortcoming::Wrong(_) => Note::Invalid(shortcoming.to_string()),
    }
}

/// Adds what of a definition can be used to those that play already.
fn join(
    definition: &Definition,
    kinds: &Kinds,
    ensembles: &mut BTreeMap<GroupKind, Ensemble>,
    notes: &mut Vec<Note>,
) {
    let (whole, each) = check(definition, kinds);
    notes.extend(whole.iter().map(note));
    let claim = &definition.claim.group_kind;
    let fresh = Ensemble { claim: definition.claim.clone(), policy: None, implementations: Vec::new() };
    let mut ensemble = ensembles.get(claim).cloned().unwrap_or(fresh);
    match (&ensemble.policy, &definition.policy) {
        (Some(theirs), Some(ours)) if theirs.group_kind != ours.group_kind => {
            let why = format!(
                "spec.policy: {claim} has the policy kind {} of another definition",
                theirs.group_kind
            );
            notes.push(Note::Taken(why));
        }
        (None, Some(policy)) => ensemble.policy = Some(policy.clone()),
        _ => {}
    }
    for (implementation, shortcomings) in definition.implementations.iter().zip(&each) {
        notes.extend(shortcomings.iter().map(note));
        let (class, managed) = (&implementation.class.group_kind, &implementation.managed.group_kind);
        if ensemble.has_class(class) || ensemble.has_managed(managed) {
            let why = format!(
                "{}: another definition of {claim} has {class} or {managed} already",
                implementation.place()
            );
            notes.push(Note::Taken(why));
        } else if shortcomings.is_empty() && whole.is_empty() {
            ensemble.implementations.push(implementation.clone());
        }
    }
    if whole.is_empty() {
        ensembles.insert(claim.clone(), ensemble);
    }
}

fn report(notes: &[Note]) -> Condition {
    let texts = |pick: fn(&Note) -> Option<&String>| -> Option<String> {
        let found: Vec<&str> = notes.iter().filter_map(pick).map(String::as_str).collect();
        (!found.is_empty()).then(|| found.join("; "))
    };
    let invalid = texts(|it| if let Note::Invalid(why) = it { Some(why) } else { None });
    let taken = texts(|it| if let Note::Taken(why) = it { Some(why) } else { None });
    let missing = texts(|it| if let Note::Missing(why) = it { Some(why) } else { None });
    let no = |reason, why| Condition::new(condition::READY, Status::False, reason, why);
    match (invalid, taken, missing) {
        (Some(why), _, _) => no(reason::INVALID, why),
        (None, Some(why), _) => no(reason::TAKEN, why),
        (None, None, Some(why)) => no(reason::WAITING, why),
        (None, None, None) => Condition::new(condition::READY, Status::True, reason::AVAILABLE, ""),
    }
}

fn parts(ensemble: Arc<Ensemble>) -> Vec<Part> {
    let mut parts = vec![Part::DefaultClass(ensemble.clone())];
    for implementation in &ensemble.implementations {
        for manner in [Manner::Select, Manner::Default] {
            parts.push(Part::Schedule(manner, ensemble.clone(), implementation.clone()));
        }
        parts.push(Part::Bind(ensemble.claim.clone(), implementation.clone()));
    }
    parts
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
