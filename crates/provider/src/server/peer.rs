//! Who calls, and what they may do.

use std::collections::HashMap;
use std::net::SocketAddr;

use concert_model::GroupVersionKind;
use rustls::pki_types::CertificateDer;
use tonic::Status;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The other end of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// The names in its certificate, which was verified: subject alternative names, then common name.
    pub(crate) names: Vec<String>,
    /// Whether what is sent to it can be read on the way.
    pub(crate) is_exposed: bool,
}

impl Peer {
    pub(crate) fn plain(address: Option<SocketAddr>) -> Self {
        Self { names: Vec::new(), is_exposed: address.is_some_and(|it| !it.ip().is_loopback()) }
    }

    pub(crate) fn verified(certificate: Option<&CertificateDer<'_>>) -> Self {
        Self { names: certificate.map(|it| names(it)).unwrap_or_default(), is_exposed: false }
    }

    /// What accounts are kept under.
    pub(crate) fn identity(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

fn names(certificate: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return Vec::new() };
    let mut names = Vec::new();
    if let Ok(Some(alternatives)) = certificate.subject_alternative_name() {
        for name in &alternatives.value.general_names {
            match name {
                GeneralName::DNSName(name) | GeneralName::URI(name) | GeneralName::RFC822Name(name) => {
                    names.push((*name).to_owned());
                }
                _ => {}
            }
        }
    }
    let common = certificate.subject().iter_common_name().filter_map(|it| it.as_str().ok());
    names.extend(common.map(str::to_owned));
    names
}

/// Which callers may use which kinds, by the names in their certificates.
#[derive(Clone, Debug, Default)]
pub struct Allow {
    any: Vec<String>,
    kinds: HashMap<GroupVersionKind, Vec<String>>,
}

impl Allow {
    /// Nobody, nothing.
    pub fn nobody() -> Self {
        Self::default()
    }

    /// These callers may use every kind.
    #[must_use]
    pub fn everything<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.any.extend(names.into_iter().map(Into::into));
        self
    }

    /// These callers may use this kind.
    #[must_use]
    pub fn kind<N: Into<String>>(
        mut self,
        kind: GroupVersionKind,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.kinds.entry(kind).or_default().extend(names.into_iter().map(Into::into));
        self
    }

    pub(crate) fn permits(&self, peer: &Peer, kind: &GroupVersionKind) -> bool {
        let is_in = |names: &Vec<String>| peer.names.iter().any(|name| names.contains(name));
        is_in(&self.any) || self.kinds.get(kind).is_some_and(is_in)
    }

    /// Whether the caller may use anything at all.
    pub(crate) fn knows(&self, peer: &Peer) -> bool {
        let is_in = |names: &Vec<String>| peer.names.iter().any(|name| names.contains(name));
        is_in(&self.any) || self.kinds.values().any(is_in)
    }
}

/// The answer to callers that may not.
pub(crate) fn refusal(peer: &Peer, what: &str) -> Status {
    let who = if peer.names.is_empty() {
        "a caller without a certificate".to_owned()
    } else {
        peer.names.join(", ")
    };
    Status::permission_denied(format!("{who} may not use {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_needs_a_listed_name_for_each_kind() {
        let kind = |name| GroupVersionKind::parse("example.dev/v1", name).unwrap();
        let allow = Allow::nobody().everything(["admin"]).kind(kind("Bucket"), ["concert"]);
        let peer = |name: &str| Peer { names: vec![name.to_owned()], is_exposed: false };
        assert!(allow.permits(&peer("concert"), &kind("Bucket")));
        assert!(!allow.permits(&peer("concert"), &kind("Key")));
        assert!(allow.permits(&peer("admin"), &kind("Key")));
        assert!(allow.knows(&peer("concert")) && !allow.knows(&peer("other")));
        assert!(!allow.permits(&Peer::default(), &kind("Bucket")));
    }
}
