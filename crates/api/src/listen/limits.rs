//! How much there may be of everything.

use std::time::Duration;

/// Bounds of one listener. The defaults leave room for a thousand watchers behind one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more are closed at once.
    pub connections_max: usize,
    /// The same, from one address.
    pub connections_per_client_max: usize,
    /// From the first byte of a connection to the end of the TLS handshake.
    pub handshake_time: Duration,
    /// From the first byte of a request to the end of its headers.
    pub header_time: Duration,
    /// A connection on which nothing is asked is closed after this: longer than clients keep theirs, so
    /// that it is mostly they who close.
    pub idle_time: Duration,
    /// From the headers to the last byte of the body.
    pub body_time: Duration,
    /// From the headers to the last byte of the answer, watches excepted.
    pub request_time: Duration,
    /// Nothing could be sent to a client that has something to read: it is gone.
    pub stall_time: Duration,
    /// Bytes of headers, the path included.
    pub header_bytes_max: u32,
    /// Bytes of a body.
    pub body_bytes_max: u64,
    /// Requests at a time, watches excepted; more get 429.
    pub requests_max: usize,
    /// The same, from one address.
    pub requests_per_client_max: usize,
    /// How fast one address may ask; none for as fast as it can.
    pub rate: Option<Rate>,
    /// Watches at a time; more get 429.
    pub watches_max: usize,
    /// The same, from one address.
    pub watches_per_client_max: usize,
}

/// So many requests a second, after so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// In the long run.
    pub per_second: u32,
    /// After a pause.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connections_max: 8_192,
            connections_per_client_max: 4_096,
            handshake_time: seconds(10),
            header_time: seconds(10),
            idle_time: seconds(150),
            body_time: seconds(60),
            request_time: seconds(300),
            stall_time: seconds(60),
            header_bytes_max: 64 * 1024,
            // What kube-apiserver takes.
            body_bytes_max: 3 * 1024 * 1024,
            requests_max: 1_024,
            requests_per_client_max: 512,
            rate: Some(Rate { per_second: 10_000, burst: 20_000 }),
            watches_max: 16_384,
            watches_per_client_max: 8_192,
        }
    }
}
