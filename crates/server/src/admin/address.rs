//! Addresses to listen on, as Go programs spell them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Nowhere: spelt `0` or as nothing at all.
    Nowhere,
    /// On every interface: spelt `:PORT`.
    Everywhere(u16),
    /// On one address.
    At(SocketAddr),
}

/// Not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address to listen on: use :PORT, ADDRESS:PORT, or 0 to listen nowhere")]
pub struct AddressError(String);

impl Address {
    /// Whether nobody but this machine can get there.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Nowhere => true,
            Address::Everywhere(_) => false,
            Address::At(address) => address.ip().is_loopback(),
        }
    }

    /// What to bind, the first that works. An IPv6 socket takes IPv4 as well; a machine without IPv6
    /// has only the other.
    pub(super) fn candidates(&self) -> Vec<SocketAddr> {
        match self {
            Address::Nowhere => Vec::new(),
            Address::At(address) => vec![*address],
            Address::Everywhere(port) => {
                let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
                any.map(|it| SocketAddr::new(it, *port)).into()
            }
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text.is_empty() || text == "0" {
            return Ok(Address::Nowhere);
        }
        if let Some(port) = text.strip_prefix(':').and_then(|it| it.parse().ok()) {
            return Ok(Address::Everywhere(port));
        }
        let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let address = numeric.as_deref().unwrap_or(text).parse();
        address.map(Address::At).map_err(|_| AddressError(text.to_owned()))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Nowhere => f.write_str("0"),
            Address::Everywhere(port) => write!(f, ":{port}"),
            Address::At(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_programs_take() {
        let at = |text: &str| Address::At(text.parse().unwrap());
        for (text, address) in [
            (":8080", Address::Everywhere(8080)),
            ("0", Address::Nowhere),
            ("", Address::Nowhere),
            ("127.0.0.1:0", at("127.0.0.1:0")),
            ("localhost:8081", at("127.0.0.1:8081")),
            ("[::1]:80", at("[::1]:80")),
        ] {
            assert_eq!(text.parse(), Ok(address), "{text}");
        }
        for text in ["8080", "host", ":x", "host:80", ":70000"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
