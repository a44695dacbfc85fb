//! TLS, set up alike by every store that lies behind a network.
//!
//! A store says in [`Tls`] what it wants; [`Tls::config`] makes rustls' configuration of
//! it. An option that every store should have is added here, and read by [`Tls::set`].
//!
//! What must stay true: a certificate is accepted without a look only where
//! [`Check::Nothing`] asks for it explicitly; a file that was named and cannot be
//! used is an error and never an empty set of roots; no error repeats what a file holds;
//! and the provider of cryptography is named, not installed, because the application may
//! have its own.

mod files;
mod verifiers;

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};

use crate::{Error, ErrorKind, Result};

/// Whose signature makes a server's certificate good.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Roots {
    /// The public authorities, as compiled in.
    Public,
    /// The public authorities, and those in a PEM file.
    PublicAnd(PathBuf),
    /// Those in a PEM file alone.
    File(PathBuf),
    /// Those that the system trusts, or those of the file in `SSL_CERT_FILE`.
    System,
}

/// What is checked of a server's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// That a root signed it, for the host that was asked for.
    #[default]
    Full,
    /// That a root signed it, for any host.
    AnyHost,
    /// Nothing: this keeps listeners out, and no impostor.
    Nothing,
}

/// What a store calls its options. Errors name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionNames {
    /// The file of roots.
    pub roots: &'static str,
    /// The file of the client's own certificate.
    pub certificate: &'static str,
    /// The file of that certificate's key.
    pub key: &'static str,
}

/// What a store wants of TLS: by default the public roots, a full check, and no
/// certificate of its own.
///
/// ```
/// use tenure_store::tls::Tls;
///
/// let mut tls = Tls::new();
/// assert!(tls.set("ca_file", "/nowhere/root.pem"));
/// assert!(!tls.set("colour", "blue"), "not an option of TLS");
/// let error = tls.config().unwrap_err().to_string();
/// assert!(error.contains("ca_file /nowhere/root.pem cannot be used"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Tls {
    names: OptionNames,
    roots: Roots,
    check: Check,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    protocols: Vec<Vec<u8>>,
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}

impl Tls {
    /// The options of a URL that [`set`](Self::set) knows.
    pub const KEYS: [&'static str; 3] = ["ca_file", "cert_file", "key_file"];

    /// With options of the usual names.
    pub fn new() -> Self {
        let [roots, certificate, key] = Self::KEYS;
        Self::named(OptionNames { roots, certificate, key })
    }

    /// With options that a store names as its service's own tools do.
    pub fn named(names: OptionNames) -> Self {
        let roots = Roots::Public;
        let check = Check::Full;
        Self { names, roots, check, certificate: None, key: None, protocols: Vec::new() }
    }

    /// Reads an option of a URL: `ca_file` (PEM roots to trust beside the public ones),
    /// `cert_file` and `key_file` (the client's own certificate and its key). Says whether
    /// the option is one of these.
    pub fn set(&mut self, key: &str, value: &str) -> bool {
        match key {
            "ca_file" => self.roots = Roots::PublicAnd(value.into()),
            "cert_file" => self.certificate = Some(value.into()),
            "key_file" => self.key = Some(value.into()),
            _ => return false,
        }
        true
    }

    /// Whose signature is trusted.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.roots = roots;
        self
    }

    /// What is checked of the server's certificate.
    pub fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    /// The client's own certificate, with those that lead to its root, and its key: for a
    /// server that asks.
    pub fn certificate(mut self, certificate: PathBuf, key: PathBuf) -> Self {
        self.certificate = Some(certificate);
        self.key = Some(key);
        self
    }

    /// The application protocols to offer (ALPN).
    pub fn protocols(mut self, protocols: &[&str]) -> Self {
        self.protocols = protocols.iter().map(|it| it.as_bytes().to_vec()).collect();
        self
    }

    /// The configuration that this asks for. The files are read now.
    pub fn config(&self) -> Result<ClientConfig> {
        let provider = Arc::new(ring::default_provider());
        let verifier = self.verifier(&provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "TLS could not be set up").caused_by(error)
            })?;
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match self.identity()? {
            Some((chain, key)) => config.with_client_auth_cert(chain, key).map_err(|error| {
                let OptionNames { certificate, key, .. } = self.names;
                let text = format!("{certificate} and {key} do not go together");
                Error::new(ErrorKind::Invalid, text)
                    .caused_by(error)
                    .remedy("name the key that the certificate was made for")
            })?,
            None => config.with_no_client_auth(),
        };
        config.alpn_protocols.clone_from(&self.protocols);
        Ok(config)
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>> {
        if self.check == Check::Nothing {
            return Ok(Arc::new(verifiers::AnyCertificate(Arc::clone(provider))));
        }
        let roots = Arc::new(self.found_roots()?);
        let full = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider));
        let full = full.build().map_err(|error| {
            Error::new(ErrorKind::Invalid, "the root certificates are of no use")
                .caused_by(error)
                .remedy(format!("give a PEM file with a root certificate in {}", self.names.roots))
        })?;
        Ok(match self.check {
            Check::Full => full,
            _ => Arc::new(verifiers::AnyHost(full)),
        })
    }

    fn found_roots(&self) -> Result<RootCertStore> {
        let option = self.names.roots;
        let mut roots = RootCertStore::empty();
        match &self.roots {
            Roots::Public => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
            Roots::PublicAnd(file) => {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
                files::add_roots(&mut roots, option, file)?;
            }
            Roots::File(file) => files::add_roots(&mut roots, option, file)?,
            Roots::System => files::add_system_roots(&mut roots, option)?,
        }
        Ok(roots)
    }

    fn identity(&self) -> Result<Option<files::Identity>> {
        let names = self.names;
        match (&self.certificate, &self.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => files::identity(names, certificate, key).map(Some),
            (certificate, _) => {
                let (there, missing) = match certificate {
                    Some(_) => (names.certificate, names.key),
                    None => (names.key, names.certificate),
                };
                Err(Error::new(ErrorKind::Invalid, format!("{there} is set and {missing} is not"))
                    .remedy("name both files, or none"))
            }
        }
    }
}
