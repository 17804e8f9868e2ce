//! Plain HTTP, as a program without a library would speak it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

pub const WIDGETS: &str = "/apis/test.concert.dev/v1/namespaces/default/widgets";

/// The status and the body, or none where the connection broke.
pub fn call(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    send(address, method, path, "application/json", body)
}

/// The same, with a body of another kind.
pub fn send(address: &str, method: &str, path: &str, kind: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let request = format!("{head}Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.get(9..12)?.parse().ok()?, body.to_owned()))
}
