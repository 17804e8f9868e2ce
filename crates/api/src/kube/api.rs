//! The door: every request comes in here, and exactly one answer goes out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes};
use concert_model::ObjectKey;
use concert_store::{Chance, Clock, Local, Part};
use http::request::Parts as Head;
use http::{HeaderMap, Method, Request, Response, Uri};
use tokio::sync::Semaphore;

use super::accept::{Accepted, Form, Offer, negotiate};
use super::answer::{self, Answer, Body, Made};
use super::catalogue::{Catalogues, Resource};
use super::content::{self, BoxError};
use super::extensions::{self, Extensions};
use super::params::Params;
use super::path::{self, Address, Target};
use super::watch::{self, Lines};
use super::{change, list, objects, reviews, statics, token};
use crate::audit::{Audit, Record};
use crate::auth::{Access, Gate, Refusal, User};
use crate::error::{Error, Naming};
use crate::listen::Peer;
use crate::rest::{self, Door};
use crate::write::Writer;

/// What an API is made of.
pub struct Parts {
    /// Where the objects are.
    pub store: Local,
    /// Who may do what.
    pub gate: Gate,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where chance comes from.
    pub chance: Chance,
    /// What is known outside of the store.
    pub extensions: Arc<dyn Extensions>,
    /// Who did what.
    pub audit: Audit,
    /// How much is taken.
    pub limits: Limits,
}

/// How much one request, and all watches together, may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest body: as kube-apiserver's, so that what fits there fits here.
    pub body_bytes_max: usize,
    /// Longest query.
    pub query_bytes_max: usize,
    /// Watches at one time.
    pub watches_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body_bytes_max: 3 * 1024 * 1024, query_bytes_max: 32 * 1024, watches_max: 10_000 }
    }
}

/// The Kubernetes-shaped API over one store. Cheap to clone.
#[derive(Clone)]
pub struct Api(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) store: Local,
    pub(crate) gate: Gate,
    pub(crate) writer: Writer,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
    pub(crate) extensions: Arc<dyn Extensions>,
    audit: Audit,
    pub(crate) catalogues: Catalogues,
    pub(crate) lines: Lines,
    pub(crate) watches: Arc<Semaphore>,
    pub(crate) closing: tokio::sync::watch::Sender<bool>,
    pub(crate) is_leaving: AtomicBool,
    limits: Limits,
    rest: Option<Door>,
}

/// One request about objects, after it was let in.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Arc<Inner>,
    pub(crate) user: &'a User,
    pub(crate) resource: &'a Arc<Resource>,
    /// Empty for cluster-scoped objects and for all namespaces.
    pub(crate) namespace: &'a str,
    /// Empty for a collection.
    pub(crate) name: &'a str,
    pub(crate) params: &'a Params<'a>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) uri: &'a Uri,
}

impl Call<'_> {
    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey::namespaced(self.resource.group_kind().clone(), self.namespace, self.name)
    }

    pub(crate) fn naming(&self) -> Naming<'_> {
        self.resource.naming(self.name)
    }

    /// The one object that a list or watch is about, if it says so.
    pub(crate) fn watched_name(&self) -> Option<String> {
        if self.name.is_empty() { list::only_name(self.params) } else { Some(self.name.to_owned()) }
    }
}

impl Api {
    /// An API over `parts`.
    pub fn new(parts: Parts) -> Self {
        Self::open(parts, None)
    }

    /// The same, with the REST door beside it: what that admits is asked of every write.
    pub fn with_rest(parts: Parts, rest: rest::Parts) -> Self {
        Self::open(parts, Some(rest))
    }

    fn open(parts: Parts, rest: Option<rest::Parts>) -> Self {
        let Parts { store, gate, clock, chance, extensions, audit, limits } = parts;
        let watches = Arc::new(Semaphore::new(limits.watches_max.min(Semaphore::MAX_PERMITS)));
        let closing = tokio::sync::watch::Sender::new(false);
        let shared = || rest::Shared {
            store: store.clone(),
            gate: gate.clone(),
            clock: clock.clone(),
            watches: watches.clone(),
            closing: closing.clone(),
            body_bytes_max: limits.body_bytes_max,
            query_bytes_max: limits.query_bytes_max,
        };
        let rest = rest.map(|rest| Door::new(rest, shared()));
        let mut writer = Writer::new(store.clone(), gate.clone());
        if let Some(rest) = &rest {
            writer = writer.with_admission(rest.admission());
        }
        Self(Arc::new(Inner {
            writer,
            catalogues: Catalogues::new(store.clone()),
            store,
            gate,
            clock,
            chance,
            extensions,
            audit,
            lines: Lines::new(),
            watches,
            closing,
            is_leaving: AtomicBool::new(false),
            limits,
            rest,
        }))
    }

    /// Answers one request. Whatever is wrong with it is said in the answer.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let started = self.0.clock.elapsed();
        let mut caller = None;
        // Whatever a client was answered by another replica holds here too: kinds, rights, and what was
        // taken away.
        let answered = match (self.0.store.refresh().await, self.0.rest_for(&head)) {
            (Ok(()), _) => self.0.answer(&head, body, &mut caller).await,
            (Err(error), Some(rest)) => Ok(rest.refuse(&head, error).await),
            (Err(error), None) => Err(Error::unavailable(error.to_string())),
        };
        let response = answered.unwrap_or_else(|error| answer::refusal(&error));
        self.0.note(&head, caller.as_ref(), started, &response);
        response
    }

    /// Says on `/readyz` that requests are better sent elsewhere, and answers them still.
    pub fn leave(&self) {
        self.0.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Ends all watches, so that their connections can be closed; no new one lasts.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }
}

impl Inner {
    async fn answer<B>(
        self: &Arc<Self>,
        head: &Head,
        body: B,
        caller: &mut Option<User>,
    ) -> Result<Response<Body>, Error>
    where
        B: http_body::Body,
        B::Data: Buf,
        B::Error: Into<BoxError>,
    {
        if let Some(rest) = self.rest_for(head) {
            return Ok(rest.handle(head, body, caller).await);
        }
        let params = Params::read(head.uri.query(), self.limits.query_bytes_max)?;
        let user = self.gate.authenticate(&head.headers).await.map_err(|e| Error::refused(e, None))?;
        let user = &*caller.insert(user);
        let target = path::parse(head.uri.path());
        let Some(Target::Objects(address)) = target else {
            return statics::answer(self, user, head, target, &params).await;
        };
        let verb = self.admit(user, &head.method, &address, &params).await?;
        let body = match verb {
            "get" | "list" | "watch" => Bytes::new(),
            _ => content::collect(body, self.limits.body_bytes_max).await?,
        };
        self.objects(user, head, verb, &address, &params, &body).await
    }

    /// The REST door, if a request is for it.
    fn rest_for(&self, head: &Head) -> Option<&Door> {
        self.rest.as_ref().filter(|rest| rest.takes(head))
    }

    /// Writes down who asked for what.
    fn note(&self, head: &Head, user: Option<&User>, started: Duration, response: &Response<Body>) {
        let code = response.status().as_u16();
        let made = response.extensions().get::<Made>().map(|made| &*made.0);
        let params = Params::read(head.uri.query(), self.limits.query_bytes_max).unwrap_or_default();
        let (path, method) = (head.uri.path(), head.method.as_str().to_ascii_lowercase());
        let mut record = match path::parse(path) {
            Some(Target::Objects(address)) if self.rest_for(head).is_none() => {
                let verb = verb(&head.method, &address, &params).unwrap_or("unknown");
                let mut access = access(verb, &address);
                if let (Access::Resource { name, .. }, Some(made)) = (&mut access, made) {
                    *name = made;
                }
                Record::new(self.clock.now(), user, Some(&access), code)
            }
            _ => {
                let access = Access::Path { verb: &method, path };
                Record::new(self.clock.now(), user, Some(&access), code)
            }
        };
        record.from = head.extensions.get::<Peer>().map(|peer| peer.address.ip());
        record.is_dry_run = params.text("dryRun").is_some();
        record.took = self.clock.elapsed().saturating_sub(started);
        self.audit.note(record);
    }

    /// Lets the request in, or not; says which verb it is.
    async fn admit(
        &self,
        user: &User,
        method: &Method,
        address: &Address<'_>,
        params: &Params<'_>,
    ) -> Result<&'static str, Error> {
        let verb = verb(method, address, params)?;
        let kind = concert_model::GroupKind::new(address.group(), "");
        let name = address.name.as_deref().unwrap_or_default();
        let naming = Naming { kind: &kind, plural: address.resource, name };
        // Who may see one object may list and watch just that one.
        let only = list::only_name(params).filter(|_| matches!(verb, "list" | "watch"));
        let mut access = access(verb, address);
        if let (Some(only), Access::Resource { name, .. }) = (&only, &mut access)
            && name.is_empty()
        {
            *name = only;
        }
        let allowed = self.gate.authorise(user, &access).await;
        // An explanation is made for readers of the object: whoever is one may have it.
        let is_reader = matches!(allowed, Err(Refusal::Forbidden(_)))
            && (verb, address.subresource) == ("get", "explain")
            && self.gate.authorise(user, &whole(access)).await.is_ok();
        if !is_reader {
            allowed.map_err(|refusal| Error::refused(refusal, Some(&naming)))?;
        }
        Ok(verb)
    }

    async fn objects(
        self: &Arc<Self>,
        user: &User,
        head: &Head,
        verb: &'static str,
        address: &Address<'_>,
        params: &Params<'_>,
        body: &Bytes,
    ) -> Result<Response<Body>, Error> {
        let is_pretty = params.is_set("pretty")?;
        let plain = || negotiate(&head.headers, Offer::Plain);
        if let Some(review) = reviews::find(address) {
            let answer = reviews::answer(self, user, head, review, params, body).await?;
            return Ok(answer.write(plain()?.media, is_pretty));
        }
        if extensions::is_plan(address) {
            let answer = extensions::plan(self, user, head, params, body).await?;
            return Ok(answer.write(plain()?.media, is_pretty));
        }
        let catalogue = self.catalogues.now();
        let resource =
            catalogue.find(address.api_version, address.resource).ok_or_else(Error::unknown_path)?;
        check_scope(resource, address, verb)?;
        let call = Call {
            api: self,
            user,
            resource,
            namespace: address.namespace.as_deref().unwrap_or_default(),
            name: address.name.as_deref().unwrap_or_default(),
            params,
            headers: &head.headers,
            uri: &head.uri,
        };
        let accepted = accept(&call, verb)?;
        if verb == "watch" {
            return watch::watch(&call, accepted).await;
        }
        let answer = perform(&call, verb, address.subresource, accepted.form, body).await?;
        let warned = answer.warning(resource.view().deprecation.clone());
        Ok(warned.write(accepted.media, is_pretty))
    }
}

/// The form of the answer. What a watch sends are single objects, but some ask for it as for a list.
fn accept(call: &Call<'_>, verb: &str) -> Result<Accepted, Error> {
    match verb {
        "list" | "deletecollection" => negotiate(call.headers, Offer::List),
        "watch" => negotiate(call.headers, Offer::Object).or_else(|_| negotiate(call.headers, Offer::List)),
        _ => negotiate(call.headers, Offer::Object),
    }
}

/// Does what the verb says, to the object or to the part of it that `subresource` names.
async fn perform(
    call: &Call<'_>,
    verb: &str,
    subresource: &str,
    form: Form,
    body: &Bytes,
) -> Result<Answer, Error> {
    match (verb, subresource) {
        ("list", "") => list::list(call, form).await,
        ("get", "" | "status") => objects::get(call, form).await,
        ("get", "explain") => extensions::explain(call).await,
        ("get", "history") => extensions::history(call).await,
        ("create", "token") => token::request(call, body).await,
        ("create", "") => change::create(call, body, form).await,
        ("update", "") => change::update(call, Part::Main, body, form).await,
        ("update", "status") => change::update(call, Part::Status, body, form).await,
        ("update", "finalize") => change::finalize(call, body, form).await,
        ("patch", "") => change::patch(call, Part::Main, body, form).await,
        ("patch", "status") => change::patch(call, Part::Status, body, form).await,
        ("delete", "") => change::delete(call, body, form).await,
        ("deletecollection", "") => change::delete_collection(call, body, form).await,
        _ => Err(Error::method_not_allowed()),
    }
}

/// What the gate is asked.
fn access<'a>(verb: &'a str, address: &'a Address<'a>) -> Access<'a> {
    let name = address.name.as_deref().unwrap_or_default();
    let is_namespace = address.api_version == "v1" && address.resource == "namespaces";
    Access::Resource {
        verb,
        group: address.group(),
        resource: address.resource,
        subresource: address.subresource,
        // Who may do something in a namespace may do it to the namespace itself.
        namespace: address.namespace.as_deref().unwrap_or(if is_namespace { name } else { "" }),
        name,
    }
}

/// The same about the whole object, and not a part of it.
fn whole(access: Access<'_>) -> Access<'_> {
    match access {
        Access::Resource { verb, group, resource, namespace, name, .. } => {
            Access::Resource { verb, group, resource, subresource: "", namespace, name }
        }
        path @ Access::Path { .. } => path,
    }
}

fn verb(method: &Method, address: &Address<'_>, params: &Params<'_>) -> Result<&'static str, Error> {
    match (method.as_str(), address.name.is_some()) {
        ("GET", _) if address.subresource.is_empty() && params.is_set(watch::PARAM)? => Ok("watch"),
        ("GET", true) => Ok("get"),
        ("GET", false) => Ok("list"),
        ("POST", _) => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) => Ok("delete"),
        ("DELETE", false) => Ok("deletecollection"),
        _ => Err(Error::method_not_allowed()),
    }
}

/// Paths that no object of this resource can have, and methods that such a path does not have.
fn check_scope(resource: &Resource, address: &Address<'_>, verb: &str) -> Result<(), Error> {
    let is_known = match address.subresource {
        "" | "explain" | "history" => true,
        "status" => resource.view().has_status,
        "finalize" => resource.is_core("Namespace"),
        "token" => resource.is_core("ServiceAccount"),
        _ => false,
    };
    match (resource.is_namespaced(), address.namespace.is_some(), address.name.is_some()) {
        _ if !is_known => Err(Error::unknown_path()),
        (false, true, _) | (true, false, true) => Err(Error::unknown_path()),
        (true, false, false) if !matches!(verb, "list" | "watch") => Err(Error::method_not_allowed()),
        (_, _, true) if verb == "create" && address.subresource != "token" => {
            Err(Error::method_not_allowed())
        }
        _ => Ok(()),
    }
}
