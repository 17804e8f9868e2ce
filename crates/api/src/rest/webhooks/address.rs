//! Where a webhook may be: what keeps a declared address from leading to what only this machine can
//! reach, such as the metadata service of a cloud.
//!
//! Addresses of this machine and of private networks are fine: that is where webhooks are. An address is
//! looked at when it is declared, and what a name leads to is looked at again at every call.

use std::net::IpAddr;

use concert_model::reach::is_refused;
use http::Uri;

/// Longest address.
const BYTES_MAX: usize = 2048;

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("webhook_url is longer than {BYTES_MAX} bytes")]
    Long,
    #[error("webhook_url must be http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH")]
    NoUrl,
    #[error("webhook_url must not carry a user or a password")]
    User,
    #[error("webhook_url names a host by a number that is no IP address")]
    Number,
    #[error("webhook_url leads to {0}, an address that is refused")]
    Refused(IpAddr),
}

/// Somewhere to post to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// What `Host` says.
    pub authority: String,
    pub path_and_query: String,
}

impl Address {
    /// Reads an address, as far as that can be done without asking anybody.
    pub fn parse(url: &str) -> Result<Self, BadAddress> {
        if url.len() > BYTES_MAX {
            return Err(BadAddress::Long);
        }
        if url.contains('#') {
            return Err(BadAddress::NoUrl);
        }
        let uri: Uri = url.parse().map_err(|_| BadAddress::NoUrl)?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(BadAddress::NoUrl),
        };
        let authority = uri.authority().ok_or(BadAddress::NoUrl)?;
        if authority.as_str().contains('@') {
            return Err(BadAddress::User);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        check_host(&host)?;
        // A port that is out of range must not turn into the usual one.
        let has_port = authority.as_str().len() > authority.host().len();
        let port = match (authority.port_u16(), has_port) {
            (Some(0), _) | (None, true) => return Err(BadAddress::NoUrl),
            (Some(port), _) => port,
            (None, false) => {
                if is_tls {
                    443
                } else {
                    80
                }
            }
        };
        let path = uri.path_and_query().map_or("/", |it| it.as_str());
        let path_and_query = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_tls, host, port, authority: authority.to_string(), path_and_query })
    }
}

fn check_host(host: &str) -> Result<(), BadAddress> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return check(address);
    }
    // Resolvers read `2852039166` and `0xa9.254.0xa9fe` as addresses; nobody means them.
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_number =
        last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x") || last.starts_with("0X");
    match host.is_empty() {
        true => Err(BadAddress::NoUrl),
        false if is_number => Err(BadAddress::Number),
        false => Ok(()),
    }
}

/// Refuses addresses that no webhook is at.
pub fn check(address: IpAddr) -> Result<(), BadAddress> {
    if is_refused(address) { Err(BadAddress::Refused(address)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_webhooks_are_at() {
        let parsed = |url: &str| Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        let local = parsed("http://127.0.0.1:8080/hook?x=1");
        assert_eq!((&*local.host, local.port, &*local.path_and_query), ("127.0.0.1", 8080, "/hook?x=1"));
        assert_eq!((local.is_tls, &*local.authority), (false, "127.0.0.1:8080"));
        let named = parsed("https://hooks.example.com");
        assert_eq!((named.is_tls, named.port, &*named.path_and_query), (true, 443, "/"));
        assert_eq!(parsed("http://[::1]:9/").host, "::1");
        for fine in ["http://10.0.0.1/", "http://192.168.1.1/", "http://[fd00::1]/", "http://webhook.svc./a"]
        {
            parsed(fine);
        }
    }

    #[test]
    fn what_only_this_machine_can_reach_is_refused() {
        let refused = [
            "169.254.169.254",
            "169.254.0.1",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.255.255.255",
            "255.255.255.255",
            "[fe80::1]",
            "[febf::1]",
            "[::]",
            "[ff02::1]",
            "[::ffff:169.254.169.254]",
            "[::ffff:0.0.0.0]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::1]",
            "[::169.254.169.254]",
            "[fd00:ec2::254]",
        ];
        for host in refused {
            let error = Address::parse(&format!("http://{host}/latest")).unwrap_err();
            assert!(matches!(error, BadAddress::Refused(_)), "{host}: {error}");
        }
        for host in [
            "2852039166",
            "0xa9fea9fe",
            "0xa9.254.0xa9fe",
            "169.254.43518",
            "0251.0376.0251.0376",
            "1.2.3.256",
        ] {
            let error = Address::parse(&format!("http://{host}/latest")).unwrap_err();
            assert_eq!(error, BadAddress::Number, "{host}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let long = format!("http://a/{}", "a".repeat(2048));
        for url in [
            "",
            "a",
            "/a",
            "ftp://a/",
            "file:///etc/passwd",
            "gopher://a",
            "http://",
            "http:///a",
            "http://a:0/",
            "http://a:99999/",
            "http://a:/",
            "http://a b/",
            "http://a/#b",
            "https:a",
        ] {
            assert_eq!(Address::parse(url), Err(BadAddress::NoUrl), "{url}");
        }
        assert_eq!(Address::parse("http://user:secret@a/"), Err(BadAddress::User));
        assert_eq!(Address::parse(&long), Err(BadAddress::Long));
    }
}
