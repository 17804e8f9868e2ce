//! Whether the controller of a kind runs. Pure: the definition, who is in charge, and what runs.

use concert_model::condition::{self, Status};
use concert_model::{GroupKind, Object};
use serde_json::Value;

use super::claims::{Charge, Duty};

/// What a definition says, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Which kind it defines.
    pub kind: GroupKind,
    /// Whether its objects can be read and written.
    pub is_established: bool,
    /// The versions that are served, and whether they have a status of their own.
    pub versions: Vec<(String, bool)>,
}

impl Definition {
    /// Reads a CustomResourceDefinition; none if it is not one.
    pub fn of(object: &Object) -> Option<Self> {
        let spec = object.spec();
        let kind = GroupKind::new(spec["group"].as_str()?, spec["names"]["kind"].as_str()?);
        let versions =
            spec["versions"].as_array()?.iter().filter(|it| it["served"] == true).filter_map(|it| {
                let has_status = it.pointer("/subresources/status").is_some_and(Value::is_object);
                Some((it["name"].as_str()?.to_owned(), has_status))
            });
        let established = condition::find(object.status(), "Established");
        Some(Self {
            versions: versions.collect(),
            is_established: established.is_some_and(|it| it.status == Status::True),
            kind,
        })
    }
}

/// What is to run for a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing, for this reason; an empty one if nobody asked.
    Nothing(String),
    /// The managed reconciler, for this provider and its introduction.
    Managed {
        /// Which.
        provider: String,
        /// Which introduction.
        epoch: u64,
    },
    /// A stand-in that says on each object why nobody works on it.
    Placeholder(String),
    /// The controller that counts users.
    Config,
}

/// What is to run for the kind of `definition`. `had_provider`: somebody was in charge of it before.
pub fn want(definition: &Definition, charge: Option<&Charge>, had_provider: bool) -> Want {
    let kind = &definition.kind;
    if !definition.is_established {
        return Want::Nothing(format!("the definition of {kind} is not established"));
    }
    match charge {
        None if had_provider => Want::Placeholder(format!("no provider serves {kind} any more")),
        None => Want::Nothing(String::new()),
        Some(Charge::Config(_)) => Want::Config,
        Some(Charge::Held(why)) => Want::Nothing(why.clone()),
        Some(Charge::Managed { provider, state, served, .. }) => {
            let version = &*served.kind.version;
            match definition.versions.iter().find(|(name, _)| name == version) {
                None => return Want::Nothing(format!("the definition of {kind} does not serve {version}")),
                Some((_, false)) => {
                    return Want::Nothing(format!(
                        "the definition of {kind} has no status subresource in {version}: add `subresources: {{status: {{}}}}`"
                    ));
                }
                Some((_, true)) => {}
            }
            match state {
                Duty::Up(epoch) => Want::Managed { provider: provider.to_string(), epoch: *epoch },
                Duty::Down { why, is_long: true } => {
                    Want::Placeholder(format!("provider {provider} cannot be reached: {why}"))
                }
                Duty::Down { why, is_long: false } => {
                    Want::Nothing(format!("provider {provider} cannot be reached: {why}"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use concert_provider::Served;
    use serde_json::json;

    use super::*;

    fn definition(is_established: bool, has_status: bool) -> Definition {
        let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
        let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [
                {"name": "v1", "served": true, "subresources": subresources}, {"name": "v0", "served": false}]},
            "status": {"conditions": [{"type": "Established", "status": if is_established { "True" } else { "False" }}]}});
        Definition::of(&Object::from_value(object).unwrap()).unwrap()
    }

    fn charge(version: &str, state: Duty) -> Charge {
        let served = Served::new(GroupKind::new("example.com", "Thing").at_version(version));
        Charge::Managed { provider: "p".into(), state, served: Box::new(served), handshake: None }
    }

    #[test]
    fn runs_when_established_and_served() {
        let up = charge("v1", Duty::Up(3));
        let managed = Want::Managed { provider: "p".into(), epoch: 3 };
        assert_eq!(want(&definition(true, true), Some(&up), false), managed);
        assert!(matches!(want(&definition(false, true), Some(&up), false), Want::Nothing(_)));
        assert_eq!(want(&definition(true, true), None, false), Want::Nothing(String::new()));
    }

    #[test]
    fn says_what_is_wrong_with_a_definition() {
        let up = |version| charge(version, Duty::Up(1));
        let Want::Nothing(why) = want(&definition(true, false), Some(&up("v1")), false) else { panic!() };
        assert!(why.contains("no status subresource"), "{why}");
        let Want::Nothing(why) = want(&definition(true, true), Some(&up("v0")), false) else { panic!() };
        assert!(why.contains("does not serve v0"), "{why}");
    }

    #[test]
    fn what_is_held_is_nobodys_and_objects_are_not_told_otherwise() {
        let held = Charge::Held("wait".into());
        assert_eq!(want(&definition(true, true), Some(&held), true), Want::Nothing("wait".into()));
    }

    #[test]
    fn objects_are_told_when_their_provider_is_gone_for_long() {
        let down = |is_long| charge("v1", Duty::Down { why: "refused".into(), is_long });
        assert!(matches!(want(&definition(true, true), Some(&down(false)), true), Want::Nothing(_)));
        let told = Want::Placeholder("provider p cannot be reached: refused".into());
        assert_eq!(want(&definition(true, true), Some(&down(true)), true), told);
        let gone = Want::Placeholder("no provider serves Thing.example.com any more".into());
        assert_eq!(want(&definition(true, true), None, true), gone);
    }
}
