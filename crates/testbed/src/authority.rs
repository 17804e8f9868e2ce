//! Who vouches for certificates in tests.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use tempfile::TempDir;

const MADE: &str = "whatever a test asks for can be made";

/// An authority of its own: nobody believes it who was not told to.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its own certificate.
    pub pem: String,
}

/// A certificate and its key.
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl Authority {
    /// One that nobody has heard of.
    #[must_use]
    pub fn fresh() -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "concert testbed");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect(MADE);
        let pem = params.self_signed(&key).expect(MADE).pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// What somebody shows who is called by these names or addresses, the first above all: as a server and
    /// as a client.
    #[must_use]
    pub fn pair(&self, names: &[&str]) -> Pair {
        let all: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(all).expect(MADE);
        params.distinguished_name.push(DnType::CommonName, names[0]);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect(MADE);
        let certificate = params.signed_by(&key, &self.issuer).expect(MADE).pem();
        Pair { certificate, key: key.serialize_pem() }
    }

    /// A folder of somebody called `name` who trusts this authority: `ca.crt`, `tls.crt` and `tls.key`.
    #[must_use]
    pub fn folder(&self, name: &str) -> TempDir {
        let folder = self.trusting();
        self.write_pair(folder.path(), name);
        folder
    }

    /// A folder of somebody called `name` who asks nobody who they are: `tls.crt` and `tls.key`.
    #[must_use]
    pub fn pair_only(&self, name: &str) -> TempDir {
        let folder = tempfile::tempdir().expect(MADE);
        self.write_pair(folder.path(), name);
        folder
    }

    /// A folder of somebody who trusts this authority and shows nothing: `ca.crt`.
    #[must_use]
    pub fn trusting(&self) -> TempDir {
        let folder = tempfile::tempdir().expect(MADE);
        self.write_trust(folder.path());
        folder
    }

    /// Writes or replaces `tls.crt` and `tls.key`.
    pub fn write_pair(&self, folder: &Path, name: &str) {
        let pair = self.pair(&[name]);
        fs::write(folder.join("tls.crt"), pair.certificate).expect(MADE);
        fs::write(folder.join("tls.key"), pair.key).expect(MADE);
    }

    /// Writes or replaces `ca.crt`.
    pub fn write_trust(&self, folder: &Path) {
        fs::write(folder.join("ca.crt"), &self.pem).expect(MADE);
    }
}
