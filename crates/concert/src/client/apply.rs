//! Server-side apply of manifests, one at a time.

use std::collections::HashMap;
use std::time::Duration;

use concert_model::Object;
use concert_server::Clock as _;
use http::Method;
use serde_json::Value;

use super::diff::diff;
use super::discovery::{Kinds, Resource};
use super::error::Error;
use super::session::{Ask, Session};
use crate::cli::Advice;

/// Whose fields these are.
const FIELD_MANAGER: &str = "concert";
/// How often and how long a kind is waited for that a manifest before it has defined.
const DEFINED_TRIES: usize = 50;
const DEFINED_WAIT: Duration = Duration::from_millis(200);

/// How to apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Takes fields over from whoever has them.
    pub is_forced: bool,
    /// Only says what would be.
    pub is_dry_run: bool,
}

/// What is to be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Anything,
    /// Nothing: the object is to be made.
    Nothing,
}

/// What became of one manifest.
#[derive(Clone, Debug)]
pub struct Applied {
    pub resource: Resource,
    /// As it was.
    pub before: Option<Value>,
    /// As it is now, or would be.
    pub object: Value,
}

impl Applied {
    /// `created`, `configured` or `unchanged`.
    pub fn verb(&self) -> &'static str {
        let version = |it: &Value| it["metadata"]["resourceVersion"].clone();
        match &self.before {
            None => "created",
            // A dry run changes the version of nothing.
            Some(before)
                if version(before) == version(&self.object)
                    && diff(Some(before), &self.object).is_empty() =>
            {
                "unchanged"
            }
            Some(_) => "configured",
        }
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    pub fn namespace(&self) -> &str {
        self.object["metadata"]["namespace"].as_str().unwrap_or_default()
    }
}

/// Applies manifests to one server. Remembers which kinds it has.
pub struct Applier<'a> {
    session: &'a Session,
    options: Options,
    /// The namespace that was asked for on the command line.
    namespace: Option<String>,
    known: HashMap<String, Kinds>,
    /// Whether a definition has been applied, so that new kinds may appear.
    has_defined: bool,
}

impl<'a> Applier<'a> {
    /// From now on fields are taken over from whoever has them, or not.
    pub fn force(&mut self, is_forced: bool) {
        self.options.is_forced = is_forced;
    }

    pub fn new(session: &'a Session, options: Options, namespace: Option<&str>) -> Self {
        let namespace = namespace.map(str::to_owned);
        Self { session, options, namespace, known: HashMap::new(), has_defined: false }
    }

    /// Applies one.
    pub async fn apply(&mut self, manifest: &Object, expect: Expect) -> anyhow::Result<Applied> {
        let resource = self.resource(manifest).await?;
        let manifest = self.prepared(manifest, &resource)?;
        let address = resource.object(manifest.namespace(), manifest.name());
        let before = self.session.find(&Ask::get(address.clone())).await?;
        // A create would be the server's to refuse, but whoever creates owns the fields otherwise than
        // whoever applies, and what a later apply leaves out would stay. Should one appear after this look,
        // fields that it has otherwise are a conflict.
        if expect == Expect::Nothing && before.is_some() {
            return Err(Advice::new("it exists now, and was to be made", "concert plan -f FILE").into());
        }
        let mut address = address.with("fieldManager", FIELD_MANAGER);
        address = address.with("force", if self.options.is_forced { "true" } else { "false" });
        if self.options.is_dry_run {
            address = address.with("dryRun", "All");
        }
        let ask =
            Ask::new(Method::PATCH, address).with("application/apply-patch+yaml", &manifest.into_value());
        let object = self.send(&ask).await?;
        self.has_defined |= resource.kind == "CustomResourceDefinition" && !self.options.is_dry_run;
        Ok(Applied { resource, before, object })
    }

    /// A kind that was just defined is announced a moment before every part of a server knows it.
    async fn send(&self, ask: &Ask) -> Result<Value, Error> {
        let mut tries = if self.has_defined { DEFINED_TRIES } else { 1 };
        loop {
            tries -= 1;
            match self.session.value(ask).await {
                Err(error) if error.is_not_served() && tries > 0 => {
                    self.session.clock.sleep(DEFINED_WAIT).await;
                }
                result => return result,
            }
        }
    }

    /// How the kind of a manifest is served.
    pub async fn resource(&mut self, manifest: &Object) -> anyhow::Result<Resource> {
        let kind = manifest.gvk()?;
        let (group, version) = (&*kind.group_kind.group, &*kind.version);
        let mut tries = if self.has_defined { DEFINED_TRIES } else { 1 };
        loop {
            tries -= 1;
            if let Some(found) = self.remembered(manifest) {
                return Ok(found);
            }
            let kinds = Kinds::of_version(self.session, group, version).await?;
            self.known.insert(manifest.api_version().to_owned(), kinds);
            match self.remembered(manifest) {
                Some(found) => return Ok(found),
                None if tries > 0 => self.session.clock.sleep(DEFINED_WAIT).await,
                None => break,
            }
        }
        let what = format!("the server has no {} of {}", manifest.kind(), manifest.api_version());
        let hint = "apply its definition first; concert api-resources shows what there is";
        Err(Advice::new(what, hint).into())
    }

    fn remembered(&self, manifest: &Object) -> Option<Resource> {
        let kinds = self.known.get(manifest.api_version())?;
        kinds.0.iter().find(|it| it.kind == manifest.kind()).cloned()
    }

    /// The manifest as it is sent: in its namespace, and without what only a server writes.
    pub fn prepared(&self, manifest: &Object, resource: &Resource) -> anyhow::Result<Object> {
        let mut manifest = manifest.clone();
        if resource.is_namespaced {
            let own = manifest.namespace().to_owned();
            match &self.namespace {
                Some(asked) if !own.is_empty() && own != *asked => {
                    let what =
                        format!("{} is in namespace {own}, but --namespace says {asked}", manifest.name());
                    return Err(Advice::new(
                        what,
                        "leave --namespace out, or take the namespace out of the file",
                    )
                    .into());
                }
                _ if own.is_empty() => {
                    let namespace = self.namespace.as_deref().unwrap_or(self.session.namespace());
                    manifest.set_metadata("namespace", namespace.into());
                }
                _ => {}
            }
        }
        manifest.change(|value| {
            if let Some(metadata) = value["metadata"].as_object_mut() {
                metadata.remove("managedFields");
            }
        });
        Ok(manifest)
    }
}
