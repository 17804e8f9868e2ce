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
    /// It says nothing, and a policy of its namespace does.
    Policy,
    /// It says nothing, and a class is the default.
    Default,
}

/// What becomes of the claim when the store dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is made.
    Bind,
    /// It was bound, and is deleted.
    Unbind,
    /// It was bound, and the secret of what was made by hand changes.
    Follow,
}

/// Every life in which the store dies at one commit, from the first until there is none left.
pub fn sweep(how: How, act: Act, reclaim: &'static str) -> Vec<Report> {
    let lives = (1..=COMMITS_MAX).map(|fuse| one(fuse, how, act, reclaim));
    lives.take_while(|report| report.counts.crashes > 0).collect()
}

fn one(fuse: u64, how: How, act: Act, reclaim: &str) -> Report {
    let mut before = surroundings(how, reclaim);
    let claim = Wish::There(play::claim("default", "a", spec(how)));
    let act = match act {
        Act::Bind => claim,
        Act::Unbind => {
            before.push(claim);
            Wish::Gone(ObjectKey::namespaced(check::claims(), "default", "a"))
        }
        Act::Follow => {
            before.push(claim);
            let source = ObjectKey::namespaced(check::secrets(), "default", "static-0");
            Wish::Changed(source, json!({"data": {check::MEDDLED: "MQ=="}}))
        }
    };
    rehearse(fuse, before, act, |stage| ClaimsPlay::new(stage, None))
}

/// A class of each cloud, something made by hand, and what chooses for a claim that says nothing.
fn surroundings(how: How, reclaim: &str) -> Vec<Wish> {
    let class = |(group, kind, place): (&str, &str, &str)| {
        let mut class = play::class(GroupKind::new(group, kind), "x", place, "prod", reclaim);
        if how == How::Default && kind == play::CLASSES[0].1 {
            class.set_annotation(play::DEFAULT, "true");
        }
        Wish::There(class)
    };
    let mut all: Vec<Wish> = play::CLASSES.map(class).into();
    if how == How::Policy {
        let class = play::class_ref(play::CLASSES[0], "x");
        all.push(Wish::There(play::policy("default", "p", class)));
    }
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
        How::Policy | How::Default => {}
    }
    spec
}
