//! A client that watches over HTTP, and goes on from where it was at another replica when a watch ends.

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::wait::eventually;
use crate::wire::call;

/// How long a read may take before it is asked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a client was told, of one kind.
pub struct Watcher {
    /// The revisions of events, in order.
    heard: Arc<Mutex<Vec<u64>>>,
    /// Where it ends; 0 while nobody knows.
    end: Arc<AtomicU64>,
    /// How often it has begun.
    begun: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Watches what is at `path` from now on.
    pub fn start(addresses: &[String], path: &str) -> Self {
        let from = position(&addresses[0], path);
        let (heard, end, begun): (Arc<Mutex<Vec<u64>>>, Arc<AtomicU64>, Arc<AtomicU64>) = Default::default();
        let (addresses, path) = (addresses.to_vec(), path.to_owned());
        let run = {
            let (heard, end, begun) = (heard.clone(), end.clone(), begun.clone());
            move || {
                let mut position = from;
                for address in addresses.iter().cycle() {
                    begun.fetch_add(1, Ordering::Release);
                    follow(address, &path, &mut position, &heard, &end);
                    if is_over(position, &end) {
                        return;
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("watcher".to_owned()).spawn(run).unwrap();
        Self { heard, end, begun, thread: Some(thread) }
    }

    /// How often it has begun a watch.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    /// All that it was told up to a revision, which it must be told of.
    pub fn until(mut self, revision: u64) -> Vec<u64> {
        self.end.store(revision, Ordering::Release);
        eventually("the watcher has heard everything", || {
            let last = self.heard.lock().unwrap().last().copied();
            if last >= Some(revision) { Ok(()) } else { Err(format!("{last:?} of {revision}")) }
        });
        self.thread.take().unwrap().join().unwrap();
        let heard = self.heard.lock().unwrap().clone();
        assert!(heard.is_sorted_by(|a, b| a < b), "something was told twice, or out of order");
        heard
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Whoever did not wait for it has failed: it need not go on.
        self.end.store(1, Ordering::Release);
    }
}

/// Where a list was read.
pub fn position(address: &str, path: &str) -> u64 {
    let (code, text) = call(address, "GET", &format!("{path}?limit=1"), "").unwrap();
    assert_eq!(code, 200, "{text}");
    let list: Value = serde_json::from_str(&text).unwrap();
    list["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn is_over(position: u64, end: &AtomicU64) -> bool {
    let end = end.load(Ordering::Acquire);
    end > 0 && position >= end
}

/// One watch, until it ends or nothing more is to come.
fn follow(address: &str, path: &str, position: &mut u64, heard: &Mutex<Vec<u64>>, end: &AtomicU64) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let request =
        format!("GET {path}?watch=1&resourceVersion={position} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    if stream.write_all(request.as_bytes()).is_err() {
        return;
    }
    stream.set_read_timeout(Some(LOOK_EVERY)).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut line, mut is_head) = (Vec::new(), true);
    while !is_over(*position, end) {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return,
            // A part of a line stays for the next look.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
        match text.trim_end() {
            "" if is_head => is_head = false,
            status if is_head && status.starts_with("HTTP/") => {
                // Not now; but a position that is too old would be a gap.
                assert!(!status.contains(" 410 "), "{status}");
                if !status.contains(" 200 ") {
                    return;
                }
            }
            _ if is_head => {}
            event => match told(event) {
                Some(revision) => {
                    *position = revision;
                    heard.lock().unwrap().push(revision);
                }
                None => return,
            },
        }
    }
}

/// The revision of an event; none where the watch ends with a reason.
fn told(event: &str) -> Option<u64> {
    let event: Value = serde_json::from_str(event).ok()?;
    if event["type"] == "ERROR" {
        assert_ne!(event["object"]["code"], 410, "{event}");
        return None;
    }
    event["object"]["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
