//! A replica in a network namespace of its own, whose only way to PostgreSQL is taken away and given back.
//!
//! Packets vanish and nobody is told. The others go on meanwhile, and afterwards all replicas tell one story,
//! in which everything that anybody was promised happened once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use concert_model::Revision;
use concert_store::seal::Keyring;
use concert_store::{Chance, Clock as _, Query, Store as _, SystemClock};
use concert_testbed::Network;
use database::traffic::{Traffic, happened_once, watched, write};
use database::{Written, maps, open};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How a test process is told that it is the replica: arguments that filter no test.
const URL: &str = "partition-url=";
const KEYS: &str = "partition-keys=";
const START: &str = "partition-start=";

/// How long packets vanish: a moment, longer than any call waits, and once more.
const PARTITIONS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(14), Duration::from_secs(3)];

fn argument(name: &str) -> Option<String> {
    std::env::args().find_map(|it| it.strip_prefix(name).map(str::to_owned))
}

/// On a thread that ends with the process: what it waits for cannot be waited for in another way.
fn aside(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name("aside".to_owned()).spawn(work).unwrap();
}

/// The replica on the other side, as its parent sees it.
struct Replica {
    process: Child,
    input: ChildStdin,
    lines: mpsc::UnboundedReceiver<String>,
    told: Vec<Written>,
}

impl Replica {
    fn start(network: &Network, url: &str, keys: &Path, start: u64) -> Self {
        let mut command = network.command();
        command.arg(std::env::current_exe().unwrap());
        command.args(["is_the_replica_on_the_other_side", "--exact", "--nocapture", "--test-threads=1"]);
        command.args([format!("{URL}{url}"), format!("{KEYS}{}", keys.display()), format!("{START}{start}")]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (sender, lines) = mpsc::unbounded_channel();
        aside(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { process, input, lines, told: Vec::new() }
    }

    /// Its next words. What it was promised is noted.
    async fn hear(&mut self) -> String {
        let line = self.lines.recv().await.expect("the replica goes on");
        if let Some((_, words)) = line.split_once("ack ") {
            self.told.push(written(words));
        }
        line
    }

    async fn acknowledge(&mut self, count: usize) {
        let until = self.told.len() + count;
        while self.told.len() < until {
            self.hear().await;
        }
    }

    fn tell(&mut self, words: &str) {
        writeln!(self.input, "{words}").unwrap();
    }

    /// All that its watch told.
    async fn story(&mut self, newest: u64) -> Vec<Written> {
        self.tell(&format!("end {newest}"));
        let mut story = Vec::new();
        loop {
            let line = self.hear().await;
            match line.split_once("saw ") {
                Some((_, words)) => story.push(written(words)),
                None if line.contains("done") => return story,
                None => {}
            }
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn written(words: &str) -> Written {
    let [revision, name, value] = words.split(' ').collect::<Vec<_>>()[..] else { panic!("{words}") };
    Written { revision: revision.parse().unwrap(), name: name.to_owned(), value: value.to_owned() }
}

fn say(what: &str, written: &Written) {
    let line = format!("{what} {} {} {}\n", written.revision, written.name, written.value);
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Not a test of its own: what the process on the other side does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn is_the_replica_on_the_other_side() {
    let (Some(url), Some(keys), Some(start)) = (argument(URL), argument(KEYS), argument(START)) else {
        return;
    };
    let (store, start) = (open(&url, &Keyring::read_from(keys).unwrap()), start.parse().unwrap());
    let events = store.watch(&Query::all(maps()), Some(&Revision(start).into())).await.unwrap();
    let (end, newest) = mpsc::unbounded_channel();
    let (mut watchers, mut writers) = (JoinSet::new(), JoinSet::new());
    watchers.spawn(watched(events, start, newest));
    let (sender, mut acknowledged) = mpsc::unbounded_channel();
    let is_over = Arc::new(AtomicBool::new(false));
    writers.spawn(write(store.clone(), "behind".to_owned(), sender, is_over.clone()));
    let (orders, mut lines) = mpsc::unbounded_channel();
    aside(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = orders.send(line);
        }
    });
    // The channel closes when the writer has been told to stop and has.
    loop {
        tokio::select! {
            line = lines.recv() => {
                assert_eq!(line.as_deref(), Some("stop"));
                is_over.store(true, Ordering::Release);
            }
            told = acknowledged.recv() => match told {
                Some(told) => say("ack", &told),
                None => break,
            }
        }
    }
    writers.join_all().await;
    std::io::stdout().write_all(b"stopped\n").unwrap();
    let line = lines.recv().await.unwrap();
    end.send(line.strip_prefix("end ").unwrap().parse().unwrap()).unwrap();
    watchers.join_all().await.iter().flatten().for_each(|it| say("saw", it));
    std::io::stdout().write_all(b"done\n").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_cut_off_loses_nothing_and_holds_nobody_up() {
    let Some(server) = concert_testbed::Postgres::shared() else { return };
    let Some(network) = Network::make().unwrap() else { return };
    let (folder, url) = (tempfile::tempdir().unwrap(), server.fresh_url());
    let keys = folder.path().join("key");
    let keyring = Keyring::open(&keys, &Chance::from_system()).unwrap();
    let replicas = vec![open(&url, &keyring), open(&url, &keyring)];
    let start = replicas[0].newest().await.unwrap().0;
    let way = network.forward(server.port()).unwrap();
    let way = url.replace(&format!("127.0.0.1:{}", server.port()), &way);
    let clock = SystemClock::new();
    let mut traffic = Traffic::start(replicas).await;
    let mut replica = Replica::start(&network, &format!("{way}&sslmode=disable"), &keys, start);
    for partition in PARTITIONS {
        replica.acknowledge(20).await;
        network.cut().unwrap();
        let began = clock.elapsed();
        while clock.elapsed() - began < partition {
            traffic.acknowledge(10).await;
        }
        network.mend().unwrap();
    }
    replica.acknowledge(20).await;
    replica.tell("stop");
    while !replica.hear().await.contains("stopped") {}
    let story = traffic.end().await;
    assert_eq!(replica.story(start + story.len() as u64).await, story, "it tells another story");
    happened_once(&replica.told, &story);
}
