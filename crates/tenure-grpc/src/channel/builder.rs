//! How a channel is built, and whether its endpoints have TLS.

use std::collections::HashSet;
use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::runtime::Handle;
use tonic::transport::Endpoint;
use tower_service::Service;

use super::{Inner, LeaderChannel};
use crate::BuildError;
use crate::connection::{Connections, Settings, prepared};
use crate::follow::{Follower, Shared};
use crate::routing::Routing;
use crate::source::Watched;

/// Whom a channel connects to before it leads.
///
/// ```
/// use tenure_grpc::Prewarm;
/// assert_eq!(Prewarm::default(), Prewarm::Heir);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prewarm {
    /// No member: the first call after a hand-over pays for the connection.
    None,
    /// The one that is next: the successor that was named, or the preferred candidate.
    #[default]
    Heir,
    /// So many candidates, the preferred first.
    Candidates(usize),
}

/// Options of a [`LeaderChannel`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use tenure_grpc::{LeaderChannel, Prewarm};
/// use tonic::transport::ClientTlsConfig;
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let tls = ClientTlsConfig::new().domain_name("greeter.example.org");
/// let channel = LeaderChannel::builder(tenure.election("greeter"))
///     .endpoint(move |endpoint| endpoint.tls_config(tls.clone()))
///     .wait_for_leader(Duration::from_secs(5))
///     .prewarm(Prewarm::Candidates(2))
///     .build()?;
/// # drop(channel); Ok(()) })
/// # }
/// ```
#[must_use]
pub struct Builder {
    watched: Watched,
    settings: Settings,
    wait: Duration,
    prewarm: Prewarm,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Builder");
        shown.field("watched", &self.watched).field("wait", &self.wait);
        shown.field("prewarm", &self.prewarm).finish_non_exhaustive()
    }
}

impl Builder {
    pub(super) fn new(watched: Watched) -> Self {
        let settings: Settings = Arc::new(Ok);
        Self { watched, settings, wait: Duration::from_secs(5), prewarm: Prewarm::default() }
    }

    /// Settings of every endpoint: TLS, timeouts, windows. They come after this crate's own: a
    /// connection may take 2 s, and is pinged every 5 s while calls are under way, so that a
    /// leader that was stopped or cut off does not hold them for ever.
    ///
    /// If they give the endpoint TLS, every connection of the channel has it, and an endpoint
    /// that says `http://` is refused.
    pub fn endpoint<F>(mut self, settings: F) -> Self
    where
        F: Fn(Endpoint) -> Result<Endpoint, tonic::transport::Error> + Send + Sync + 'static,
    {
        self.settings = Arc::new(settings);
        self
    }

    /// How long a call waits in all for a leader that answers; 5 s if not set. The call's own
    /// deadline ends the wait sooner.
    pub fn wait_for_leader(mut self, limit: Duration) -> Self {
        self.wait = limit;
        self
    }

    /// Whom to connect to before it leads; the heir if not set. Anything but
    /// [`Prewarm::None`] reads the candidates and the members of the namespace twice in the
    /// leader's ttl.
    pub fn prewarm(mut self, whom: Prewarm) -> Self {
        self.prewarm = whom;
        self
    }

    /// Begins to follow the election. Connects to no server yet, and needs no leader.
    pub fn build(self) -> Result<LeaderChannel, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        let election = self.watched.name()?;
        let observer = self.watched.observe()?;
        let tls = has_tls(&self.settings).map_err(BuildError::Endpoint)?;
        let (shared, refusals) = Shared::new(election);
        let follower = Follower {
            shared: shared.clone(),
            watched: self.watched,
            observer,
            refusals,
            connections: Connections::new(self.settings, tls, runtime.clone()),
            prewarm: self.prewarm,
            routing: Routing::default(),
            complaints: HashSet::new(),
            rewarm: false,
        };
        let follower = runtime.spawn(follower.run()).abort_handle();
        Ok(LeaderChannel { inner: Arc::new(Inner { shared, wait: self.wait, follower }) })
    }
}

/// Whether these settings give an endpoint TLS. An [`Endpoint`] does not say, and one with TLS
/// whose address begins with `http:` is connected **without** it. So an endpoint is made to
/// connect to nothing, by `https:`: with TLS it begins to speak; without, it refuses.
fn has_tls(settings: &Settings) -> Result<bool, String> {
    let uri = Uri::from_static("https://localhost:1/");
    let endpoint = prepared(settings, uri)?;
    let connecting = std::pin::pin!(endpoint.connect_with_connector(Nothing));
    let polled = connecting.poll(&mut Context::from_waker(Waker::noop()));
    Ok(polled.is_pending())
}

/// What is connected to nothing: it takes what is written, and never has an answer.
struct Nothing;

impl Service<Uri> for Nothing {
    type Response = Nothing;
    type Error = io::Error;
    type Future = Ready<io::Result<Nothing>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(Ok(Nothing))
    }
}

impl Read for Nothing {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl Write for Nothing {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(data.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tonic::transport::ClientTlsConfig;

    use super::*;

    /// What the settings say of TLS is found out without their help.
    #[tokio::test]
    async fn settings_with_tls_are_told_from_those_without() {
        let plain: Settings = Arc::new(|endpoint| Ok(endpoint.tcp_nodelay(true)));
        assert_eq!(has_tls(&plain), Ok(false));
        let tls: Settings = Arc::new(|endpoint| endpoint.tls_config(ClientTlsConfig::new()));
        assert_eq!(has_tls(&tls), Ok(true));
        let patient: Settings = Arc::new(|endpoint| {
            let limit = Duration::from_secs(1);
            endpoint.connect_timeout(limit).tls_config(ClientTlsConfig::new().timeout(limit))
        });
        assert_eq!(has_tls(&patient), Ok(true));
    }

    /// Settings are not the place for an address.
    #[tokio::test]
    async fn settings_that_replace_the_address_are_refused() {
        let other: Settings = Arc::new(|_| Ok(Endpoint::from_static("http://10.0.0.1:1")));
        assert!(has_tls(&other).unwrap_err().contains("not its address"));
    }
}
