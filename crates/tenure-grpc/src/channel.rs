//! The channel: each call goes to the leader of the moment.
//!
//! # The interleavings
//!
//! - **The route changes while a call is in flight.** The call is left alone: its handler may
//!   run. A server that hands over lets it end first; one that died answers with an error of the
//!   connection, which is passed on, and the call is not repeated.
//! - **The route changes between the choice and the sending**, as while a connection is made. The
//!   call looks at the route again right before it is sent, with the clock, and begins anew if it
//!   is another, or over (G1).
//! - **`GOAWAY` races with a request.** If the server's last stream is below the request's, its
//!   handler did not run, and it is sent again. If it is not, the request is answered, or its
//!   connection ends with an error that proves nothing: see [`fault`](crate::fault).
//! - **An heir is called before it knows that it leads**, since the observer is as quick as the
//!   heir. It refuses, and is asked again a millisecond later: see [`Gate`](crate::route::Gate).
//! - **A waiting call is dropped.** All waiting is in the future of the call; `poll_ready` is always
//!   ready and reserves nothing. So a clone that is polled and never called, or the other way
//!   round, keeps nothing from others.
//! - **The deadline ends while the call waits.** It was not sent, and says so: `UNAVAILABLE` with
//!   `tenure-vacant`. If it ends while the call is in flight, the status is `DEADLINE_EXCEEDED`,
//!   and says that the call may have been handled.
//! - **The channel is dropped while calls are in flight.** They end; the task that follows the
//!   election does so at once.

mod builder;
mod call;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

pub use builder::{Builder, Prewarm};

use crate::follow::Shared;
use crate::source::Watched;

/// A channel to the leader of an election: a `tower::Service` for the clients that tonic
/// generates, and for plain HTTP/2 requests. Clones share one route and its connections.
///
/// It only observes: its process need not stand. Each call goes to the member that leads, by the
/// first of its endpoints that answers. In a vacancy a call waits, and it is repeated only where
/// its handler provably did not run. See the [crate](crate) for what is promised.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use tenure::Tenure;
/// use tenure_grpc::{LeaderChannel, Prewarm};
/// use tonic::client::Grpc; // stands for a client that tonic generated
///
/// let tenure = Tenure::connect("memory:").await?;
/// let channel = LeaderChannel::builder(tenure.election("greeter"))
///     .wait_for_leader(Duration::from_millis(50))
///     .prewarm(Prewarm::Heir)
///     .build()?;
/// let mut client = Grpc::new(channel.clone());
/// client.ready().await?; // at once: no leader is needed for that
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone)]
pub struct LeaderChannel {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    wait: Duration,
    follower: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl LeaderChannel {
    /// Options for a channel to the leader of this election: an [`Election`](tenure::Election) or
    /// an [`OperatorElection`](tenure::OperatorElection).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let channel = tenure_grpc::LeaderChannel::builder(tenure.election("greeter")).build()?;
    /// # drop(channel); Ok(()) })
    /// # }
    /// ```
    pub fn builder(election: impl Into<Watched>) -> Builder {
        Builder::new(election.into())
    }
}

impl fmt::Debug for LeaderChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LeaderChannel");
        shown.field("election", &self.inner.shared.election).finish_non_exhaustive()
    }
}

impl Service<Request<Body>> for LeaderChannel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        let inner = self.inner.clone();
        ResponseFuture(Box::pin(async move { call::run(&inner.shared, inner.wait, request).await }))
    }
}

/// The answer of a call through a [`LeaderChannel`]. Dropping it gives the call up.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use std::time::Duration;
/// use tower_service::Service;
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let mut channel = tenure_grpc::LeaderChannel::builder(tenure.election("greeter"))
///     .wait_for_leader(Duration::from_millis(20))
///     .build()?;
/// let answer: tenure_grpc::ResponseFuture = channel.call(http::Request::default());
/// let status = answer.await.unwrap_err();
/// assert_eq!(status.metadata().get(tenure_grpc::VACANT).unwrap(), "1");
/// # Ok(()) })
/// # }
/// ```
pub struct ResponseFuture(Pin<Box<dyn Future<Output = Result<Response<Body>, Status>> + Send>>);

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
