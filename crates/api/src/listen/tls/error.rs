//! What can be wrong with certificates.

use std::io;
use std::path::PathBuf;

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or written.
    #[error("cannot use {}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Others can read the key of our own CA or certificate.
    #[error("{} can be read by others; take the right from them (chmod 600)", .path.display())]
    Exposed {
        /// Which file.
        path: PathBuf,
    },
    /// The files are no PEM, or certificate and key do not belong together.
    #[error("certificate and key cannot be used")]
    Unfit(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A name that no certificate can hold.
    #[error("cannot make a certificate")]
    Make(#[source] rcgen::Error),
}
