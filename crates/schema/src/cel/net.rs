//! Addresses and networks: `ip()`, `cidr()` and what they can be asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Fault;
use super::value::Val;

/// Reads an address as Kubernetes does: without a zone, and IPv4 only in its own form.
pub(super) fn parse_ip(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let is_mapped = matches!(address, IpAddr::V6(it) if it.to_ipv4_mapped().is_some());
    (!is_mapped).then_some(address)
}

/// An address, and how many of its bits say which network it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cidr {
    address: IpAddr,
    bits: u8,
}

impl Cidr {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = parse_ip(address)?;
        // No signs, no leading zeros.
        let is_plain = bits.bytes().all(|it| it.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'));
        let bits: u8 = bits.parse().ok().filter(|_| is_plain)?;
        (bits <= width(address)).then_some(Self { address, bits })
    }

    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(it) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(it) & mask))
            }
            IpAddr::V6(it) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(it) & mask))
            }
        };
        Self { address, ..self }
    }

    fn contains_ip(self, address: IpAddr) -> bool {
        let same = Self { address, bits: self.bits };
        width(address) == width(self.address) && same.masked() == self.masked()
    }

    fn contains(self, other: Self) -> bool {
        other.bits >= self.bits && self.contains_ip(other.address)
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_link_local(),
        IpAddr::V6(it) => it.is_unicast_link_local(),
    }
}

/// `ip.isCanonical('::1')`: whether it is written as it would be printed.
pub(super) fn is_canonical(text: &str) -> Result<bool, Fault> {
    let address = parse_ip(text).ok_or_else(|| malformed("IP Address", text))?;
    Ok(address.to_string() == text)
}

fn malformed(what: &str, text: &str) -> Fault {
    Fault::error(format!("{what} {text:?} parse error during conversion from string"))
}

pub(super) fn of_ip<'a>(name: &str, address: IpAddr, rest: &[Val<'a>]) -> Result<Val<'a>, Fault> {
    if !rest.is_empty() {
        return Err(Fault::overload());
    }
    Ok(Val::Bool(match name {
        "family" => return Ok(Val::Int(if address.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalUnicast" => is_link_local(address),
        "isLinkLocalMulticast" => match address {
            IpAddr::V4(it) => it.octets()[..3] == [224, 0, 0],
            IpAddr::V6(it) => it.segments()[0] & 0xff0f == 0xff02,
        },
        "isGlobalUnicast" => {
            let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
            !is_broadcast
                && !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !is_link_local(address)
        }
        _ => return Err(Fault::overload()),
    }))
}

pub(super) fn of_cidr<'a>(name: &str, network: Cidr, rest: &[Val<'a>]) -> Result<Val<'a>, Fault> {
    match (name, rest) {
        ("ip", []) => Ok(Val::Ip(network.address)),
        ("masked", []) => Ok(Val::Cidr(network.masked())),
        ("prefixLength", []) => Ok(Val::Int(i64::from(network.bits))),
        ("containsIP", [Val::Ip(address)]) => Ok(Val::Bool(network.contains_ip(*address))),
        ("containsIP", [Val::Text(text)]) => {
            let address = parse_ip(text.as_str()).ok_or_else(|| malformed("IP Address", text.as_str()))?;
            Ok(Val::Bool(network.contains_ip(address)))
        }
        ("containsCIDR", [Val::Cidr(other)]) => Ok(Val::Bool(network.contains(*other))),
        ("containsCIDR", [Val::Text(text)]) => {
            let other = Cidr::parse(text.as_str());
            let other = other.ok_or_else(|| malformed("network address", text.as_str()))?;
            Ok(Val::Bool(network.contains(other)))
        }
        _ => Err(Fault::overload()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kubernetes_takes_for_an_address_is_one() {
        for good in ["127.0.0.1", "::1", "2001:db8::1", "0.0.0.0", "::"] {
            assert!(parse_ip(good).is_some(), "{good}");
        }
        for bad in ["", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1", "::ffff:1.2.3.4", "fe80::1%eth0", "a"]
        {
            assert!(parse_ip(bad).is_none(), "{bad}");
        }
        for bad in
            ["1.2.3.4", "1.2.3.4/33", "::/129", "1.2.3.4/-1", "1.2.3.4/+8", "1.2.3.4/08", "1.2.3.4/", "/8"]
        {
            assert!(Cidr::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_network_contains_what_shares_its_first_bits() {
        let contains =
            |network: &str, other: &str| Cidr::parse(network).unwrap().contains(Cidr::parse(other).unwrap());
        assert!(contains("10.0.0.0/8", "10.1.2.3/32") && contains("10.9.9.9/8", "10.0.0.0/8"));
        assert!(!contains("10.0.0.0/8", "10.0.0.0/7") && !contains("10.0.0.0/8", "11.0.0.0/8"));
        assert!(contains("0.0.0.0/0", "255.1.1.1/32") && !contains("0.0.0.0/0", "::1/128"));
        assert!(contains("::/0", "2001:db8::/32") && contains("2001:db8::/32", "2001:db8:ffff::/48"));
        assert_eq!(Cidr::parse("192.168.7.9/24").unwrap().masked().to_string(), "192.168.7.0/24");
    }
}
