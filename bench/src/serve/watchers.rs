//! How long until everybody has been told.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use tokio::io::AsyncReadExt as _;

use super::server::{Server, Version};
use super::{WIDGETS, widget};

/// The time from the first of `events` creates until the last of `watchers` has seen the last of them.
pub fn run(server: &Server, watchers: usize, events: usize) -> Result<Duration> {
    let path = from_now(server)?;
    server.runtime.block_on(async {
        let mut streams = Vec::with_capacity(watchers);
        for _ in 0..watchers {
            let mut stream = server.send("GET", &path, "", Version::GoesOn).await?;
            // The head of the answer says that the watch stands.
            let mut byte = [0; 1];
            stream.read_exact(&mut byte).await?;
            streams.push(stream);
        }
        let started = Instant::now();
        let last = format!("\"fan-{}\"", events - 1);
        let reading = try_join_all(streams.iter_mut().map(|stream| until(stream, last.as_bytes())));
        let writing = async {
            for number in 0..events {
                let body = widget(&format!("fan-{number}"));
                let mut stream = server.send("POST", WIDGETS, &body, Version::Once).await?;
                created(&mut stream).await?;
            }
            Ok::<_, anyhow::Error>(())
        };
        let (read, written) = tokio::join!(reading, writing);
        read?;
        written?;
        Ok(started.elapsed())
    })
}

/// The time from the moment that a create is sent to `writer` until the one who watches at `watched`, which may
/// be the same, has seen it; so many creates, one after the other.
pub fn delays(writer: &Server, watched: &Server, events: usize) -> Result<Vec<Duration>> {
    let path = from_now(watched)?;
    writer.runtime.block_on(async {
        let mut watch = watched.send("GET", &path, "", Version::GoesOn).await?;
        watch.read_exact(&mut [0; 1]).await?;
        let mut delays = Vec::with_capacity(events);
        for number in 0..events {
            let name = format!("late-{number}");
            // Who connects is not who waits.
            let mut stream = writer.connect().await?;
            let started = Instant::now();
            writer.send_on(&mut stream, "POST", WIDGETS, &widget(&name), Version::Once).await?;
            let mark = format!("\"{name}\"");
            let reading = async {
                until(&mut watch, mark.as_bytes()).await?;
                Ok::<_, anyhow::Error>(started.elapsed())
            };
            let (delay, written) = tokio::join!(reading, created(&mut stream));
            written?;
            delays.push(delay?);
        }
        Ok(delays)
    })
}

/// The path of a watch that tells what happens from now on.
fn from_now(server: &Server) -> Result<String> {
    let list: serde_json::Value = serde_json::from_str(&server.get(&format!("{WIDGETS}?limit=1"))?)?;
    let position = list["metadata"]["resourceVersion"].as_str().context("a list has a position")?;
    Ok(format!("{WIDGETS}?watch=1&resourceVersion={position}"))
}

/// Reads the answer to a create.
async fn created(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Result<()> {
    let mut answer = Vec::new();
    // Servers differ in whether they say goodbye.
    let _ = stream.read_to_end(&mut answer).await;
    ensure!(answer.get(8..13) == Some(b" 201 "), "{}", String::from_utf8_lossy(&answer));
    Ok(())
}

async fn until(stream: &mut (impl tokio::io::AsyncRead + Unpin), mark: &[u8]) -> Result<()> {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = stream.read(&mut buffer).await?;
        ensure!(count > 0, "a watch has ended");
        seen.extend_from_slice(&buffer[..count]);
        if seen.windows(mark.len()).any(|it| it == mark) {
            return Ok(());
        }
        // The mark may lie across two reads.
        let kept = seen.len().saturating_sub(mark.len());
        seen.drain(..kept);
    }
}
