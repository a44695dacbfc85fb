//! What a server is started with.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::access::{Scope, Tokens};
use crate::listen::{Bind, ServerTls};
use crate::{Error, access};

/// Options of a server. The default listens on a free port of loopback, and every client that can
/// connect to that may do everything.
///
/// ```
/// use tenure_server::{Bind, Options};
///
/// let options = Options::new()
///     .bind(Bind::Unix("/run/tenure.sock".into()))
///     .stand_for("nightly");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    pub(crate) binds: Vec<Bind>,
    pub(crate) compat: Option<SocketAddr>,
    pub(crate) tls: Option<ServerTls>,
    pub(crate) files: Vec<(Scope, PathBuf)>,
    pub(crate) hosts: Vec<String>,
    pub(crate) stand: Vec<String>,
    pub(crate) max_sessions: Option<usize>,
    pub(crate) max_connections: Option<usize>,
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Listens there, too. Without one it listens on a free port of loopback.
    pub fn bind(mut self, bind: Bind) -> Self {
        self.binds.push(bind);
        self
    }

    /// Answers there as the retired leader-elector and nais/elector do, about the one election
    /// that the server stands for. That knows no tokens: the address must be one of loopback.
    pub fn compat(mut self, address: SocketAddr) -> Self {
        self.compat = Some(address);
        self
    }

    /// Serves HTTPS on TCP.
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Who has a token of this file may read. Once any file is given, a client without a token
    /// may do nothing.
    pub fn viewer_tokens(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push((Scope::Viewer, file.into()));
        self
    }

    /// Who has a token of this file may read, and stand for elections.
    pub fn candidate_tokens(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push((Scope::Candidate, file.into()));
        self
    }

    /// Who has a token of this file may do everything.
    pub fn operator_tokens(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.push((Scope::Operator, file.into()));
        self
    }

    /// A name that the server goes by, beside its addresses. Requests for others are refused.
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.hosts.push(name.into());
        self
    }

    /// The server itself stands for this election: for an application beside it that asks it
    /// whether it may work.
    pub fn stand_for(mut self, election: impl Into<String>) -> Self {
        self.stand.push(election.into());
        self
    }

    /// How many sessions there may be at a time; 10,000 if not set. Each is a member with a
    /// heartbeat of its own.
    pub fn max_sessions(mut self, most: usize) -> Self {
        self.max_sessions = Some(most);
        self
    }

    /// How many connections there may be at a time, in all; 20,000 if not set. Each is an open
    /// file of the process, which also needs some for its store: a process that may open fewer
    /// files must say so here.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.max_connections = Some(most);
        self
    }

    /// Refuses what would let strangers in, and files that cannot be used.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let by_certificate = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let guarded = !self.files.is_empty() || by_certificate;
        for bind in &self.binds {
            if let Bind::Tcp(address) = bind
                && !address.ip().is_loopback()
                && !guarded
            {
                return Err(Error::Open(*address));
            }
        }
        if let Some(address) = self.compat
            && !address.ip().is_loopback()
        {
            return Err(Error::OpenCompat(address));
        }
        for (_, path) in &self.files {
            let bad = |what: String| Error::Tokens { path: path.clone(), what };
            let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
            if access::tokens_of(&text).next().is_none() {
                return Err(bad("it has no token".into()));
            }
        }
        Ok(())
    }

    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::new(self.files.clone())
    }
}
