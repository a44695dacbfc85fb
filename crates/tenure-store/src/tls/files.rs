//! Certificates and keys in files.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::OptionNames;
use crate::{Error, ErrorKind, Result};

/// What a client shows to a server that asks who it is.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn unusable(option: &str, path: &Path, why: impl ToString) -> Error {
    let text = format!("{option} {} cannot be used", path.display());
    Error::new(ErrorKind::Invalid, text).caused_by(why.to_string())
}

/// All certificates of a PEM file: at least one.
fn certificates(option: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unusable = |why: String| {
        let remedy = format!("name a PEM file with at least one certificate in {option}");
        unusable(option, path, why).remedy(remedy)
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found = found.map_err(|error| unusable(error.to_string()))?;
    if found.is_empty() {
        return Err(unusable("there is no certificate in it".into()));
    }
    Ok(found)
}

pub(super) fn add_roots(roots: &mut RootCertStore, option: &str, path: &Path) -> Result<()> {
    for certificate in certificates(option, path)? {
        roots.add(certificate).map_err(|error| unusable(option, path, error))?;
    }
    Ok(())
}

pub(super) fn add_system_roots(roots: &mut RootCertStore, option: &str) -> Result<()> {
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(());
    }
    let why: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    Err(Error::new(ErrorKind::Invalid, "the system has no root certificates")
        .caused_by(why.join(", "))
        .remedy(format!("install the package ca-certificates, or name a PEM file in {option}")))
}

pub(super) fn identity(names: OptionNames, certificate: &Path, key: &Path) -> Result<Identity> {
    let chain = certificates(names.certificate, certificate)?;
    if let Some(why) = is_open(key) {
        let remedy = format!("chmod 600 {}", key.display());
        return Err(unusable(names.key, key, why).remedy(remedy));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
        let remedy = format!("name a PEM file with a key that is not encrypted in {}", names.key);
        unusable(names.key, key, error).remedy(remedy)
    })?;
    Ok((chain, secret))
}

/// Whether others may read a key. A key of root may be read by a group, as libpq has it.
#[cfg(unix)]
fn is_open(key: &Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(key).ok()?;
    let others = if file.uid() == 0 { 0o037 } else { 0o077 };
    (file.mode() & others != 0).then_some("others may read it")
}

#[cfg(not(unix))]
fn is_open(_: &Path) -> Option<&'static str> {
    None
}
