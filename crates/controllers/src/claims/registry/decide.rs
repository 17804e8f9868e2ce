//! Who plays, given all definitions and all kinds. Touches nothing: `run.rs` has the hands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use concert_model::condition::{Condition, Status};
use concert_model::{FieldError, GroupKind, GroupVersionKind};

use super::super::definition::served::Served;
use super::super::definition::{
    Definition, Implementation, Kinds, Shortcoming, Unusable, check, check_claim,
};
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
    /// What it served before, and does not name any more.
    pub former: Vec<Served>,
    /// Whether it is to be deleted.
    pub is_leaving: bool,
}

impl Declared {
    /// All kinds that it names, or has named.
    pub fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let former = self.former.iter().flat_map(|it| {
            [&it.claim, &it.implementation.class, &it.implementation.managed].map(|it| &it.group_kind)
        });
        self.definition.iter().flat_map(Definition::kinds).chain(former)
    }
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
    /// Lets go of what claims have left behind.
    Reclaim(GroupVersionKind, Arc<Implementation>),
}

impl Part {
    /// The name of the controller. Both kinds are in it with their groups: claim kinds of two groups may have
    /// one name. Neither has a slash, so no two controllers have one name.
    pub fn name(&self) -> Arc<str> {
        let pair = |claim: &GroupVersionKind, it: &Implementation| {
            format!("{}/{}", claim.group_kind, it.managed.group_kind)
        };
        let name = match self {
            Part::DefaultClass(it) => format!("{}.defaultclass", it.claim.group_kind),
            Part::Schedule(Manner::Select, all, it) => format!("scheduler/{}", pair(&all.claim, it)),
            Part::Schedule(Manner::Default, all, it) => format!("defaulter/{}", pair(&all.claim, it)),
            Part::Bind(claim, it) => pair(claim, it),
            Part::Reclaim(claim, it) => format!("reclaimer/{}", pair(claim, it)),
        };
        format!("claims/{}", name.to_lowercase()).into()
    }

    /// All that play for a claim kind, if this is who looks after its claims.
    pub fn plays_for(&self, claim: &GroupKind) -> Option<Arc<Ensemble>> {
        match self {
            Part::DefaultClass(ensemble) if ensemble.claim.group_kind == *claim => Some(ensemble.clone()),
            _ => None,
        }
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

impl Cast {
    /// All that play for a claim kind; none if nobody does.
    pub fn ensemble_of(&self, claim: &GroupKind) -> Option<Arc<Ensemble>> {
        self.parts.values().find_map(|part| part.plays_for(claim))
    }

    /// What is the same without the definitions of these names.
    pub fn without(&self, names: &BTreeSet<Arc<str>>, declared: &[Declared], kinds: &Kinds) -> Self {
        if names.is_empty() {
            return self.clone();
        }
        let others: Vec<Declared> = declared.iter().filter(|it| !names.contains(&it.name)).cloned().collect();
        let mut same = cast(&others, kinds);
        same.parts.retain(|name, part| self.parts.get(name) == Some(part));
        same
    }

    /// Whether somebody makes managed resources of this kind for claims of that.
    pub fn makes(&self, claim: &GroupKind, managed: &GroupKind) -> bool {
        self.parts.values().any(|part| match part {
            Part::Bind(of, by) => {
                of.group_kind == *claim && by.managed.group_kind == *managed && by.unusable.is_none()
            }
            _ => false,
        })
    }
}

/// Deals out the parts. Of two definitions that want the same, the first by name has it; what can be used
/// comes before what cannot.
pub fn cast(declared: &[Declared], kinds: &Kinds) -> Cast {
    let mut ensembles = Ensembles::new();
    let mut cast = Cast::default();
    let mut sorted: Vec<&Declared> = declared.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut leftovers = Vec::new();
    for declared in sorted {
        let mut notes: Vec<Note> = declared.errors.iter().map(|it| Note::Invalid(it.to_string())).collect();
        if let Some(definition) = &declared.definition {
            leftovers.extend(join(declared, definition, kinds, &mut ensembles, &mut notes));
        }
        let is_there = |it: &&Served| check_claim(&it.claim, kinds).is_empty();
        leftovers.extend(declared.former.iter().filter(is_there).map(|it| {
            let why = format!(
                "ClaimDefinition {} no longer has {}: delete the claim, or put it back",
                declared.name, it.implementation.managed.group_kind
            );
            Leftover { claim: it.claim.clone(), by: it.implementation.clone(), why }
        }));
        cast.reports.insert(declared.name.clone(), report(&notes));
    }
    for leftover in leftovers {
        serve(leftover, kinds, &mut ensembles);
    }
    for (claim, ensemble) in ensembles {
        if ensemble.all().next().is_some() {
            cast.claims.insert(claim);
            cast.managed.extend(ensemble.all().map(|it| it.managed.group_kind.clone()));
            let parts = parts(Arc::new(ensemble));
            cast.parts.extend(parts.into_iter().map(|it| (it.name(), it)));
        }
    }
    cast
}

type Ensembles = BTreeMap<GroupKind, Ensemble>;

/// An implementation that makes nothing new.
struct Leftover {
    claim: GroupVersionKind,
    by: Implementation,
    why: String,
}

/// Lets one that makes nothing new serve what is bound by it, unless another does.
fn serve(Leftover { claim, mut by, why }: Leftover, kinds: &Kinds, ensembles: &mut Ensembles) {
    let ensemble = ensemble_of(ensembles, &claim);
    if ensemble.has_managed(&by.managed.group_kind) {
        return;
    }
    by.unusable = Some(Unusable {
        why,
        has_class: !ensemble.has_class(&by.class.group_kind),
        has_managed: kinds.contains_key(&by.managed.group_kind),
    });
    ensemble.unusable.push(Arc::new(by));
}

fn ensemble_of<'e>(ensembles: &'e mut Ensembles, claim: &GroupVersionKind) -> &'e mut Ensemble {
    ensembles.entry(claim.group_kind.clone()).or_insert_with(|| Ensemble {
        claim: claim.clone(),
        policy: None,
        implementations: Vec::new(),
        unusable: Vec::new(),
    })
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

/// Adds what of a definition can be used to those that play already. Returns what cannot, for which there
/// may be claims all the same.
fn join(
    declared: &Declared,
    definition: &Definition,
    kinds: &Kinds,
    ensembles: &mut Ensembles,
    notes: &mut Vec<Note>,
) -> Vec<Leftover> {
    let checked = check(definition, kinds);
    notes.extend(checked.claim.iter().chain(&checked.policy).map(note));
    notes.extend(checked.each.iter().flatten().map(note));
    if !checked.claim.is_empty() {
        return Vec::new();
    }
    let claim = &definition.claim.group_kind;
    let ensemble = ensemble_of(ensembles, &definition.claim);
    let is_whole = checked.policy.is_empty() && !declared.is_leaving;
    match (&ensemble.policy, &definition.policy) {
        (Some(theirs), Some(ours)) if theirs.group_kind != ours.group_kind => {
            let why = format!(
                "spec.policy: {claim} has the policy kind {} of another definition",
                theirs.group_kind
            );
            notes.push(Note::Taken(why));
        }
        (None, Some(policy)) if is_whole => ensemble.policy = Some(policy.clone()),
        _ => {}
    }
    let mut leftovers = Vec::new();
    for (implementation, shortcomings) in definition.implementations.iter().zip(&checked.each) {
        let (class, managed) = (&implementation.class.group_kind, &implementation.managed.group_kind);
        let mut reasons = reasons(declared, implementation, checked.policy.iter().chain(shortcomings));
        if ensemble.has_class(class) || ensemble.has_managed(managed) {
            let why = format!(
                "{}: another definition of {claim} has {class} or {managed} already",
                implementation.place()
            );
            reasons.push(why.clone());
            notes.push(Note::Taken(why));
        }
        if reasons.is_empty() {
            ensemble.implementations.push(implementation.clone());
            continue;
        }
        let why = format!("ClaimDefinition {} makes nothing now: {}", declared.name, reasons.join("; "));
        leftovers.push(Leftover { claim: definition.claim.clone(), by: (**implementation).clone(), why });
    }
    leftovers
}

/// Why an implementation makes nothing new.
fn reasons<'s>(
    declared: &Declared,
    implementation: &Implementation,
    shortcomings: impl Iterator<Item = &'s Shortcoming>,
) -> Vec<String> {
    let leaving = declared.is_leaving.then(|| "it is being deleted".to_owned());
    let unreadable = implementation.unusable.as_ref().map(|it| it.why.clone());
    leaving.into_iter().chain(unreadable).chain(shortcomings.map(ToString::to_string)).collect()
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
    // Without a way to make anything, there is nothing to choose.
    let chooses = (!ensemble.implementations.is_empty()).then(|| Part::DefaultClass(ensemble.clone()));
    let mut parts: Vec<Part> = chooses.into_iter().collect();
    for implementation in &ensemble.implementations {
        for manner in [Manner::Select, Manner::Default] {
            parts.push(Part::Schedule(manner, ensemble.clone(), implementation.clone()));
        }
    }
    for implementation in ensemble.all() {
        let (claim, by) = (ensemble.claim.clone(), implementation.clone());
        // Of a kind that is gone nothing is left behind.
        if by.unusable.as_ref().is_none_or(|it| it.has_managed) {
            parts.push(Part::Reclaim(claim.clone(), by.clone()));
        }
        parts.push(Part::Bind(claim, by));
    }
    parts
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
