//! TLS as the URL asks for it.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tenure_store::Result;
use tenure_store::tls::{Check, OptionNames, Roots as Trusted, Tls};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{self, ChannelBinding, MakeTlsConnect};

use crate::binding;
use crate::options::{PostgresOptions, Roots, SslMode};

/// As libpq calls them.
const NAMES: OptionNames =
    OptionNames { roots: "sslrootcert", certificate: "sslcert", key: "sslkey" };

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct MakeTls(Arc<ClientConfig>);

impl MakeTls {
    /// What `sslmode`, `sslrootcert`, `sslcert` and `sslkey` ask for.
    pub(crate) fn new(options: &PostgresOptions) -> Result<Self> {
        let mut tls = Tls::named(NAMES).protocols(&["postgresql"]);
        tls = match roots(options) {
            Some(roots) => tls.roots(roots).check(match options.ssl {
                SslMode::VerifyFull => Check::Full,
                _ => Check::AnyHost,
            }),
            // `prefer` and `require` without a root, as libpq has it.
            None => tls.check(Check::Nothing),
        };
        if let Some((certificate, key)) = identity(options) {
            tls = tls.certificate(certificate, key);
        }
        Ok(Self(Arc::new(tls.config()?)))
    }
}

/// The roots to check the server's certificate by; `None` if it is not looked at.
fn roots(options: &PostgresOptions) -> Option<Trusted> {
    let verifies = matches!(options.ssl, SslMode::VerifyCa | SslMode::VerifyFull);
    match &options.roots {
        Roots::File(path) => Some(Trusted::File(path.clone())),
        Roots::Usual(Some(path)) if path.exists() => Some(Trusted::File(path.clone())),
        Roots::System => Some(Trusted::System),
        Roots::Usual(_) if verifies => Some(Trusted::System),
        Roots::Usual(_) => None,
    }
}

/// The files of our own certificate: those that are named, or the user's own if there is
/// one.
fn identity(options: &PostgresOptions) -> Option<(PathBuf, PathBuf)> {
    let (cert, named) = options.identity.cert.as_ref()?;
    if !named && !cert.exists() {
        return None;
    }
    let key = options.identity.key.clone().unwrap_or_else(|| PathBuf::from("sslkey"));
    Some((cert.clone(), key))
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
        let certificates = self.0.get_ref().1.peer_certificates();
        let hash = certificates.and_then(|all| binding::end_point(all.first()?));
        hash.map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
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
