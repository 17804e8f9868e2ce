//! Does what `decide.rs` says about policies.

use std::sync::Arc;

use async_trait::async_trait;
use concert_engine::{Authority, Controller, Objects, Outcome, Reconciler, Request, Source, source};
use concert_model::{Encoded, Object};
use concert_store::{Error, Query};

use super::super::Pace;
use super::super::ensemble::Ensemble;
use super::super::hands::{Hands, words};
use super::super::waiting::Waiting;
use super::super::way::Way;
use super::decide::{Seen, Step, decide};

/// Steps in one pass: more than any honest path needs.
const STEPS_MAX: usize = 4;

/// Looks after claims that nobody else can do anything about.
pub struct DefaultClass {
    /// All that play for the claim kind.
    pub ensemble: Arc<Ensemble>,
    /// What it works with.
    pub hands: Hands,
    waiting: Arc<Waiting>,
}

impl DefaultClass {
    /// One that knows of nobody who waits.
    pub fn new(ensemble: Arc<Ensemble>, hands: Hands) -> Self {
        Self { ensemble, hands, waiting: Arc::default() }
    }

    async fn pass(&self, claim: &Object, request: &Request) -> Result<Outcome, Error> {
        let by = self.hands.by(request);
        let mut seen = Seen::default();
        // Before anything is read, so that what comes or goes meanwhile is not missed.
        match Way::of(claim) {
            Way::Selector(_) | Way::Open => self.waiting.enter(&request.key),
            Way::Resource(_) | Way::Class(_) => self.waiting.leave(&request.key),
        }
        for _ in 0..STEPS_MAX {
            match decide(claim, &self.ensemble, &seen) {
                Step::ListPolicies => seen.policies = Some(self.policies(claim).await),
                Step::ListClasses => seen.classes = Some(self.classes().await?),
                Step::Set(class) => {
                    let mut chosen = claim.clone();
                    chosen.get_mut("spec")["classRef"] = class;
                    self.hands.store.update(chosen, &by).await?;
                    self.waiting.leave(&request.key);
                    return Ok(Outcome::Done);
                }
                Step::Rest(verdict) => return Ok(self.hands.conclude(claim, &verdict, &by).await),
            }
        }
        Ok(Outcome::Requeue("more steps than any honest path needs".into(), None))
    }

    async fn policies(&self, claim: &Object) -> Result<Vec<Object>, String> {
        let Some(policy) = &self.ensemble.policy else { return Ok(Vec::new()) };
        let query = Query::all(policy.group_kind.clone()).in_namespace(claim.namespace());
        self.hands.list(&query).await.map_err(|error| words(&error))
    }

    async fn classes(&self) -> Result<Vec<Object>, Error> {
        let mut classes = Vec::new();
        for implementation in &self.ensemble.implementations {
            let query = Query::all(implementation.class.group_kind.clone());
            classes.extend(self.hands.list(&query).await?);
        }
        Ok(classes)
    }
}

#[async_trait]
impl Reconciler for DefaultClass {
    async fn reconcile(&self, request: Request) -> Outcome {
        let claim = match self.hands.find(&request.key).await {
            Ok(Some(claim)) => claim,
            Ok(None) => {
                self.waiting.leave(&request.key);
                return Outcome::Done;
            }
            Err(error) => return self.hands.missed(&error),
        };
        self.pass(&claim, &request).await.unwrap_or_else(|error| self.hands.missed(&error))
    }
}

/// The controller of one claim kind.
pub fn controller(default_class: DefaultClass, pace: Pace, authority: Authority) -> Controller {
    let ensemble = default_class.ensemble.clone();
    let waiting = default_class.waiting.clone();
    let claims = Query::all(ensemble.claim.group_kind.clone());
    let mut builder = Controller::builder(default_class.hands.name.clone(), Arc::new(default_class))
        .objects(Objects::new(claims).changed(source::except_status))
        .timeout(super::super::TIMEOUT)
        .poll(pace.poll)
        .relist(Some(pace.relist))
        .authority(authority);
    for implementation in &ensemble.implementations {
        let (query, waiting) = (Query::all(implementation.class.group_kind.clone()), waiting.clone());
        builder =
            builder.source(Source::mapped(query, move |_: &Encoded| waiting.all(None)).because("class"));
    }
    if let Some(policy) = &ensemble.policy {
        let wake = move |policy: &Encoded| waiting.all(Some(&policy.key().namespace));
        builder =
            builder.source(Source::mapped(Query::all(policy.group_kind.clone()), wake).because("policy"));
    }
    builder.build()
}
