//! Where a provider is and how to speak with it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Class, Error};
use crate::handshake::Protocol;
use crate::tls::Tls;

/// Where a provider is and how to speak with it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// `host:port`, `http://host:port`, `https://host:port` or `unix:/path`.
    pub address: String,
    /// Whether to use TLS. Implied by `https://` and by port 443.
    pub use_tls: bool,
    /// The certificates to use and to verify with.
    pub tls: Tls,
    /// Whether credentials may be sent in clear to another machine.
    pub insecure: bool,
    /// Largest message in either direction.
    pub message_bytes_max: usize,
    /// How long dialling may take.
    pub connect_timeout: Duration,
    /// A connection on which nothing was heard for so long is probed by the operating system; three
    /// probes without an answer end it, and, on Linux, so does as long a wait for what was sent to be
    /// acknowledged. Probes of TCP rather than of HTTP/2, because the common gRPC
    /// servers hang up on callers that send the latter more than every five minutes.
    pub keep_alive: Duration,
    /// Longest pause between attempts to dial; the first is a tenth of a second.
    pub backoff_max: Duration,
    /// Speak this protocol rather than finding out.
    pub protocol: Option<Protocol>,
}

impl Endpoint {
    /// An endpoint with every setting at its default.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            use_tls: false,
            tls: Tls::system(),
            insecure: false,
            message_bytes_max: 16 << 20,
            connect_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(10),
            backoff_max: Duration::from_secs(2),
            protocol: None,
        }
    }

    /// The address, taken apart.
    ///
    /// # Errors
    /// [`Class::Terminal`]: not an address.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        if let Some(path) = self.address.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return Ok(Target { place: Place::Unix(path.into()), is_tls: false });
        }
        let (is_https, rest) = match self.address.split_once("://") {
            Some(("https", rest)) => (true, rest),
            Some(("http" | "dns", rest)) => (false, rest.trim_start_matches('/')),
            None => (false, self.address.as_str()),
            Some(_) => return Err(self.no_address()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| self.no_address())?)
            }
            _ if is_https => (rest, 443),
            _ => return Err(self.no_address()),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.contains(['/', '@', ' ']) {
            return Err(self.no_address());
        }
        // ":50051" is how servers write their own address: the same machine.
        let host = if host.is_empty() { "localhost" } else { host };
        let is_tls = self.use_tls || is_https || port == 443;
        Ok(Target { place: Place::Tcp { host: host.to_owned(), port }, is_tls })
    }

    fn no_address(&self) -> Error {
        let message =
            format!("{:?} is no endpoint: use HOST:PORT, https://HOST[:PORT] or unix:PATH", self.address);
        Error::new(Class::Terminal, message)
    }
}

/// An address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) is_tls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

impl Target {
    /// Whether what is sent there can be read on the way.
    pub(crate) fn is_exposed(&self) -> bool {
        match &self.place {
            Place::Unix(_) => false,
            Place::Tcp { host, .. } => !self.is_tls && !is_loopback(host),
        }
    }

    /// The URI that requests are made to.
    pub(crate) fn uri(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        match &self.place {
            Place::Unix(_) => "http://localhost".to_owned(),
            Place::Tcp { host, port } if host.contains(':') => format!("{scheme}://[{host}]:{port}"),
            Place::Tcp { host, port } => format!("{scheme}://{host}:{port}"),
        }
    }
}

/// A name may resolve to anything, so apart from `localhost` only addresses count.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(address: &str) -> Target {
        Endpoint::new(address).target().unwrap()
    }

    #[test]
    fn tls_is_used_when_asked_for_or_implied() {
        assert!(!target("provider:50051").is_tls);
        assert!(target("provider:443").is_tls);
        assert!(target("https://provider:8443/").is_tls);
        assert_eq!(target("https://provider").uri(), "https://provider:443");
        assert!(Endpoint { use_tls: true, ..Endpoint::new("provider:50051") }.target().unwrap().is_tls);
        assert_eq!(target("[::1]:50051").uri(), "http://[::1]:50051");
        assert_eq!(target("unix:///run/p.sock").place, Place::Unix("/run/p.sock".into()));
    }

    #[test]
    fn only_plain_text_to_another_machine_is_exposed() {
        for address in ["10.0.0.1:50051", "provider:50051", "http://provider.ns:80", "0.0.0.0:1"] {
            assert!(target(address).is_exposed(), "{address}");
        }
        for address in ["127.0.0.1:1", "localhost:1", "[::1]:1", ":1", "provider:443", "unix:/x"] {
            assert!(!target(address).is_exposed(), "{address}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_forms_there_are() {
        for address in ["", "provider", "ftp://a:1", "a:b", "a:99999", "a/b:1"] {
            let error = Endpoint::new(address).target().unwrap_err();
            assert!(error.message.contains("HOST:PORT"), "{address}: {error}");
        }
    }
}
