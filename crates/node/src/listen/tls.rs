//! TLS of a listener, with certificates that can change while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::files;

/// Longest file in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Time between two looks at the files.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Files of a listener with TLS, all in the PEM format.
#[derive(Clone, Debug)]
pub struct ServerTlsFiles {
    /// Certificate chain of the server.
    pub certificate: PathBuf,
    /// Private key of the server.
    pub key: PathBuf,
    /// Certificates of the authorities that sign the certificates of clients. Without it, clients need no certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Reason why the files of a listener cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerTlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The problem.
        cause: std::io::Error,
    },
    /// A file is not in the PEM format.
    #[error("{} cannot be used: {cause}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The problem.
        cause: pem::Error,
    },
    /// A file contains no certificate.
    #[error("{} contains no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// The key does not belong to the certificate, or a certificate is not valid.
    #[error("the certificate {} and the key {} cannot be used: {cause}", certificate.display(), key.display())]
    Certificate {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The problem.
        cause: rustls::Error,
    },
    /// The authorities of clients cannot be used.
    #[error("the authorities of clients cannot be used: {0}")]
    Authorities(#[from] VerifierBuilderError),
    /// The library refuses its own parameters.
    #[error(transparent)]
    Other(#[from] rustls::Error),
}

/// TLS of a listener.
pub struct ServerTls {
    files: ServerTlsFiles,
    state: Mutex<State>,
}

struct State {
    config: Arc<ServerConfig>,
    looked: Instant,
    modified: Vec<Option<SystemTime>>,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn open(files: ServerTlsFiles) -> Result<Self, ServerTlsError> {
        let modified = files.modified();
        let config = files.read()?;
        Ok(Self { files, state: Mutex::new(State { config, looked: Instant::now(), modified }) })
    }

    /// Returns the parameters for a new connection. If the files have changed, they are read again; if they cannot be used then, the
    /// parameters stay as they are, and an error is logged.
    #[must_use]
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK_PERIOD {
            state.looked = Instant::now();
            let modified = self.files.modified();
            if modified != state.modified {
                state.modified = modified;
                match self.files.read() {
                    Ok(config) => {
                        state.config = config;
                        tracing::info!(certificate = %self.files.certificate.display(), "TLS certificate read again");
                    }
                    Err(error) => tracing::error!(%error, "the changed TLS files are not used"),
                }
            }
        }
        Arc::clone(&state.config)
    }
}

impl ServerTlsFiles {
    fn modified(&self) -> Vec<Option<SystemTime>> {
        let files = [Some(&self.certificate), Some(&self.key), self.client_authorities.as_ref()];
        files.into_iter().flatten().map(|path| std::fs::metadata(path).and_then(|data| data.modified()).ok()).collect()
    }

    fn read(&self) -> Result<Arc<ServerConfig>, ServerTlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let octets = read(&self.key)?;
        let unusable = |cause| ServerTlsError::Pem { path: self.key.clone(), cause };
        let key = PrivateKeyDer::from_pem_slice(&octets).map_err(unusable)?;
        let wrong =
            |cause| ServerTlsError::Certificate { certificate: self.certificate.clone(), key: self.key.clone(), cause };
        Ok(Arc::new(builder.with_single_cert(certificates(&self.certificate)?, key).map_err(wrong)?))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ServerTlsError> {
    files::read_octets(path, FILE_BYTES_MAX)
        .map_err(|cause| ServerTlsError::Unreadable { path: path.to_owned(), cause })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerTlsError> {
    let octets = read(path)?;
    let unusable = |cause| ServerTlsError::Pem { path: path.to_owned(), cause };
    let certificates = CertificateDer::pem_slice_iter(&octets).collect::<Result<Vec<_>, _>>().map_err(unusable)?;
    if certificates.is_empty() { Err(ServerTlsError::NoCertificate(path.to_owned())) } else { Ok(certificates) }
}
