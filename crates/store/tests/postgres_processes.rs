//! Several processes on one PostgreSQL database, each a replica of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use concert_model::{Patch, ResourceVersion, Revision};
use concert_store::conformance::linear::{Span, check};
use concert_store::conformance::own::concurrency::{Answer, Objects, Operation};
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Delete, Deleted, Error, Event, Part, Query, Store};
use database::{Written, key, map, maps, open};
use serde_json::json;
use tokio::task::JoinSet;

const PROCESSES: usize = 3;
const TASKS: usize = 4;
const WRITES: usize = 40;
/// How a test process is told that it is one of them: arguments that filter no test.
const URL: &str = "replica-url=";
const KEYS: &str = "replica-keys=";
const NUMBER: &str = "replica-number=";

fn argument(name: &str) -> Option<String> {
    std::env::args().find_map(|it| it.strip_prefix(name).map(str::to_owned))
}

/// One write after the other, and one counter that all tasks of all processes raise. Each is said aloud.
async fn write(store: concert_store::Local, mark: String) {
    let by = By::actor("test");
    let say = |written: Written| {
        let line = format!("ack {} {} {}\n", written.revision, written.name, written.value);
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    };
    for n in 0..WRITES {
        let value = format!("{mark}-{n}");
        say(Written::of(&store.create(map(&value, &value), &by).await.unwrap()));
        loop {
            let mut object = store.get(&key("shared")).await.unwrap().decode();
            let count: usize = object.get("data")["value"].as_str().unwrap().parse().unwrap();
            object.set("data", map("", &(count + 1).to_string()).get("data").clone());
            match store.update(object, &by).await {
                Ok(written) => break say(Written::of(&written)),
                Err(concert_store::Error::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Not a test of its own: what the processes of the test below do.
#[test]
fn writes_as_one_of_several() {
    let (Some(url), Some(keys), Some(number)) = (argument(URL), argument(KEYS), argument(NUMBER)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(&url, &Keyring::read_from(keys).unwrap());
        let writers = (0..TASKS).map(|task| write(store.clone(), format!("p{number}-t{task}")));
        writers.collect::<JoinSet<()>>().join_all().await;
    });
}

/// Starts a process and returns all that it was told.
fn run(url: &str, keys: &Path, number: usize) -> Vec<Written> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["writes_as_one_of_several", "--exact", "--nocapture", "--test-threads=1"])
        .args([format!("{URL}{url}"), format!("{KEYS}{}", keys.display()), format!("{NUMBER}{number}")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let parse = |line: String| {
        let (_, words) = line.split_once("ack ")?;
        let [revision, name, value] = words.split(' ').collect::<Vec<_>>()[..] else { return None };
        Some(Written { revision: revision.parse().ok()?, name: name.to_owned(), value: value.to_owned() })
    };
    let told = lines.filter_map(|line| parse(line.unwrap())).collect();
    assert!(child.wait().unwrap().success(), "process {number} failed");
    told
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_several_processes_are_one_story() {
    let Some(server) = concert_testbed::Postgres::shared() else { return };
    let (folder, url) = (tempfile::tempdir().unwrap(), server.fresh_url());
    let keys = folder.path().join("key");
    let store = open(&url, &Keyring::open(&keys, &Chance::from_system()).unwrap());
    let first = store.create(map("shared", "0"), &By::actor("test")).await.unwrap();
    let start = Written::of(&first).revision;
    let mut events = store.watch(&Query::all(maps()), Some(&Revision(start).into())).await.unwrap();
    let mut running = JoinSet::new();
    for number in 0..PROCESSES {
        let (url, keys) = (url.clone(), keys.clone());
        running.spawn_blocking(move || run(&url, &keys, number));
    }
    let total = PROCESSES * TASKS * WRITES * 2;
    let mut story: Vec<Written> = Vec::new();
    while story.len() < total {
        let event = events.next().await.unwrap().unwrap();
        if let Event::Bookmark { .. } = event {
            continue;
        }
        let written = Written::of(event.object().unwrap());
        assert_eq!(written.revision, start + 1 + story.len() as u64, "a gap or a repeat");
        story.push(written);
    }
    let told: Vec<Written> = running.join_all().await.into_iter().flatten().collect();
    let by_revision: BTreeMap<u64, &Written> = story.iter().map(|it| (it.revision, it)).collect();
    for written in &told {
        assert_eq!(by_revision.get(&written.revision), Some(&written), "told, and otherwise in the log");
    }
    assert_eq!(told.len(), total);
    // No update of the shared counter was lost.
    let counted = story.iter().filter(|it| it.name == "shared").map(|it| it.value.parse().unwrap());
    let expected: Vec<usize> = (1..=PROCESSES * TASKS * WRITES).collect();
    assert_eq!(counted.collect::<Vec<usize>>(), expected);
}

const REPLICAS: u64 = 4;
const OPERATIONS: usize = 100;
const KEYS_OF_ALL: u64 = 3;
/// Before what a replica says, for its test harness says things too.
const SAID: &str = "said: ";

/// Not a test of its own: what each replica of the test below does, as it is asked line by line.
#[test]
fn answers_as_one_of_several() {
    let (Some(url), Some(keys)) = (argument(URL), argument(KEYS)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = runtime.block_on(async { open(&url, &Keyring::read_from(keys).unwrap()) });
    for line in std::io::stdin().lines() {
        let answer = runtime.block_on(act(&store, &line.unwrap()));
        std::io::stdout().write_all(format!("{SAID}{answer}\n").as_bytes()).unwrap();
    }
}

/// Does what a line asks for, and says the version and the value that came of it, or why nothing did.
async fn act(store: &concert_store::Local, line: &str) -> String {
    let by = By::actor("test");
    let done = match line.split(' ').collect::<Vec<_>>()[..] {
        ["get", name] => store.get(&key(name)).await,
        ["create", name, value] => store.create(map(name, value), &by).await,
        ["update", name, version, value] => {
            let mut object = map(name, value);
            object.set_metadata("resourceVersion", json!(version));
            store.update(object, &by).await
        }
        ["patch", name, value] => {
            let patch = Patch::merge(json!({"data": {"value": value}})).unwrap();
            store.patch(&key(name), Part::Main, &patch, &by).await
        }
        ["delete", name, version] => {
            let resource_version = (version != "any").then(|| ResourceVersion(version.into()));
            let options = Delete { resource_version, ..Delete::default() };
            store.delete(&key(name), &options, &by).await.map(Deleted::into_object)
        }
        _ => panic!("what is {line:?}?"),
    };
    match done {
        Ok(object) => format!("done {} {}", object.resource_version(), Written::of(&object).value),
        Err(Error::AlreadyExists { .. }) => "exists".to_owned(),
        Err(Error::Conflict { .. }) => "conflict".to_owned(),
        Err(Error::NotFound { .. }) => "missing".to_owned(),
        Err(error) => panic!("{line}: {error}"),
    }
}

/// What an answer to a line means.
fn operation(line: &str, said: &str) -> Operation {
    let version = |text: &str| ResourceVersion(text.into());
    let number = |text: &str| text.parse::<i64>().unwrap();
    let done = match said.split(' ').collect::<Vec<_>>()[..] {
        ["done", new, value] => Some((version(new), number(value))),
        _ => None,
    };
    let answer = || match (&done, said) {
        (Some((new, _)), _) => Answer::Done(new.clone()),
        (None, "conflict") => Answer::Conflict,
        (None, "missing") => Answer::NotFound,
        (None, _) => panic!("{line}: {said}"),
    };
    let is_nothing = |why: &str| assert!(done.is_some() || said == why, "{line}: {said}");
    match line.split(' ').collect::<Vec<_>>()[..] {
        ["get", _] => {
            is_nothing("missing");
            Operation::Get(done.clone())
        }
        ["create", _, value] => {
            is_nothing("exists");
            Operation::Create(number(value), done.clone().map(|(new, _)| new))
        }
        ["update", _, from, value] => Operation::Update(version(from), number(value), answer()),
        ["patch", _, value] => {
            is_nothing("missing");
            Operation::Patch(number(value), done.clone().map(|(new, _)| new))
        }
        ["delete", _, from] => Operation::Delete((from != "any").then(|| version(from)), answer()),
        _ => panic!("what is {line:?}?"),
    }
}

/// A process that does one thing after the other.
struct Replica {
    child: Child,
    asked: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Replica {
    fn start(url: &str, keys: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["answers_as_one_of_several", "--exact", "--nocapture", "--test-threads=1"])
            .args([format!("{URL}{url}"), format!("{KEYS}{}", keys.display())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (asked, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, asked, answers: BufReader::new(answers).lines() }
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.asked, "{line}").unwrap();
        loop {
            let said = self.answers.next().expect("it has ended").unwrap();
            if let Some((_, answer)) = said.split_once(SAID) {
                return answer.to_owned();
            }
        }
    }

    /// Asks for this and that, and notes what was answered between which ticks of a clock of all.
    fn record(mut self, number: u64, chance: &Chance, clock: &AtomicU64) -> Vec<(String, Span<Operation>)> {
        let mut spans = Vec::new();
        // Versions that were seen, to compare and set with.
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for i in 0..OPERATIONS {
            let (name, value) = (format!("key-{}", chance.below(KEYS_OF_ALL)), format!("{number}{i:06}"));
            let line = match (chance.below(10), known.get(&name)) {
                (0..=1, _) | (4..=6, None) => format!("create {name} {value}"),
                (2..=3, _) => format!("get {name}"),
                (4..=6, Some(from)) => format!("update {name} {from} {value}"),
                (7, _) => format!("patch {name} {value}"),
                (_, Some(from)) if chance.is_hit(0.5) => format!("delete {name} {from}"),
                _ => format!("delete {name} any"),
            };
            let called = clock.fetch_add(1, Ordering::SeqCst);
            let said = self.ask(&line);
            let answered = clock.fetch_add(1, Ordering::SeqCst);
            if let Some(version) = said.strip_prefix("done ").and_then(|it| it.split(' ').next()) {
                known.insert(name.clone(), version.to_owned());
            }
            spans.push((name, Span { called, answered, operation: operation(&line, &said) }));
        }
        drop(self.asked);
        assert!(self.child.wait().unwrap().success(), "replica {number} failed");
        spans
    }
}

#[test]
fn what_several_processes_read_and_write_is_linearizable() {
    let Some(server) = concert_testbed::Postgres::shared() else { return };
    let (folder, url) = (tempfile::tempdir().unwrap(), server.fresh_url());
    let keys = folder.path().join("key");
    drop(Keyring::open(&keys, &Chance::from_system()).unwrap());
    let (chance, clock) = (Chance::seeded(1), AtomicU64::new(0));
    let mut histories: BTreeMap<String, Vec<Span<Operation>>> = BTreeMap::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..REPLICAS)
            .map(|number| {
                let (chance, url, keys, clock) = (chance.fork(), &url, &keys, &clock);
                scope.spawn(move || Replica::start(url, keys).record(number + 1, &chance, clock))
            })
            .collect();
        for (name, span) in clients.into_iter().flat_map(|it| it.join().unwrap()) {
            histories.entry(name).or_default().push(span);
        }
    });
    assert_eq!(histories.len() as u64, KEYS_OF_ALL);
    for (name, history) in histories {
        let order = check(&Objects, None, &history);
        assert!(order.is_ok(), "{name}: not linearizable: {order:?}");
    }
}
