//! All servers of one provider: which there are, and who may do something to one of them now.

use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use concert_model::Object;
use concert_provider::{Class, Error, Token};
use tokio::sync::OwnedMutexGuard;

use super::Settings;
use super::record::{Name, Record, Records};
use super::settings::Wanted;
use super::vigil::Vigil;
use crate::owner::Owner;
use crate::tokens::{Tokens, hex};
use crate::{DataFolder, Result};

/// One who does something to a server at a time; more wait in line.
type Line = Arc<tokio::sync::Mutex<()>>;

/// Serves Redis servers on this machine.
pub struct Redis {
    pub(super) records: Records,
    pub(super) tokens: Tokens,
    pub(super) settings: Settings,
    pub(super) vigil: Vigil,
    /// Held while it is decided which token makes which server on which port. Nothing waits meanwhile.
    deciding: Mutex<()>,
    lines: Mutex<HashMap<Name, Line>>,
}

impl Redis {
    /// Knows the servers of this folder again and watches those that run. Needs a Tokio runtime.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn open(data: &DataFolder, settings: Settings) -> anyhow::Result<Self> {
        let failed = || "cannot read the data folder";
        let records = Records::new(data.folder("redis").with_context(failed)?);
        let redis = Self {
            vigil: Vigil::new(records.clone()),
            records,
            tokens: Tokens::new(data.folder("tokens/redis").with_context(failed)?),
            settings,
            deciding: Mutex::default(),
            lines: Mutex::default(),
        };
        for record in redis.records.list()? {
            let process = record.process.as_ref();
            if let Some(handle) = process.and_then(|it| it.open(&redis.records.data(&record.name))) {
                tracing::info!(name = %record.name, port = record.port, "adopted");
                redis.vigil.keep(&record.name, handle, None);
            }
        }
        Ok(redis)
    }

    /// Stops all servers; they start again with the next update of their objects.
    pub async fn stop_all(&self) {
        for mut record in self.records.list().unwrap_or_default() {
            let _turn = self.turn(&record.name).await;
            if let Err(error) = self.stop(&mut record).await {
                tracing::warn!(name = %record.name, %error, "cannot be stopped");
            }
        }
    }

    /// Waits until nobody else does anything to this server.
    pub(super) async fn turn(&self, name: &Name) -> OwnedMutexGuard<()> {
        let line = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.entry(name.clone()).or_default().clone()
        };
        line.lock_owned().await
    }

    /// Nobody will ask for this server again.
    pub(super) fn forget(&self, name: &Name) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    /// The server that a token made.
    pub(super) fn made_by(&self, token: &Token) -> Result<Option<Record>> {
        Ok(self.records.list()?.into_iter().find(|it| it.token == *token.0))
    }

    /// The server that a token made; if it made none, from now on it cannot.
    pub(super) fn made_by_or_never(&self, token: &Token) -> Result<Option<Record>> {
        let _one = self.decide();
        let made = self.made_by(token)?;
        if made.is_none() {
            self.tokens.burn(&token.0)?;
        }
        Ok(made)
    }

    /// Writes down a new server with a name, a port and a password, or finds the one that the token made.
    /// Says whether it is new.
    pub(super) fn reserve(
        &self,
        object: &Object,
        token: &Token,
        port: Option<u16>,
        settings: Wanted,
    ) -> Result<(Record, bool)> {
        let _one = self.decide();
        if let Some(record) = self.made_by(token)? {
            return Ok((record, false));
        }
        self.tokens.check(token)?;
        let record = Record {
            name: self.new_name(object.name()),
            owner: Owner::of(object),
            token: token.to_string(),
            port: self.port(port)?,
            password: self.password(),
            settings,
            process: None,
        };
        // Whether it can be read again is not known, so neither is what became of it.
        self.records.save(&record).map_err(Error::in_doubt)?;
        Ok((record, true))
    }

    fn decide(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_name(&self, object: &str) -> Name {
        let suffix = format!("{:08x}", self.settings.chance.below(1 << 32));
        let readable: String = object.chars().take(50).collect();
        let named = Name::new(&format!("{readable}-{suffix}"));
        named.or_else(|| Name::new(&format!("redis-{suffix}"))).expect("letters, digits and a dash")
    }

    fn password(&self) -> String {
        let mut bytes = [0; 24];
        self.settings.chance.fill(&mut bytes);
        hex(&bytes)
    }

    /// The port that was asked for, or one that is free. Ports of servers that do not run are theirs.
    fn port(&self, asked: Option<u16>) -> Result<u16> {
        let records = self.records.list()?;
        let keeper = |port| records.iter().find(|it| it.port == port);
        if let Some(port) = asked {
            return match keeper(port) {
                // Which one is nobody's business but its owner's: who claims a port may be anybody.
                Some(_) => Err(taken(port, "another server")),
                None if is_free(port) => Ok(port),
                None => Err(taken(port, "another program")),
            };
        }
        let (first, last) = (*self.settings.ports.start(), *self.settings.ports.end());
        // From anywhere in the range on, so that two providers on one machine seldom want the same.
        let count = u64::from(last - first) + 1;
        let offset = self.settings.chance.below(count);
        let ports = (0..count).map(|it| first + ((it + offset) % count) as u16);
        let mut free = ports.filter(|port| keeper(*port).is_none() && is_free(*port));
        free.next().ok_or_else(|| {
            let message =
                format!("all ports from {first} to {last} are taken: allow more with --redis-ports");
            Error::new(Class::Transient, message)
        })
    }
}

/// Whether nobody listens there.
pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Somebody else has the port. It may become free, so it is worth trying again.
pub(super) fn taken(port: u16, by: &str) -> Error {
    let message = format!(
        "port {port} of 127.0.0.1 is taken by {by}: free it, or make the object anew with another \
         spec.forProvider.port or with none to have one chosen"
    );
    Error::new(Class::Transient, message)
}
