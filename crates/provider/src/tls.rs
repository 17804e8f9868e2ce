//! Certificates of a folder: `ca.crt`, `tls.crt` and `tls.key`, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::error::{Class, Error};

/// HTTP/2 is the only protocol that gRPC speaks.
const ALPN: &[u8] = b"h2";

/// Where certificates come from.
///
/// `ca.crt` is what the other side is verified against; without it a client takes the system's roots
/// and a server asks for no client certificate. `tls.crt` and `tls.key` are one's own pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    folder: Option<PathBuf>,
}

impl Tls {
    /// The system's roots, and no certificate of one's own.
    pub fn system() -> Self {
        Self::default()
    }

    /// The files of this folder.
    pub fn folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    /// Reads the files and says what is wrong with them.
    ///
    /// # Errors
    /// [`Class::Denied`]: one half of a pair, or a file that cannot be read or is no PEM.
    pub fn check(&self) -> Result<(), Error> {
        client_config(&self.read()?).map(drop)
    }

    pub(crate) fn read(&self) -> Result<Files, Error> {
        let Some(folder) = &self.folder else { return Ok(Files::default()) };
        let files = Files {
            ca: read(&folder.join("ca.crt"))?,
            cert: read(&folder.join("tls.crt"))?,
            key: read(&folder.join("tls.key"))?,
        };
        let missing = match (&files.cert, &files.key) {
            (Some(_), None) => "tls.key",
            (None, Some(_)) => "tls.crt",
            _ => return Ok(files),
        };
        Err(denied(format!("{} has half a pair: {missing} is missing", folder.display())))
    }
}

/// What the files held when they were read.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    ca: Option<Vec<u8>>,
    cert: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

/// How a client speaks. The server is always verified.
pub(crate) fn client_config(files: &Files) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    match &files.ca {
        Some(ca) => add(&mut roots, ca)?,
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| denied(format!("TLS: {e}")))?
        .with_root_certificates(roots);
    let mut config = match pair(files)? {
        Some((chain, key)) => builder
            .with_client_auth_cert(chain, key)
            .map_err(|e| denied(format!("tls.crt and tls.key cannot be used: {e}")))?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

/// How a server speaks. With `ca.crt`, only to clients that it vouches for.
pub(crate) fn server_config(files: &Files) -> Result<Arc<ServerConfig>, Error> {
    let (chain, key) = pair(files)?.ok_or_else(|| denied("a server needs tls.crt and tls.key".to_owned()))?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| denied(format!("TLS: {e}")))?;
    let builder = match &files.ca {
        None => builder.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            add(&mut roots, ca)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .map_err(|e| denied(format!("ca.crt cannot be used: {e}")))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|e| denied(format!("tls.crt and tls.key cannot be used: {e}")))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    Ok(Arc::new(config))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn pair(files: &Files) -> Result<Option<Pair>, Error> {
    let (Some(cert), Some(key)) = (&files.cert, &files.key) else { return Ok(None) };
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|e| denied(format!("tls.key is no PEM key: {e}")))?;
    Ok(Some((certificates("tls.crt", cert)?, key)))
}

fn add(roots: &mut RootCertStore, ca: &[u8]) -> Result<(), Error> {
    for certificate in certificates("ca.crt", ca)? {
        roots.add(certificate).map_err(|e| denied(format!("ca.crt cannot be used: {e}")))?;
    }
    Ok(())
}

fn certificates(name: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(denied(format!("{name} holds no certificate"))),
        Err(e) => Err(denied(format!("{name} is no PEM: {e}"))),
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(denied(format!("cannot read {}: {e}", path.display()))),
    }
}

fn denied(message: String) -> Error {
    Error::new(Class::Denied, message)
}
