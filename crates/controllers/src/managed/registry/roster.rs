//! Who is declared: providers are added, declared anew, suspended and removed while controllers run.
//!
//! Only a removal hands kinds over. Whoever is declared anew, or declared in a way that makes no sense, keeps
//! what it is in charge of: another provider would not find what it made, and would make it again.

use std::sync::Arc;

use concert_model::ObjectKey;
use concert_provider::Handshake;

use super::claims::{Known, State};
use super::{Declaration, Desk, PATIENCE, Parts, Provider, Rank, Registry, TakenError, life};

impl Registry {
    /// Adds a provider and connects to it.
    ///
    /// # Errors
    /// [`TakenError`].
    pub fn add(&self, declaration: Declaration) -> Result<(), TakenError> {
        let name = declaration.name.clone();
        let provider = self.provider_of(declaration, "it has not answered yet");
        let (connector, tasks) = (provider.connector.clone(), provider.tasks.clone());
        self.enter(name.clone(), provider)?;
        life::start(self, name, connector, &tasks);
        Ok(())
    }

    /// Adds a provider that cannot be declared, for this reason, until it is replaced. It is not called, but
    /// it is in charge of what it said when it was last heard of, and its objects say why nobody works on them.
    ///
    /// # Errors
    /// [`TakenError`].
    pub fn withhold(
        &self,
        name: Arc<str>,
        rank: Rank,
        last: Arc<Handshake>,
        why: &str,
    ) -> Result<(), TakenError> {
        let mut provider = self.provider_of(Declaration::withheld(name.clone(), rank, last, why), why);
        if let State::Down { is_long, .. } = &mut provider.known.state {
            *is_long = true;
        }
        self.enter(name, provider)
    }

    fn enter(&self, name: Arc<str>, provider: Provider) -> Result<(), TakenError> {
        {
            let mut desk = self.lock();
            if desk.providers.iter().any(|(it, _)| *it == name) {
                return Err(TakenError(name));
            }
            desk.place(name, provider);
        }
        self.deal();
        Ok(())
    }

    /// Declares a provider anew, or adds it. Until it answers as it is declared now it keeps the kinds that it
    /// is declared for or, if for none, those it named when it was last heard of.
    ///
    /// # Errors
    /// [`TakenError`] if the configuration names it, and what is declared now is an object.
    pub async fn replace(&self, declaration: Declaration) -> Result<(), TakenError> {
        let name = declaration.name.clone();
        let is_object = matches!(declaration.rank, Rank::Declared(_));
        let is_taken = |rank: &Rank| is_object && matches!(rank, Rank::Configured(_));
        if self.lock().providers.iter().any(|(it, provider)| *it == name && is_taken(&provider.rank)) {
            return Err(TakenError(name));
        }
        let why = "it has been declared anew";
        if !self.halt(&name, why, false).await {
            return self.add(declaration);
        }
        let mut provider = self.provider_of(declaration, why);
        let (connector, tasks) = (provider.connector.clone(), provider.tasks.clone());
        {
            let mut desk = self.lock();
            let place = desk.providers.iter().position(|(it, _)| *it == name);
            if let Some((_, before)) = place.map(|place| desk.providers.remove(place)) {
                provider.succeed(&before);
            }
            desk.place(name.clone(), provider);
        }
        self.deal();
        life::start(self, name, connector, &tasks);
        Ok(())
    }

    /// Calls a provider no more, for this reason, until it is replaced. It stays in charge of its kinds, and
    /// their objects say why nobody works on them.
    pub async fn suspend(&self, name: &str, why: &str) {
        self.halt(name, why, true).await;
    }

    /// Removes a provider, which is not called any more afterwards. Objects that are left say that nobody
    /// serves them.
    pub async fn remove(&self, name: &str) {
        let removed = {
            let mut desk = self.lock();
            let place = desk.providers.iter().position(|(it, _)| **it == *name);
            place.map(|place| desk.providers.remove(place).1)
        };
        if let Some(provider) = removed {
            provider.tasks.stop(PATIENCE).await;
            self.stop_running_for(name).await;
            self.deal();
        }
    }

    /// Stops all that runs for a provider, which keeps its kinds; `false` if there is none of this name.
    async fn halt(&self, name: &str, why: &str, is_long: bool) -> bool {
        let tasks = {
            let desk = self.lock();
            let found = desk.providers.iter().find(|(it, _)| **it == *name);
            found.map(|(_, it)| it.tasks.clone())
        };
        let Some(tasks) = tasks else { return false };
        // First its life, which could say that it is up.
        tasks.stop(PATIENCE).await;
        self.stop_running_for(name).await;
        self.went(name, why, is_long);
        true
    }

    /// What runs for a provider is stopped here: whoever looks at the definitions does so only later.
    async fn stop_running_for(&self, name: &str) {
        let keys: Vec<ObjectKey> = {
            let desk = self.lock();
            desk.running.iter().filter(|(_, it)| it.is_of(name)).map(|(key, _)| key.clone()).collect()
        };
        for key in keys {
            self.stop_running(&key).await;
        }
    }

    /// One that has not answered yet, for this reason.
    fn provider_of(&self, declaration: Declaration, why: &str) -> Provider {
        let Declaration { name, connector, kinds, allowance, rank, last } = declaration;
        let Parts { clock, authority, .. } = &self.0.parts;
        let connector = allowance.meter(&name, connector, clock, authority);
        // Whoever says what it is for is in charge of that, and not of what it served otherwise.
        let last = last.filter(|_| kinds.is_empty());
        let state = State::Down { why: why.to_owned(), is_long: false, last };
        let known = Known { wanted: kinds, state };
        Provider { known, connector, tasks: self.0.tasks.group(), epochs: 0, rank, outage: None }
    }
}

impl Provider {
    /// Takes the place of what was declared before under the same name.
    fn succeed(&mut self, before: &Self) {
        // Its next introduction is another one than the last, so controllers start anew.
        self.epochs = before.epochs;
        if let (true, State::Down { last, .. }) = (self.known.wanted.is_empty(), &mut self.known.state) {
            *last = before.known.state.last().cloned().or_else(|| last.take());
        }
    }
}

impl Desk {
    /// Puts a provider where its rank is.
    fn place(&mut self, name: Arc<str>, provider: Provider) {
        let place = self.providers.partition_point(|(other, it)| (&it.rank, other) < (&provider.rank, &name));
        self.providers.insert(place, (name, provider));
    }
}
