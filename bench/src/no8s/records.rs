//! Resources of the guide's type, over plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::process::get;

/// Connections that resources are created over at the same time.
const CONNECTIONS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(300);

/// A resource that the server has answered 201 for.
pub struct Made {
    pub name: String,
    /// When, in nanoseconds of the time of day: the plugin's process has the same clock.
    pub answered: u128,
}

/// Makes them one after the other, each when the one before is ready.
pub fn one_by_one(address: &str, count: usize) -> Result<Vec<Made>> {
    let mut connection = Connection::open(address)?;
    let mut made = Vec::with_capacity(count);
    for number in 0..count {
        let name = format!("alone-{number}");
        made.push(connection.create(&name)?);
        let started = Instant::now();
        let path = format!("/api/v1/resources/by-name/DnsRecord/v1/{name}");
        while connection.ask("GET", &path, "")?["status"] != "ready" {
            ensure!(started.elapsed() < PATIENCE, "{name} is not ready");
        }
    }
    Ok(made)
}

/// Makes them as fast as a few connections can.
pub fn at_once(address: &str, count: usize) -> Result<Vec<Made>> {
    std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..CONNECTIONS)
            .map(|lane| {
                scope.spawn(move || {
                    let mut connection = Connection::open(address)?;
                    let numbers = (lane..count).step_by(CONNECTIONS);
                    numbers.map(|number| connection.create(&format!("record-{number}"))).collect()
                })
            })
            .collect();
        let mut made: Vec<Made> = Vec::with_capacity(count);
        for task in tasks {
            let part: Result<Vec<Made>> = task.join().ok().context("a thread that creates has died")?;
            made.extend(part?);
        }
        Ok(made)
    })
}

/// Waits until so many are ready.
pub fn ready(address: &str, count: usize) -> Result<()> {
    let started = Instant::now();
    loop {
        let path = format!("/api/v1/resources?status=ready&limit={}", count + 1);
        let list: Value = serde_json::from_str(&get(address, &path)?)?;
        let seen = list.as_array().context("a list")?.len();
        if seen >= count {
            return Ok(());
        }
        ensure!(started.elapsed() < PATIENCE, "{seen} of {count} are ready");
        // A list of everything costs the server something: it is asked now and then.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A connection that is kept.
struct Connection {
    stream: BufReader<TcpStream>,
    address: String,
}

impl Connection {
    fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), address: address.to_owned() })
    }

    fn create(&mut self, name: &str) -> Result<Made> {
        let spec = json!({"domain": format!("{name}.example.com"), "type": "A", "value": "203.0.113.50"});
        let body = json!({"name": name, "resource_type_name": "DnsRecord", "resource_type_version": "v1",
            "spec": spec});
        self.ask("POST", "/api/v1/resources", &body.to_string())?;
        let answered = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        Ok(Made { name: name.to_owned(), answered })
    }

    fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<Value> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n",
            self.address
        );
        let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        self.stream.get_mut().write_all(text.as_bytes())?;
        let (mut status, mut line, mut length) = (String::new(), String::new(), 0);
        self.stream.read_line(&mut status)?;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        let is_good = status.split(' ').nth(1).is_some_and(|it| it.starts_with('2'));
        ensure!(is_good, "{method} {path}: {status}{}", String::from_utf8_lossy(&answer));
        Ok(serde_json::from_slice(&answer)?)
    }
}
