//! TLS on both sides, by rustls.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_io::{AsyncRead, AsyncWrite};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

pub use rustls;

/// Both ends of a TLS connection can be read and written like the stream below it.
pub type ServerStream<S> = futures_rustls::server::TlsStream<S>;
/// The client's end.
pub type ClientStream<S> = futures_rustls::client::TlsStream<S>;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn both_versions() -> Vec<Vec<u8>> {
    vec![b"h2".to_vec(), b"http/1.1".to_vec()]
}

/// The server's side: its certificate and key.
#[derive(Clone)]
pub struct TlsAcceptor(futures_rustls::TlsAcceptor);

impl TlsAcceptor {
    /// Reads a certificate chain and its key from two PEM files. They are small: this blocks the
    /// thread for as long as it takes.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<TlsAcceptor, TlsError> {
        TlsAcceptor::from_pem(&read(chain.as_ref())?, &read(key.as_ref())?)
    }

    /// Takes a certificate chain and its key from PEM text.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<TlsAcceptor, TlsError> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsError::NoKey,
            other => TlsError::NotPem(other),
        })?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Refused)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Refused)?;
        config.alpn_protocols = both_versions();
        Ok(TlsAcceptor::from_config(config))
    }

    /// Uses a configuration as it is.
    pub fn from_config(config: impl Into<Arc<ServerConfig>>) -> TlsAcceptor {
        TlsAcceptor(futures_rustls::TlsAcceptor::from(config.into()))
    }

    /// Does the handshake with a client.
    pub async fn accept<S>(&self, stream: S) -> io::Result<ServerStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.0.accept(stream).await
    }
}

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the configuration: it holds the key.
        f.debug_struct("TlsAcceptor").finish_non_exhaustive()
    }
}

/// The client's side: the certificates that it trusts.
#[derive(Clone)]
pub struct TlsConnector(futures_rustls::TlsConnector);

impl TlsConnector {
    /// Trusts the authorities that browsers trust, as they were when this was built.
    pub fn new() -> TlsConnector {
        let roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        TlsConnector::trusting_roots(roots)
    }

    /// Trusts the certificates in PEM text, and no others.
    pub fn trusting(pem: &[u8]) -> Result<TlsConnector, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(TlsError::Refused)?;
        }
        Ok(TlsConnector::trusting_roots(roots))
    }

    fn trusting_roots(roots: RootCertStore) -> TlsConnector {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider that we chose speaks the versions that it comes with");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = both_versions();
        TlsConnector::from_config(config)
    }

    /// Uses a configuration as it is.
    pub fn from_config(config: impl Into<Arc<ClientConfig>>) -> TlsConnector {
        TlsConnector(futures_rustls::TlsConnector::from(config.into()))
    }

    /// Does the handshake with the server that calls itself `name`.
    pub async fn connect<S>(&self, name: &str, stream: S) -> io::Result<ClientStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // An IPv6 address stands in brackets in a URL.
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(name.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        self.0.connect(name, stream).await
    }
}

impl Default for TlsConnector {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConnector").finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(TlsError::NotPem)?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate);
    }
    Ok(found)
}

/// Why there is no TLS.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable {
        /// The file that failed.
        path: PathBuf,
        /// The reason of the failure.
        source: io::Error,
    },
    /// The text is not PEM.
    NotPem(pem::Error),
    /// There is no certificate in the text.
    NoCertificate,
    /// There is no private key in the text.
    NoKey,
    /// rustls does not take the certificate or the key.
    Refused(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Unreadable { path, source } => {
                write!(
                    f,
                    "{} cannot be read ({source}); check the path and its permissions",
                    path.display()
                )
            }
            TlsError::NotPem(error) => {
                write!(f, "this is not PEM ({error:?}); convert it with openssl")
            }
            TlsError::NoCertificate => f.write_str(
                "no certificate is in there; it begins with -----BEGIN CERTIFICATE-----",
            ),
            TlsError::NoKey => f.write_str(
                "no private key is in there; it begins with -----BEGIN PRIVATE KEY-----",
            ),
            TlsError::Refused(error) => write!(
                f,
                "certificate or key are not usable ({error}); do they belong together, and are they whole?"
            ),
        }
    }
}

impl Error for TlsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            TlsError::Unreadable { source, .. } => Some(source),
            TlsError::Refused(error) => Some(error),
            TlsError::NotPem(_) | TlsError::NoCertificate | TlsError::NoKey => None,
        }
    }
}
