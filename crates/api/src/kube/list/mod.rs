//! Reading many objects: one page of a list, in the form the client wants.

mod options;
mod token;

use concert_model::{Encoded, ResourceVersion};
use concert_store::{Page, PageRequest, Query, Store};

pub(crate) use options::{ListOptions, Match, SELECTORS, least_version, only_name};

use super::accept::Form;
use super::answer::{Answer, text};
use super::catalogue::Resource;
use super::splice::{self, List};
use super::table::{Include, Tables};
use crate::error::{Details, Error, Reason};
use crate::kube::api::{Call, Inner};

/// Parameters of a list or watch.
pub(crate) const PARAMS: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "includeObject",
];

/// `GET` of a collection that is no watch.
pub(crate) async fn list(call: &Call<'_>, form: Form) -> Result<Answer, Error> {
    call.params.check(PARAMS)?;
    let options = ListOptions::read(call, false)?;
    let include = Include::read(call.params)?;
    let page = read(call.api, call.resource, &options).await?;
    let remaining = remaining(call, &options.query, &page).await?;
    Ok(Answer::ok(write(call, &page, remaining, form, include)))
}

/// How many objects come after this page, where that can be told without looking at them.
async fn remaining(call: &Call<'_>, query: &Query, page: &Page) -> Result<Option<usize>, Error> {
    match page.items.last().filter(|_| page.next.is_some()) {
        None => Ok(None),
        Some(last) => {
            let counted = call.api.store.remaining(query, last.key()).await;
            counted.map_err(|error| Error::of_read(error, &call.naming()))
        }
    }
}

/// The page that `options` ask for.
pub(crate) async fn read(api: &Inner, resource: &Resource, options: &ListOptions) -> Result<Page, Error> {
    let naming = resource.naming("");
    let limit = options.limit;
    let request = match (&options.token, &options.at) {
        (Some(token), _) => PageRequest { limit, token: Some(token::open(token)?) },
        (None, Match::Exact(version)) => {
            check_reached(api, resource, version).await?;
            let namespace = options.query.namespace.as_deref().unwrap_or_default();
            PageRequest { limit, token: Some(token::start(version, namespace)) }
        }
        (None, Match::NotOlderThan(version)) => {
            let page = api.store.list(&options.query, &PageRequest { limit, token: None }).await;
            let page = page.map_err(|error| Error::of_read(error, &naming))?;
            return if is_later(version, &page.position) {
                Err(Error::version_too_large(&version.0, &page.position.0))
            } else {
                Ok(sealed(page))
            };
        }
        (None, Match::Newest) => PageRequest { limit, token: None },
    };
    match api.store.list(&options.query, &request).await {
        Ok(page) => Ok(sealed(page)),
        Err(concert_store::Error::Expired) => Err(expired(api, options, &request).await),
        Err(error) => Err(Error::of_read(error, &naming)),
    }
}

fn sealed(mut page: Page) -> Page {
    page.next = page.next.as_deref().map(token::seal);
    page
}

/// The moment the store is at.
pub(crate) async fn newest(api: &Inner, query: &Query) -> Result<ResourceVersion, Error> {
    let request = PageRequest { limit: Some(1), token: None };
    let page = api.store.list(&Query::all(query.kind.clone()), &request).await;
    let unnamed = crate::error::Naming { kind: &query.kind, plural: "", name: "" };
    Ok(page.map_err(|error| Error::of_read(error, &unnamed))?.position)
}

/// Refuses a version that the store is not at yet, as one from elsewhere may be.
pub(crate) async fn check_reached(
    api: &Inner,
    resource: &Resource,
    version: &ResourceVersion,
) -> Result<(), Error> {
    let newest = newest(api, &Query::all(resource.group_kind().clone())).await?;
    if is_later(version, &newest) { Err(Error::version_too_large(&version.0, &newest.0)) } else { Ok(()) }
}

/// Whether `version` lies in the future of `newest`. Both are numbers of this store, as clients that
/// compare them by NotOlderThan rely on.
pub(crate) fn is_later(version: &ResourceVersion, newest: &ResourceVersion) -> bool {
    let number = |version: &ResourceVersion| version.0.parse::<u64>().unwrap_or(u64::MAX);
    number(version) > number(newest)
}

/// A page whose moment is compacted: the client may start over, or go on as of now.
async fn expired(api: &Inner, options: &ListOptions, request: &PageRequest) -> Error {
    let Some(token) = request.token.as_deref().filter(|_| options.token.is_some()) else {
        return Error::new(Reason::Expired, "The resourceVersion for the provided list is too old.");
    };
    let message = "The provided continue parameter is too old to display a consistent list result. You can start \
                   a new list without the continue parameter, or use the continue token in this response to \
                   retrieve the remainder of the results. Continuing with the provided token results in an \
                   inconsistent list - objects that were created, modified, or deleted between the time the \
                   first chunk was returned and now may show up in the list.";
    let newest = newest(api, &options.query).await.ok();
    let next = newest.and_then(|newest| token::renew(token, &newest));
    Error::new(Reason::Expired, message).with(Details { next, ..Details::default() })
}

/// A page as JSON.
pub(crate) fn write(
    call: &Call<'_>,
    page: &Page,
    remaining: Option<usize>,
    form: Form,
    include: Include,
) -> Vec<u8> {
    let (resource, version) = (call.resource, call.resource.version());
    let (position, next) = (&page.position, page.next.as_deref());
    let list = |kind, api_version| List { kind, api_version, position, next, remaining };
    let bytes = page.items.iter().map(|item| item.body().payload().len() + 160).sum();
    match form {
        Form::Whole | Form::Aggregated => {
            let head = list(&resource.card().list_kind, &resource.api_version).open("items", bytes);
            fill(head, &page.items, |item| item.to_json_as(version))
        }
        Form::Partial => {
            let head = list("PartialObjectMetadataList", "meta.k8s.io/v1").open("items", bytes);
            fill(head, &page.items, splice::partial)
        }
        Form::Table => {
            let tables = Tables { resource, include, now: call.api.clock.now() };
            let mut out = list("Table", "meta.k8s.io/v1").open("columnDefinitions", bytes);
            out.pop();
            out.extend_from_slice(&text(&tables.definitions().into()));
            out.extend_from_slice(br#","rows":["#);
            fill(out, &page.items, |item| tables.row(item))
        }
    }
}

fn fill(mut out: Vec<u8>, items: &[Encoded], json: impl Fn(&Encoded) -> Vec<u8>) -> Vec<u8> {
    let start = out.len();
    for item in items {
        splice::item(&mut out, start, &json(item));
    }
    splice::close(out)
}
