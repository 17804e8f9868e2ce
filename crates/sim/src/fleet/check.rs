//! What must hold of a fleet in the end.

use std::collections::BTreeMap;

use concert_model::condition::{self, Status};
use concert_model::inventory::{Entry, Item, Lease, Section, State, names};
use concert_model::{GroupKind, Object, Uid};

use super::run::RECONCILERS;
use super::world::World;

/// What of `objects`, all there are, and of the world is not as it must be.
pub fn check(world: &World, objects: &[Object]) -> Vec<String> {
    let of =
        |kind: GroupKind| objects.iter().filter(move |it| it.gvk().is_ok_and(|it| it.group_kind == kind));
    let entries: Vec<&Object> = of(names::entry_kind()).collect();
    let mut wrong: Vec<String> = entries.iter().filter_map(|it| check_entry(world, it)).collect();
    for object in of(names::item_kind()) {
        let item = Item(object);
        if !entries.iter().any(|it| it.name() == item.entry()) {
            wrong.push(format!("{} is left of an entry that is gone", object.name()));
        } else if item.state() != State::Ready {
            wrong.push(format!("{} is {}: {}", object.name(), item.state(), object.status()["message"]));
        }
    }
    for ((uid, reconciler), thing) in &world.things {
        let is_there = entries.iter().any(|it| Entry(it).uid() == *uid);
        if thing.value.is_some() && !is_there {
            wrong.push(format!("the {reconciler} of an entry that is gone was left behind"));
        }
    }
    wrong
}

fn check_entry(world: &World, object: &Object) -> Option<String> {
    let entry = Entry(object);
    if entry.is_deleting() {
        return Some(format!("{} does not go", entry.id()));
    }
    let (things, wanted) = (world.of(&entry.uid()), Some(entry.tenant()));
    if things != vec![wanted; RECONCILERS.len()] {
        return Some(format!("{} is {things:?} and should be {wanted:?}", entry.id()));
    }
    let ready = condition::find(object.status(), "Ready");
    let is_ready = ready.as_ref().is_some_and(|it| it.status == Status::True);
    (!is_ready).then(|| format!("{} is as it should be and says {ready:?}", entry.id()))
}

/// What of the past of an item or a section must never have happened.
pub fn check_past(object: &Object, past: &[Object]) -> Vec<String> {
    match object.kind() {
        "Item" => {
            let number = |it: &Object| it.status()["message"].as_str()?.strip_prefix('#')?.parse().ok();
            let numbers = past.iter().filter_map(number).collect();
            check_order(object.name(), "message", numbers).into_iter().collect()
        }
        "Section" => check_section(object.name(), past),
        _ => Vec::new(),
    }
}

/// What was written under an earlier claim, or tells of an earlier thing, never comes after a later one.
fn check_section(name: &str, past: &[Object]) -> Vec<String> {
    let mut fences: BTreeMap<Uid, Vec<u64>> = BTreeMap::new();
    let mut made: BTreeMap<Option<Uid>, Vec<u64>> = BTreeMap::new();
    for section in past.iter().map(Section) {
        if let Some(Lease { item, fence }) = section.lease() {
            fences.entry(item).or_default().push(fence);
        }
        made.entry(section.entry_uid()).or_default().extend(section.data()["made"].as_u64());
    }
    let fences = fences.into_values().filter_map(|it| check_order(name, "fence", it));
    let made = made.into_values().filter_map(|it| check_order(name, "contents", it));
    fences.chain(made).collect()
}

/// Effects are numbered in the order in which hosts got their items: a later state never rests on an earlier
/// claim.
fn check_order(name: &str, what: &str, numbers: Vec<u64>) -> Option<String> {
    let is_ordered = numbers.is_sorted();
    (!is_ordered).then(|| format!("{name} had an effect of a former owner, by its {what}: {numbers:?}"))
}
