//! Questions about oneself: who am I, may I, and what may I.
//!
//! They look like objects that are created, and are never stored.

mod access;
mod rules;

use std::sync::Arc;

use concert_model::time;
use http::request::Parts as Head;
use serde_json::{Value, json};

use super::answer::{Answer, text};
use super::api::Inner;
use super::content;
use super::params::Params;
use super::path::Address;
use crate::auth::User;
use crate::error::Error;

/// One kind of question.
#[derive(Debug)]
pub(crate) struct Review {
    group: &'static str,
    version: &'static str,
    pub(crate) resource: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) kind: &'static str,
}

const REVIEWS: [Review; 3] = [
    Review {
        group: "authentication.k8s.io",
        version: "v1",
        resource: "selfsubjectreviews",
        singular: "selfsubjectreview",
        kind: "SelfSubjectReview",
    },
    Review {
        group: "authorization.k8s.io",
        version: "v1",
        resource: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        kind: "SelfSubjectAccessReview",
    },
    Review {
        group: "authorization.k8s.io",
        version: "v1",
        resource: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        kind: "SelfSubjectRulesReview",
    },
];

/// Groups and versions that have reviews, and may have nothing else.
pub(crate) const GROUP_VERSIONS: &[(&str, &str)] =
    &[("authentication.k8s.io", "v1"), ("authorization.k8s.io", "v1")];

/// The reviews of one version of a group.
pub(crate) fn of<'a>(group: &'a str, version: &'a str) -> impl Iterator<Item = &'static Review> + 'a {
    REVIEWS.iter().filter(move |review| review.group == group && review.version == version)
}

/// The review that a path is for.
pub(crate) fn find(address: &Address<'_>) -> Option<&'static Review> {
    // Most paths are not: one look at the group tells.
    if address.namespace.is_some() || !address.api_version.starts_with("auth") {
        return None;
    }
    let (group, version) = address.api_version.split_once('/')?;
    REVIEWS
        .iter()
        .find(|review| {
            review.group == group && review.version == version && review.resource == address.resource
        })
        .filter(|_| address.name.is_none())
}

/// Answers a question.
pub(crate) async fn answer(
    api: &Arc<Inner>,
    user: &User,
    head: &Head,
    review: &Review,
    params: &Params<'_>,
    body: &[u8],
) -> Result<Answer, Error> {
    if head.method != http::Method::POST {
        return Err(Error::method_not_allowed());
    }
    params.check(&["dryRun", "fieldManager", "fieldValidation"])?;
    let question = content::read_sent(&head.headers, body)?.value;
    let api_version = format!("{}/{}", review.group, review.version);
    for (field, expected) in [("kind", review.kind), ("apiVersion", &*api_version)] {
        let sent = &question[field];
        if !sent.is_null() && sent != expected {
            return Err(Error::bad_request(format!("{field} must be {expected:?}")));
        }
    }
    if !question.is_object() {
        return Err(Error::bad_request("the body of the request must be an object"));
    }
    let spec = &question["spec"];
    let status = match review.kind {
        "SelfSubjectReview" => who(user),
        "SelfSubjectAccessReview" => access::status(api, user, spec).await?,
        _ => rules::status(api, user, spec).await?,
    };
    let metadata = json!({"creationTimestamp": time::seconds(api.clock.now())});
    let mut answer =
        json!({"kind": review.kind, "apiVersion": api_version, "metadata": metadata, "status": status});
    if !spec.is_null() {
        answer["spec"] = spec.clone();
    }
    Ok(Answer::created(text(&answer)))
}

fn who(user: &User) -> Value {
    let groups: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
    let mut info = json!({"username": &*user.name, "groups": groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(&*user.uid);
    }
    json!({ "userInfo": info })
}
