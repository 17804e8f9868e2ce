//! `concert explain`: why an object is not ready, in one sentence, and the chain below it.

use concert_model::condition::{self, Status};
use concert_model::{Address, GroupKind, GroupVersionKind, Object, ObjectKey};
use concert_server::Clock as _;
use concert_server::explain::{Explanation, Facts, Related, Relation, Service, State, explain};
use serde_json::Value;

use super::objects::meant_one;
use super::{Run, events};
use crate::cli::say;
use crate::client::{Ask, Flags, Kinds, Resource, Session, Target};
use crate::exit::Exit;
use crate::print::{self, Output};

#[derive(clap::Args)]
pub struct Explain {
    /// KIND/NAME
    #[arg(required = true, value_name = "KIND/NAME")]
    what: Vec<String>,
    /// The form of the answer
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

impl Run for Explain {
    const NAME: &'static str = "explain";
    const ABOUT: &'static str = "Say why an object is not ready";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let (resource, name) = match meant_one(&session, &self.what).await {
                Ok(meant) => meant,
                // The inventory may be elsewhere, and the mothership here.
                Err(error) => match entry(&self.what) {
                    Some(name) => {
                        let answer = from_mothership(&session, &name, error).await?;
                        print::out(&text(&answer, self.output))?;
                        return Ok(Exit::Done);
                    }
                    None => return Err(error),
                },
            };
            let address = resource.object(session.namespace(), &name);
            // First, so that what does not exist is told apart from a server that does not explain, which
            // says of a part of an object that it does not know that there is no such object.
            let object = session.value(&Ask::get(address.clone())).await?;
            let answer = match session.value(&Ask::get(address.step("explain"))).await {
                Ok(answer) => answer,
                // Kubernetes refuses before it looks whether there is such a path.
                Err(error) if error.is_not_served() || error.is_not_found() || error.is_forbidden() => {
                    let whom = if error.is_forbidden() { " to you" } else { "" };
                    let from = "this is from the object and its events alone";
                    say(&format!("note: the server does not explain{whom}; {from}"));
                    serde_json::to_value(from_outside(&session, &resource, object).await?)?
                }
                Err(error) => return Err(error.into()),
            };
            print::out(&text(&answer, self.output))?;
            Ok(Exit::Done)
        })
    }
}

/// The entry that is meant, if it is one.
fn entry(arguments: &[String]) -> Option<String> {
    let (kind, name) = Target::one(arguments).ok()?;
    ["cluster", "clusters", "clusters.inventory.concert.dev"].contains(&kind.as_str()).then_some(name)
}

/// What a mothership tells of an entry whose kind this server does not serve; `unknown` says so.
async fn from_mothership(session: &Session, entry: &str, unknown: anyhow::Error) -> anyhow::Result<Value> {
    let address = Address::new("/mothership/v1/entries").step(entry).step("explain");
    match session.value(&Ask::get(address)).await {
        Ok(answer) => Ok(answer),
        // Of an entry that is not there it says the same as a server without a mothership does of the path.
        Err(error) if error.is_not_served() || error.is_not_found() => Err(unknown),
        Err(error) => Err(error.into()),
    }
}

/// What can be told without the engine.
async fn from_outside(session: &Session, resource: &Resource, object: Value) -> anyhow::Result<Explanation> {
    let object = Object::from_value(object)?;
    let events = match events::of_object(session, &resource.kind, object.namespace(), object.name()).await {
        Ok(events) => events,
        // Who may read an object may not therefore read events.
        Err(error) if error.is_forbidden() => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mut facts = Facts { events: events::told(&events), ..Facts::new(object, session.clock.now()) };
    if is_claim(&facts.object) {
        facts.is_claim = true;
        facts.related = named_by(session, &facts.object).await;
        facts.service = service_of(session, &facts.object).await;
    }
    Ok(explain(&facts))
}

/// Whether it has the shape of a claim: who may read one need not be able to read the definitions.
fn is_claim(object: &Object) -> bool {
    let spec = object.spec();
    let says = |field: &str| spec.get(field).is_some_and(|it| !it.is_null());
    let has_way = ["classRef", "classSelector", "resourceRef"].into_iter().any(says);
    let is_bindable = object.status().get("bindingPhase").is_some();
    !object.namespace().is_empty() && !says("forProvider") && (has_way || is_bindable)
}

/// The class and the managed resource of a claim, as far as the caller may read them.
async fn named_by(session: &Session, claim: &Object) -> Vec<Related> {
    let mut related = Vec::new();
    for (field, relation) in [("classRef", Relation::Class), ("resourceRef", Relation::Managed)] {
        let text = |of: &str| claim.spec()[field][of].as_str().unwrap_or_default();
        let Ok(kind) = GroupVersionKind::parse(text("apiVersion"), text("kind")) else { continue };
        let key = ObjectKey::cluster(kind.group_kind.clone(), text("name"));
        related.push(match look(session, &kind, text("name")).await {
            Ok(found) => Related::of(relation, key, found.as_ref()),
            Err(_) => Related { relation, key, state: State::Unknown },
        });
    }
    related
}

/// Who serves the managed resource of a claim, as far as Provider objects tell that the caller may read. One
/// that only the configuration of a reconciler names is not known here.
async fn service_of(session: &Session, claim: &Object) -> Service {
    let text = |of: &str| claim.spec()["resourceRef"][of].as_str().unwrap_or_default();
    let Ok(kind) = GroupVersionKind::parse(text("apiVersion"), text("kind")) else { return Service::Unknown };
    let address = Address::new("/apis/concert.dev/v1alpha1/providers");
    let Ok(Some(listed)) = session.find(&Ask::get(address)).await else { return Service::Unknown };
    let providers = listed["items"].as_array().into_iter().flatten();
    let providers: Vec<Object> = providers.filter_map(|it| Object::from_value(it.clone()).ok()).collect();
    serving(&kind.group_kind, &providers)
}

/// Which of the providers is in charge of a kind, and whether it answers.
fn serving(kind: &GroupKind, providers: &[Object]) -> Service {
    let is_kind = |it: &Value| {
        let rest = it.as_str().and_then(|it| it.strip_prefix(&*kind.kind)?.strip_prefix('.'));
        rest.and_then(|it| it.split_once('.')).is_some_and(|(_, group)| *group == *kind.group)
    };
    let is_in_charge = |it: &&Object| it.status()["kinds"].as_array().into_iter().flatten().any(is_kind);
    let Some(found) = providers.iter().find(is_in_charge) else { return Service::Unknown };
    let provider = found.name().to_owned();
    match condition::find(found.status(), "Ready").filter(|it| it.status == Status::False) {
        Some(ready) => Service::Down { provider, why: ready.message },
        None => Service::Up { provider },
    }
}

async fn look(session: &Session, kind: &GroupVersionKind, name: &str) -> anyhow::Result<Option<Object>> {
    let kinds = Kinds::of_version(session, &kind.group_kind.group, &kind.version).await?;
    let Some(resource) = kinds.0.iter().find(|it| *it.kind == *kind.group_kind.kind) else { return Ok(None) };
    let found = session.find(&Ask::get(resource.object("", name))).await?;
    Ok(found.map(Object::from_value).transpose()?)
}

fn text(answer: &Value, output: Output) -> String {
    match (output, serde_json::from_value::<Explanation>(answer.clone())) {
        (Output::Table | Output::Wide, Ok(explanation)) => {
            explanation.to_string().lines().map(|it| print::plain(it) + "\n").collect()
        }
        (Output::Name, Ok(explanation)) => print::plain(&explanation.sentence) + "\n",
        (Output::Yaml, _) => print::yaml(answer),
        // What a newer server says differently is shown as it came.
        _ => print::json(answer),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_is_known_by_its_shape() {
        let object = |spec: Value, status: Value| {
            let whole = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "namespace": "n"},
                "spec": spec, "status": status});
            is_claim(&Object::from_value(whole).unwrap())
        };
        assert!(object(json!({"classRef": {"name": "c"}}), json!({})));
        assert!(object(json!({}), json!({"bindingPhase": "Bound"})));
        assert!(!object(json!({"size": 1}), json!({})));
        assert!(!object(json!({"forProvider": {}, "classRef": {"name": "c"}}), json!({})), "it is managed");
    }

    #[test]
    fn who_serves_a_kind_is_told_by_provider_objects() {
        let provider = |name: &str, kind: &str, status: &str| {
            let ready = json!({"type": "Ready", "status": status, "reason": "Because",
                "message": "no route", "lastTransitionTime": "2026-01-01T00:00:00Z"});
            Object::from_value(json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Provider",
                "metadata": {"name": name}, "status": {"kinds": [kind], "conditions": [ready]}}))
            .unwrap()
        };
        let kind = GroupKind::new("aws.dev", "Bucket");
        let others = [
            provider("a", "Bucket.v1.gcp.dev", "True"),
            provider("b", "Bucket.v1.other.aws.dev", "True"),
            provider("c", "Buckets.v1.aws.dev", "True"),
        ];
        assert!(matches!(serving(&kind, &others), Service::Unknown));
        let up = serving(&kind, &[provider("d", "Bucket.v1.aws.dev", "True")]);
        assert!(matches!(up, Service::Up { provider } if provider == "d"));
        let down = serving(&kind, &[provider("d", "Bucket.v1.aws.dev", "False")]);
        assert!(matches!(down, Service::Down { provider, why } if provider == "d" && why == "no route"));
    }

    #[test]
    fn the_sentence_comes_first_and_nothing_steers_the_terminal() {
        let answer = json!({"sentence": "Bucket default/a is not ready: \u{1b}[2J.", "isReady": false,
            "chain": [{"relation": "provider", "name": "example", "state": "up"}]});
        assert_eq!(
            text(&answer, Output::Table),
            "Bucket default/a is not ready: \\u{1b}[2J.\n  provider  example  up\n"
        );
        assert_eq!(text(&answer, Output::Name), "Bucket default/a is not ready: \\u{1b}[2J.\n");
        let back: Value = serde_json::from_str(&text(&answer, Output::Json)).unwrap();
        assert_eq!(back, answer);
    }
}
