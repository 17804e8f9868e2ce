//! Which addresses nothing that others declare may lead to: those that only this machine can reach, such as
//! the metadata service of a cloud.
//!
//! Addresses of this machine and of private networks are fine: that is where webhooks and clusters are.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The metadata service of AWS, in a network that is otherwise anybody's.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Whether an address is one that nothing declared may lead to.
pub fn is_refused(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_refused_v4(address),
        IpAddr::V6(address) => {
            address.is_unspecified()
                || address.is_multicast()
                || address.is_unicast_link_local()
                || address == METADATA_V6
                || embedded(address).is_some_and(is_refused_v4)
        }
    }
}

fn is_refused_v4(address: Ipv4Addr) -> bool {
    // All of 0/8 means this machine to some systems and nothing to others.
    address.octets()[0] == 0 || address.is_link_local() || address.is_multicast() || address.is_broadcast()
}

/// The IPv4 address that an IPv6 address leads to: deprecated compatible ones, NAT64 and 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 1] => None,
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_this_machine_can_reach_is_refused() {
        for text in
            ["169.254.169.254", "0.0.0.0", "224.0.0.1", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"]
        {
            assert!(is_refused(text.parse().unwrap()), "{text}");
        }
        for text in ["127.0.0.1", "10.0.0.1", "192.168.0.1", "::1", "fd00::1", "8.8.8.8"] {
            assert!(!is_refused(text.parse().unwrap()), "{text}");
        }
    }
}
