//! What must hold of a fleet in the end.

use concert_model::condition::{self, Status};
use concert_model::inventory::{Entry, Item, State, names};
use concert_model::{GroupKind, Object};

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

/// Reports of hosts are numbered in the order in which they got their items: a later state never rests on
/// an earlier claim.
pub fn check_order(item: &str, messages: &[String]) -> Option<String> {
    let numbers: Vec<u64> =
        messages.iter().filter_map(|it| it.strip_prefix('#')).filter_map(|it| it.parse().ok()).collect();
    let is_ordered = numbers.windows(2).all(|pair| pair[0] <= pair[1]);
    (!is_ordered).then(|| format!("{item} had an effect of a former owner: {numbers:?}"))
}
