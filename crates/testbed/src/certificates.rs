//! Keys and certificates for one cluster, made afresh.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Writes what kube-apiserver needs to `directory`: `ca.crt`, `server.crt`, `server.key` and the keys
/// that service account tokens are signed with and checked by, `accounts.key` and `accounts.pub`.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "concert testbed");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    fs::write(directory.join("ca.crt"), authority.pem())?;
    let issuer = Issuer::new(params, key);

    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "kubernetes.default".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let server = params.signed_by(&key, &issuer)?;
    fs::write(directory.join("server.crt"), server.pem())?;
    fs::write(directory.join("server.key"), key.serialize_pem())?;
    let accounts = KeyPair::generate()?;
    fs::write(directory.join("accounts.key"), accounts.serialize_pem())?;
    fs::write(directory.join("accounts.pub"), accounts.public_key_pem())?;
    Ok(())
}
