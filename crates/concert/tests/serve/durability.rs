//! Crashes under load, and many watchers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::plane::{Plane, widget};
use crate::wire::{WIDGETS, call};

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let Some(mut plane) = Plane::start() else { return };
    plane.define_widgets();
    let (address, is_over) = (plane.address.clone(), AtomicBool::new(false));
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        is_over.store(false, Ordering::Relaxed);
        let made: Vec<Vec<String>> = std::thread::scope(|scope| {
            let write = |writer: usize| {
                let (address, is_over) = (&address, &is_over);
                scope.spawn(move || {
                    let mut made = Vec::new();
                    for number in 0.. {
                        let name = format!("w{round}-{writer}-{number}");
                        let body = widget(&name, &json!({"size": 1})).to_string();
                        match call(address, "POST", WIDGETS, &body) {
                            Some((201, _)) => made.push(name),
                            _ if is_over.load(Ordering::Relaxed) => break,
                            answer => assert!(answer.is_none(), "{answer:?}"),
                        }
                    }
                    made
                })
            };
            let writers: Vec<_> = (0..4).map(write).collect();
            crate::wait::eventually("writes are under way", || {
                let (_, list) = call(&address, "GET", WIDGETS, "").ok_or("no answer")?;
                let count = list.matches(&format!("\"name\":\"w{round}-")).count();
                if count >= 100 { Ok(()) } else { Err(format!("{count}")) }
            });
            is_over.store(true, Ordering::Relaxed);
            plane.kill();
            writers.into_iter().map(|it| it.join().unwrap()).collect()
        });
        acknowledged.extend(made.into_iter().flatten());
        plane.start_again();
    }
    let (_, list) = call(&plane.address, "GET", WIDGETS, "").unwrap();
    let lost: Vec<&String> =
        acknowledged.iter().filter(|name| !list.contains(&format!("\"name\":\"{name}\""))).collect();
    assert!(acknowledged.len() >= 300, "{}", acknowledged.len());
    assert!(lost.is_empty(), "{lost:?} of {}", acknowledged.len());
}

#[test]
fn a_thousand_watchers_are_told() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let watch = |_| {
        let mut stream = TcpStream::connect(&plane.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let request = format!("GET {WIDGETS}?watch=1 HTTP/1.1\r\nHost: {}\r\n\r\n", plane.address);
        stream.write_all(request.as_bytes()).unwrap();
        stream
    };
    let mut watchers: Vec<TcpStream> = (0..1000).map(watch).collect();
    plane.apply(&widget("a", &json!({"size": 1})));
    for stream in &mut watchers {
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        while !text.windows(10).any(|it| it == b"\"name\":\"a\"") {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the watch ended: {}", String::from_utf8_lossy(&text));
            text.extend_from_slice(&buffer[..read]);
        }
    }
}
