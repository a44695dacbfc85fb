//! TLS as the URL asks for it: rustls with the ring provider.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tenure_store::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{self, ChannelBinding, MakeTlsConnect};

use crate::options::{PostgresOptions, SslMode};

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct MakeTls(Arc<ClientConfig>);

impl MakeTls {
    /// What `sslmode` and `sslrootcert` ask for.
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self> {
        // The provider is named, not installed: the application may have its own.
        let provider = Arc::new(ring::default_provider());
        let checks_root = options.root_cert.is_some()
            || matches!(options.ssl, SslMode::VerifyCa | SslMode::VerifyFull);
        let verifier: Arc<dyn ServerCertVerifier> = if checks_root {
            let roots = Arc::new(roots(options)?);
            let full = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
            let full = full.build().map_err(|error| {
                Error::new(ErrorKind::Invalid, "the root certificates are of no use")
                    .caused_by(error)
                    .remedy("give a PEM file with a root certificate in sslrootcert")
            })?;
            match options.ssl {
                SslMode::VerifyFull => full,
                _ => Arc::new(AnyName(full)),
            }
        } else {
            Arc::new(AnyCertificate(Arc::clone(&provider)))
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "TLS could not be set up").caused_by(error)
            })?;
        let config = config.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

/// The roots in the file named, or else those of the web.
fn roots(options: &PostgresOptions) -> Result<RootCertStore> {
    let Some(path) = &options.root_cert else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let unusable = |why: String| {
        Error::new(ErrorKind::Invalid, format!("sslrootcert {} cannot be used", path.display()))
            .caused_by(why)
            .remedy("name a PEM file with at least one certificate")
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

/// `verify-ca`: a trusted root must have signed it, for whatever name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        match self.0.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// `prefer` and `require` without a root: against listeners, not against
/// impostors, as libpq has it.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

type Shaking<S> = Pin<Box<dyn Future<Output = io::Result<TlsStream<S>>> + Send>>;

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for MakeTls {
    type Stream = TlsStream<S>;
    type TlsConnect = TlsTo;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<TlsTo> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(TlsTo { config: Arc::clone(&self.0), name })
    }
}

/// Makes a TLS connection to one host.
pub(crate) struct TlsTo {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> tls::TlsConnect<S> for TlsTo {
    type Stream = TlsStream<S>;
    type Error = io::Error;
    type Future = Shaking<S>;

    fn connect(self, stream: S) -> Shaking<S> {
        let connector = tokio_rustls::TlsConnector::from(self.config);
        Box::pin(async move { connector.connect(self.name, stream).await.map(TlsStream) })
    }
}

/// An encrypted stream.
pub(crate) struct TlsStream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> tls::TlsStream for TlsStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
