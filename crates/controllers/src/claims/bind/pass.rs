//! One pass: the claim as it stands, what was found out about it, and the steps.

use concert_model::{Encoded, Object, ObjectKey};
use concert_store::{By, Delete, Error};
use serde_json::json;

use super::super::parting;
use super::super::propagate::decide::{Copying, copying, route};
use super::super::verdict::Told;
use super::super::vocabulary::{FINALIZER, annotation, event, phase};
use super::decide::{Doing, Seen, Sight, Step, phase_of};
use super::run::Binder;

/// Writes for one copy: more than any honest path needs.
const COPYING_STEPS_MAX: usize = 5;

/// What one pass knows.
pub struct Pass<'a> {
    binder: &'a Binder,
    by: By,
    /// As stored.
    pub claim: Object,
    /// What was found out.
    pub seen: Seen,
    /// Whether there was something to let go of.
    has_unbound: bool,
}

/// Why a pass ends before it has decided how.
pub enum Stop {
    /// The claim is no more.
    Gone,
    /// Somebody wrote first, or the store failed.
    Store(Error),
}

type Taken = Result<(), Stop>;

impl<'a> Pass<'a> {
    /// A pass over `claim`.
    pub fn begin(binder: &'a Binder, claim: Object, by: By) -> Self {
        let has_unbound = phase_of(&claim) == phase::BOUND;
        Self { binder, by, claim, seen: Seen::default(), has_unbound }
    }

    /// Takes one step.
    ///
    /// # Errors
    /// The pass ends here.
    pub async fn take(&mut self, step: Step) -> Taken {
        match step {
            Step::LookAtManaged(name) => {
                let kind = &self.binder.implementation.managed.group_kind;
                self.seen.managed = Some(self.look(ObjectKey::cluster(kind.clone(), name)).await);
                self.seen.is_managed_proven = false;
                Ok(())
            }
            Step::LookAtClass(name) => {
                let kind = &self.binder.implementation.class.group_kind;
                self.seen.class = Some(self.look(ObjectKey::cluster(kind.clone(), name)).await);
                Ok(())
            }
            Step::Hold { name } => self.hold(&name).await,
            Step::Prove => {
                let claim = self.claim.clone();
                self.write_claim(claim, Doing::Hold).await
            }
            Step::ProveManaged => self.prove_managed().await,
            Step::Create(managed) => self.create(*managed).await,
            Step::Reserve => self.reserve().await,
            Step::Propagate => {
                self.seen.propagation = Some(self.propagate().await?);
                Ok(())
            }
            Step::MarkBound => self.mark(phase::BOUND, Doing::Bind).await,
            Step::TakeName(name) => {
                let mut claim = self.claim.clone();
                claim.set_annotation(annotation::EXTERNAL_NAME, &name);
                self.write_claim(claim, Doing::Bind).await
            }
            Step::Release => {
                self.has_unbound = true;
                self.mark(phase::RELEASED, Doing::Unbind).await
            }
            Step::Delete => self.delete().await,
            Step::Forget => self.forget().await,
            Step::LetGo => self.let_go().await,
            Step::Rest(_) => Ok(()),
        }
    }

    async fn look(&self, key: ObjectKey) -> Sight {
        match self.binder.hands.find(&key).await {
            Ok(Some(found)) => Sight::There(Box::new(found)),
            Ok(None) => Sight::Absent,
            Err(error) => {
                let is_unserved = matches!(error, Error::UnknownKind { .. });
                let is_needed =
                    self.claim.deleted_at().is_none() && self.binder.implementation.unusable.is_none();
                // A claim can go without it. For one that lives the kind was there a moment ago, and is again
                // in a moment, or others play.
                if is_unserved && !is_needed {
                    return Sight::Absent;
                }
                let why = super::super::hands::words(&error);
                Sight::Failed { why, is_transient: is_unserved || error.is_transient() }
            }
        }
    }

    async fn hold(&mut self, name: &str) -> Taken {
        let mut claim = self.claim.clone();
        claim.add_finalizer(FINALIZER);
        let spec = claim.get_mut("spec");
        if !super::super::reference::is_set(spec, "resourceRef") {
            let kind = &self.binder.implementation.managed;
            spec["resourceRef"] =
                json!({"apiVersion": kind.api_version(), "kind": &*kind.group_kind.kind, "name": name});
        }
        self.write_claim(claim, Doing::Hold).await
    }

    async fn create(&mut self, managed: Object) -> Taken {
        match self.binder.hands.store.create(managed, &self.by).await {
            Ok(created) => {
                let told = Told::normal(event::CREATED, format!("created {}", created.key()));
                self.binder.hands.tell(&self.claim, &told);
                self.seen.managed = Some(Sight::There(Box::new(created.decode())));
                Ok(())
            }
            // Ours of an earlier pass, or somebody else's: another look tells.
            Err(Error::AlreadyExists { .. }) => {
                self.seen.managed = None;
                Ok(())
            }
            Err(error) => self.fail(Doing::Create, error),
        }
    }

    async fn reserve(&mut self) -> Taken {
        let reference = super::super::reference::to(&self.claim);
        self.change_managed(|managed| managed.get_mut("spec")["claimRef"] = reference, Doing::Bind).await
    }

    /// Asks the store whether the managed resource is still as it was read. Nothing but that keeps a claim
    /// from going, so whatever else the store has against it counts as a yes.
    async fn prove_managed(&mut self) -> Taken {
        let Some(Sight::There(managed)) = &self.seen.managed else { return Ok(()) };
        let written = self.binder.hands.store.update((**managed).clone(), &self.by.clone().dry_run()).await;
        match written {
            Err(Error::NotFound { .. }) => self.seen.managed = Some(Sight::Absent),
            Err(error @ Error::Conflict { .. }) => return Err(Stop::Store(error)),
            Err(error) if error.is_transient() => return Err(Stop::Store(error)),
            _ => self.seen.is_managed_proven = true,
        }
        Ok(())
    }

    async fn forget(&mut self) -> Taken {
        self.change_managed(parting::forget, Doing::Unbind).await
    }

    async fn change_managed(&mut self, change: impl FnOnce(&mut Object), doing: Doing) -> Taken {
        let Some(Sight::There(managed)) = &self.seen.managed else { return Ok(()) };
        let mut managed = (**managed).clone();
        change(&mut managed);
        let written = self.binder.hands.store.update(managed, &self.by).await;
        self.saw(written, doing)
    }

    async fn mark(&mut self, phase: &str, doing: Doing) -> Taken {
        let Some(Sight::There(managed)) = &self.seen.managed else { return Ok(()) };
        let mut managed = (**managed).clone();
        parting::mark(&mut managed, phase);
        let written = self.binder.hands.store.update_status(managed, &self.by).await;
        self.saw(written, doing)
    }

    /// Takes what was written of the managed resource, or that it is gone.
    fn saw(&mut self, written: Result<Encoded, Error>, doing: Doing) -> Taken {
        match written {
            Ok(managed) => {
                self.seen.managed = Some(Sight::There(Box::new(managed.decode())));
                self.seen.is_managed_proven = true;
            }
            Err(Error::NotFound { .. }) => self.seen.managed = Some(Sight::Absent),
            Err(error) => return self.fail(doing, error),
        }
        Ok(())
    }

    async fn delete(&mut self) -> Taken {
        let Some(Sight::There(managed)) = &self.seen.managed else { return Ok(()) };
        let Ok(key) = managed.key() else { return Ok(()) };
        // Only this state of it, which says that it is ours.
        let options =
            Delete { uid: managed.uid(), resource_version: managed.resource_version(), ..Delete::default() };
        let deleted = self.binder.hands.store.delete(&key, &options, &self.by).await;
        match deleted {
            Ok(_) | Err(Error::NotFound { .. }) => {
                self.seen.managed = None;
                Ok(())
            }
            Err(error) => self.fail(Doing::Unbind, error),
        }
    }

    async fn let_go(&mut self) -> Taken {
        let mut claim = self.claim.clone();
        claim.remove_finalizer(FINALIZER);
        match self.binder.hands.store.update(claim, &self.by).await {
            Ok(_) | Err(Error::NotFound { .. }) => {
                if self.has_unbound {
                    let told = Told::normal(event::UNBOUND, "let go of its managed resource");
                    self.binder.hands.tell(&self.claim, &told);
                }
                Err(Stop::Gone)
            }
            Err(error) => self.fail(Doing::Unbind, error),
        }
    }

    async fn write_claim(&mut self, claim: Object, doing: Doing) -> Taken {
        match self.binder.hands.store.update(claim, &self.by).await {
            Ok(written) => (self.claim, self.seen.is_proven) = (written.decode(), true),
            Err(Error::NotFound { .. }) => return Err(Stop::Gone),
            Err(error) => return self.fail(doing, error),
        }
        Ok(())
    }

    /// What somebody has to do something about is said; what another try may cure is tried again.
    fn fail(&mut self, doing: Doing, error: Error) -> Taken {
        match error {
            Error::Conflict { .. } | Error::UnknownKind { .. } => Err(Stop::Store(error)),
            error if error.is_transient() => Err(Stop::Store(error)),
            error => {
                self.seen.failure = Some((doing, super::super::hands::words(&error)));
                Ok(())
            }
        }
    }

    /// Copies the secret, if both name one. Says in words why not, also if it was the store that refused.
    async fn propagate(&self) -> Result<Result<(), String>, Stop> {
        match self.copy().await {
            Ok(copied) => Ok(copied),
            Err(error) if is_refusal(&error) => Ok(Err(super::super::hands::words(&error))),
            Err(error) => Err(Stop::Store(error)),
        }
    }

    async fn copy(&self) -> Result<Result<(), String>, Error> {
        let Some(Sight::There(managed)) = &self.seen.managed else { return Ok(Ok(())) };
        let Some((from, to)) = route(&self.claim, managed) else { return Ok(Ok(())) };
        let hands = &self.binder.hands;
        if let Ok(claim) = self.claim.key() {
            self.binder.sources.enter(&claim, &from);
        }
        let Some(mut source) = hands.find(&from).await? else {
            return Ok(Err(format!("{} has published no connection secret", managed.name())));
        };
        let mut stored = hands.find(&to).await?;
        for _ in 0..COPYING_STEPS_MAX {
            let written = match copying(&self.claim, managed, &source, stored.as_ref(), &to) {
                Err(why) => return Ok(Err(why)),
                Ok(Copying::Done) => return Ok(Ok(())),
                Ok(Copying::Agree(agreeing)) => {
                    source = match hands.store.update(agreeing, &self.by).await {
                        Ok(agreed) => agreed.decode(),
                        // It went meanwhile, as it can: another pass sees what became of it.
                        Err(Error::NotFound { key }) => return Err(Error::Conflict { key }),
                        Err(error) => return Err(error),
                    };
                    continue;
                }
                Ok(Copying::Put(secret)) if stored.is_some() => hands.store.update(secret, &self.by).await,
                Ok(Copying::Put(secret)) => hands.store.create(secret, &self.by).await,
            };
            stored = match written {
                Ok(written) => Some(written.decode()),
                // Somebody made one just now, or took it away: another pass sees what is there.
                Err(Error::AlreadyExists { key } | Error::NotFound { key }) if key == to => {
                    return Err(Error::Conflict { key });
                }
                Err(error) => return Err(error),
            };
        }
        Err(Error::Conflict { key: to })
    }
}

/// Whether the store will refuse the same again until somebody does something about it.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Invalid { .. } | Error::Unknown { .. } | Error::Contested { .. } | Error::Forbidden { .. }
    )
}

#[cfg(test)]
#[path = "pass_tests.rs"]
mod tests;
