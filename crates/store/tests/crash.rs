//! The process killed in the middle of writing, and a file cut off after its last sync.
//!
//! Afterwards every acknowledged write is there with its content, no revision is used twice, and who
//! watched goes on from where they were without a gap.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use concert_model::{Encoded, GroupKind, Object, ObjectKey, ResourceVersion, Revision};
use concert_store::backend::Sqlite;
use concert_store::backend::sqlite::Options;
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Config, Event, Local, PageRequest, Query, Store, SystemClock};
use serde_json::json;
use tokio::task::JoinSet;

const KILLS: usize = 50;
const TASKS: usize = 4;
/// How a test process is told that it is the one to be killed: an argument that filters no test.
const FOLDER: &str = "crash-folder=";
const ROUND: &str = "crash-round=";

fn open(folder: &Path) -> Local {
    let backend = Sqlite::open(folder.join("store.db"), &Options::default()).unwrap();
    let chance = Chance::from_system();
    let keyring = Keyring::open(folder.join("store.key"), &chance).unwrap();
    let config = Config::new(Arc::new(SystemClock::new()), chance).sealed(keyring);
    Local::open(Arc::new(backend), config).unwrap()
}

fn maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced(maps(), "default", name)
}

fn map(name: &str, value: &str) -> Object {
    let mut object = Object::new(&maps().at_version("v1"), "default", name);
    object.set("data", json!({"value": value, "padding": "p".repeat(value.len() * 37 % 900)}));
    object
}

/// One write, as it is acknowledged, watched and listed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    act: char,
    name: String,
    value: String,
    revision: u64,
}

impl Written {
    fn new(act: char, object: &Encoded) -> Self {
        let value = object.decode().get("data")["value"].as_str().unwrap().to_owned();
        let revision = object.resource_version().0.parse().unwrap();
        Self { act, name: object.key().name.to_string(), value, revision }
    }

    fn of_event(event: &Event) -> Option<Self> {
        let act = match event {
            Event::Added(_) => 'A',
            Event::Modified(_) => 'M',
            Event::Deleted(_) => 'D',
            Event::Bookmark { .. } => return None,
        };
        Some(Self::new(act, event.object().unwrap()))
    }

    fn print(&self) -> String {
        format!("ack {} {} {} {} end\n", self.act, self.name, self.value, self.revision)
    }

    /// Reads a line back; one that was cut off in the middle is none.
    fn parse(line: &str) -> Option<Self> {
        let (_, words) = line.split_once("ack ")?;
        let [act, name, value, revision, "end"] = words.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let (name, value) = (name.to_owned(), value.to_owned());
        Some(Self { act: act.chars().next()?, name, value, revision: revision.parse().ok()? })
    }
}

/// Creates, updates and deletes until `writes` are done, telling each that is acknowledged.
async fn write(store: Local, mark: String, writes: usize, tell: impl Fn(Written)) {
    let by = By::actor("test");
    let counter = format!("counter-{mark}");
    let mut current = store.create(map(&counter, "0"), &by).await.unwrap();
    tell(Written::new('A', &current));
    for n in 1..writes {
        let value = format!("{mark}-{n}");
        match n % 4 {
            0 => {
                let name = format!("{mark}-{}", n - 1);
                let gone = store.delete(&key(&name), &Default::default(), &by).await.unwrap();
                tell(Written::new('D', &gone.into_object()));
            }
            1 | 3 => tell(Written::new('A', &store.create(map(&value, &value), &by).await.unwrap())),
            _ => {
                let mut object = current.decode();
                object.set("data", map("", &value).get("data").clone());
                current = store.update(object, &by).await.unwrap();
                tell(Written::new('M', &current));
            }
        }
    }
}

/// Not a test by itself: the process that the test below starts, over and over, and kills.
#[test]
fn writes_until_it_is_killed() {
    let argument = |name: &str| std::env::args().find_map(|arg| arg.strip_prefix(name).map(str::to_owned));
    let (Some(folder), Some(round)) = (argument(FOLDER), argument(ROUND)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&folder));
        let tell = |written: Written| std::io::stdout().write_all(written.print().as_bytes()).unwrap();
        let writers = (0..TASKS).map(|task| write(store.clone(), format!("r{round}-t{task}"), 5_000, tell));
        writers.collect::<JoinSet<()>>().join_all().await;
    });
}

/// Starts a writer, kills it after `acknowledged` writes, and returns all it was told.
fn run_and_kill(folder: &Path, round: usize, acknowledged: u64) -> Vec<Written> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["writes_until_it_is_killed", "--exact", "--nocapture", "--test-threads=1"])
        .arg(format!("{FOLDER}{}", folder.display()))
        .arg(format!("{ROUND}{round}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut told = Vec::new();
    let mut line = String::new();
    while lines.read_line(&mut line).unwrap() > 0 {
        told.extend(Written::parse(&line));
        line.clear();
        if told.len() as u64 == acknowledged {
            kill(&mut child);
        }
    }
    kill(&mut child);
    assert!(told.len() as u64 >= acknowledged, "round {round}: the writer stopped by itself");
    told
}

/// SIGKILL, and wait until the process is gone and its locks with it.
fn kill(child: &mut Child) {
    let _ = child.kill();
    child.wait().unwrap();
}

/// All that was written after `from`, as a watch tells it, without a gap.
async fn watched(store: &Local, from: u64) -> Vec<Written> {
    let newest = store.newest().await.unwrap().0;
    let position = ResourceVersion::from(Revision(from));
    let mut events = store.watch(&Query::all(maps()), Some(&position)).await.unwrap();
    let mut all: Vec<Written> = Vec::new();
    while from + (all.len() as u64) < newest {
        let event = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
        let event = event.expect("the watch goes on to the newest revision").unwrap().unwrap();
        let Some(written) = Written::of_event(&event) else { continue };
        assert_eq!(written.revision, from + 1 + all.len() as u64, "a gap or a repeat in the watch");
        all.push(written);
    }
    all
}

/// What is there, by name.
async fn listed(store: &Local) -> BTreeMap<String, (u64, String)> {
    let page = store.list(&Query::all(maps()), &PageRequest::whole()).await.unwrap();
    let one = |object: &Encoded| {
        let written = Written::new('A', object);
        (written.name, (written.revision, written.value))
    };
    page.items.iter().map(one).collect()
}

fn apply(state: &mut BTreeMap<String, (u64, String)>, written: &Written) {
    match written.act {
        'D' => drop(state.remove(&written.name)),
        _ => drop(state.insert(written.name.clone(), (written.revision, written.value.clone()))),
    }
}

#[tokio::test]
async fn survives_being_killed_in_the_middle_of_writing() {
    let folder = tempfile::tempdir().unwrap();
    let chance = Chance::seeded(50);
    let start = open(folder.path()).newest().await.unwrap().0;
    let mut position = start;
    let mut log: Vec<Written> = Vec::new();
    let mut state = BTreeMap::new();
    let mut told_revisions = BTreeSet::new();
    for round in 0..KILLS {
        let told = run_and_kill(folder.path(), round, 1 + chance.below(120));
        let store = open(folder.path());
        let new = watched(&store, position).await;
        let by_revision: HashMap<u64, &Written> = new.iter().map(|w| (w.revision, w)).collect();
        for written in &told {
            assert!(
                told_revisions.insert(written.revision),
                "round {round}: {written:?} has a used revision"
            );
            let found = by_revision.get(&written.revision).copied();
            assert_eq!(found, Some(written), "round {round}: acknowledged, and now not there");
        }
        new.iter().for_each(|written| apply(&mut state, written));
        assert_eq!(listed(&store).await, state, "round {round}");
        position += new.len() as u64;
        log.extend(new);
    }
    let store = open(folder.path());
    assert_eq!(watched(&store, start).await, log, "the log of all rounds has changed");
    store.verify().await.unwrap();
    for written in log.iter().filter(|w| w.act == 'M').take(20) {
        let past = store.history(&key(&written.name), None, usize::MAX).await.unwrap();
        let past: Vec<_> = past.iter().filter(|p| p.revision.0 == written.revision).collect();
        assert_eq!(past.len(), 1);
        assert_eq!(Written::new('M', past[0].object.as_ref().unwrap()), *written);
    }
}

/// A store whose files are copied while it is open, and how long the write-ahead log was when each
/// write had been acknowledged.
struct Copied {
    folder: tempfile::TempDir,
    start: u64,
    told: Vec<(u64, Written)>,
    log: Vec<Written>,
    wal: Vec<u8>,
}

impl Copied {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let original = tempfile::tempdir().unwrap();
        let store = open(original.path());
        let start = store.newest().await.unwrap().0;
        let wal = original.path().join("store.db-wal");
        let (sender, told) = std::sync::mpsc::channel();
        let tell = {
            let wal = wal.clone();
            move |written: Written| sender.send((fs::metadata(&wal).unwrap().len(), written)).unwrap()
        };
        // One after the other, then side by side: single commits and batches.
        write(store.clone(), "alone".into(), 20, tell.clone()).await;
        let writers = (0..TASKS).map(|task| write(store.clone(), format!("t{task}"), 20, tell.clone()));
        writers.collect::<JoinSet<()>>().join_all().await;
        drop(tell);
        let log = watched(&store, start).await;
        for name in ["store.db", "store.key"] {
            fs::copy(original.path().join(name), folder.path().join(name)).unwrap();
        }
        Self { folder, start, told: told.into_iter().collect(), log, wal: fs::read(&wal).unwrap() }
    }

    /// The store as it would be if the log on disk ended after `cut` bytes and went on with `tail`.
    fn cut(&self, cut: u64, tail: &[u8]) -> (tempfile::TempDir, Local) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["store.db", "store.key"] {
            fs::copy(self.folder.path().join(name), folder.path().join(name)).unwrap();
        }
        let wal: PathBuf = folder.path().join("store.db-wal");
        let kept = usize::try_from(cut).unwrap();
        fs::write(wal, [&self.wal[..kept], tail].concat()).unwrap();
        let store = open(folder.path());
        (folder, store)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn survives_a_file_cut_off_after_the_last_sync() {
    let copied = Copied::new().await;
    let chance = Chance::seeded(7);
    let synced: Vec<u64> = copied.told.iter().map(|(length, _)| *length).collect();
    let first = synced[0];
    let whole = copied.wal.len() as u64;
    assert!(whole - first > 100_000, "too little was written");
    let exact = synced.iter().copied().step_by(4);
    let between = (0..25).map(|_| first + chance.below(whole - first));
    for (i, cut) in exact.chain(between).enumerate() {
        // Every other time the disk holds garbage where the log would have gone on.
        let mut tail = vec![0; if i % 2 == 0 { 0 } else { 5_000 }];
        chance.fill(&mut tail);
        let (_folder, store) = copied.cut(cut, &tail);
        let new = watched(&store, copied.start).await;
        assert_eq!(new, copied.log[..new.len()], "cut at {cut}: not the beginning of what was written");
        for (_, written) in copied.told.iter().filter(|(length, _)| *length <= cut) {
            assert!(new.contains(written), "cut at {cut}: {written:?} was acknowledged");
        }
        let mut state = BTreeMap::new();
        new.iter().for_each(|written| apply(&mut state, written));
        assert_eq!(listed(&store).await, state, "cut at {cut}");
        // It goes on: the next revision, and a watch from the last position that was seen.
        let last = copied.start + new.len() as u64;
        let next = store.create(map("next", "next"), &By::actor("test")).await.unwrap();
        assert_eq!(next.resource_version().to_string(), (last + 1).to_string());
        assert_eq!(watched(&store, last).await, [Written::new('A', &next)]);
    }
}
