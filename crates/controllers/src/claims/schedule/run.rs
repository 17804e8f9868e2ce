//! Does what `decide.rs` says about classes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use concert_engine::{Authority, Controller, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::condition::{self, Condition, Status};
use concert_model::{Encoded, Object};
use concert_store::{By, Error, Query};
use serde_json::Value;

use super::super::Pace;
use super::super::definition::Implementation;
use super::super::ensemble::Ensemble;
use super::super::hands::Hands;
use super::super::reference;
use super::super::verdict::{SHORT_WAIT, Told};
use super::super::vocabulary::event;
use super::super::waiting::Waiting;
use super::decide::{Manner, Seen, Step, concerns, decide, fitting};

/// Classes of several kinds may fit: each scheduler waits for up to so long, so that all have a chance.
const JITTER_MILLISECONDS: u64 = 1_500;
/// Runs at a time: most of a run is that wait.
const CONCURRENCY: usize = 64;
/// Steps in one pass: more than any honest path needs.
const STEPS_MAX: usize = 4;
/// How often that is said anew because somebody wrote first: nobody writes so often at the same time.
const SAYING_TRIES_MAX: usize = 5;
/// Says that a class was chosen among several.
const CHOSEN: &str = "ClassChosen";

/// Chooses among the classes of one kind.
pub struct Scheduler {
    /// By what.
    pub manner: Manner,
    /// All that play for the claim kind.
    pub ensemble: Arc<Ensemble>,
    /// Whose classes.
    pub implementation: Arc<Implementation>,
    /// What it works with.
    pub hands: Hands,
    waiting: Arc<Waiting>,
}

impl Scheduler {
    /// One that knows of nobody who waits.
    pub fn new(
        manner: Manner,
        ensemble: Arc<Ensemble>,
        implementation: Arc<Implementation>,
        hands: Hands,
    ) -> Self {
        Self { manner, ensemble, implementation, hands, waiting: Arc::default() }
    }

    async fn pass(&self, claim: &Object, request: &Request) -> Result<Outcome, Error> {
        let by = self.hands.by(request);
        let mut seen = Seen::default();
        // Before anything is read, so that a class that comes, or a policy that goes, is not missed.
        self.waiting.enter(&request.key);
        for _ in 0..STEPS_MAX {
            match decide(self.manner, claim, &seen, self.hands.chance.below(u64::MAX)) {
                // A policy has a say, for as long as there is one.
                Step::Rest => return Ok(Outcome::Done),
                Step::LookForPolicies => seen.has_policy = Some(self.has_policy(claim).await?),
                Step::ListClasses => {
                    let classes = Query::all(self.implementation.class.group_kind.clone());
                    seen.classes = Some(self.hands.list(&classes).await?);
                }
                // Says nothing on the claim: of the other class kinds it knows nothing.
                Step::Wait => return Ok(Outcome::Requeue("no class fits yet".into(), Some(SHORT_WAIT))),
                Step::Choose { class, among } => {
                    self.choose(claim, class, &among, &by).await?;
                    self.waiting.leave(&request.key);
                    return Ok(Outcome::Done);
                }
            }
        }
        Ok(Outcome::Requeue("more steps than any honest path needs".into(), None))
    }

    async fn has_policy(&self, claim: &Object) -> Result<bool, Error> {
        let Some(policy) = &self.ensemble.policy else { return Ok(false) };
        let query = Query::all(policy.group_kind.clone()).in_namespace(claim.namespace());
        Ok(!self.hands.list(&query).await?.is_empty())
    }

    /// Writes the choice into the claim as it was read: of several schedulers one can do that. Everything is
    /// read before: nobody comes back to a claim that has its class.
    async fn choose(&self, claim: &Object, class: Value, among: &[String], by: &By) -> Result<(), Error> {
        if self.ensemble.implementations.len() > 1 {
            let jitter = Duration::from_millis(self.hands.chance.below(JITTER_MILLISECONDS));
            self.hands.clock.sleep(jitter).await;
        }
        let name = format!(
            "{} {}",
            self.implementation.class.group_kind.kind,
            class["name"].as_str().unwrap_or_default()
        );
        let mut among = among.to_vec();
        if self.manner == Manner::Default {
            among.extend(self.rivals(claim).await?);
        }
        let mut chosen = claim.clone();
        chosen.get_mut("spec")["classRef"] = class;
        let written = self.hands.store.update(chosen, by).await?.decode();
        let (reason, how) = match self.manner {
            Manner::Select => (event::SELECTED_CLASS, "by its labels"),
            Manner::Default => (event::DEFAULT_CLASS, "by default"),
        };
        self.hands.tell(&written, &Told::normal(reason, format!("{name} was chosen {how}")));
        if self.manner == Manner::Default && among.len() > 1 {
            self.say_among(written, &name, &among, by).await?;
        }
        Ok(())
    }

    /// The default classes of the other kinds, any of which could have been chosen as well.
    async fn rivals(&self, claim: &Object) -> Result<Vec<String>, Error> {
        let mut rivals = Vec::new();
        let is_other =
            |it: &&Arc<Implementation>| it.class.group_kind != self.implementation.class.group_kind;
        for other in self.ensemble.implementations.iter().filter(is_other) {
            let classes = self.hands.list(&Query::all(other.class.group_kind.clone())).await?;
            rivals.extend(fitting(Manner::Default, claim, &classes).into_iter().map(reference::named));
        }
        Ok(rivals)
    }

    /// Several defaults are a mistake that hurts nobody at once, so somebody should hear of it.
    async fn say_among(&self, mut claim: Object, name: &str, among: &[String], by: &By) -> Result<(), Error> {
        let message = format!(
            "{name} was chosen by chance among {} default classes ({}): leave the annotation on one of them, or \
             set spec.classRef",
            among.len(),
            among.join(", ")
        );
        let chosen = Condition::new(CHOSEN, Status::True, "SeveralDefaultClasses", message);
        for _ in 0..SAYING_TRIES_MAX {
            let (generation, mut said) = (claim.generation(), claim.clone());
            let chosen = chosen.clone().observed(generation);
            condition::set(said.get_mut("status"), chosen, self.hands.clock.now());
            match self.hands.store.update_status(said, by).await {
                // Whoever binds it writes at the same time: it is said of the claim as that left it. Nobody
                // comes back to it later, since the claim has its class now.
                Err(Error::Conflict { .. }) => {}
                Ok(_) | Err(Error::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            let Ok(key) = claim.key() else { return Ok(()) };
            let Some(found) = self.hands.find(&key).await? else { return Ok(()) };
            claim = found;
        }
        Ok(())
    }
}

#[async_trait]
impl Reconciler for Scheduler {
    async fn reconcile(&self, request: Request) -> Outcome {
        let claim = match self.hands.find(&request.key).await {
            Ok(Some(claim)) if concerns(self.manner, &claim) => claim,
            Ok(_) => {
                self.waiting.leave(&request.key);
                return Outcome::Done;
            }
            Err(error) => return self.hands.missed(&error),
        };
        self.pass(&claim, &request).await.unwrap_or_else(|error| self.hands.missed(&error))
    }
}

/// The controller of one manner and one class kind.
pub fn controller(scheduler: Scheduler, pace: Pace, authority: Authority) -> Controller {
    let claims = Query::all(scheduler.ensemble.claim.group_kind.clone());
    let classes = Query::all(scheduler.implementation.class.group_kind.clone());
    let (name, manner) = (scheduler.hands.name.clone(), scheduler.manner);
    let (for_class, for_policy) = (scheduler.waiting.clone(), scheduler.waiting.clone());
    let policies = scheduler.ensemble.policy.clone().filter(|_| manner == Manner::Default);
    let mut builder = Controller::builder(name, Arc::new(scheduler))
        .objects(Objects::new(claims).changed(source::except_status))
        .source(Source::mapped(classes, move |_: &Encoded| for_class.all(None)).because("class"))
        .concurrency(CONCURRENCY)
        .timeout(super::super::TIMEOUT)
        .poll(pace.poll)
        .relist(Some(pace.relist))
        .authority(authority);
    if let Some(policy) = policies {
        // One that goes makes room for a default.
        let wake = move |policy: &Encoded| for_policy.all(Some(&policy.key().namespace));
        builder = builder.source(Source::mapped(Query::all(policy.group_kind), wake).because("policy"));
    }
    builder.build()
}
