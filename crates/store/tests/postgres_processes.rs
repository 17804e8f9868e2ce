//! Several processes on one PostgreSQL database, each a replica of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use concert_model::Revision;
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Event, Query, Store};
use database::{Written, key, map, maps, open};
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
