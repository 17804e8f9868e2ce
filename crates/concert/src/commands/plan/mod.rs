//! `concert plan`: what applying files would change in the store, and what providers would do about it.

pub mod saved;
mod shown;
mod step;

use std::path::{Path, PathBuf};

use concert_model::{Address, Object};
use http::Method;
use serde_json::{Value, json};

use super::Run;
use crate::cli::say;
use crate::client::apply::{Applier, Expect, Options};
use crate::client::{Ask, Error, Flags, Session};
use crate::exit::Exit;
use crate::manifests;
use crate::print::{self, Paint, Progress};
use step::{Provider, Step};

/// How many objects a server is asked about at once: few enough to be answered in time, by providers that
/// take their time.
const ASKED_MAX: usize = 20;

#[derive(clap::Args)]
pub struct Plan {
    /// File or folder with manifests, JSON or YAML, or - for standard input; may be repeated
    #[arg(short, long, value_name = "FILE", required = true)]
    filename: Vec<String>,
    /// Also the folders in folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// The form of the answer, text, json or yaml, or the path of a file to save the plan to
    #[arg(short, long, value_name = "text|json|yaml|FILE.plan", value_parser = form, default_value = "text")]
    output: Form,
    /// Exit with 2 if anything would change, also when the plan is saved
    #[arg(long)]
    detailed_exitcode: bool,
}

/// What becomes of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Yaml,
    /// Shown as text, and saved.
    File(PathBuf),
}

/// Words that other commands take are no files here: a plan holds secrets.
fn form(word: &str) -> Result<Form, String> {
    match word {
        "text" | "table" => Ok(Form::Text),
        "json" => Ok(Form::Json),
        "yaml" => Ok(Form::Yaml),
        "name" | "wide" => Err(format!(
            "a plan is shown as text, json or yaml, or saved to FILE.plan; for a file of that name: ./{word}"
        )),
        path => Ok(Form::File(path.into())),
    }
}

impl Run for Plan {
    const NAME: &'static str = "plan";
    const ABOUT: &'static str = "Show what applying files would change; touches nothing";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        let manifests = manifests::read_all(&self.filename, self.recursive)?;
        Session::run(flags, async |session| {
            let (steps, has_providers) = plan(&session, &manifests, flags.namespace.as_deref()).await?;
            if !has_providers {
                say("note: the server has no providers to ask; this is about the store alone");
            }
            self.tell(session.server(), &steps)?;
            let has_changes = steps.iter().any(Step::has_changes);
            // Whoever saves a plan wants it saved, and goes on to apply it: changes are no failure of that.
            let is_told = self.detailed_exitcode || self.path().is_none();
            Ok(if is_told && has_changes { Exit::Changes } else { Exit::Done })
        })
    }
}

impl Plan {
    /// Where it is to be saved, if it is.
    fn path(&self) -> Option<&Path> {
        match &self.output {
            Form::File(path) => Some(path),
            Form::Text | Form::Json | Form::Yaml => None,
        }
    }

    fn tell(&self, server: &str, steps: &[Step]) -> anyhow::Result<()> {
        match self.output {
            Form::Json => return print::out(&print::json(&shown::value(steps))),
            Form::Yaml => return print::out(&print::yaml(&shown::value(steps))),
            Form::Text | Form::File(_) => {}
        }
        print::out(&shown::text(steps, Paint::for_stdout()))?;
        if let Some(path) = self.path() {
            saved::write(path, server, steps)?;
            let path = print::plain(&path.display().to_string());
            say(&format!("saved; to do just this: concert apply --plan {path}"));
        }
        Ok(())
    }
}

/// What would become of each, and whether there are providers to ask.
async fn plan(
    session: &Session,
    manifests: &[Object],
    namespace: Option<&str>,
) -> anyhow::Result<(Vec<Step>, bool)> {
    let options = Options { is_forced: false, is_dry_run: true };
    let mut applier = Applier::new(session, options, namespace);
    let (mut steps, mut progress) = (Vec::new(), Progress::new());
    for (index, manifest) in manifests.iter().enumerate() {
        progress.say(format!("planning: {index} of {} looked at", manifests.len()));
        let step = match dry_run(&mut applier, manifest).await {
            Ok(step) => step,
            // Nobody can tell yet what the server will make of it.
            Err(error) => match needs(manifest, &manifests[..index]) {
                Some(why) => Step::unknown(manifest.clone(), why),
                None => return Err(error.context(format!("{} {}", manifest.kind(), manifest.name()))),
            },
        };
        steps.push(step);
    }
    let has_providers = ask_providers(session, &mut steps, &mut progress).await?;
    Ok((steps, has_providers))
}

/// What would become of one. Fields that others have are taken over, and it is said that they would be.
async fn dry_run(applier: &mut Applier<'_>, manifest: &Object) -> anyhow::Result<Step> {
    let (applied, conflict) = match applier.apply(manifest, Expect::Anything).await {
        Ok(applied) => (applied, None),
        Err(error) => match error.downcast_ref::<Error>().filter(|it| it.is_conflict()) {
            None => return Err(error),
            Some(conflict) => {
                let conflict = conflict.to_string();
                applier.force(true);
                let applied = applier.apply(manifest, Expect::Anything).await;
                applier.force(false);
                (applied?, Some(conflict))
            }
        },
    };
    let sent = applier.prepared(manifest, &applied.resource)?;
    Ok(Step { conflict, ..Step::known(sent, &applied) })
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
async fn ask_providers(
    session: &Session,
    steps: &mut [Step],
    progress: &mut Progress,
) -> anyhow::Result<bool> {
    let (mut asked, all) = (0, steps.len());
    for steps in steps.chunks_mut(ASKED_MAX) {
        progress.say(format!("planning: providers asked about {asked} of {all}"));
        asked += steps.len();
        let objects: Vec<&Value> = steps.iter().filter_map(|it| it.wanted.as_ref()).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let address = Address::new("/apis/concert.dev/v1alpha1/plan");
        match session.value(&Ask::new(Method::POST, address).with_json(&list)).await {
            Ok(answer) => take(steps, &answer),
            Err(error) if error.is_not_served() => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
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
    fn words_of_other_commands_are_no_files() {
        assert_eq!((form("text"), form("table")), (Ok(Form::Text), Ok(Form::Text)));
        assert_eq!((form("json"), form("yaml")), (Ok(Form::Json), Ok(Form::Yaml)));
        assert!(form("name").unwrap_err().contains("./name") && form("wide").is_err());
        for path in ["x.plan", "./name", "dir/yaml"] {
            assert_eq!(form(path), Ok(Form::File(path.into())));
        }
    }

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
