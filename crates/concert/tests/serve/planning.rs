//! What a plan says is what an apply then does: on the example provider, for specs that chance makes up.

use std::collections::BTreeMap;

use concert_provider_example::cloud::Event;
use serde_json::{Map, Value, json};

use crate::cloud::{BUCKETS, World, bucket};
use crate::wire::call;

const SEEDS: u64 = 4;
const STEPS: usize = 30;
const TIER: &str = "spec.forProvider.tier";

const CREATE: &str = "\
create Bucket default/a
  apiVersion: (none) -> \"cloud.concert.dev/v1alpha1\"
  kind: (none) -> \"Bucket\"
  metadata.name: (none) -> \"a\"
  metadata.namespace: (none) -> \"default\"
  spec.forProvider.password: (none) -> (sensitive)
  spec.forProvider.region: (none) -> \"here\"
  spec.forProvider.size: (none) -> 2
  spec.managementPolicies[0]: (none) -> \"*\"
  provider: create
    spec.forProvider.password: (sensitive) -> (sensitive)
    spec.forProvider.region: (none) -> \"here\"
    spec.forProvider.size: (none) -> 2
1 of 1 would change
";
const UPDATE: &str = "\
update Bucket default/a
  spec.forProvider.password: (sensitive) -> (sensitive)
  spec.forProvider.size: 1 -> 2
  provider: update
    spec.forProvider.password: (sensitive) -> (sensitive)
    spec.forProvider.size: 1 -> 2
1 of 1 would change
";
const NONE: &str = "\
none Bucket default/a
  provider: none
nothing would change
";

type Leaves = BTreeMap<String, Value>;

fn leaves_of(properties: &Map<String, Value>) -> Leaves {
    let mut leaves = Leaves::new();
    properties
        .iter()
        .for_each(|(name, value)| collect(&format!("spec.forProvider.{name}"), value, &mut leaves));
    leaves
}

fn collect(path: &str, value: &Value, leaves: &mut Leaves) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| collect(&format!("{path}.{name}"), value, leaves));
        }
        leaf => drop(leaves.insert(path.to_owned(), leaf.clone())),
    }
}

/// Each field that differs: what it was and what it is.
fn changed(before: &Leaves, after: &Leaves) -> BTreeMap<String, (Option<Value>, Option<Value>)> {
    let paths = before.keys().chain(after.keys());
    let pair = |path: &String| (before.get(path).cloned(), after.get(path).cloned());
    paths.map(|path| (path.clone(), pair(path))).filter(|(_, (from, to))| from != to).collect()
}

/// The same, as a plan says it. What is not to be shown has no values.
fn planned(plan: &Value) -> BTreeMap<String, (Option<Value>, Option<Value>)> {
    let (mut from, mut to) = (Leaves::new(), Leaves::new());
    for change in plan["changes"].as_array().into_iter().flatten() {
        let path = change["path"].as_str().unwrap();
        if change["isSensitive"] == true {
            assert_eq!((&change["from"], &change["to"]), (&Value::Null, &Value::Null), "{plan}");
            to.insert(path.to_owned(), json!("hidden"));
            continue;
        }
        collect(path, &change["from"], &mut from);
        collect(path, &change["to"], &mut to);
    }
    changed(&from, &to)
}

/// With what is not to be shown hidden.
fn hidden(
    changes: BTreeMap<String, (Option<Value>, Option<Value>)>,
) -> BTreeMap<String, (Option<Value>, Option<Value>)> {
    let hide = |(path, change): (String, _)| match path.ends_with(".password") {
        true => (path, (None, Some(json!("hidden")))),
        false => (path, change),
    };
    changes.into_iter().map(hide).collect()
}

/// What is declared of an object, and nothing that others write.
fn declared(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({"spec": object["spec"], "labels": metadata["labels"], "annotations": metadata["annotations"]})
}

struct Dice(u64);

impl Dice {
    /// 0 up to `sides`, not included.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }

    fn fields(&mut self) -> Value {
        let mut fields = json!({"size": self.roll(4)});
        // The same place most of the time: it cannot change.
        if self.roll(5) > 0 {
            fields["region"] = json!(if self.roll(6) == 0 { "there" } else { "here" });
        }
        if self.roll(3) == 0 {
            fields["tier"] = json!(["gold", "silver"][self.roll(2) as usize]);
        }
        if self.roll(4) == 0 {
            fields["password"] = json!(format!("secret-{}", self.roll(3)));
        }
        if self.roll(2) == 0 {
            let mut tags = json!({"a": self.roll(3).to_string()});
            if self.roll(2) == 0 {
                tags["b"] = json!(self.roll(2).to_string());
            }
            fields["tags"] = tags;
        }
        fields
    }
}

#[test]
fn a_plan_says_what_an_apply_then_does() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 1..=SEEDS {
        let world = World::new(seed);
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut last: BTreeMap<&str, Value> = BTreeMap::new();
        for step in 0..STEPS {
            let name = ["a", "b", "c"][dice.roll(3) as usize];
            if last.contains_key(name) && dice.roll(8) == 0 {
                world.delete(name);
                last.remove(name);
                continue;
            }
            // The same again, now and then.
            let fields = match last.get(name) {
                Some(fields) if dice.roll(5) == 0 => fields.clone(),
                _ => dice.fields(),
            };
            let object = bucket(name, &fields);
            let (before, sequence) = (world.properties_if_any(name, &last), world.sequence());
            let plan = world.plan(&object);
            let foreseen = world.apply(&object, "&dryRun=All");
            assert_eq!(world.done_since(sequence), [], "a plan touches nothing");
            let applied = world.apply(&object, "");
            assert_eq!(declared(&foreseen), declared(&applied), "a dry run foresees what is stored");
            let is_fine = world.settle(&applied);
            let (done, after) = (world.done_since(sequence), world.properties(name));
            let context = format!("seed {seed}, step {step}: {object}\nplan: {plan}\ndone: {done:?}");
            let action = plan["action"].as_str().unwrap_or_default();
            let is_refused = plan["reason"].as_str().unwrap_or_default().contains("would be refused");
            match (action, done.as_slice()) {
                ("create", [Event::Created { .. }]) => {
                    let (foretold, mut made) = (planned(&plan), hidden(changed(&Leaves::new(), &after)));
                    // What the cloud fills in by itself where it is left out: nobody can know that before.
                    if !foretold.contains_key(TIER) {
                        assert_eq!(made.remove(TIER), Some((None, Some(json!("standard")))), "{context}");
                    }
                    assert_eq!(foretold, made, "{context}");
                }
                ("update", [Event::Updated { by_hand: false, .. }]) => {
                    assert_eq!(planned(&plan), hidden(changed(&before, &after)), "{context}");
                }
                // What cannot change in place is said to be a replacement, which is refused.
                ("none" | "replace", []) => assert_eq!(before, after, "{context}"),
                _ => panic!("{context}"),
            }
            assert_eq!((is_refused, is_fine), (action == "replace", action != "replace"), "{context}");
            *seen.entry(action.to_owned()).or_default() += 1;
            last.insert(name, fields);
        }
    }
    for action in ["create", "update", "none", "replace"] {
        assert!(seen.get(action).is_some_and(|count| *count >= 3), "{seen:?}");
    }
}

fn said(output: &std::process::Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_plan_is_shown_with_store_and_provider_and_without_secrets() {
    let world = World::new(21);
    let file = world.file("bucket.json");
    let plan = |fields: &Value| {
        std::fs::write(&file, bucket("a", fields).to_string()).unwrap();
        said(&world.concert(&["plan", "-f", &file]))
    };
    let (code, text, talk) = plan(&json!({"region": "here", "size": 2, "password": "geheim"}));
    assert_eq!((code, text.as_str()), (Some(2), CREATE), "{talk}");
    let fields = json!({"region": "here", "size": 1, "password": "geheim"});
    assert!(world.settle(&world.apply(&bucket("a", &fields), "")));
    let (code, text, talk) = plan(&json!({"region": "here", "size": 2, "password": "anders"}));
    assert_eq!((code, text.as_str()), (Some(2), UPDATE), "{talk}");
    let (code, text, talk) = plan(&fields);
    assert_eq!((code, text.as_str()), (Some(0), NONE), "{talk}");
}

#[test]
fn a_plan_of_many_objects_has_what_providers_would_do_about_each() {
    let world = World::new(23);
    let file = world.file("buckets.json");
    // More than are asked about at once.
    let objects: Vec<Value> = (0..45).map(|n| bucket(&format!("b{n}"), &json!({"size": n}))).collect();
    std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    let (code, text, talk) = said(&world.concert(&["plan", "-f", &file, "-o", "json"]));
    assert_eq!(code, Some(2), "{talk}");
    let plan: Value = serde_json::from_str(&text).unwrap();
    let items = plan["items"].as_array().unwrap();
    assert_eq!(items.len(), objects.len());
    for (n, item) in items.iter().enumerate() {
        assert_eq!(item["name"], format!("b{n}"));
        assert_eq!(item["provider"]["action"], "create", "{item}");
        let size = json!({"path": "spec.forProvider.size", "from": null, "to": n, "isSensitive": false, "replaces": false});
        assert!(item["provider"]["changes"].as_array().unwrap().contains(&size), "{item}");
    }
}

#[test]
fn a_saved_plan_is_refused_once_its_provider_would_do_something_else() {
    let world = World::new(22);
    let (file, saved) = (world.file("bucket.json"), world.file("bucket.plan"));
    let mut object = bucket("a", &json!({"region": "here", "size": 1, "password": "geheim"}));
    object["spec"]["providerConfigRef"] = json!({"kind": "ClusterProviderConfig", "name": "later"});
    std::fs::write(&file, object.to_string()).unwrap();
    let save = || said(&world.concert(&["plan", "-f", &file, "-o", &saved]));
    let (code, text, talk) = save();
    assert_eq!(code, Some(0), "{talk}");
    assert!(text.contains("  provider: unknown ("), "{text}");
    assert!(text.contains("password: (none) -> (sensitive)") && !text.contains("geheim"), "{text}");
    let later = json!({"apiVersion": "cloud.concert.dev/v1alpha1", "kind": "ClusterProviderConfig",
        "metadata": {"name": "later"}, "spec": {"credentials": {"source": "None"}}});
    world.apply_all(&later.to_string());
    let apply = || said(&world.concert(&["apply", "--plan", &saved]));
    let (code, out, talk) = apply();
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let moved = "what the plan was based on has moved: Bucket a is something else to its provider now";
    assert!(talk.contains(moved), "{talk}");
    assert_eq!(
        call(&world.address, "GET", &format!("{BUCKETS}/a"), "").unwrap().0,
        404,
        "nothing was written"
    );
    let (_, text, _) = save();
    assert!(text.contains("  provider: create\n"), "{text}");
    let (code, out, talk) = apply();
    assert_eq!((code, out.as_str()), (Some(0), "bucket.cloud.concert.dev/a created\n"), "{talk}");
}

impl World {
    fn sequence(&self) -> u64 {
        self.api.cloud().truth().since(0).len() as u64
    }

    /// What the cloud did since.
    fn done_since(&self, sequence: u64) -> Vec<Event> {
        let cloud = self.api.cloud();
        let events = cloud.truth().since(sequence).iter().map(|it| it.event.clone());
        events.filter(|it| !matches!(it, Event::Burnt { .. })).collect()
    }

    fn properties(&self, name: &str) -> Leaves {
        let object = call(&self.address, "GET", &format!("{BUCKETS}/{name}"), "").unwrap().1;
        let object: Value = serde_json::from_str(&object).unwrap();
        let id =
            object["metadata"]["annotations"]["crossplane.io/external-name"].as_str().unwrap_or_default();
        let cloud = self.api.cloud();
        cloud.find(Some("bucket"), id).map(|thing| leaves_of(&thing.properties)).unwrap_or_default()
    }

    /// None before it is made.
    fn properties_if_any(&self, name: &str, made: &BTreeMap<&str, Value>) -> Leaves {
        if made.contains_key(name) { self.properties(name) } else { Leaves::new() }
    }
}
