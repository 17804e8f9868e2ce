//! Clients that are there before, while and after a server ends and starts again.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Sender, channel};

use concert_model::GroupKind;
use concert_store::{Event, Query, Store as _};
use serde_json::json;

use crate::conformance::store_on;
use crate::plane::{Plane, widget};
use crate::wait::eventually;
use crate::wire::{WIDGETS, call};

/// How many are written, and after how many the server ends. What is left then takes far longer than to end it.
const ALL: usize = 400;
const HALF: usize = 100;

fn name(number: usize) -> String {
    // As a list would sort them, 10 comes before 2: whoever lists again instead of going on is found out.
    format!("w{number}")
}

/// Writes one after the other, whatever becomes of the server in between, and says when half way.
fn write_all(address: &str, half_way: &Sender<()>) {
    for number in 0..ALL {
        let body = widget(&name(number), &json!({"size": 1})).to_string();
        eventually("it is written", || match call(address, "POST", WIDGETS, &body) {
            // It was made by a try whose answer was lost.
            Some((201 | 409, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        });
        if number == HALF {
            half_way.send(()).unwrap();
        }
    }
}

/// One stream of a client as controllers have it tells all that is written, while the server ends and
/// comes back.
fn goes_on_without_a_gap(end: impl FnOnce(&mut Plane)) {
    let Some(mut plane) = Plane::start() else { return };
    plane.define_widgets();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = runtime.block_on(store_on(&plane));
    let query = Query::all(GroupKind::new("test.concert.dev", "Widget"));
    let mut events = runtime.block_on(store.watch(&query, None)).unwrap();

    let (address, (half_way, is_half_way)) = (plane.address.clone(), channel());
    std::thread::scope(|scope| {
        scope.spawn(|| write_all(&address, &half_way));
        is_half_way.recv().unwrap();
        end(&mut plane);
        plane.start_again();
    });

    let told = runtime.block_on(async {
        let mut told = Vec::new();
        while told.len() < ALL {
            match events.next().await.expect("the stream goes on").unwrap() {
                Event::Added(object) => told.push(object.key().name.to_string()),
                Event::Bookmark { .. } => {}
                other => panic!("nobody did that: {other:?}"),
            }
        }
        told
    });
    assert_eq!(told, (0..ALL).map(name).collect::<Vec<_>>());
}

#[test]
fn a_watch_goes_on_without_a_gap_after_a_kill() {
    goes_on_without_a_gap(Plane::kill);
}

#[test]
fn a_watch_goes_on_without_a_gap_after_an_orderly_restart() {
    goes_on_without_a_gap(|plane| assert_eq!(plane.terminate().code(), Some(0)));
}

/// Writes until nobody answers any more; all that was acknowledged.
fn write_until_the_end(address: &str, writer: usize) -> Vec<String> {
    let mut made = Vec::new();
    for number in 0.. {
        let name = format!("w{writer}-{number}");
        match call(address, "POST", WIDGETS, &widget(&name, &json!({"size": 1})).to_string()) {
            Some((201, _)) => made.push(name),
            None => break,
            other => panic!("{other:?}"),
        }
    }
    made
}

fn open_watch(address: &str) -> TcpStream {
    let mut watch = TcpStream::connect(address).unwrap();
    write!(watch, "GET {WIDGETS}?watch=1 HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    watch
}

#[test]
fn whoever_is_asked_to_end_loses_nothing_and_ends_watches_in_order() {
    let Some(mut plane) = Plane::start() else { return };
    plane.define_widgets();
    let address = plane.address.clone();
    let mut watch = open_watch(&address);
    let (made, told) = std::thread::scope(|scope| {
        let address = &address;
        let told = scope.spawn(move || {
            let mut told = String::new();
            watch.read_to_string(&mut told).map(|_| told)
        });
        let writers: Vec<_> =
            (0..4).map(|writer| scope.spawn(move || write_until_the_end(address, writer))).collect();
        eventually("writes are under way", || {
            let (_, list) = call(address, "GET", WIDGETS, "").ok_or("no answer")?;
            let count = list.matches("\"name\":\"w").count();
            if count >= 100 { Ok(()) } else { Err(format!("{count}")) }
        });
        assert_eq!(plane.terminate().code(), Some(0));
        let made: Vec<String> = writers.into_iter().flat_map(|it| it.join().unwrap()).collect();
        (made, told.join().unwrap())
    });
    let told = told.expect("the connection is not cut off");
    assert!(
        told.ends_with("\r\n0\r\n\r\n"),
        "the last chunk: {:?}",
        told.get(told.len().saturating_sub(99)..)
    );
    assert!(TcpStream::connect(&address).is_err(), "nobody listens");
    plane.start_again();
    let (_, list) = call(&address, "GET", WIDGETS, "").unwrap();
    let is_lost = |name: &&String| !list.contains(&format!("\"name\":\"{name}\""));
    assert_eq!(made.iter().filter(is_lost).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(made.len() >= 100, "{}", made.len());
}
