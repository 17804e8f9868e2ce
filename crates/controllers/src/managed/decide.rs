//! What to do next, given all we know. Touches nothing: `run` has the hands.
//!
//! `run` asks again after each step, with what the step brought to light; each pass ends in a
//! [`Verdict`]. At most one thing is done to the external thing in one pass.

use std::time::Duration;

use concert_model::{Object, Timestamp};
use concert_provider::{Action, Error, Lookup, Observation, Served, Token};

use super::binding::policy_of;
use super::journal::{self, Ending, Intent};
use super::policy::Policy;
use super::verdict::{Verdict, diff_text};
use super::vocabulary::{FINALIZER, annotation, message};

/// What a controller knows of its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// As the provider declares it.
    pub served: Served,
    /// Whether the provider finds out what became of a create.
    pub can_look_up: bool,
    /// Whether the external name starts as the object's own name.
    pub names_by_object: bool,
    /// Whether management policies are honoured.
    pub has_policies: bool,
    /// How long a new external thing may stay invisible.
    pub creation_grace: Duration,
    /// How long a call to the provider may take.
    pub timeout: Duration,
}

/// What this pass has found out besides the object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// A create that we know was never sent, whatever the object says of it.
    pub unsent: Option<Token>,
    /// Whether the provider has accepted a delete of the thing, in this pass or before.
    pub is_deleted: bool,
    /// What became of a create that was found open.
    pub lookup: Option<Result<Lookup, Error>>,
    /// Whether references were resolved.
    pub has_references: bool,
    /// What the external thing looks like.
    pub observation: Option<Result<Observation, Error>>,
    /// When that was asked: an answer that was long on its way shows what was then, not what is.
    pub asked_at: Option<Timestamp>,
    /// What was done to it in this pass.
    pub done: Option<Done>,
    /// Whether connection details were written.
    pub is_published: bool,
    /// Whether the object was saved with what the observation taught.
    pub is_saved: bool,
}

/// What was done to the external thing, and how it went.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// It was to be made.
    Create(Result<Progress, Error>),
    /// It was to be changed.
    Update(Result<Progress, Error>),
    /// It was to go.
    Delete(Result<Progress, Error>),
}

/// What the provider says of something that has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Where it stands.
    pub text: Option<String>,
    /// When it is worth looking again.
    pub again_after: Option<Duration>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask what became of the create with this token.
    Lookup(Token),
    /// Write down how a create that was found open has ended, and what it left behind.
    Close(Ending),
    /// Fill fields from other objects.
    ResolveReferences,
    /// Look at the external thing.
    Observe,
    /// Write the object: finalizer, external name, what was learnt, late-initialised fields.
    Save,
    /// Write the connection details.
    Publish,
    /// Make the external thing.
    Create,
    /// Make it as declared.
    Update,
    /// Remove it.
    Delete,
    /// Let the object go.
    RemoveFinalizer,
    /// Nothing more in this pass.
    Rest(Verdict),
}

/// What to do next with `object`.
pub fn decide(object: &Object, seen: &Seen, rules: &Rules, now: Timestamp) -> Step {
    let is_deleting = object.deleted_at().is_some();
    let is_ours = object.finalizers().iter().any(|it| it == FINALIZER);
    let policy = policy_of(object, rules);
    let is_paused =
        object.annotation(annotation::PAUSED) == Some("true") || policy.as_ref().is_ok_and(Policy::is_paused);
    let deletes_anyway = object.annotation(annotation::DELETE_WHILE_PAUSED) == Some("true");
    if is_paused && !(is_deleting && deletes_anyway) {
        return Step::Rest(Verdict::paused(is_deleting));
    }
    let policy = match policy {
        Ok(policy) => policy,
        Err(error) => return Step::Rest(Verdict::invalid_policy(&error.0)),
    };
    // Whoever paused it by its policies and wants it gone all the same has allowed that.
    let deletes = policy.deletes() || (is_paused && policy.is_paused());
    match (is_deleting, is_ours) {
        (true, false) => return Step::Rest(Verdict::nothing()),
        (true, true) if !deletes => return Step::RemoveFinalizer,
        _ => {}
    }
    let asked_at = seen.asked_at.unwrap_or(now);
    if let Some(step) = resolve_intent(object, seen, rules, asked_at) {
        return step;
    }
    if !is_deleting && !seen.has_references {
        return Step::ResolveReferences;
    }
    let observation = match &seen.observation {
        None => return Step::Observe,
        Some(Err(error)) => return Step::Rest(Verdict::observe_failed(error)),
        Some(Ok(observation)) => observation,
    };
    let situation = Situation { object, seen, rules, policy: &policy, observation, asked_at };
    if is_deleting { situation.deleting() } else { situation.living() }
}

/// What an open create asks for before anything else; none if nothing stands in the way.
fn resolve_intent(object: &Object, seen: &Seen, rules: &Rules, asked_at: Timestamp) -> Option<Step> {
    let Intent::Open { token, since } = journal::intent(object) else { return None };
    match (&seen.done, &seen.lookup, token) {
        // Begun in this very pass: what became of it is known, or in doubt.
        (Some(Done::Create(Err(error))), ..) => Some(Step::Rest(Verdict::create_failed(error))),
        (Some(_), ..) => None,
        (None, _, Some(token)) if seen.unsent.as_ref() == Some(&token) => Some(Step::Close(Ending::Failed)),
        (None, None, Some(token)) if rules.can_look_up => Some(Step::Lookup(token)),
        (None, Some(Ok(Lookup::Found(_))), _) => Some(Step::Close(Ending::Succeeded)),
        (None, Some(Ok(Lookup::CertainlyNone)), _) => Some(Step::Close(Ending::Failed)),
        (None, Some(Err(error)), _) => Some(Step::Rest(Verdict::lookup_failed(error))),
        (None, Some(Ok(Lookup::Unknown)) | None, _) => match &seen.observation {
            // It may be visible under the name it has: then all is well.
            None => None,
            Some(Err(_)) => None,
            Some(Ok(observation)) if observation.exists => Some(Step::Close(Ending::Succeeded)),
            Some(Ok(_)) if rules.served.has_deterministic_names => {
                // A second create of one name cannot make two, but a call of a process that has died
                // since may still be on its way: who wants the thing gone waits until it no longer can be.
                let is_recent = since.is_none_or(|since| {
                    !Duration::try_from(asked_at.duration_since(since))
                        .is_ok_and(|age| age > rules.timeout * 2)
                });
                let waits = object.deleted_at().is_some() && is_recent;
                waits.then(|| Step::Rest(Verdict::create_under_way()))
            }
            Some(Ok(_)) => Some(Step::Rest(Verdict::create_in_doubt())),
        },
    }
}

/// All that is known once the external thing was looked at.
struct Situation<'a> {
    object: &'a Object,
    seen: &'a Seen,
    rules: &'a Rules,
    policy: &'a Policy,
    observation: &'a Observation,
    asked_at: Timestamp,
}

impl Situation<'_> {
    fn is_within_grace(&self) -> bool {
        journal::is_within_grace(self.object, self.rules.creation_grace, self.asked_at)
    }

    fn deleting(&self) -> Step {
        let others: Vec<String> = self.object.finalizers().into_iter().filter(|it| it != FINALIZER).collect();
        if !others.is_empty() {
            return Step::Rest(Verdict::waits_for_finalizers(&others));
        }
        match (&self.seen.done, self.observation.exists) {
            (Some(Done::Delete(Err(error))), _) => Step::Rest(Verdict::delete_failed(error)),
            // What was made a moment ago, even in this pass, and cannot be seen yet would be left behind.
            // What was deleted was seen before.
            (_, false) if self.is_within_grace() && !self.seen.is_deleted => {
                Step::Rest(Verdict::pending_deletion())
            }
            (_, false) => Step::RemoveFinalizer,
            (Some(Done::Delete(Ok(progress))), true) => Step::Rest(Verdict::deleting(progress)),
            (_, true) => Step::Delete,
        }
    }

    fn living(&self) -> Step {
        if let Some(Done::Update(Err(error))) = &self.seen.done {
            return Step::Rest(Verdict::update_failed(error, &diff_text(&self.observation.diff)));
        }
        if !self.observation.exists {
            return self.absent();
        }
        if !self.seen.is_saved {
            return Step::Save;
        }
        if !self.seen.is_published {
            return Step::Publish;
        }
        if self.observation.is_up_to_date {
            return Step::Rest(Verdict::up_to_date());
        }
        let diff = diff_text(&self.observation.diff);
        match &self.seen.done {
            _ if !self.policy.allows(Action::Update) => Step::Rest(Verdict::update_restricted(&diff)),
            None => Step::Update,
            Some(Done::Update(Ok(progress))) => Step::Rest(Verdict::updating(&diff, progress)),
            Some(_) => Step::Rest(Verdict::looks_again(&diff)),
        }
    }

    fn absent(&self) -> Step {
        if let Some(Done::Create(done)) = &self.seen.done {
            return match done {
                Ok(progress) => Step::Rest(Verdict::creating(progress)),
                Err(error) => Step::Rest(Verdict::create_failed(error)),
            };
        }
        if self.policy.is_observe_only() {
            return Step::Rest(Verdict::absent(message::ABSENT.into()));
        }
        if self.is_within_grace() {
            return Step::Rest(Verdict::pending());
        }
        if !self.policy.allows(Action::Create) {
            let why = format!("{} and `spec.managementPolicies` does not allow Create", message::ABSENT);
            return Step::Rest(Verdict::absent(why));
        }
        if self.seen.done.is_some() {
            return Step::Rest(Verdict::pending());
        }
        Step::Create
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
