//! The arguments of `tenure serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tenure_api::span;

use super::PresetName;

/// `tenure serve`.
#[derive(Args, Debug)]
#[command(
    after_help = "Who can connect may do everything, unless a token file is given. So an address \
                  that other hosts reach is refused without one, or without --client-ca."
)]
pub(crate) struct ServeArgs {
    /// Where to listen: an address with a port, or unix:/path/to/socket; may be repeated
    /// [default: 127.0.0.1:7117]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Vec<String>,
    /// Stand for this election, for an application beside the server that asks it whether it
    /// leads; may be repeated
    #[arg(long, value_name = "ELECTION")]
    pub(crate) stand: Vec<String>,
    /// Answer here as leader-elector and nais/elector do, about the first --stand
    #[arg(long, value_name = "ADDRESS", requires = "stand")]
    pub(crate) compat: Option<SocketAddr>,
    /// This server's certificate, in PEM: HTTPS instead of HTTP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Only clients with a certificate that one of these signed, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) client_ca: Option<PathBuf>,
    /// A file with a token on each line: who has one may read; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) viewer_tokens: Vec<PathBuf>,
    /// The same: who has one may read, and stand for elections
    #[arg(long, value_name = "FILE")]
    pub(crate) candidate_tokens: Vec<PathBuf>,
    /// The same: who has one may do everything
    #[arg(long, value_name = "FILE")]
    pub(crate) operator_tokens: Vec<PathBuf>,
    /// A name that the server goes by, beside its addresses; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    /// How many sessions of clients there may be [default: 10000]
    #[arg(long, value_name = "N")]
    pub(crate) max_sessions: Option<usize>,
    /// The server's own id; without one, host, process and a random part
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// Where this server can be reached, as members are told; may be repeated
    #[arg(long = "endpoint", value_name = "HOST:PORT")]
    pub(crate) endpoints: Vec<String>,
    /// How long a term outlives its last renewal, and a client's silence
    #[arg(long, value_parser = span::parse, value_name = "DURATION", conflicts_with = "preset")]
    pub(crate) ttl: Option<Duration>,
    /// Named timings
    #[arg(long, value_enum)]
    pub(crate) preset: Option<PresetName>,
    /// How long to wait for a store that is away at the start [default: for ever]
    #[arg(long, value_parser = span::parse, value_name = "DURATION")]
    pub(crate) wait: Option<Duration>,
}
