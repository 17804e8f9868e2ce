//! Writers and watchers that go on whatever happens to the database, and what they were told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use concert_model::Revision;
use concert_store::{By, Error, Event, Events, Local, Query, Store};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Written, key, map, maps};

/// What has been going on since it was started.
pub struct Traffic {
    replicas: Vec<Local>,
    is_over: Arc<AtomicBool>,
    writers: JoinSet<()>,
    acknowledged: mpsc::UnboundedReceiver<Written>,
    told: Vec<Written>,
    watchers: JoinSet<Vec<Written>>,
    ends: Vec<mpsc::UnboundedSender<u64>>,
}

impl Traffic {
    /// Two writers and a watcher at each replica.
    pub async fn start(replicas: Vec<Local>) -> Self {
        let start = replicas[0].newest().await.unwrap().0;
        let (mut watchers, mut ends, mut writers) = (JoinSet::new(), Vec::new(), JoinSet::new());
        let (sender, acknowledged) = mpsc::unbounded_channel();
        let is_over = Arc::new(AtomicBool::new(false));
        for (number, replica) in replicas.iter().enumerate() {
            let events = replica.watch(&Query::all(maps()), Some(&Revision(start).into())).await.unwrap();
            let (end, told) = mpsc::unbounded_channel();
            ends.push(end);
            watchers.spawn(watched(events, start, told));
            for writer in 0..2 {
                let mark = format!("r{number}-w{writer}");
                writers.spawn(write(replica.clone(), mark, sender.clone(), is_over.clone()));
            }
        }
        Self { replicas, is_over, writers, acknowledged, told: Vec::new(), watchers, ends }
    }

    /// Waits until so many more writes are acknowledged.
    pub async fn acknowledge(&mut self, count: usize) {
        for _ in 0..count {
            self.told.push(self.acknowledged.recv().await.expect("writers go on"));
        }
    }

    /// Stops the writers and waits until every watcher has seen everything. All that was ever acknowledged
    /// must have happened, once, and been told by every replica alike. Gives back the one story.
    pub async fn end(mut self) -> Vec<Written> {
        self.is_over.store(true, Ordering::Release);
        self.writers.join_all().await;
        while let Some(written) = self.acknowledged.recv().await {
            self.told.push(written);
        }
        let newest = self.replicas[0].newest().await.unwrap().0;
        self.ends.iter().for_each(|end| end.send(newest).unwrap());
        let mut stories = self.watchers.join_all().await;
        let story = stories.pop().unwrap();
        assert!(stories.iter().all(|it| *it == story), "two replicas tell different stories");
        happened_once(&self.told, &story);
        for replica in self.replicas {
            replica.verify().await.unwrap();
        }
        story
    }
}

/// All that was acknowledged is in the story, and nothing is there twice.
pub fn happened_once(told: &[Written], story: &[Written]) {
    let all: BTreeSet<&Written> = story.iter().collect();
    for written in told {
        assert!(all.contains(written), "acknowledged, and not there: {written:?}");
    }
    let values: BTreeSet<&str> = story.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(values.len(), story.len(), "a write was done twice");
    eprintln!("{} acknowledged, {} in the log", told.len(), story.len());
}

/// Writes until told to stop: new objects, and a counter that each writer has for itself.
pub async fn write(
    store: Local,
    mark: String,
    acknowledged: mpsc::UnboundedSender<Written>,
    is_over: Arc<AtomicBool>,
) {
    let by = By::actor("test");
    let counter = format!("counter-{mark}");
    let mut current = None;
    for n in 0.. {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let value = format!("{mark}-{n}");
        let result = match (&current, n % 2) {
            (None, _) => store.create(map(&counter, &value), &by).await,
            (_, 0) => store.create(map(&value, &value), &by).await,
            (Some(before), _) => {
                let mut object = concert_model::Encoded::decode(before);
                object.set("data", map("", &value).get("data").clone());
                store.update(object, &by).await
            }
        };
        match result {
            Ok(object) => {
                acknowledged.send(Written::of(&object)).unwrap();
                if *object.key().name == *counter {
                    current = Some(object);
                }
            }
            // Nobody knows whether it happened. What is there is read before going on.
            Err(Error::Unavailable(_)) => current = None,
            Err(Error::AlreadyExists { .. } | Error::Conflict { .. }) => current = None,
            Err(error) => panic!("{error}"),
        }
        while current.is_none() && !is_over.load(Ordering::Acquire) {
            match store.get(&key(&counter)).await {
                Ok(object) => current = Some(object),
                Err(Error::NotFound { .. }) => break,
                Err(Error::Unavailable(why)) => {
                    assert!(!why.to_string().contains("altered"), "{why}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// All that a watch tells up to `last`, each revision once and in order.
pub async fn watched(mut events: Events, start: u64, last: mpsc::UnboundedReceiver<u64>) -> Vec<Written> {
    let (mut all, mut last) = (Vec::new(), last);
    let mut end = None;
    loop {
        if end.is_some_and(|end| start + all.len() as u64 >= end) {
            return all;
        }
        tokio::select! {
            told = last.recv(), if end.is_none() => end = told,
            event = events.next() => {
                let event = event.expect("the watch goes on").expect("the watch does not fail");
                if let Event::Bookmark { .. } = event {
                    continue;
                }
                let written = Written::of(event.object().unwrap());
                assert_eq!(written.revision, start + 1 + all.len() as u64, "a gap or a repeat");
                all.push(written);
            }
        }
    }
}
