//! Which provider is in charge of which kind. Pure: what the providers say, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use concert_model::{GroupKind, GroupVersionKind};
use concert_provider::{ConfigKind, Handshake, Protocol, Served};

/// What is known of one provider.
#[derive(Clone, Debug)]
pub struct Known {
    /// The kinds it is to serve; all that it names if empty.
    pub wanted: Vec<Wanted>,
    /// Where it stands.
    pub state: State,
}

/// A kind that a provider is to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub kind: GroupVersionKind,
    /// Whether external names are known before the create, where the protocol has no word for it.
    pub has_deterministic_names: Option<bool>,
}

/// Where a provider stands.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It has introduced itself.
    Up {
        /// As what.
        handshake: Arc<Handshake>,
        /// Counts introductions, so that a new one starts controllers anew.
        epoch: u64,
    },
    /// It does not answer.
    Down {
        /// In words.
        why: String,
        /// Whether that has gone on for so long that its objects should say so.
        is_long: bool,
        /// What it served when it was last up.
        last: Option<Arc<Handshake>>,
    },
}

impl State {
    /// What it said of itself when it was last heard of.
    pub fn last(&self) -> Option<&Arc<Handshake>> {
        match self {
            Self::Up { handshake, .. } => Some(handshake),
            Self::Down { last, .. } => last.as_ref(),
        }
    }
}

/// Who is in charge of a kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Charge {
    /// A provider, with what it says of the kind.
    Managed {
        /// Which.
        provider: Arc<str>,
        /// Whether it can be asked.
        state: Duty,
        /// As it declares it.
        served: Box<Served>,
        /// What it speaks; none if it never introduced itself.
        handshake: Option<Arc<Handshake>>,
    },
    /// Nobody but ourselves: it counts who uses it.
    Config(ConfigKind),
    /// Nobody yet, for this reason: a provider that comes first has not said whether it serves the kind.
    Held(String),
}

/// Whether a provider can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It can, since this introduction.
    Up(u64),
    /// It cannot, for this reason.
    Down {
        /// In words.
        why: String,
        /// As [`State::Down`].
        is_long: bool,
    },
}

/// Who is in charge of what, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    /// By kind; versions are views of the same objects, so two cannot be reconciled apart.
    pub kinds: BTreeMap<GroupKind, Charge>,
    /// What cannot be served as declared.
    pub problems: Vec<Complaint>,
}

/// A provider does not get what it was declared for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Which.
    pub provider: Arc<str>,
    /// In words.
    pub why: String,
}

/// Deals the kinds out to providers, which come by rank. The first who asks for a kind keeps it.
///
/// While one that serves whatever it names has never answered, what others after it only discovered is
/// nobody's: it may have made what is there, and whoever looks for that elsewhere makes it again. Once it is
/// down for long the others are no longer held up.
pub fn claims<'a>(providers: impl Iterator<Item = (&'a Arc<str>, &'a Known)>) -> Claims {
    let mut claims = Claims::default();
    let mut configs = Vec::new();
    let mut awaited: Option<&Arc<str>> = None;
    for (name, known) in providers {
        let handshake = known.state.last();
        let duty = match &known.state {
            State::Up { epoch, .. } => Duty::Up(*epoch),
            State::Down { why, is_long, .. } => Duty::Down { why: why.clone(), is_long: *is_long },
        };
        let refused = handshake.map(|it| it.refused.as_slice()).unwrap_or_default();
        claims.problems.extend(refused.iter().map(|why| {
            let why = format!("provider {name} names a kind that cannot be served: {why}");
            Complaint { provider: name.clone(), why }
        }));
        let discovers = known.wanted.is_empty();
        for served in kinds_of(name, &known.wanted, handshake, &mut claims.problems) {
            configs.extend(served.configs.iter().cloned());
            let kind = served.kind.group_kind.clone();
            let charge = match awaited.filter(|_| discovers) {
                Some(first) => Charge::Held(format!(
                    "provider {name} serves it, but provider {first} comes first and has not answered yet"
                )),
                None => Charge::Managed {
                    provider: name.clone(),
                    state: duty.clone(),
                    served: Box::new(served),
                    handshake: handshake.cloned(),
                },
            };
            match claims.kinds.get(&kind) {
                None => drop(claims.kinds.insert(kind, charge)),
                Some(Charge::Managed { provider, .. }) => {
                    let why = format!(
                        "{kind} is served by the providers {provider} and {name}: {provider} keeps it"
                    );
                    claims.problems.push(Complaint { provider: name.clone(), why });
                }
                Some(Charge::Config(_) | Charge::Held(_)) => {}
            }
        }
        if discovers && matches!(known.state, State::Down { is_long: false, last: None, .. }) {
            awaited = awaited.or(Some(name));
        }
    }
    for config in configs.into_iter().filter(|it| it.usage.is_some()) {
        claims.kinds.entry(config.kind.group_kind.clone()).or_insert(Charge::Config(config));
    }
    claims
}

/// The kinds that one provider is in for.
fn kinds_of(
    name: &Arc<str>,
    wanted: &[Wanted],
    handshake: Option<&Arc<Handshake>>,
    problems: &mut Vec<Complaint>,
) -> Vec<Served> {
    let served = handshake.map(|it| it.kinds.as_slice()).unwrap_or_default();
    if wanted.is_empty() {
        return served.to_vec();
    }
    let mut kinds = Vec::new();
    for wanted in wanted {
        let found = served.iter().find(|it| it.kind == wanted.kind);
        // The older protocol need not name what it serves, and who never answered has named nothing.
        let may_be_silent = handshake.is_none_or(|it| it.protocol == Protocol::V1Alpha1);
        let mut kind = match found {
            Some(found) => found.clone(),
            None if may_be_silent => Served::new(wanted.kind.clone()),
            None => {
                let why = format!("provider {name} does not serve {}", wanted.kind);
                problems.push(Complaint { provider: name.clone(), why });
                continue;
            }
        };
        if let Some(is_deterministic) = wanted.has_deterministic_names {
            kind.has_deterministic_names = is_deterministic;
        }
        kinds.push(kind);
    }
    kinds
}

#[cfg(test)]
mod tests {
    use concert_provider::Capabilities;

    use super::*;

    fn kind(name: &str) -> GroupVersionKind {
        GroupKind::new("example.com", name).at_version("v1")
    }

    fn wanted(name: &str) -> Wanted {
        Wanted { kind: kind(name), has_deterministic_names: None }
    }

    fn up(protocol: Protocol, kinds: &[&str], wanted: Vec<Wanted>) -> Known {
        let handshake = Handshake {
            protocol,
            name: "p".into(),
            version: "1".into(),
            capabilities: Capabilities::default(),
            kinds: kinds.iter().map(|it| Served::new(kind(it))).collect(),
            refused: Vec::new(),
        };
        Known { wanted, state: State::Up { handshake: Arc::new(handshake), epoch: 1 } }
    }

    fn deal(providers: &[(&str, Known)]) -> Claims {
        let named: Vec<(Arc<str>, Known)> =
            providers.iter().map(|(name, known)| ((*name).into(), known.clone())).collect();
        claims(named.iter().map(|(name, known)| (name, known)))
    }

    fn names(claims: &Claims) -> Vec<&str> {
        claims.kinds.keys().map(|it| &*it.kind).collect()
    }

    #[test]
    fn without_a_wish_a_provider_serves_all_it_names_and_with_one_exactly_that() {
        assert_eq!(names(&deal(&[("a", up(Protocol::V1, &["A", "B"], vec![]))])), ["A", "B"]);
        assert_eq!(names(&deal(&[("a", up(Protocol::V1, &["A", "B"], vec![wanted("B")]))])), ["B"]);
    }

    #[test]
    fn a_kind_has_one_provider_and_the_other_is_told() {
        let both =
            deal(&[("a", up(Protocol::V1, &["A"], vec![])), ("b", up(Protocol::V1, &["A", "B"], vec![]))]);
        assert_eq!(names(&both), ["A", "B"]);
        let why = "A.example.com is served by the providers a and b: a keeps it".to_owned();
        assert_eq!(both.problems, [Complaint { provider: "b".into(), why }]);
        assert!(
            matches!(&both.kinds[&kind("A").group_kind], Charge::Managed { provider, .. } if &**provider == "a")
        );
    }

    #[test]
    fn only_the_older_protocol_may_serve_what_it_does_not_name() {
        assert_eq!(names(&deal(&[("a", up(Protocol::V1Alpha1, &[], vec![wanted("A")]))])), ["A"]);
        let silent = deal(&[("a", up(Protocol::V1, &[], vec![wanted("A")]))]);
        let why = "provider a does not serve example.com/v1, Kind=A".to_owned();
        assert_eq!(silent.problems, [Complaint { provider: "a".into(), why }]);
    }

    #[test]
    fn who_does_not_answer_stays_in_charge_of_what_it_was_declared_for() {
        let state = State::Down { why: "refused".into(), is_long: true, last: None };
        let claims = deal(&[("a", Known { wanted: vec![wanted("A")], state })]);
        let charge = &claims.kinds[&kind("A").group_kind];
        assert!(matches!(charge, Charge::Managed { state: Duty::Down { is_long: true, .. }, .. }));
    }

    /// One that does not answer and serves whatever it names, of which this is known.
    fn down(is_long: bool, last: Option<&Known>) -> Known {
        let last = last.and_then(|it| it.state.last().cloned());
        Known { wanted: vec![], state: State::Down { why: "refused".into(), is_long, last } }
    }

    #[test]
    fn what_makes_no_sense_is_complained_of_and_the_rest_is_served() {
        let mut known = up(Protocol::V1, &["A"], vec![]);
        if let State::Up { handshake, .. } = &mut known.state {
            Arc::make_mut(handshake).refused = vec!["a kind is missing".into()];
        }
        let dealt = deal(&[("a", known)]);
        assert_eq!(names(&dealt), ["A"]);
        let why = "provider a names a kind that cannot be served: a kind is missing".to_owned();
        assert_eq!(dealt.problems, [Complaint { provider: "a".into(), why }]);
    }

    #[test]
    fn what_others_discovered_waits_for_who_comes_first_and_has_never_answered() {
        let b = up(Protocol::V1, &["A"], vec![]);
        let why = "provider b serves it, but provider a comes first and has not answered yet".to_owned();
        let held = deal(&[("a", down(false, None)), ("b", b.clone())]);
        assert_eq!(held.kinds[&kind("A").group_kind], Charge::Held(why));
        assert!(held.problems.is_empty());
        // It is no longer waited for, or it does not come first, or somebody said who is to have the kind.
        for providers in [
            [("a", down(true, None)), ("b", b.clone())],
            [("b", b.clone()), ("c", down(false, None))],
            [("a", down(false, None)), ("b", up(Protocol::V1, &["A"], vec![wanted("A")]))],
            [("a", Known { wanted: vec![wanted("Z")], ..down(false, None) }), ("b", b)],
        ] {
            let dealt = deal(&providers);
            let charge = &dealt.kinds[&kind("A").group_kind];
            assert!(matches!(charge, Charge::Managed { provider, .. } if &**provider == "b"), "{charge:?}");
        }
    }

    #[test]
    fn who_does_not_answer_stays_in_charge_of_what_it_served_when_last_heard_of() {
        let b = up(Protocol::V1, &["A", "B"], vec![]);
        for is_long in [false, true] {
            let a = down(is_long, Some(&up(Protocol::V1, &["A"], vec![])));
            let dealt = deal(&[("a", a), ("b", b.clone())]);
            let provider_of = |name: &str| match &dealt.kinds[&kind(name).group_kind] {
                Charge::Managed { provider, .. } => provider.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!((provider_of("A"), provider_of("B")), ("a".to_owned(), "b".to_owned()));
        }
    }

    #[test]
    fn kinds_of_configuration_are_ours() {
        let mut known = up(Protocol::V1, &["A"], vec![]);
        if let State::Up { handshake, .. } = &mut known.state {
            let usage = Some(kind("ProviderConfigUsage"));
            let config = ConfigKind { kind: kind("ProviderConfig"), usage };
            Arc::make_mut(handshake).kinds[0].configs = vec![config.clone(), config];
        }
        let claims = deal(&[("a", known)]);
        assert!(matches!(claims.kinds[&kind("ProviderConfig").group_kind], Charge::Config(_)));
    }
}
