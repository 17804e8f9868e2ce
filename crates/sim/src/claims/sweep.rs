//! A claim that is bound, or let go, by a store that dies at each of the commits on the way, one life each.

use concert_model::{GroupKind, ObjectKey};
use serde_json::{Value, json};

use super::{ClaimsPlay, check, play};
use crate::play::Wish;
use crate::scenario::{Report, rehearse};

/// Commits after which a claim must have long come to rest.
const COMMITS_MAX: u64 = 500;

/// How the one claim of a sweep gets what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By the class that it names.
    Class,
    /// By labels that a class of each of two clouds has.
    Selector,
    /// It names a managed resource that is there.
    Static,
}

/// What becomes of the claim when the store dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is made.
    Bind,
    /// It was bound, and is deleted.
    Unbind,
}

/// Every life in which the store dies at one commit, from the first until there is none left.
pub fn sweep(how: How, act: Act, reclaim: &'static str) -> Vec<Report> {
    let lives = (1..=COMMITS_MAX).map(|fuse| one(fuse, how, act, reclaim));
    lives.take_while(|report| report.counts.crashes > 0).collect()
}

fn one(fuse: u64, how: How, act: Act, reclaim: &str) -> Report {
    let mut before = surroundings(reclaim);
    let key = ObjectKey::namespaced(check::claims(), "default", "a");
    let act = match act {
        Act::Bind => Wish::There(play::claim("default", "a", spec(how))),
        Act::Unbind => {
            before.push(Wish::There(play::claim("default", "a", spec(how))));
            Wish::Gone(key)
        }
    };
    rehearse(fuse, before, act, |stage| ClaimsPlay::new(stage, None))
}

/// A class of each cloud, and something made by hand.
fn surroundings(reclaim: &str) -> Vec<Wish> {
    let class = |(group, kind, place)| {
        Wish::There(play::class(GroupKind::new(group, kind), "x", place, "prod", reclaim))
    };
    let mut all: Vec<Wish> = play::CLASSES.map(class).into();
    all.push(Wish::There(play::by_hand(0, reclaim)));
    all
}

fn spec(how: How) -> Value {
    let mut spec = json!({"writeConnectionSecretToRef": {"name": "a-conn"}});
    match how {
        How::Class => spec["classRef"] = play::class_ref(play::CLASSES[0], "x"),
        How::Selector => spec["classSelector"] = json!({"matchLabels": {"grade": "prod"}}),
        How::Static => {
            spec["resourceRef"] = json!({"apiVersion": "storage.aws.crossplane.io/v1beta1",
                "kind": "S3Bucket", "name": "static-0"});
        }
    }
    spec
}
