//! What comes out: for people as text, for programs as JSON.

use std::fmt;

use concert_model::Timestamp;
use serde::{Deserialize, Serialize};

/// Why an object is as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// One sentence.
    pub sentence: String,
    /// Whether the object is ready.
    pub is_ready: bool,
    /// What the object hangs on: owner, references, provider, engine items, last words.
    pub chain: Vec<Link>,
    /// When something is done about it next without anybody changing anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_try: Option<Timestamp>,
}

/// One thing that the object hangs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// What it is to the object: `owner`, `reference`, `provider`, `item`, …
    pub relation: String,
    /// What it is called.
    pub name: String,
    /// How it stands, in a word or two.
    pub state: String,
    /// More about that; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.sentence)?;
        let width = |text: fn(&Link) -> &String| {
            self.chain.iter().map(|it| text(it).chars().count()).max().unwrap_or_default()
        };
        let (relation, name) = (width(|it| &it.relation), width(|it| &it.name));
        for link in &self.chain {
            write!(f, "  {:relation$}  {:name$}  {}", link.relation, link.name, link.state)?;
            if !link.detail.is_empty() {
                write!(f, ": {}", link.detail)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
