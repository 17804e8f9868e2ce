//! How long until everybody has been told.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use tokio::io::AsyncReadExt as _;

use super::WIDGETS;
use super::server::{Server, Version};

/// The time from the first of `events` creates until the last of `watchers` has seen the last of them.
pub fn run(server: &Server, watchers: usize, events: usize) -> Result<Duration> {
    let list: serde_json::Value = serde_json::from_str(&server.get(&format!("{WIDGETS}?limit=1"))?)?;
    let position = list["metadata"]["resourceVersion"].as_str().context("a list has a position")?;
    server.runtime.block_on(async {
        let path = format!("{WIDGETS}?watch=1&resourceVersion={position}");
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
                let body = format!(
                    "{{\"apiVersion\":\"test.concert.dev/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"fan-{number}\"}},\"spec\":{{\"size\":1}}}}"
                );
                let mut stream = server.send("POST", WIDGETS, &body, Version::Once).await?;
                let mut answer = Vec::new();
                let _ = stream.read_to_end(&mut answer).await;
                ensure!(answer.get(8..13) == Some(b" 201 "), "{}", String::from_utf8_lossy(&answer));
            }
            Ok::<_, anyhow::Error>(())
        };
        let (read, written) = tokio::join!(reading, writing);
        read?;
        written?;
        Ok(started.elapsed())
    })
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
