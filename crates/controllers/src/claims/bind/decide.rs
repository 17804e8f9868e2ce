//! What to do next with a claim, given all we know. Touches nothing: `pass.rs` has the hands.
//!
//! Two orders matter. The claim is held and says what it will be made of before that is made, so that a
//! crash leaks nothing; and a managed resource says whose it is before its secret is copied, and until it
//! is let go, so that nobody sees or ends what is not theirs.

use concert_engine::Wait;
use concert_model::{Object, ObjectKey};
use serde_json::Value;

use super::super::definition::Implementation;
use super::super::parting::{self, Parting};
use super::super::reference::{Reference, is_set, named, shown};
use super::super::verdict::{Next, Ready, SHORT_WAIT, Told, Verdict};
use super::super::vocabulary::{FINALIZER, annotation, event, phase};
use super::super::way::Way;
use super::configure::{configure, name_of};

/// What this pass has found out besides the claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The managed resource.
    pub managed: Option<Sight>,
    /// The class.
    pub class: Option<Sight>,
    /// How copying the secret went.
    pub propagation: Option<Result<(), String>>,
    /// Whether a write of this pass has proven that the claim was not read too long ago: what is made for
    /// one that is gone is nobody's.
    pub is_proven: bool,
    /// Whether the store has confirmed that the managed resource is as it was read: by a stale read one
    /// that was bound a moment ago seems to be nobody's.
    pub is_managed_proven: bool,
    /// A step that failed, and why.
    pub failure: Option<(Doing, String)>,
}

/// What was seen of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// There is none.
    Absent,
    /// This.
    There(Box<Object>),
    /// It could not be read.
    Failed {
        /// In words.
        why: String,
        /// Whether another try may do without anybody doing anything about it.
        is_transient: bool,
    },
}

/// What can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Holding the claim.
    Hold,
    /// Making the managed resource.
    Create,
    /// Binding the two.
    Bind,
    /// Letting go.
    Unbind,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Read the managed resource of this name.
    LookAtManaged(String),
    /// Read the class of this name.
    LookAtClass(String),
    /// Hold the claim, and write into it what it is, or will be, made of.
    Hold {
        /// The name of its managed resource.
        name: String,
    },
    /// Write the claim as it was read, which changes nothing and fails if it is no longer so.
    Prove,
    /// The same of the managed resource, and nothing is written at all.
    ProveManaged,
    /// Make this.
    Create(Box<Object>),
    /// Write into the managed resource whose it is.
    Reserve,
    /// Copy its secret.
    Propagate,
    /// Say of it that it is bound.
    MarkBound,
    /// Write its external name into the claim.
    TakeName(String),
    /// Say of the managed resource that it is released.
    Release,
    /// Delete it.
    Delete,
    /// Write into it that it is nobody's.
    Forget,
    /// Let the claim go.
    LetGo,
    /// Nothing more in this pass.
    Rest(Verdict),
}

/// What to do next with `claim`.
pub fn decide(claim: &Object, seen: &Seen, by: &Implementation) -> Step {
    let Some(name) = concern(claim, by) else { return Step::Rest(Verdict::nothing()) };
    if let Some((doing, why)) = &seen.failure {
        return Step::Rest(failed(*doing, why));
    }
    let situation = Situation { claim, seen, by, name };
    if claim.deleted_at().is_some() { situation.leaving() } else { situation.living() }
}

/// The name of the managed resource of a claim; none if the claim is for others to bind.
pub fn concern(claim: &Object, by: &Implementation) -> Option<String> {
    match Way::of(claim) {
        Way::Resource(it) => (it.kind == by.managed.group_kind).then_some(it.name),
        Way::Class(it) => by.has_class(&it.kind).then(|| name_of(claim)),
        Way::Selector(_) | Way::Open => None,
    }
}

/// The phase of a claim or a managed resource.
pub fn phase_of(object: &Object) -> &str {
    object.status().get("bindingPhase").and_then(Value::as_str).unwrap_or_default()
}

/// Whether the managed resource says that it belongs to this very claim.
fn is_of(managed: &Object, claim: &Object) -> bool {
    Reference::read(managed.spec(), "claimRef").is_some_and(|it| it.uid.is_some() && it.means(claim))
}

fn failed(doing: Doing, why: &str) -> Verdict {
    let (ready, reason) = match doing {
        Doing::Hold | Doing::Create => (Ready::Creating, event::CANNOT_CREATE),
        Doing::Bind => (Ready::Binding, event::CANNOT_BIND),
        Doing::Unbind => (Ready::Deleting, event::CANNOT_UNBIND),
    };
    Verdict::failed(why, Next::After(SHORT_WAIT)).with_ready(ready, "").telling(Told::warning(reason, why))
}

/// When to read again what could not be read.
fn another_look(is_transient: bool) -> Next {
    if is_transient { Next::Retry } else { Next::After(SHORT_WAIT) }
}

struct Situation<'a> {
    claim: &'a Object,
    seen: &'a Seen,
    by: &'a Implementation,
    name: String,
}

impl Situation<'_> {
    /// The managed resource, for sentences.
    fn it(&self) -> String {
        shown(&self.by.managed.group_kind, "", &self.name)
    }

    fn is_held(&self) -> bool {
        self.claim.finalizers().iter().any(|it| it == FINALIZER)
    }

    fn leaving(&self) -> Step {
        if !self.is_held() {
            return Step::Rest(Verdict::nothing());
        }
        let managed = match &self.seen.managed {
            None => return Step::LookAtManaged(self.name.clone()),
            Some(Sight::Failed { why, is_transient }) => {
                let verdict = Verdict::failed(why.as_str(), another_look(*is_transient));
                let told = Told::warning(event::CANNOT_GET_MANAGED, why.as_str());
                return Step::Rest(verdict.with_ready(Ready::Deleting, "").telling(told));
            }
            Some(Sight::Absent) => return Step::LetGo,
            Some(Sight::There(managed)) => managed,
        };
        // What does not say that it is ours is not ours to end.
        if !is_of(managed, self.claim) {
            return if self.seen.is_managed_proven { Step::LetGo } else { Step::ProveManaged };
        }
        match parting::next(managed) {
            Parting::Release => Step::Release,
            Parting::Delete => Step::Delete,
            Parting::Forget => Step::Forget,
        }
    }

    fn living(&self) -> Step {
        // Who makes nothing new takes on nobody new.
        if let Some(unusable) = self.by.unusable.as_ref().filter(|_| !self.is_held()) {
            return unused(&unusable.why);
        }
        match &self.seen.managed {
            None => Step::LookAtManaged(self.name.clone()),
            Some(Sight::Failed { why, is_transient }) => {
                let verdict = Verdict::failed(why.as_str(), another_look(*is_transient));
                Step::Rest(verdict.telling(Told::warning(event::CANNOT_GET_MANAGED, why.as_str())))
            }
            Some(Sight::Absent) => self.absent(),
            Some(Sight::There(managed)) => self.there(managed),
        }
    }

    /// There is no such managed resource: it is made, unless it is not ours to make, or was there before.
    fn absent(&self) -> Step {
        let class = Reference::read(self.claim.spec(), "classRef");
        let class = class.filter(|it| it.kind == self.by.class.group_kind);
        let was_bound = phase_of(self.claim) == phase::BOUND;
        match class {
            Some(class) if self.name == name_of(self.claim) && !was_bound => self.unmade(&class),
            _ => self.missing(was_bound),
        }
    }

    fn missing(&self, was_bound: bool) -> Step {
        let message = if was_bound {
            format!("{} is gone, and with it what it stood for: delete the claim to start anew", self.it())
        } else {
            format!("{} does not exist: create it, or claim another", self.it())
        };
        let key = ObjectKey::cluster(self.by.managed.group_kind.clone(), self.name.as_str());
        let next = Next::WaitFor(vec![Wait::existence_of(key)]);
        let told = Told::normal(event::MANAGED_NOT_FOUND, message.as_str());
        let verdict = Verdict { synced: Some(Ok(())), next, ..Verdict::nothing() };
        Step::Rest(verdict.with_ready(Ready::Binding, message).telling(told))
    }

    fn unmade(&self, class: &Reference) -> Step {
        if let Some(unusable) = &self.by.unusable {
            return unused(&unusable.why);
        }
        let creating = |why: String, reason, next| {
            let verdict = Verdict::failed(why.as_str(), next).with_ready(Ready::Creating, "");
            Step::Rest(verdict.telling(Told::warning(reason, why)))
        };
        let there = match &self.seen.class {
            None => return Step::LookAtClass(class.name.clone()),
            Some(Sight::Failed { why, is_transient }) => {
                return creating(why.clone(), event::CANNOT_GET_CLASS, another_look(*is_transient));
            }
            Some(Sight::Absent) => {
                let it = shown(&class.kind, "", &class.name);
                let why = format!("{it} does not exist: create it, or claim by another class");
                let next = Next::WaitFor(vec![Wait::existence_of(class.cluster_key())]);
                return creating(why, event::CANNOT_GET_CLASS, next);
            }
            Some(Sight::There(class)) => class,
        };
        let managed = match configure(self.claim, there, self.by) {
            Ok(managed) => managed,
            Err(why) => {
                let next = Next::WaitFor(wait_for_change(there));
                return creating(why, event::CANNOT_CONFIGURE, next);
            }
        };
        if let Some(step) = self.hold() {
            return step;
        }
        Step::Create(Box::new(managed))
    }

    /// Holds the claim, unless it is held; then proves at least that it is as it was read.
    fn hold(&self) -> Option<Step> {
        let is_named = is_set(self.claim.spec(), "resourceRef");
        if !is_named || !self.is_held() {
            return Some(Step::Hold { name: self.name.clone() });
        }
        (!self.seen.is_proven).then_some(Step::Prove)
    }

    fn there(&self, managed: &Object) -> Step {
        if let Some(why) = refusal(self.claim, managed) {
            let verdict = Verdict::failed(why.as_str(), Next::WaitFor(wait_for_change(managed)));
            let told = Told::warning(event::CANNOT_BIND, why);
            return Step::Rest(verdict.with_ready(Ready::Binding, "").telling(told));
        }
        // What is bound already, or cannot be yet, needs no proof.
        let is_free = phase_of(managed) == phase::UNBOUND;
        if let Some(step) = self.hold().filter(|it| is_free || *it != Step::Prove) {
            return step;
        }
        match phase_of(managed) {
            phase::UNBOUND if !is_of(managed, self.claim) => Step::Reserve,
            phase::UNBOUND | phase::BOUND => self.bindable(managed),
            _ => self.waiting(managed),
        }
    }

    fn waiting(&self, managed: &Object) -> Step {
        let message = format!("waiting for {}: {}", self.it(), progress(managed));
        // One that says whose it is wakes its claim by itself.
        let next = match is_of(managed, self.claim) {
            true => Next::OnChange,
            false => Next::WaitFor(wait_for_change(managed)),
        };
        let told = Told::normal(event::WAITING, message.as_str());
        let verdict = Verdict { synced: Some(Ok(())), next, ..Verdict::nothing() };
        Step::Rest(verdict.with_ready(Ready::Binding, message).telling(told))
    }

    fn bindable(&self, managed: &Object) -> Step {
        let is_bound = phase_of(managed) == phase::BOUND;
        match &self.seen.propagation {
            None => return Step::Propagate,
            Some(Err(why)) => {
                let told = Told::warning(event::CANNOT_PROPAGATE, why.as_str());
                let verdict = Verdict::failed(why.as_str(), Next::After(SHORT_WAIT)).telling(told);
                // What can be used already can still be used.
                let was_ready = is_bound && phase_of(self.claim) == phase::BOUND;
                return Step::Rest(if was_ready { verdict } else { verdict.with_ready(Ready::Binding, "") });
            }
            Some(Ok(())) => {}
        }
        if !is_bound {
            return Step::MarkBound;
        }
        let external = managed.annotation(annotation::EXTERNAL_NAME);
        if let Some(name) = external.filter(|it| self.claim.annotation(annotation::EXTERNAL_NAME) != Some(it))
        {
            return Step::TakeName(name.to_owned());
        }
        let is_news = phase_of(self.claim) != phase::BOUND;
        let told = is_news.then(|| Told::normal(event::BOUND, format!("bound to {}", named(managed))));
        let verdict = Verdict { synced: Some(Ok(())), phase: Some(phase::BOUND), told, ..Verdict::nothing() };
        Step::Rest(verdict.with_ready(Ready::Available, ""))
    }
}

/// Nothing is made by an implementation that cannot be used. One that can is another controller, which
/// looks at every claim when it starts.
fn unused(why: &str) -> Step {
    let verdict = Verdict::failed(why, Next::OnChange).with_ready(Ready::Creating, "");
    Step::Rest(verdict.telling(Told::warning(event::CANNOT_CONFIGURE, why)))
}

/// Why a managed resource can never be bound to a claim as things are.
pub fn refusal(claim: &Object, managed: &Object) -> Option<String> {
    let it = named(managed);
    if let Some(owner) = managed.owners().iter().find(|it| it.is_controller()) {
        return Some(format!("{it} is controlled by {} {}: claim another", owner.kind, owner.name));
    }
    let claimed = Reference::read(managed.spec(), "claimRef");
    if let Some(other) = claimed.as_ref().filter(|it| !it.means(claim)) {
        // The name of somebody else's claim is none of their business.
        let whose =
            if other.namespace == claim.namespace() { other.name.as_str() } else { "another namespace" };
        return Some(format!("{it} belongs to another claim ({whose}): claim another"));
    }
    match phase_of(managed) {
        phase::RELEASED => {
            Some(format!("{it} was released by an earlier claim and is not bound again: claim another"))
        }
        phase::BOUND if !is_of(managed, claim) => {
            Some(format!("{it} is bound, and does not say to whom: claim another"))
        }
        _ if managed.deleted_at().is_some() && phase_of(managed) != phase::BOUND => {
            Some(format!("{it} is being deleted: claim another, or wait until it is gone"))
        }
        _ => None,
    }
}

/// How far a managed resource is, in its own words.
fn progress(managed: &Object) -> String {
    use concert_model::condition::{Status, find};
    let synced = find(managed.status(), "Synced").filter(|it| it.status == Status::False);
    let ready = find(managed.status(), "Ready").filter(|it| it.status != Status::True);
    let words = |it: concert_model::Condition| if it.message.is_empty() { it.reason } else { it.message };
    match (synced, ready) {
        (Some(synced), _) => words(synced),
        (None, Some(ready)) => words(ready),
        (None, None) if managed.status().get("conditions").is_none() => {
            format!("nobody has looked at it yet; is there a provider that serves {}?", managed.kind())
        }
        (None, None) => "it is not ready".to_owned(),
    }
}

/// Waits for another state of what was read.
fn wait_for_change(object: &Object) -> Vec<Wait> {
    let (Ok(key), Some(uid), Some(resource_version)) =
        (object.key(), object.uid(), object.resource_version())
    else {
        return Vec::new();
    };
    let seen = concert_engine::Seen::At { uid, resource_version };
    vec![Wait::Object { key, seen, condition: None }]
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
