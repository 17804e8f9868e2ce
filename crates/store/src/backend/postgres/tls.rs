//! TLS, verified: chain and name, always.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::trouble::Trouble;
use crate::error::BoxError;

/// Trusts the authorities in a file of certificates, or those of the machine.
pub(super) fn connector(authorities: Option<&Path>) -> Result<MakeRustlsConnect, Trouble> {
    let roots = match authorities {
        Some(path) => read(path).map_err(Trouble::Authorities)?,
        None => of_the_machine(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Trouble::Authorities(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn read(path: &Path) -> Result<RootCertStore, BoxError> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = fs::read(path).map_err(|error| named(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots.add(certificate.map_err(|error| named(&error))?).map_err(|error| named(&error))?;
    }
    if roots.is_empty() {
        return Err(named(&"there is no certificate in it").into());
    }
    Ok(roots)
}

fn of_the_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Those that cannot be read are not trusted; a server that needs one is refused, and says so.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
