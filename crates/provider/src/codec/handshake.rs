//! Handshakes.

use concert_model::GroupVersionKind;

use super::{duration_from, duration_to, kind_from, kind_to, misbehaved, readable};
use crate::error::Error;
use crate::handshake::{
    Action, Capabilities, ConfigKind, Handshake, Protocol, Reference, Served, WatchedKind,
};
use crate::text;
use crate::wire::v1;

const ACTIONS: [(Action, &str); 6] = [
    (Action::Observe, "Observe"),
    (Action::Create, "Create"),
    (Action::Update, "Update"),
    (Action::Delete, "Delete"),
    (Action::LateInitialize, "LateInitialize"),
    (Action::All, "*"),
];

pub(crate) fn handshake_to(shake: &Handshake, revision: u32) -> v1::HandshakeResponse {
    let can = shake.capabilities;
    v1::HandshakeResponse {
        revision,
        name: shake.name.clone(),
        version: shake.version.clone(),
        capabilities: Some(v1::Capabilities {
            plan: can.plan,
            lookup: can.lookup,
            watch: can.watch,
            enumerate: can.enumerate,
            configure: can.configure,
        }),
        kinds: shake.kinds.iter().map(served_to).collect(),
    }
}

/// A kind that cannot be read is left out, with a complaint; the others are as good as ever.
pub(crate) fn handshake_from(shake: v1::HandshakeResponse) -> Handshake {
    let can = shake.capabilities.unwrap_or_default();
    let (kinds, refused) = readable(shake.kinds.into_iter().map(served_from));
    Handshake {
        protocol: Protocol::V1,
        name: text::clean(&shake.name),
        version: text::clean(&shake.version),
        capabilities: Capabilities {
            plan: can.plan,
            lookup: can.lookup,
            watch: can.watch,
            enumerate: can.enumerate,
            configure: can.configure,
        },
        kinds,
        refused,
    }
}

fn served_to(served: &Served) -> v1::Kind {
    let policies =
        served.policies.iter().flatten().map(|set| v1::PolicySet {
            actions: set.iter().map(|action| name_of(*action).to_owned()).collect(),
        });
    v1::Kind {
        kind: Some(kind_to(&served.kind)),
        schema: served.schema.as_ref().map(|it| it.to_string().into()).unwrap_or_default(),
        identity_fields: served.identity.clone(),
        immutable_fields: served.immutable.clone(),
        sensitive_fields: served.sensitive.clone(),
        late_initialised_fields: served.late_initialised.clone(),
        references: served.references.iter().map(reference_to).collect(),
        deterministic_names: served.has_deterministic_names,
        policies: policies.collect(),
        concurrency: served.concurrency.map_or(0, |it| u32::try_from(it).unwrap_or(u32::MAX)),
        poll_interval: served.poll.map(duration_to),
        call_timeout: served.timeout.map(duration_to),
        creation_grace: served.creation_grace.map(duration_to),
        owns: served.owns.iter().map(kind_to).collect(),
        watches: served.watches.iter().map(watched_to).collect(),
        configurations: served
            .configs
            .iter()
            .map(|it| v1::ConfigurationKind {
                kind: Some(kind_to(&it.kind)),
                usage: it.usage.as_ref().map(kind_to),
            })
            .collect(),
    }
}

fn served_from(kind: v1::Kind) -> Result<Served, Error> {
    let name = kind_from(kind.kind.clone())?;
    let broken =
        |error: Error| misbehaved(format!("what is said of {name} makes no sense: {}", error.message));
    declared_from(name.clone(), kind).map_err(broken)
}

/// What is said of the kind `name`.
fn declared_from(name: GroupVersionKind, kind: v1::Kind) -> Result<Served, Error> {
    let schema = match kind.schema.is_empty() {
        true => None,
        false => Some(
            serde_json::from_slice(&kind.schema)
                .map_err(|e| misbehaved(format!("the schema is not JSON: {e}")))?,
        ),
    };
    // A set with an action that we do not know is one that nobody here can ask for.
    let is_limited = !kind.policies.is_empty();
    let policies: Vec<_> = kind.policies.iter().filter_map(|set| actions_from(&set.actions)).collect();
    Ok(Served {
        kind: name,
        schema,
        identity: kind.identity_fields,
        immutable: kind.immutable_fields,
        sensitive: kind.sensitive_fields,
        late_initialised: kind.late_initialised_fields,
        references: kind.references.into_iter().map(reference_from).collect::<Result<_, _>>()?,
        has_deterministic_names: kind.deterministic_names,
        policies: Some(policies).filter(|_| is_limited),
        concurrency: usize::try_from(kind.concurrency).ok().filter(|it| *it > 0),
        poll: positive(kind.poll_interval),
        timeout: positive(kind.call_timeout),
        creation_grace: positive(kind.creation_grace),
        owns: kind.owns.into_iter().map(|it| kind_from(Some(it))).collect::<Result<_, _>>()?,
        watches: kind.watches.into_iter().map(watched_from).collect::<Result<_, _>>()?,
        configs: kind.configurations.into_iter().map(config_from).collect::<Result<_, _>>()?,
    })
}

/// A hint of no time at all is no hint.
fn positive(duration: Option<prost_types::Duration>) -> Option<std::time::Duration> {
    duration_from(duration).filter(|it| !it.is_zero())
}

fn name_of(action: Action) -> &'static str {
    ACTIONS.iter().find(|(it, _)| *it == action).expect("every action is in the table").1
}

/// None if one of them is not known.
fn actions_from(names: &[String]) -> Option<Vec<Action>> {
    let find = |name: &String| ACTIONS.iter().find(|(_, it)| it == name).map(|(action, _)| *action);
    names.iter().map(find).collect()
}

fn reference_to(it: &Reference) -> v1::FieldReference {
    v1::FieldReference {
        field: it.field.clone(),
        reference_field: it.reference_field.clone(),
        selector_field: it.selector_field.clone(),
        to: Some(kind_to(&it.to)),
        extract: it.extract.clone(),
        many: it.is_many,
    }
}

fn reference_from(it: v1::FieldReference) -> Result<Reference, Error> {
    Ok(Reference {
        field: it.field,
        reference_field: it.reference_field,
        selector_field: it.selector_field,
        to: kind_from(it.to)?,
        extract: it.extract,
        is_many: it.many,
    })
}

fn watched_to(it: &WatchedKind) -> v1::WatchedKind {
    v1::WatchedKind { kind: Some(kind_to(&it.kind)), name: it.name.clone(), namespace: it.namespace.clone() }
}

fn watched_from(it: v1::WatchedKind) -> Result<WatchedKind, Error> {
    Ok(WatchedKind { kind: kind_from(it.kind)?, name: it.name, namespace: it.namespace })
}

fn config_from(it: v1::ConfigurationKind) -> Result<ConfigKind, Error> {
    let usage = it.usage.map(|usage| kind_from(Some(usage))).transpose()?;
    Ok(ConfigKind { kind: kind_from(it.kind)?, usage })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prost::Message;

    use super::*;

    fn full() -> Handshake {
        let kind = GroupVersionKind::parse("example.dev/v1", "Bucket").unwrap();
        let mut served = Served::new(kind.clone());
        served.schema = Some(serde_json::json!({"type": "object"}));
        served.policies = Some(vec![vec![Action::Observe], vec![Action::All]]);
        served.concurrency = Some(3);
        served.poll = Some(Duration::from_secs(7));
        served.owns = vec![kind.clone()];
        served.watches = vec![WatchedKind { kind: kind.clone(), name: "n".into(), namespace: String::new() }];
        served.configs = vec![ConfigKind { kind: kind.clone(), usage: Some(kind.clone()) }];
        served.references = vec![Reference {
            field: "spec.a".into(),
            reference_field: "spec.aRef".into(),
            selector_field: "spec.aSelector".into(),
            to: kind,
            extract: String::new(),
            is_many: true,
        }];
        Handshake {
            protocol: Protocol::V1,
            name: "p".into(),
            version: "1".into(),
            capabilities: Capabilities { plan: true, ..Default::default() },
            kinds: vec![served],
            refused: Vec::new(),
        }
    }

    #[test]
    fn a_handshake_survives_the_wire() {
        let bytes = handshake_to(&full(), 1).encode_to_vec();
        assert_eq!(handshake_from(v1::HandshakeResponse::decode(&*bytes).unwrap()), full());
    }

    #[test]
    fn a_kind_that_makes_no_sense_is_left_out_and_complained_of() {
        let mut answer = handshake_to(&full(), 1);
        let good = answer.kinds.remove(0);
        let with = |change: fn(&mut v1::Kind)| {
            let mut kind = good.clone();
            change(&mut kind);
            kind
        };
        answer.kinds = vec![
            with(|it| it.kind = None),
            with(|it| it.schema = "{".into()),
            good.clone(),
            with(|it| it.references[0].to = None),
        ];
        let read = handshake_from(answer);
        assert_eq!(read.kinds, full().kinds);
        assert_eq!(read.refused.len(), 3, "{:?}", read.refused);
        assert_eq!(read.refused[0], "a kind is missing");
        let told = "what is said of example.dev/v1, Kind=Bucket makes no sense: the schema is not JSON";
        assert!(read.refused[1].starts_with(told), "{:?}", read.refused);
        assert!(read.refused[2].ends_with("makes no sense: a kind is missing"), "{:?}", read.refused);
    }

    #[test]
    fn complaints_are_bounded() {
        let answer = v1::HandshakeResponse { kinds: vec![v1::Kind::default(); 1000], ..Default::default() };
        let refused = handshake_from(answer).refused;
        assert_eq!((refused.len(), &*refused[20]), (21, "980 more kinds make no sense"));
    }

    #[test]
    fn policies_of_a_newer_peer_are_passed_over() {
        let mut answer = handshake_to(&full(), 1);
        answer.kinds[0].policies[0].actions.push("Adopt".to_owned());
        let policies =
            |answer: &v1::HandshakeResponse| handshake_from(answer.clone()).kinds[0].policies.clone();
        assert_eq!(policies(&answer), Some(vec![vec![Action::All]]));
        // Whoever supports none that we know does not support the usual ones instead.
        answer.kinds[0].policies.remove(1);
        assert_eq!(policies(&answer), Some(Vec::new()));
    }

    #[test]
    fn a_peer_of_another_release_is_understood() {
        // From the future: field 1000, a string, that this release does not know.
        let mut bytes = handshake_to(&full(), 1).encode_to_vec();
        prost::encoding::string::encode(1000, &"new".to_owned(), &mut bytes);
        assert_eq!(handshake_from(v1::HandshakeResponse::decode(&*bytes).unwrap()), full());
        // From the past: nothing that is optional.
        let kind = v1::Kind { kind: Some(kind_to(&full().kinds[0].kind)), ..Default::default() };
        let old = v1::HandshakeResponse { kinds: vec![kind], ..Default::default() };
        let old = handshake_from(old);
        assert_eq!(old.kinds, [Served::new(full().kinds[0].kind.clone())]);
        assert_eq!(old.capabilities, Capabilities::default());
    }
}
