//! HTTPS: the server's certificate, and whose certificates clients must have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::Error;

/// The files of TLS, each in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTls {
    /// The server's certificate, with those that signed it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who must have signed a client's certificate; none is asked for without it.
    pub client_ca: Option<PathBuf>,
}

impl ServerTls {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Error> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|e| bad(&self.key, e))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| bad(&self.certificate, e))?;
        let asked = match &self.client_ca {
            None => versions.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|e| bad(path, e))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .build()
                    .map_err(|e| bad(path, e))?;
                versions.with_client_cert_verifier(verifier)
            }
        };
        let mut config =
            asked.with_single_cert(chain, key).map_err(|e| bad(&self.certificate, e))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<_> = found.map_err(|error| bad(path, error))?;
    if found.is_empty() {
        return Err(bad(path, "it has no certificate in PEM"));
    }
    Ok(found)
}

fn bad(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::Tls { path: path.to_owned(), what: error.to_string() }
}
