//! `concert plan`: what applying files would change in the store, and what providers would do about it.

pub mod saved;
mod shown;
mod step;

use std::path::Path;

use concert_model::{Address, Object};
use http::Method;
use serde_json::{Value, json};

use super::Run;
use crate::cli::say;
use crate::client::apply::{Applier, Options};
use crate::client::{Ask, Flags, Session};
use crate::exit::Exit;
use crate::manifests;
use crate::print::{self, Paint};
use step::{Provider, Step};

/// How many objects a server is asked about at once.
const ASKED_MAX: usize = 500;

#[derive(clap::Args)]
pub struct Plan {
    /// File or folder with manifests, JSON or YAML, or - for standard input; may be repeated
    #[arg(short, long, value_name = "FILE", required = true)]
    filename: Vec<String>,
    /// Also the folders in folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The form of the answer, text or json, or the path of a file to save the plan to
    #[arg(short, long, value_name = "text|json|FILE.plan", default_value = "text")]
    output: String,
    /// Exit with 2 rather than 0 if anything would change
    #[arg(long)]
    detailed_exitcode: bool,
}

impl Run for Plan {
    const NAME: &'static str = "plan";
    const ABOUT: &'static str = "Show what applying files would change; touches nothing";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        let manifests = manifests::read_all(&self.filename, self.recursive)?;
        Session::run(flags, async |session| {
            let steps = plan(&session, &manifests, flags.namespace.as_deref()).await?;
            match self.output.as_str() {
                "text" => print::out(&shown::text(&steps, Paint::for_stdout()))?,
                "json" => print::out(&print::json(&shown::value(&steps)))?,
                path => {
                    print::out(&shown::text(&steps, Paint::for_stdout()))?;
                    saved::write(Path::new(path), session.server(), &steps)?;
                    say(&format!("saved; to do just this: concert apply --plan {}", print::plain(path)));
                }
            }
            let has_changes = steps.iter().any(Step::has_changes);
            Ok(if self.detailed_exitcode && has_changes { Exit::Changes } else { Exit::Done })
        })
    }
}

async fn plan(session: &Session, manifests: &[Object], namespace: Option<&str>) -> anyhow::Result<Vec<Step>> {
    // Whose fields they are is not what a plan is about; `apply` asks about that.
    let options = Options { is_forced: true, is_dry_run: true };
    let mut applier = Applier::new(session, options, namespace);
    let mut steps = Vec::new();
    for (index, manifest) in manifests.iter().enumerate() {
        let step = match applier.apply(manifest).await {
            Ok(applied) => {
                let sent = applier.prepared(manifest, &applied.resource)?;
                Step::known(sent, &applied)
            }
            // Nobody can tell yet what the server will make of it.
            Err(error) => match needs(manifest, &manifests[..index]) {
                Some(why) => Step::unknown(manifest.clone(), why),
                None => return Err(error.context(format!("{} {}", manifest.kind(), manifest.name()))),
            },
        };
        steps.push(step);
    }
    ask_providers(session, &mut steps).await?;
    Ok(steps)
}

/// What an object needs that the plan itself would make.
fn needs(manifest: &Object, earlier: &[Object]) -> Option<&'static str> {
    let kind = (manifest.api_version().to_owned(), manifest.kind().to_owned());
    if earlier.iter().any(|it| kinds_of(it).contains(&kind)) {
        return Some("its kind is defined by this plan");
    }
    let is_home = |it: &Object| it.kind() == "Namespace" && it.name() == manifest.namespace();
    earlier.iter().any(is_home).then_some("its namespace is made by this plan")
}

/// What a definition defines.
fn kinds_of(manifest: &Object) -> Vec<(String, String)> {
    let spec = manifest.spec();
    let (Some(group), Some(kind)) = (spec["group"].as_str(), spec["names"]["kind"].as_str()) else {
        return Vec::new();
    };
    let versions = spec["versions"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str());
    versions.map(|version| (format!("{group}/{version}"), kind.to_owned())).collect()
}

/// What each provider would do. A server that has none to ask leaves that open.
async fn ask_providers(session: &Session, steps: &mut [Step]) -> anyhow::Result<()> {
    for steps in steps.chunks_mut(ASKED_MAX) {
        let objects: Vec<&Value> = steps.iter().filter_map(|it| it.wanted.as_ref()).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let address = Address::new("/apis/concert.dev/v1alpha1/plan");
        match session.value(&Ask::new(Method::POST, address).with_json(&list)).await {
            Ok(answer) => take(steps, &answer),
            Err(error) if error.is_not_served() => {
                say("note: the server has no providers to ask; this is about the store alone");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn take(steps: &mut [Step], answer: &Value) {
    let plans = answer.as_array().or(answer["items"].as_array()).into_iter().flatten();
    for plan in plans.filter_map(Provider::of) {
        if let Some(step) = steps.iter_mut().find(|it| plan.is_about(it)) {
            step.hide(&plan);
            step.provider = Some(plan);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_defines_its_versions() {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.g.io"}, "spec": {"group": "g.io", "names": {"kind": "A"},
                "versions": [{"name": "v1"}, {"name": "v2"}]}});
        let kinds = kinds_of(&Object::from_value(definition).unwrap());
        assert_eq!(kinds, [("g.io/v1".into(), "A".into()), ("g.io/v2".into(), "A".into())]);
    }

    #[test]
    fn what_the_plan_itself_would_make_is_needed() {
        let object = |kind: &str, namespace: &str, name: &str| {
            let metadata = json!({"namespace": namespace, "name": name});
            Object::from_value(json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})).unwrap()
        };
        let secret = object("Secret", "team", "s");
        assert_eq!(
            needs(&secret, &[object("Namespace", "", "team")]),
            Some("its namespace is made by this plan")
        );
        assert_eq!(needs(&secret, &[object("Namespace", "", "other")]), None);
    }
}
