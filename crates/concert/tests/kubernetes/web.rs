//! One HTTP request on a connection of its own.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

/// The status and the body, or why there is none.
pub fn call(address: &str, method: &str, path: &str, body: &Value) -> Result<(u16, String), String> {
    let mut stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json");
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let status = head.get(9..12).and_then(|it| it.parse().ok()).ok_or("no status")?;
    Ok((status, body.to_owned()))
}

/// What a GET answers, whatever its status.
pub fn get(address: &str, path: &str) -> Result<(u16, String), String> {
    call(address, "GET", path, &Value::Null)
}
