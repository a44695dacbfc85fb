#![doc = include_str!("../README.md")]

mod access;
mod board;
mod dashboard;
mod front;
mod hub;
mod kept;
mod listen;
mod measured;
mod once;
mod options;
mod problem;
mod routes;
mod server;
mod sessions;
mod stands;

use std::path::PathBuf;

pub use listen::{Address, Bind, ServerTls};
pub use options::Options;
pub use server::Server;

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket cannot be made.
    #[error("the server cannot listen on {what}: {source}; give it another address")]
    Bind {
        /// Which one.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Every host on the network could steer every election.
    #[error(
        "{0} can be reached from other hosts, and no token file and no client authority is given: \
         every client there could steer every election. Give --operator-tokens FILE, or \
         --client-ca FILE with --tls-cert and --tls-key, or listen on loopback"
    )]
    Open(std::net::SocketAddr),
    /// What older sidecars answered knows no tokens.
    #[error(
        "{0} can be reached from other hosts, and what is answered there asks for no token: listen \
         on loopback for the clients of older sidecars; others ask /v1 with a token"
    )]
    OpenCompat(std::net::SocketAddr),
    /// A file of TLS cannot be used.
    #[error("{}: {what}", .path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file of tokens cannot be used.
    #[error("the token file {}: {what}; write one token on each line", .path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The store or the member failed.
    #[error(transparent)]
    Tenure(#[from] tenure::Error),
}

/// What every handler works with.
#[derive(Debug)]
pub(crate) struct App {
    /// The server's own member.
    pub(crate) tenure: tenure::Tenure,
    pub(crate) board: board::Board,
    pub(crate) sessions: std::sync::Arc<sessions::Sessions>,
    pub(crate) stands: stands::Stands,
    pub(crate) hub: hub::Hub,
    pub(crate) tokens: access::Tokens,
    pub(crate) hosts: access::Hosts,
    /// Whether browsers reach it by HTTPS alone.
    pub(crate) is_tls: bool,
    pub(crate) measured: std::sync::Arc<measured::Measured>,
    /// What was asked for under which key.
    pub(crate) keys: once::Keys,
    /// Turns true when the server begins to stop: clients are asked to.
    pub(crate) stop: tokio::sync::watch::Sender<bool>,
    /// Turns true when all have stopped and the listeners are to close.
    pub(crate) close: tokio::sync::watch::Sender<bool>,
}

impl App {
    /// Whether the server was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }
}
