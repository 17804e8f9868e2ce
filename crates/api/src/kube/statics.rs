//! What is not an object: version, health, discovery, OpenAPI.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use concert_model::{GroupKind, ObjectKey};
use concert_store::Store;
use http::header::{ETAG, HeaderValue, IF_NONE_MATCH, VARY};
use http::request::Parts as Head;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::accept::{Form, Media, Offer, negotiate};
use super::answer::{self, Answer, Body};
use super::api::Inner;
use super::catalogue::Catalogue;
use super::hash::Hashed;
use super::openapi;
use super::params::Params;
use super::path::Target;
use crate::auth::{Access, User};
use crate::error::Error;

/// The Kubernetes whose clients we are tested with. They compare it with their own version.
const MAJOR: &str = "1";
const MINOR: &str = "34";

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

pub(crate) async fn answer(
    api: &Arc<Inner>,
    user: &User,
    head: &Head,
    target: Option<Target<'_>>,
    params: &Params<'_>,
) -> Result<Response<Body>, Error> {
    let verb = head.method.as_str().to_ascii_lowercase();
    let access = Access::Path { verb: &verb, path: head.uri.path() };
    api.gate.authorise(user, &access).await.map_err(|refusal| Error::refused(refusal, None))?;
    let target = target.ok_or_else(Error::unknown_path)?;
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return Err(Error::method_not_allowed());
    }
    let known: &[&str] = match target {
        Target::Health(_) => &["verbose"],
        Target::OpenApiDocument(_) => &["hash"],
        _ => &[],
    };
    params.check(known)?;
    let catalogue = api.catalogues.now();
    match target {
        Target::Version => Ok(Answer::value(&version()).write(Media::Json, params.is_set("pretty")?)),
        Target::Health(which) => health(api, which, params.is_set("verbose")?).await,
        Target::OpenApiTwo => Ok(openapi::two(head)),
        Target::Root => Ok(Answer::value(&json!({"paths": paths(&catalogue)})).write(Media::Json, true)),
        other => describe(head, &catalogue, &other),
    }
}

/// Discovery and OpenAPI.
fn describe(head: &Head, catalogue: &Catalogue, target: &Target<'_>) -> Result<Response<Body>, Error> {
    let discovery = catalogue.discovery();
    let (plain, aggregated) = match target {
        Target::CoreVersions => (Some(&discovery.core), Some(&discovery.core_aggregated)),
        Target::Groups => (Some(&discovery.groups), Some(&discovery.groups_aggregated)),
        Target::Group(group) => (discovery.group(group), None),
        Target::Resources(api_version) => (discovery.resources(api_version), None),
        Target::OpenApi => (Some(catalogue.openapi()), None),
        Target::OpenApiDocument(api_version) => {
            (catalogue.version(api_version).map(|version| version.openapi()), None)
        }
        _ => (None, None),
    };
    choose(head, plain.ok_or_else(Error::unknown_path)?, aggregated)
}

/// A document that clients keep: unchanged if they have it already.
fn choose(head: &Head, plain: &Hashed, aggregated: Option<&Hashed>) -> Result<Response<Body>, Error> {
    let offer = if aggregated.is_some() { Offer::Discovery } else { Offer::Plain };
    let accepted = negotiate(&head.headers, offer)?;
    let (document, content_type) = match (accepted.form, aggregated) {
        (Form::Aggregated, Some(aggregated)) => (aggregated, AGGREGATED),
        _ => (plain, "application/json"),
    };
    let tag = format!("\"{}\"", document.hash);
    let known = head.headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
    let is_known = known.split(',').any(|one| one.trim() == tag);
    let mut response = match accepted.media {
        _ if is_known => answer::whole(StatusCode::NOT_MODIFIED, content_type, ""),
        Media::Json => answer::whole(StatusCode::OK, content_type, document.bytes.clone()),
        Media::Yaml => Answer::ok(document.bytes.clone()).write(Media::Yaml, false),
    };
    if let Ok(tag) = HeaderValue::try_from(tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}

fn version() -> serde_json::Value {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    json!({
        "major": MAJOR, "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.0+concert-{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": platform,
    })
}

async fn health(api: &Inner, which: &str, is_verbose: bool) -> Result<Response<Body>, Error> {
    // Whether the store can be read is a matter of readiness: a restart would not help it.
    if which == "readyz" {
        if api.is_leaving.load(Ordering::Relaxed) {
            return Err(Error::unavailable("[-]stopping"));
        }
        let key = ObjectKey::cluster(GroupKind::new("", "Namespace"), "default");
        if let Err(concert_store::Error::Unavailable(_)) = api.store.get(&key).await {
            return Err(Error::unavailable("[-]store failed"));
        }
    }
    let text = match is_verbose {
        true => format!("[+]store ok\n{which} check passed\n"),
        false => "ok".to_owned(),
    };
    Ok(answer::whole(StatusCode::OK, "text/plain; charset=utf-8", text))
}

fn paths(catalogue: &Catalogue) -> Vec<String> {
    let mut paths: Vec<String> = vec!["/api".into(), "/apis".into()];
    for group in &catalogue.groups {
        let root = if group.name.is_empty() { "/api" } else { "/apis" };
        if !group.name.is_empty() {
            paths.push(format!("{root}/{}", group.name));
        }
        paths.extend(group.versions.iter().map(|version| format!("{root}/{}", version.api_version)));
    }
    paths.extend(
        ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"].map(String::from),
    );
    paths
}
