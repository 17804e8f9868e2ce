//! `concert delete`: asks for objects to go, and waits until they are gone.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::Run;
use super::objects::{Scope, duration, meant, too_late};
use crate::cli::Advice;
use crate::client::apply::{Applier, Options};
use crate::client::wait::{self, Place};
use crate::client::{Ask, Flags, Resource, Session};
use crate::exit::Exit;
use crate::manifests;
use crate::print::{self, Output, Progress};

/// What becomes of what an object owns.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Cascade {
    /// Deleted afterwards.
    Background,
    /// Deleted first.
    Foreground,
    /// Left alone.
    Orphan,
}

#[derive(clap::Args)]
pub struct Delete {
    /// KIND NAME…, KIND/NAME…, or KIND with --all or -l
    #[arg(value_name = "KIND/NAME", required_unless_present = "filename")]
    what: Vec<String>,
    /// What is in a file or folder, or - for standard input; may be repeated
    #[arg(short, long, value_name = "FILE", conflicts_with = "what")]
    filename: Vec<String>,
    /// Also the folders in folders
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    scope: Scope,
    /// All objects of the kind
    #[arg(long)]
    all: bool,
    /// What becomes of what they own
    #[arg(long, value_enum, default_value = "background")]
    cascade: Cascade,
    /// Wait until they are gone; --wait=false does not
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    wait: bool,
    /// Longest to wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// Say nothing about what does not exist
    #[arg(long)]
    ignore_not_found: bool,
    /// Only say what would be
    #[arg(long)]
    dry_run: bool,
    /// The form of the answer; without it, what became of each object
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

/// One object to delete.
struct Doomed {
    resource: Resource,
    namespace: String,
    name: String,
}

impl Doomed {
    fn place(&self) -> Place<'_> {
        Place { resource: &self.resource, namespace: &self.namespace, name: &self.name }
    }
}

impl Run for Delete {
    const NAME: &'static str = "delete";
    const ABOUT: &'static str = "Delete objects and wait until they are gone";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let all = if self.filename.is_empty() {
                self.named(&session).await?
            } else {
                self.in_files(&session, flags.namespace.as_deref()).await?
            };
            let mut going = Vec::new();
            for one in all {
                if let Some(uid) = self.ask(&session, &one).await? {
                    going.push((one, uid));
                }
            }
            if going.is_empty() && !self.ignore_not_found {
                crate::cli::say("nothing found");
            }
            for (one, uid) in going.iter().filter(|_| self.wait && !self.dry_run) {
                self.wait_for(&session, one, uid).await?;
            }
            Ok(Exit::Done)
        })
    }
}

impl Delete {
    async fn named(&self, session: &Session) -> anyhow::Result<Vec<Doomed>> {
        let mut all = Vec::new();
        for one in meant(session, &self.what).await? {
            match one.name {
                Some(name) => {
                    all.push(Doomed {
                        resource: one.resource,
                        namespace: session.namespace().to_owned(),
                        name,
                    });
                }
                None if self.all || self.scope.selector.is_some() || self.scope.field_selector.is_some() => {
                    let list =
                        session.value(&Ask::get(self.scope.collection(session, &one.resource))).await?;
                    let items = list["items"].as_array().into_iter().flatten();
                    all.extend(items.map(|it| doomed(one.resource.clone(), it)));
                }
                None => {
                    let what = format!("which {} is not said", one.resource.plural);
                    return Err(Advice::new(what, "name them, or select with -l LABELS, or say --all").into());
                }
            }
        }
        Ok(all)
    }

    /// In the reverse order of how they were made.
    async fn in_files(&self, session: &Session, namespace: Option<&str>) -> anyhow::Result<Vec<Doomed>> {
        let mut finder = Applier::new(session, Options::default(), namespace);
        let mut all = Vec::new();
        for manifest in manifests::read_all(&self.filename, self.recursive)? {
            let resource = match finder.resource(&manifest).await {
                Ok(resource) => resource,
                // Without the kind there are none of it.
                Err(_) if self.ignore_not_found => continue,
                Err(error) => return Err(error),
            };
            let manifest = finder.prepared(&manifest, &resource)?;
            all.push(doomed(resource, &manifest.into_value()));
        }
        all.reverse();
        Ok(all)
    }

    /// Asks for one to go and answers with its uid; none if there is none and that is fine.
    async fn ask(&self, session: &Session, one: &Doomed) -> anyhow::Result<Option<Value>> {
        let address = one.resource.object(&one.namespace, &one.name);
        let policy = match self.cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        };
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        let found = match session.value(&Ask::get(address.clone())).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() && self.ignore_not_found => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let uid = found["metadata"]["uid"].clone();
        // Whoever has taken its name meanwhile is somebody else.
        options["preconditions"] = json!({ "uid": uid });
        match session.value(&Ask::new(Method::DELETE, address).with_json(&options)).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
        self.tell(one, &found)?;
        Ok(Some(uid))
    }

    /// Says that one goes; as an object, it is what it was before.
    fn tell(&self, one: &Doomed, found: &Value) -> anyhow::Result<()> {
        let name = print::plain(&one.place().label());
        let note = if self.dry_run { " (dry run)" } else { "" };
        match self.output {
            None | Some(Output::Table | Output::Wide) => print::out(&format!("{name} deleted{note}\n")),
            Some(Output::Name) => print::out(&format!("{name}\n")),
            Some(Output::Json) => print::out(&print::json(found)),
            Some(Output::Yaml) => print::out(&format!("---\n{}", print::yaml(found))),
        }
    }

    async fn wait_for(&self, session: &Session, one: &Doomed, uid: &Value) -> anyhow::Result<()> {
        let mut progress = Progress::new();
        let label = one.place().label();
        let is_gone = wait::until(session, one.place(), self.timeout, |object| match object {
            Some(object) if object["metadata"]["uid"] == *uid => {
                progress.say(print::plain(&waiting(&label, object)));
                false
            }
            _ => true,
        });
        if is_gone.await? { Ok(()) } else { Err(too_late("is still there", &label, self.timeout).into()) }
    }
}

fn doomed(resource: Resource, object: &Value) -> Doomed {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    Doomed { resource, namespace: text("namespace"), name: text("name") }
}

/// What a deletion waits for.
fn waiting(label: &str, object: &Value) -> String {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    let names: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
    match names.is_empty() {
        true => format!("waiting until {label} is gone"),
        false => format!("waiting until {label} is gone: finalizers {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_names_the_finalizers() {
        assert_eq!(waiting("bucket/a", &json!({})), "waiting until bucket/a is gone");
        let held = json!({"metadata": {"finalizers": ["x", "y/z"]}});
        assert_eq!(waiting("bucket/a", &held), "waiting until bucket/a is gone: finalizers x, y/z");
    }
}
