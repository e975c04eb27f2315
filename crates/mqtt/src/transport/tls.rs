//! The files of a TLS connection: certificates of authorities, and certificate and key of this client.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use crate::address::BrokerAddress;

/// Longest file in bytes. The authorities of a system have 220 kB.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// Files of a TLS connection, all in the PEM format.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Certificates of the authorities that may sign the broker's certificate. Without it, those of the system count.
    pub authorities: Option<PathBuf>,
    /// Certificate chain of this client, and its private key.
    pub client: Option<(PathBuf, PathBuf)>,
    /// Name in the broker's certificate. Without it, the host of the address.
    pub server_name: Option<String>,
}

/// Reason why files of a TLS connection cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not in the PEM format.
    #[error("cannot read {0}: {1}")]
    File(PathBuf, pem::Error),
    /// A file contains no certificate.
    #[error("{0} contains no certificate")]
    NoCertificate(PathBuf),
    /// A certificate of an authority is not valid.
    #[error("a certificate in {0} cannot be used: {1}")]
    Authority(PathBuf, rustls::Error),
    /// The system has no certificates of authorities.
    #[error("the system has no certificates of authorities; name a file with them")]
    NoSystemAuthorities,
    /// The key does not belong to the certificate, or has an unknown algorithm.
    #[error("the certificate {0} and the key {1} cannot be used: {2}")]
    Client(PathBuf, PathBuf, rustls::Error),
    /// The library refuses its own parameters.
    #[error("{0}")]
    Other(#[from] rustls::Error),
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// The first file that cannot be used.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = builder.with_root_certificates(self.roots()?);
        let config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let wrong = |error| TlsError::File(key.clone(), error);
                let secret = PrivateKeyDer::from_pem_slice(&read(key).map_err(wrong)?).map_err(wrong)?;
                let wrong = |error| TlsError::Client(certificate.clone(), key.clone(), error);
                builder.with_client_auth_cert(chain, secret).map_err(wrong)?
            }
        };
        Ok(Arc::new(config))
    }

    pub(super) fn server_name<'a>(&'a self, address: &'a BrokerAddress) -> &'a str {
        self.server_name.as_deref().unwrap_or_else(|| address.host())
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.authorities {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| TlsError::Authority(path.clone(), error))?;
            }
            return Ok(roots);
        }
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() { Err(TlsError::NoSystemAuthorities) } else { Ok(roots) }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |error| TlsError::File(path.to_owned(), error);
    let octets = read(path).map_err(unreadable)?;
    let certificates = CertificateDer::pem_slice_iter(&octets).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if certificates.is_empty() { Err(TlsError::NoCertificate(path.to_owned())) } else { Ok(certificates) }
}

fn read(path: &Path) -> Result<Vec<u8>, pem::Error> {
    let mut octets = Vec::new();
    let file = File::open(path).map_err(pem::Error::Io)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut octets).map_err(pem::Error::Io)?;
    if octets.len() as u64 > FILE_BYTES_MAX {
        return Err(pem::Error::Io(io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes"))));
    }
    Ok(octets)
}
