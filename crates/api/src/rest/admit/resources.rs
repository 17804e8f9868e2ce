//! Resources: who reconciles them, what they must look like, who else is asked.

use concert_model::no8s::{Resource, names};
use concert_model::{Object, time};
use concert_store::{Error, Store as _};
use serde_json::Value;

use super::Admit;
use super::numbered::keep_label;
use crate::auth::User;
use crate::rest::ids;
use crate::rest::owners::Owners;
use crate::rest::types::Typed;
use crate::rest::view;
use crate::write::{Act, Denied};

/// Largest spec, and largest configuration of a plugin, as JSON text.
pub const PART_BYTES_MAX: usize = 1024 * 1024;

/// The finalizer of a resource: the action plugin that it names, or else the worker of its type.
///
/// # Errors
/// [`Denied::BadRequest`] if nobody would reconcile it.
pub fn finalizer(owners: &Owners, type_name: &str, version: &str, action: &str) -> Result<String, Denied> {
    if !action.is_empty() {
        if owners.has_action(action) {
            return Ok(action.to_owned());
        }
        let known = owners.actions().join(", ");
        return Err(Denied::BadRequest(format!(
            "Unknown action plugin: {action}. Available plugins: {known}"
        )));
    }
    let owner = owners.of_type(type_name, version).map(str::to_owned);
    owner.ok_or_else(|| {
        Denied::BadRequest(format!(
            "No reconciler plugin registered for resource type '{type_name}' and no action_plugin specified"
        ))
    })
}

/// A new resource must want something.
///
/// # Errors
/// [`Denied::BadRequest`].
pub fn check_spec(spec: &Value) -> Result<(), Denied> {
    match spec {
        Value::Null => Err(Denied::BadRequest("spec is required".into())),
        Value::Object(fields) if fields.is_empty() => Err(Denied::BadRequest("spec is required".into())),
        Value::Object(_) => Ok(()),
        _ => Err(Denied::Invalid { field: "spec", detail: "spec must be an object".into() }),
    }
}

/// One write of a resource.
pub(super) struct Asking<'a> {
    pub(super) admit: &'a Admit,
    pub(super) typed: &'a Typed,
    pub(super) user: &'a User,
    pub(super) is_dry_run: bool,
}

impl Asking<'_> {
    pub(super) async fn admit(
        &self,
        act: Act,
        old: Option<&Object>,
        new: Option<&mut Object>,
    ) -> Result<(), Denied> {
        match (act, old, new) {
            (Act::Create, _, Some(new)) => self.admit_new(new).await,
            (Act::Update, Some(old), Some(new)) => self.admit_change(old, new).await,
            (Act::Delete, Some(old), _) if old.deleted_at().is_none() => {
                let shown = view::resource(old);
                self.ask(act, Some(&shown), &mut shown.clone()).await
            }
            _ => Ok(()),
        }
    }

    async fn admit_new(&self, new: &mut Object) -> Result<(), Denied> {
        let action = Resource(new).action().to_owned();
        let owners = Owners::read(&self.admit.store).await?;
        let kind = &self.typed.kind;
        let finalizer = finalizer(&owners, &kind.name, &kind.version, &action)?;
        check_spec(new.spec())?;
        check_sizes(new)?;
        if action.is_empty() {
            // Its type may be another worker's by the time it is deleted.
            new.set_annotation(names::FINALIZER, &finalizer);
        } else {
            new.set_label(names::ACTION, &action);
        }
        new.add_finalizer(&finalizer);
        self.judge_spec(Act::Create, None, new).await?;
        self.check_free(new).await?;
        // Last, so that what is refused uses up no number.
        if !self.is_dry_run {
            new.set_label(names::ID, &self.admit.ids.draw(ids::RESOURCES).await?.to_string());
        }
        Ok(())
    }

    /// Refuses a name that is taken, as the write would: but that comes after the number.
    async fn check_free(&self, new: &Object) -> Result<(), Denied> {
        let Some(key) = new.key().ok().filter(|key| !key.name.is_empty()) else { return Ok(()) };
        match self.admit.store.get(&key).await {
            Ok(_) => Err(Error::AlreadyExists { key }.into()),
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn admit_change(&self, old: &Object, new: &mut Object) -> Result<(), Denied> {
        keep_label(old, new, names::ID)?;
        keep_label(old, new, names::ACTION)?;
        if Resource(old).action() != Resource(new).action() {
            let detail = "the action plugin of a resource cannot be changed".into();
            return Err(Denied::Invalid { field: "plugin.action", detail });
        }
        if old.spec() != new.spec() {
            check_sizes(new)?;
            self.judge_spec(Act::Update, Some(old), new).await?;
        } else if old.get("plugin") != new.get("plugin") {
            check_sizes(new)?;
        }
        // Defaults may have made it what it was.
        if old.spec() != new.spec() || old.get("plugin") != new.get("plugin") {
            new.set_annotation(names::UPDATED_AT, &time::micros(self.admit.clock.now()));
        }
        Ok(())
    }

    /// Completes and checks a spec, and asks who else has a say. What they change is checked again.
    async fn judge_spec(&self, act: Act, old: Option<&Object>, new: &mut Object) -> Result<(), Denied> {
        complete(self.typed, new)?;
        let mut shown = view::resource(new);
        self.ask(act, old.map(view::resource).as_ref(), &mut shown).await?;
        let spec = shown["spec"].take();
        if spec != *new.spec() {
            new.set("spec", spec);
            check_sizes(new)?;
            complete(self.typed, new)?;
        }
        Ok(())
    }

    async fn ask(&self, act: Act, old: Option<&Value>, new: &mut Value) -> Result<(), Denied> {
        self.admit.webhooks.admit(self.user, act, old, new, self.is_dry_run).await
    }
}

/// Fills in defaults, then checks.
fn complete(typed: &Typed, object: &mut Object) -> Result<(), Denied> {
    let Some(schema) = &typed.schema else { return Ok(()) };
    let mut spec = object.spec().clone();
    schema.complete(&mut spec);
    let mistakes = schema.mistakes(&spec);
    if !mistakes.is_empty() {
        let detail = format!("Spec validation failed: {}", mistakes.join("; "));
        return Err(Denied::Invalid { field: "spec", detail });
    }
    object.set("spec", spec);
    Ok(())
}

fn check_sizes(object: &Object) -> Result<(), Denied> {
    let plugin = object.get("plugin");
    for (field, name, value) in
        [("spec", "spec", object.spec()), ("plugin.config", "plugin_config", &plugin["config"])]
    {
        if is_too_large(value) {
            let detail = format!("{name} must not exceed {PART_BYTES_MAX} bytes of JSON");
            return Err(Denied::Invalid { field, detail });
        }
    }
    Ok(())
}

/// True if a value is more text than a part of a resource may be.
pub fn is_too_large(value: &Value) -> bool {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            if self.0 > PART_BYTES_MAX {
                Err(std::io::ErrorKind::FileTooLarge.into())
            } else {
                Ok(bytes.len())
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Count(0), value).is_err()
}
