//! What clients may call us by.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

/// Names for a certificate of a server on `address`: this machine's own for itself, the address, where
/// it listens everywhere also the machine's name and its address on the way out, and `extra`.
pub fn names_for(address: SocketAddr, extra: &[String]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    let ip = address.ip().to_canonical();
    match ip.is_unspecified() {
        false => names.push(ip.to_string()),
        true => names.extend(host_name().into_iter().chain(way_out().map(|it| it.to_string()))),
    }
    names.extend(extra.iter().cloned());
    names.sort();
    names.dedup();
    names
}

fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = text.trim().to_ascii_lowercase();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// The address that others see. Nothing is sent: connecting a datagram socket only picks a route, here
/// to an address that is kept for documentation.
fn way_out() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_the_names_it_is_called_by() {
        let names = |address: &str| names_for(address.parse().unwrap(), &["api.example.dev".to_owned()]);
        assert_eq!(names("127.0.0.1:8000"), ["127.0.0.1", "::1", "api.example.dev", "localhost"]);
        assert!(names("192.0.2.7:443").contains(&"192.0.2.7".to_owned()));
        assert!(!names("0.0.0.0:443").contains(&"0.0.0.0".to_owned()));
    }
}
