//! The options of a list or watch, and which of them go together.

use concert_model::{FieldError, FieldPath, FieldSelector, LabelSelector, ResourceVersion, Rule};
use concert_store::Query;
use serde_json::json;

use crate::error::Error;
use crate::kube::api::Call;
use crate::kube::params::Params;

/// Parameters that say which objects are meant.
pub(crate) const SELECTORS: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
];

/// As of when a list is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    Newest,
    NotOlderThan(ResourceVersion),
    Exact(ResourceVersion),
}

/// What a list or watch asks for.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    pub(crate) query: Query,
    pub(crate) limit: Option<usize>,
    pub(crate) token: Option<String>,
    pub(crate) at: Match,
    /// As it was sent; none if it was not, or as `0`: any will do.
    pub(crate) resource_version: Option<ResourceVersion>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) has_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
}

impl ListOptions {
    pub(crate) fn read(call: &Call<'_>, is_watch: bool) -> Result<Self, Error> {
        let params = call.params;
        let query = read_query(call)?;
        let version = params.text("resourceVersion").map(read_version).transpose()?;
        let send_initial_events = params.flag("sendInitialEvents")?;
        let limit = params.number("limit")?.filter(|limit| *limit > 0);
        let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let token = params.text("continue").map(str::to_owned);
        let how = params.text("resourceVersionMatch");
        let errors = match is_watch {
            true => check_watch(how, send_initial_events, token.is_some()),
            false => check_list(how, version.as_ref(), token.is_some(), send_initial_events),
        };
        if !errors.is_empty() {
            return Err(Error::invalid_options("ListOptions", errors));
        }
        let resource_version = version.filter(|version| &*version.0 != "0");
        if token.is_some() && resource_version.is_some() {
            return Err(Error::bad_request("specifying resource version is not allowed when using continue"));
        }
        let at = Match::new(resource_version.as_ref(), how, limit.is_some());
        Ok(Self {
            query,
            limit,
            token,
            at,
            resource_version,
            timeout_seconds: params.number("timeoutSeconds")?.filter(|seconds| *seconds > 0),
            has_bookmarks: params.is_set("allowWatchBookmarks")?,
            send_initial_events,
        })
    }
}

impl Match {
    fn new(version: Option<&ResourceVersion>, how: Option<&str>, is_paged: bool) -> Self {
        match (version, how) {
            (None, _) => Match::Newest,
            (Some(version), Some("Exact")) => Match::Exact(version.clone()),
            // Without a word on how it is meant, a page is of exactly that moment, and a whole list of
            // that or a later one.
            (Some(version), None) if is_paged => Match::Exact(version.clone()),
            (Some(version), _) => Match::NotOlderThan(version.clone()),
        }
    }
}

/// The version that a read of one object must not be older than, if it says one.
pub(crate) fn least_version(params: &Params<'_>) -> Result<Option<ResourceVersion>, Error> {
    let version = params.text("resourceVersion").map(read_version).transpose()?;
    Ok(version.filter(|version| &*version.0 != "0"))
}

/// The name that a field selector asks for, if it asks for one.
pub(crate) fn only_name(params: &Params<'_>) -> Option<String> {
    let selector = FieldSelector::parse(params.text("fieldSelector")?).ok()?;
    selector.exact("metadata.name").filter(|name| !name.is_empty()).map(str::to_owned)
}

fn read_query(call: &Call<'_>) -> Result<Query, Error> {
    let text = |name: &str| call.params.text(name).unwrap_or_default();
    let malformed = |error: FieldError| Error::bad_request(error.to_string());
    let query = Query::all(call.resource.group_kind().clone())
        .with_labels(LabelSelector::parse(text("labelSelector")).map_err(malformed)?)
        .with_fields(FieldSelector::parse(text("fieldSelector")).map_err(malformed)?);
    let query = if call.namespace.is_empty() { query } else { query.in_namespace(call.namespace) };
    if call.name.is_empty() {
        return Ok(query);
    }
    // A watch of one object, by its path.
    let fields = query.fields.and_field("metadata.name", call.name);
    Ok(Query { fields, ..query })
}

fn read_version(text: &str) -> Result<ResourceVersion, Error> {
    let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    match number {
        Some(_) => Ok(ResourceVersion(text.into())),
        None => {
            Err(Error::bad_request(format!("resourceVersion: Invalid value: {text:?}: must be a number")))
        }
    }
}

const MATCH: &str = "resourceVersionMatch";

fn forbidden(field: &str, detail: impl Into<String>) -> FieldError {
    FieldError::forbidden(FieldPath::new(field), detail)
}

fn unsupported(how: &str, supported: &[&str]) -> FieldError {
    let listed: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    let detail = format!("supported values: {}", listed.join(", "));
    FieldError::new(FieldPath::new(MATCH), Rule::NotSupported, &json!(how), detail)
}

fn check_list(
    how: Option<&str>,
    version: Option<&ResourceVersion>,
    is_continued: bool,
    send_initial_events: Option<bool>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(how) = how {
        if version.is_none() {
            errors.push(forbidden(
                MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if is_continued {
            errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(how, "Exact" | "NotOlderThan") {
            errors.push(unsupported(how, &["Exact", "NotOlderThan"]));
        }
        if how == "Exact" && version.is_some_and(|version| &*version.0 == "0") {
            errors.push(forbidden(
                MATCH,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }
    if send_initial_events.is_some() {
        errors.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    errors
}

fn check_watch(how: Option<&str>, send_initial_events: Option<bool>, is_continued: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if send_initial_events.is_some() && how != Some("NotOlderThan") {
        errors.push(forbidden(
            MATCH,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    if let Some(how) = how {
        if send_initial_events.is_none() {
            let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(forbidden(MATCH, detail));
        }
        if how != "NotOlderThan" {
            errors.push(unsupported(how, &["NotOlderThan"]));
        }
        if is_continued {
            errors.push(forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
    }
    errors
}
