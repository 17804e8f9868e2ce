//! Keys and certificates for one cluster, made afresh.

use std::fs;
use std::path::Path;

use anyhow::Result;
use rcgen::KeyPair;

use crate::Authority;

/// Writes what kube-apiserver needs to `directory`: `ca.crt`, `server.crt`, `server.key` and the keys
/// that service account tokens are signed with and checked by, `accounts.key` and `accounts.pub`.
pub(crate) fn write(directory: &Path) -> Result<()> {
    let authority = Authority::fresh();
    authority.write_trust(directory);
    let server = authority.pair(&["localhost", "kubernetes.default", "127.0.0.1"]);
    fs::write(directory.join("server.crt"), server.certificate)?;
    fs::write(directory.join("server.key"), server.key)?;
    let accounts = KeyPair::generate()?;
    fs::write(directory.join("accounts.key"), accounts.serialize_pem())?;
    fs::write(directory.join("accounts.pub"), accounts.public_key_pem())?;
    Ok(())
}
