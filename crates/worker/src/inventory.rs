//! The inventory's entry of one claim, read and written with the token that came with it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::PoisonError;

use concert_model::Address;
use http::{HeaderValue, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::Error;
use crate::http::{Ask, Good, Http, PATIENCE, bearer};

/// One entry, as far as the reconciler's grants reach. Its token is for this entry and this claim.
pub struct Inventory {
    http: Http,
    url: String,
    token: HeaderValue,
    /// The revision that everything read so far is at least as new as.
    observed: Mutex<Observed>,
}

struct Observed {
    revision: u64,
    is_read: bool,
}

/// The entry with its sections.
#[derive(Clone, Deserialize)]
pub struct View {
    /// Rises with every write of a section.
    pub revision: u64,
    /// What the grants let us see.
    #[serde(default)]
    pub sections: BTreeMap<String, Part>,
}

/// A section as the entry shows it.
#[derive(Clone, Deserialize)]
pub struct Part {
    /// What is in it; nothing of a secret one.
    #[serde(default)]
    pub data: Value,
    /// Rises with every write that changes something.
    pub version: u64,
    /// Whether its content is only handed out by itself.
    #[serde(default, rename = "secret")]
    pub is_secret: bool,
}

/// What is in a section.
#[derive(Clone)]
pub struct Section {
    /// What is in it.
    pub data: Value,
    /// Rises with every write that changes something.
    pub version: u64,
}

impl std::fmt::Debug for Section {
    /// Without what is in it, which may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section").field("version", &self.version).finish_non_exhaustive()
    }
}

/// What a write has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Written {
    /// The section's version.
    pub version: u64,
    /// The entry's revision.
    pub revision: u64,
    /// Whether it said the same before. Then nobody is woken.
    #[serde(default, rename = "unchanged")]
    pub is_unchanged: bool,
}

impl Inventory {
    pub(crate) fn new(http: &Http, url: &str, token: &str, revision: u64) -> Result<Self, Error> {
        let observed = Mutex::new(Observed { revision, is_read: false });
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { http: http.clone(), url, token: bearer(token)?, observed })
    }

    /// The entry and all its sections that the grants let us see; secret ones without their content.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn read(&self) -> Result<View, Error> {
        let good = self.ask(Method::GET, String::new(), None, None).await?;
        let view: View = self.parse(good.body)?;
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        // The first read counts: what was written after it may be missing in what was decided from it.
        if !observed.is_read {
            *observed = Observed { revision: view.revision, is_read: true };
        }
        Ok(view)
    }

    /// What is in one section, or none if it was never written.
    ///
    /// # Errors
    /// No answer, or a refusal such as that there is no grant.
    pub async fn section(&self, name: &str) -> Result<Option<Section>, Error> {
        match self.ask(Method::GET, path(name), None, None).await {
            Ok(Good { mut body, version }) => {
                let version = version.or(body["version"].as_u64()).ok_or_else(|| self.odd())?;
                Ok(Some(Section { data: body["data"].take(), version }))
            }
            Err(error) if error.status() == Some(404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a section, whatever is in it: for what only we write.
    ///
    /// # Errors
    /// No answer, or a refusal. A write whose answer was lost can be made again.
    pub async fn write(&self, name: &str, data: &Value) -> Result<Written, Error> {
        self.put(name, data, None).await
    }

    /// Writes a section if it is still at `version`.
    ///
    /// # Errors
    /// [`Error::Moved`] when somebody wrote first: read again and decide again.
    pub async fn write_at(&self, name: &str, data: &Value, version: u64) -> Result<Written, Error> {
        self.put(name, data, Some(version)).await
    }

    /// Removes a section; one that is not there is fine.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn remove(&self, name: &str) -> Result<(), Error> {
        match self.ask(Method::DELETE, path(name), None, None).await {
            Err(error) if error.status() != Some(404) => Err(error),
            _ => Ok(()),
        }
    }

    /// The revision that a result is for.
    pub(crate) fn observed(&self) -> u64 {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner).revision
    }

    async fn put(&self, name: &str, data: &Value, version: Option<u64>) -> Result<Written, Error> {
        let body = json!({ "data": data });
        match self.ask(Method::PUT, path(name), version, Some(&body)).await {
            Ok(good) => self.parse(good.body),
            Err(error) if error.status() == Some(412) => Err(Error::Moved { section: name.to_owned() }),
            Err(error) => Err(error),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: String,
        if_match: Option<u64>,
        body: Option<&Value>,
    ) -> Result<Good, Error> {
        let url = format!("{}{path}", self.url);
        let ask = Ask { method, url, token: Some(&self.token), if_match, body, patience: PATIENCE };
        self.http.ask(ask).await
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, body: Value) -> Result<T, Error> {
        serde_json::from_value(body).map_err(|_| self.odd())
    }

    fn odd(&self) -> Error {
        Error::Odd { server: self.url.clone() }
    }
}

fn path(section: &str) -> String {
    Address::new("/sections").step(section).into_path()
}
