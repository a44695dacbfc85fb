//! Certificates: whose signature makes the server's good, and our own.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tenure_store::{Error, ErrorKind, Result};

use crate::options::{Identity, PostgresOptions, Roots, SslMode};

/// The roots to check the server's certificate by; `None` if it is not looked at.
pub(crate) fn roots(options: &PostgresOptions) -> Result<Option<RootCertStore>> {
    let verifies = matches!(options.ssl, SslMode::VerifyCa | SslMode::VerifyFull);
    match &options.roots {
        Roots::File(path) => of_file(path).map(Some),
        Roots::Usual(Some(path)) if path.exists() => of_file(path).map(Some),
        Roots::System => of_system().map(Some),
        Roots::Usual(_) if verifies => of_system().map(Some),
        Roots::Usual(_) => Ok(None),
    }
}

fn of_file(path: &Path) -> Result<RootCertStore> {
    let unusable = |why: String| {
        Error::new(ErrorKind::Invalid, format!("sslrootcert {} cannot be used", path.display()))
            .caused_by(why)
            .remedy("name a PEM file with at least one certificate, or sslrootcert=system")
    };
    let mut store = RootCertStore::empty();
    let file = CertificateDer::pem_file_iter(path).map_err(|e| unusable(e.to_string()))?;
    for certificate in file {
        let certificate = certificate.map_err(|e| unusable(e.to_string()))?;
        store.add(certificate).map_err(|e| unusable(e.to_string()))?;
    }
    if store.is_empty() {
        return Err(unusable("there is no certificate in it".into()));
    }
    Ok(store)
}

/// Those that the system trusts, or the file in `SSL_CERT_FILE`, as OpenSSL has it.
fn of_system() -> Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        return Err(Error::new(ErrorKind::Invalid, "the system has no root certificates")
            .caused_by(why.join(", "))
            .remedy("install the package ca-certificates, or name a PEM file in sslrootcert"));
    }
    Ok(store)
}

/// What we show to a server that asks who we are.
pub(crate) type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Our own certificate, with those that lead to its root, and its key.
pub(crate) fn identity(identity: &Identity) -> Result<Option<Shown>> {
    let Some((cert, named)) = &identity.cert else { return Ok(None) };
    if !named && !cert.exists() {
        return Ok(None);
    }
    let unusable = |what: &str, path: &Path, why: String| {
        let text = format!("the {what} {} cannot be used", path.display());
        Error::new(ErrorKind::Invalid, text).caused_by(why)
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(|e| unusable("sslcert", cert, e.to_string()))?;
    if chain.is_empty() {
        return Err(unusable("sslcert", cert, "there is no certificate in it".into()));
    }
    let key = identity.key.clone().unwrap_or_else(|| PathBuf::from("sslkey"));
    if let Some(why) = is_open(&key) {
        return Err(unusable("sslkey", &key, why).remedy(format!("chmod 600 {}", key.display())));
    }
    let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| {
        unusable("sslkey", &key, error.to_string())
            .remedy("name a PEM file with a key that is not encrypted in sslkey")
    })?;
    Ok(Some((chain, secret)))
}

/// Whether others may read a key: root's own may be read by a group, as libpq has it.
fn is_open(key: &Path) -> Option<String> {
    let file = std::fs::metadata(key).ok()?;
    let others = if file.uid() == 0 { 0o037 } else { 0o077 };
    (file.mode() & others != 0).then(|| "others may read it".to_owned())
}
