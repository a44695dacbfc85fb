//! Accepting connections: on a Unix socket, on TCP, with TLS.
//!
//! No client can hold the server up: the headers of a request must arrive within [`HEADERS`], a
//! handshake within the same time, a client that reads nothing for [`UNREAD`] is given up, and
//! each listener has its share of the connections that there may be. A client that comes after
//! that waits in the system's queue. Without such a bound strangers would use the process's
//! files up, and with them those of the store's connection.

mod patient;
mod tls;
mod unix;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use patient::Patient;
pub use tls::ServerTls;

use crate::Error;
use crate::front::Front;

/// How long a client may take to send the headers of a request, or to shake hands.
const HEADERS: Duration = Duration::from_secs(10);
/// How long a client may read nothing of what is written to it.
const UNREAD: Duration = Duration::from_secs(30);
/// After the accepting of a connection failed: mostly the process has too many files open.
const PAUSE: Duration = Duration::from_millis(100);
/// How long answers that are under way may take when the server stops.
const LAST: Duration = Duration::from_secs(2);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bind {
    /// An address and a port; port 0 lets the system choose one.
    Tcp(SocketAddr),
    /// A Unix socket, made with mode 0600. A socket that a dead server left is replaced.
    Unix(PathBuf),
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// By HTTP, or by HTTPS.
    Tcp {
        /// The address.
        at: SocketAddr,
        /// Whether it is HTTPS.
        tls: bool,
    },
    /// By HTTP over a Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp { at, tls: false } => write!(f, "http://{at}"),
            Address::Tcp { at, tls: true } => write!(f, "https://{at}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A socket that is bound, and not yet served.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, PathBuf),
}

impl Bound {
    pub(crate) async fn new(bind: &Bind) -> Result<Self, Error> {
        match bind {
            Bind::Tcp(address) => {
                let failed = |source| Error::Bind { what: address.to_string(), source };
                let listener = TcpListener::bind(address).await.map_err(failed)?;
                let at = listener.local_addr().map_err(failed)?;
                Ok(Self::Tcp(listener, at))
            }
            Bind::Unix(path) => {
                let failed = |source| Error::Bind { what: path.display().to_string(), source };
                Ok(Self::Unix(unix::bind(path).map_err(failed)?, path.clone()))
            }
        }
    }

    pub(crate) fn address(&self, tls: bool) -> Address {
        match self {
            Bound::Tcp(_, at) => Address::Tcp { at: *at, tls },
            Bound::Unix(_, path) => Address::Unix(path.clone()),
        }
    }

    /// Serves at most so many connections until `stop` turns true, and then lets answers end.
    pub(crate) async fn serve(
        self,
        front: Front,
        tls: Option<TlsAcceptor>,
        most: usize,
        mut stop: watch::Receiver<bool>,
    ) {
        let places = Arc::new(Semaphore::new(most));
        let mut connections = JoinSet::new();
        loop {
            let place = places.clone().acquire_owned();
            let accepted = tokio::select! {
                () = stopped(&mut stop) => break,
                accepted = async { (place.await, self.accept().await) } => accepted,
            };
            while connections.try_join_next().is_some() {}
            let (Ok(place), Ok(stream)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let front = front.clone();
            let stop = stop.clone();
            let tls = tls.clone();
            connections.spawn(async move {
                match (stream, tls) {
                    (Stream::Tcp(stream), Some(tls)) => {
                        let stream = Patient::new(stream, UNREAD);
                        let shaken = tokio::time::timeout(HEADERS, tls.accept(stream)).await;
                        if let Ok(Ok(stream)) = shaken {
                            connection(stream, front, stop).await;
                        }
                    }
                    (Stream::Tcp(stream), None) => {
                        connection(Patient::new(stream, UNREAD), front, stop).await;
                    }
                    (Stream::Unix(stream), _) => {
                        connection(Patient::new(stream, UNREAD), front, stop).await;
                    }
                }
                drop(place);
            });
        }
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(LAST, all).await;
    }

    async fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Bound::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // An event is a small piece that must not wait for the next.
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Bound::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Bound::Unix(_, path) = self {
            drop(std::fs::remove_file(path));
        }
    }
}

enum Stream {
    Tcp(tokio::net::TcpStream),
    Unix(tokio::net::UnixStream),
}

/// Returns when the listeners are to close. No guard is kept while anything else is awaited.
pub(crate) async fn stopped(stop: &mut watch::Receiver<bool>) {
    drop(stop.wait_for(|stop| *stop).await);
}

/// Serves the requests of one connection.
async fn connection<S>(stream: S, front: Front, mut stop: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = tower::service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let router = front.router();
        async move {
            let request = request.map(Body::new);
            let answer: Result<_, Infallible> = tower::ServiceExt::oneshot(router, request).await;
            answer
        }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    // 64 KiB of headers are more than any client of ours sends.
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(64 * 1024);
    let serving = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(serving);
    tokio::select! {
        // A client that breaks off is no matter of ours.
        _ = serving.as_mut() => {}
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            let _ = serving.await;
        }
    }
}
