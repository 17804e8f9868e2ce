//! The reconciler is killed at random while it makes things, in a cloud that loses answers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use concert_store::Chance;
use serde_json::{Value, json};

use crate::process::{Provider, Reconciler};
use crate::world::{World, bucket, eventually, eventually_within, is, list_of, message, pass};

const SEED: u64 = 0x000c_0ce7;
const PENDING: &str = "crossplane.io/external-create-pending";
const EXTERNAL_NAME: &str = "crossplane.io/external-name";
const DOUBT: &str = "cannot determine creation result";
/// All objects, on a machine with two slow cores.
const ALL_WITHIN: Duration = Duration::from_secs(300);
const FAULTS: [&str; 8] =
    ["--visible-after", "200ms", "--lost-answers", "0.05", "--error-rate", "0.05", "--seed", "7"];
/// How often the reconciler is killed.
const KILLS: u64 = 30;
const FLAGS: [&str; 4] = ["--poll-interval", "10s", "--log-level", "warn,concert_server=info"];

/// Creates `objects` Buckets and kills the reconciler `KILLS` times while the first `made` things are made.
/// Answers with one that runs.
fn create_and_kill(world: &World, provider: &Provider, objects: u64, made: u64) -> Reconciler {
    let manifests: Vec<Value> =
        (0..objects).map(|index| bucket(&format!("b{index}"), &Value::Null)).collect();
    let chance = Chance::seeded(SEED);
    let mut reconciler = Reconciler::start_for(world, provider, &FLAGS);
    std::thread::scope(|scope| {
        scope.spawn(|| world.create(&list_of(&manifests)));
        for kill in 0..KILLS {
            // Spread over all of it, and none before the last one had any effect.
            let reached = made * (kill + 1) / (KILLS + 1);
            eventually(&format!("{reached} things, {kill} kills"), || match provider.count("created") {
                created if created >= reached => Ok(()),
                created => Err(format!("{created} things")),
            });
            pass(Duration::from_millis(chance.below(150)));
            reconciler.process.kill();
            reconciler = Reconciler::start_for(world, provider, &FLAGS);
        }
    });
    reconciler
}

/// The things that were ever made, by the uid of their object.
fn made(provider: &Provider) -> BTreeMap<String, usize> {
    let truth = provider.ask("GET", "/truth", &Value::Null);
    let mut made = BTreeMap::new();
    for entry in truth["entries"].as_array().unwrap().iter().filter(|it| it["event"] == "created") {
        let uid = entry["thing"]["owner"]["uid"].as_str().unwrap();
        assert!(!uid.is_empty(), "{entry}");
        *made.entry(uid.to_owned()).or_default() += 1;
    }
    made
}

/// The uid of the object that a thing was made for, and its own identity.
fn owner_and_id(thing: Value) -> (String, Value) {
    (thing["owner"]["uid"].as_str().unwrap().to_owned(), thing["id"].clone())
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// Lets the cloud recover, since an object says of every poll that failed that it did, and waits until
/// every object is as `is_settled` wants it.
fn settle(
    world: &World,
    provider: &Provider,
    objects: u64,
    is_settled: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    provider.ask("PUT", "/settings", &json!({"errorRate": 0, "lostAnswers": 0}));
    eventually_within(ALL_WITHIN, "all objects are settled", || {
        let all = world.list("buckets");
        assert_eq!(all.len() as u64, objects);
        let open: Vec<&Value> = all.iter().filter(|it| !is_settled(it)).collect();
        match open.first() {
            None => Ok(all),
            Some(first) => Err(format!("{} are open, such as {first}", open.len())),
        }
    })
}

#[test]
fn nothing_is_leaked_doubled_or_stuck_when_the_reconciler_is_killed() {
    const OBJECTS: u64 = 1000;
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[&["--protocol", "v1"], &FAULTS[..]].concat());
    world.define_cloud();
    let reconciler = create_and_kill(&world, &provider, OBJECTS, OBJECTS);
    eventually("every thing is made while the cloud is at its worst", || match provider.count("created") {
        OBJECTS => Ok(()),
        created => Err(format!("{created} things")),
    });
    let all = settle(&world, &provider, OBJECTS, |it| is(it, "Ready", "True") && is(it, "Synced", "True"));

    let known: BTreeSet<String> = all.iter().map(uid_of).collect();
    let things = provider.things();
    let owners: BTreeSet<String> =
        things.iter().map(|it| it["owner"]["uid"].as_str().unwrap().to_owned()).collect();
    assert_eq!((things.len() as u64, provider.count("doubles")), (OBJECTS, 0));
    assert_eq!(owners, known);
    assert_eq!(provider.ask("POST", "/leaks", &json!({ "known": known })), json!([]));
    // Not even one after the other.
    assert!(made(&provider).values().all(|times| *times == 1));

    // kubectl would wait for one after the other.
    world.kubectl(&["delete", "buckets", "--all", "--wait=false"]);
    eventually_within(ALL_WITHIN, "all objects are gone", || match world.list("buckets").len() {
        0 => Ok(()),
        left => Err(format!("{left} are left")),
    });
    assert_eq!(provider.count("live"), 0);
    drop(reconciler);
}

#[test]
fn without_tokens_nothing_is_made_twice_and_what_cannot_be_known_says_so() {
    const OBJECTS: u64 = 1000;
    let Some(world) = World::enter() else { return };
    let provider = Provider::start(&world, &[&["--protocol", "v1alpha1"], &FAULTS[..]].concat());
    world.define_cloud();
    // What is in doubt is not made before somebody has looked, so not all is.
    let reconciler = create_and_kill(&world, &provider, OBJECTS, OBJECTS * 3 / 4);
    let is_in_doubt = |it: &Value| is(it, "Synced", "False") && message(it, "Synced").contains(DOUBT);
    let is_ready = |it: &Value| is(it, "Ready", "True") && is(it, "Synced", "True");
    let all = settle(&world, &provider, OBJECTS, |it| is_ready(it) || is_in_doubt(it));

    let in_doubt = all.iter().filter(|it| is_in_doubt(it)).count();
    eprintln!("{in_doubt} of {OBJECTS} objects are in doubt");
    assert!(in_doubt as u64 <= OBJECTS / 2, "doubt is the exception");
    let made = made(&provider);
    assert_eq!(provider.count("doubles"), 0);
    assert!(made.values().all(|times| *times == 1));
    let known: BTreeSet<String> = all.iter().map(uid_of).collect();
    assert_eq!(provider.ask("POST", "/leaks", &json!({ "known": known })), json!([]));
    let ready: Vec<&Value> = all.iter().filter(|it| is_ready(it)).collect();
    assert!(ready.iter().all(|it| made.contains_key(&uid_of(it))));

    // People can tell: by a look at the cloud they do what each object asks for, and all are well.
    let things: BTreeMap<String, Value> = provider.things().into_iter().map(owner_and_id).collect();
    assert!(in_doubt > 0, "nobody had to be asked");
    let answered = all.iter().filter(|it| is_in_doubt(it)).map(|object| {
        let mut object = object.clone();
        let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
        annotations.remove(PENDING);
        // Whatever has happened since, as with a patch.
        object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        if let Some(id) = things.get(&uid_of(&object)) {
            object["metadata"]["annotations"][EXTERNAL_NAME] = id.clone();
        }
        object
    });
    world.replace(&list_of(&answered.collect::<Vec<_>>()));
    let all = settle(&world, &provider, OBJECTS, is_ready);
    let known: BTreeSet<String> = all.iter().map(uid_of).collect();
    assert_eq!((provider.count("live"), provider.count("doubles")), (OBJECTS, 0));
    assert_eq!(provider.ask("POST", "/leaks", &json!({ "known": known })), json!([]));
    drop(reconciler);
}
