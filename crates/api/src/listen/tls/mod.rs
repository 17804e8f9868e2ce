//! Certificates: our own, or given ones; always those of the moment.
//!
//! Looked after when a connection comes, at most every other second, so that nothing has to run: given
//! files are read again when they changed, our own certificate is made anew before it expires.

mod authority;
mod error;
mod file;
mod names;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use concert_store::Clock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub use authority::CA_FILE;
pub use error::TlsError;
pub use file::replace_file;
pub use names::names_for;

/// How old the knowledge of the files may be.
const FRESH: Duration = Duration::from_secs(2);

/// Where certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A CA of our own in this directory, made on first use, and a certificate of it for these names.
    Own {
        /// Made if it is not there. [`CA_FILE`] in it is what clients need.
        directory: PathBuf,
        /// Host names and addresses that clients call us by.
        names: Vec<String>,
    },
    /// These PEM files.
    Files {
        /// The certificate and those it depends on.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
}

/// The certificates of a listener. Cheap to clone.
#[derive(Clone)]
pub struct Certificates(Arc<Inner>);

struct Inner {
    source: Source,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    pair: Pair,
    config: Arc<ServerConfig>,
    checked: Duration,
}

/// PEM text of a chain and its key.
#[derive(Clone, PartialEq, Eq)]
struct Pair {
    chain: Vec<u8>,
    key: Vec<u8>,
}

impl Certificates {
    /// Reads or makes them.
    ///
    /// # Errors
    /// [`TlsError`]: better to hear of it before anybody connects.
    pub fn open(source: Source, clock: Arc<dyn Clock>) -> Result<Self, TlsError> {
        let pair = source.read(&*clock)?;
        let config = server_config(&pair)?;
        let state = Mutex::new(State { pair, config, checked: clock.elapsed() });
        Ok(Self(Arc::new(Inner { source, clock, state })))
    }

    /// The PEM text that clients need to trust us: our own CA, or what signed itself among given
    /// certificates. None if others have signed all of them: then clients know those, or their owner does.
    ///
    /// # Errors
    /// [`TlsError`] if it cannot be read.
    pub fn authority(&self) -> Result<Option<String>, TlsError> {
        match &self.0.source {
            Source::Files { certificate, .. } => {
                authority::own_signed(&String::from_utf8_lossy(&file::read(certificate)?))
            }
            Source::Own { directory, .. } => {
                let text = file::read(&directory.join(CA_FILE))?;
                Ok(Some(String::from_utf8_lossy(&text).into_owned()))
            }
        }
    }

    /// How to greet whoever connects now. If the files make no sense at the moment, as while they are
    /// being replaced, the last ones that did.
    pub(super) fn current(&self) -> Arc<ServerConfig> {
        let inner = &*self.0;
        let mut state = inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = inner.clock.elapsed();
        if now.saturating_sub(state.checked) < FRESH {
            return state.config.clone();
        }
        state.checked = now;
        match inner.source.read(&*inner.clock).and_then(|pair| state.renew(pair)) {
            Ok(false) => {}
            Ok(true) => tracing::info!("TLS certificate replaced"),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                tracing::error!(%error, cause, "TLS certificate cannot be replaced; the last one is used");
            }
        }
        state.config.clone()
    }
}

impl State {
    fn renew(&mut self, pair: Pair) -> Result<bool, TlsError> {
        if pair == self.pair {
            return Ok(false);
        }
        self.config = server_config(&pair)?;
        self.pair = pair;
        Ok(true)
    }
}

impl Source {
    fn read(&self, clock: &dyn Clock) -> Result<Pair, TlsError> {
        match self {
            Self::Files { certificate, key } => {
                Ok(Pair { chain: file::read(certificate)?, key: file::read(key)? })
            }
            Self::Own { directory, names } => authority::ensure(directory, names, clock.now()),
        }
    }
}

fn server_config(pair: &Pair) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|e| TlsError::Unfit(e.into()))?.with_no_client_auth();
    let mut config = builder
        .with_single_cert(certificates(&pair.chain)?, private_key(&pair.key)?)
        .map_err(|e| TlsError::Unfit(e.into()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if all.is_empty() => Err(TlsError::Unfit("there is no certificate in the file".into())),
        all => all.map_err(|e| TlsError::Unfit(e.into())),
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|e| TlsError::Unfit(e.into()))
}

impl Certificates {
    /// Where our own CA is, for people.
    pub fn authority_path(&self) -> Option<PathBuf> {
        match &self.0.source {
            Source::Own { directory, .. } => Some(Path::new(directory).join(CA_FILE)),
            Source::Files { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
