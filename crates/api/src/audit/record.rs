//! One line of the audit trail.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Timestamp, time};
use serde_json::{Map, Value};

use crate::auth::{ANONYMOUS, Access, User};

/// Longest text of one field. Names are far shorter; paths and users of strangers need not be.
const TEXT_BYTES_MAX: usize = 512;

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// When it came.
    pub at: Timestamp,
    /// Who sent it; none if that could not be told.
    pub user: Option<Arc<str>>,
    /// As whom, if that is somebody else.
    pub impersonated: Option<Arc<str>>,
    /// Where from.
    pub from: Option<IpAddr>,
    /// What was asked for; none if the request made no sense.
    pub target: Option<Target>,
    /// Nothing was to be written.
    pub is_dry_run: bool,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Until the answer began.
    pub took: Duration,
}

/// What was asked for. [`Access`], with a life of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Something with objects.
    Resource {
        /// `get`, `create`, …
        verb: Arc<str>,
        /// The API group.
        group: Arc<str>,
        /// The plural.
        resource: Arc<str>,
        /// `status`, or empty.
        subresource: Arc<str>,
        /// Empty for cluster-scoped objects and for all namespaces.
        namespace: Arc<str>,
        /// Empty where no single object is meant.
        name: Arc<str>,
    },
    /// Something with a path.
    Path {
        /// The HTTP method, in lower case.
        verb: Arc<str>,
        /// Without the query.
        path: Arc<str>,
    },
}

impl From<&Access<'_>> for Target {
    fn from(access: &Access<'_>) -> Self {
        match *access {
            Access::Path { verb, path } => Self::Path { verb: verb.into(), path: path.into() },
            Access::Resource { verb, group, resource, subresource, namespace, name } => Self::Resource {
                verb: verb.into(),
                group: group.into(),
                resource: resource.into(),
                subresource: subresource.into(),
                namespace: namespace.into(),
                name: name.into(),
            },
        }
    }
}

impl Record {
    /// A request by `user` for `access` that was answered with `code`.
    pub fn new(at: Timestamp, user: Option<&User>, access: Option<&Access<'_>>, code: u16) -> Self {
        Self {
            at,
            user: user.map(|user| user.sender.as_ref().unwrap_or(&user.name).clone()),
            impersonated: user.filter(|user| user.sender.is_some()).map(|user| user.name.clone()),
            from: None,
            target: access.map(Target::from),
            is_dry_run: false,
            code,
            took: Duration::ZERO,
        }
    }

    /// Whether somebody whom nobody knows was refused or only read. What they change, as a login does, is a
    /// part of what is done here.
    pub(super) fn is_of_stranger(&self) -> bool {
        let is_known = self.user.as_deref().is_some_and(|user| user != ANONYMOUS);
        let verb = match &self.target {
            None => "",
            Some(Target::Path { verb, .. } | Target::Resource { verb, .. }) => verb,
        };
        let is_read = matches!(verb, "" | "get" | "head" | "list" | "watch" | "options");
        !is_known && (self.code >= 400 || is_read)
    }

    /// JSON and a line feed. JSON escapes whatever could end a line or control a terminal.
    pub(super) fn to_line(&self) -> String {
        let mut line = Map::new();
        let mut put = |field: &str, text: &str| {
            if !text.is_empty() {
                line.insert(field.into(), clipped(text).into());
            }
        };
        put("time", &time::micros(self.at));
        put("user", self.user.as_deref().unwrap_or_default());
        put("impersonatedUser", self.impersonated.as_deref().unwrap_or_default());
        put("from", &self.from.map(|it| it.to_string()).unwrap_or_default());
        match &self.target {
            None => {}
            Some(Target::Path { verb, path }) => {
                put("verb", verb);
                put("path", path);
            }
            Some(Target::Resource { verb, group, resource, subresource, namespace, name }) => {
                put("verb", verb);
                put("group", group);
                put("resource", resource);
                put("subresource", subresource);
                put("namespace", namespace);
                put("name", name);
            }
        }
        if self.is_dry_run {
            line.insert("dryRun".into(), true.into());
        }
        line.insert("code".into(), self.code.into());
        let micros = u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX);
        line.insert("tookMicros".into(), micros.into());
        format!("{}\n", escape_rest(&Value::Object(line).to_string()))
    }
}

/// What is said about records that were not written.
pub(super) fn loss_line(count: u64) -> String {
    format!("{{\"lost\":{count}}}\n")
}

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// JSON leaves DEL and the controls above it as they are, and some terminals obey them.
fn escape_rest(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}
