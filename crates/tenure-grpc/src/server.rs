//! The layer of a server: a handler runs only while its process leads.
//!
//! # What must stay true
//!
//! - **G3** No handler starts after trust in its term has ended, nor while the term is given up.
//! - A handler keeps its term: the term is released after the last handler has ended, within the
//!   drain. So no handler of an older term runs when one of a newer begins, as long as the trust
//!   holds; where it ends, handlers are cancelled.
//! - A refusal says that the handler did not run, and nothing else in an answer says so.
//!
//! # The interleavings
//!
//! - **Trust ends between the question and the handler**, while a body is on its way, for one. The
//!   question is asked again before each time the handler's future is polled, so that its first
//!   line runs in a poll that began under trust. In between are some instructions; a process that
//!   is stopped there is what the fence is for.
//! - **The term is asked to stop while a handler begins.** Either it has its hold before, and the
//!   release waits for it, or it gets none, and is refused. One lock decides (`Election::hold`).
//! - **The term is lost while a handler runs.** Its future is dropped, and the answer is `ABORTED`:
//!   it may have done part of its work. That is no refusal, and no channel repeats it.
//! - **A request names a newer term than this process leads.** It was deposed and does not know
//!   yet: it refuses, and looks. A forged number costs a refusal of that request, and a look, which
//!   is paced.
//! - **A stream is under way when the term is asked to stop.** Its body ends with `UNAVAILABLE`, so
//!   that a stream without an end does not hold up the hand-over for the whole drain. An answer
//!   that has come as a whole is not cut: what is cut is a body that had to be waited for, or that
//!   goes on after its second message. Handlers that want to end their streams themselves get the
//!   drain for it with [`LeaderOnly::drain_streams`].
//! - **A slow reader.** A body keeps no term, unless the server drains streams: what a handler
//!   has answered may reach its caller after the term.
//! - **A handler passes on a status that it got from another server.** If that server's refusal is in
//!   it, it would say that *this* handler did not run. It is taken out.

mod body;
mod known;

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tenure::{Election, Leadership};
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::server::NamedService;
use tower_layer::Layer;
use tower_service::Service;

pub use body::LeaderOnlyBody;

use crate::header::{ENDED, REFUSED, TERM, VACANT, number};
use known::Known;

/// A tower layer for servers of tonic and axum: requests reach the service only while this
/// process leads the election, and find the [`Leadership`] among their extensions.
///
/// Any other request is refused: with `FAILED_PRECONDITION` if it is gRPC, with *421 Misdirected
/// Request* if it is not; and with [`TERM`], [`LEADER`](crate::LEADER) and
/// [`ENDPOINT`](crate::ENDPOINT), as far as they are known. The process stands for the election
/// by itself, for example with [`Election::lead_always`]; this layer only asks.
///
/// Lay it around a whole server, or around one service of it and let health checks pass:
/// `Server::builder().add_service(only.layer(GreeterServer::new(greeter)))`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use axum::{Extension, Router, routing::get};
/// use tenure::{Leadership, Tenure};
/// use tenure_grpc::LeaderOnly;
///
/// let tenure = Tenure::connect("memory:").await?;
/// let election = tenure.election("greeter");
/// let greet = |Extension(leadership): Extension<Leadership>| async move {
///     format!("hello under token {}", leadership.token())
/// };
/// let app: Router = Router::new().route("/", get(greet)).layer(LeaderOnly::new(election));
/// # drop(app); Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderOnly {
    known: Arc<Known>,
    drain_streams: bool,
}

impl LeaderOnly {
    /// For the servers of a member that stands for this election.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let only = tenure_grpc::LeaderOnly::new(tenure.election("greeter"));
    /// # drop(only); Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn new(election: Election) -> Self {
        Self { known: Arc::new(Known::new(election)), drain_streams: false }
    }

    /// Whether streams keep the term until their handlers end them, within the drain. If not,
    /// which is the default, they are ended when the term is asked to stop.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let tenure = tenure::Tenure::connect("memory:").await?;
    /// let only = tenure_grpc::LeaderOnly::new(tenure.election("greeter")).drain_streams(true);
    /// # drop(only); Ok(()) })
    /// # }
    /// ```
    #[must_use]
    pub fn drain_streams(self, drain: bool) -> Self {
        Self { drain_streams: drain, ..self }
    }
}

impl<S> Layer<S> for LeaderOnly {
    type Service = LeaderOnlyService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LeaderOnlyService { inner, only: self.clone() }
    }
}

/// A service behind [`LeaderOnly`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure_grpc::{LeaderOnly, LeaderOnlyService};
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let only = LeaderOnly::new(tenure.election("greeter"));
/// let mut service: LeaderOnlyService<axum::Router> = only.layer(axum::Router::new());
/// let answer = service.call(http::Request::new(axum::body::Body::empty())).await?;
/// assert_eq!(answer.status(), 421); // it does not lead
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LeaderOnlyService<S> {
    inner: S,
    only: LeaderOnly,
}

impl<S: NamedService> NamedService for LeaderOnlyService<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B, A> Service<Request<B>> for LeaderOnlyService<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<LeaderOnlyBody<A>>;
    type Error = S::Error;
    type Future = LeaderOnlyFuture<A, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let grpc = is_grpc(request.headers());
        let named = number(request.headers(), TERM).unwrap_or(0);
        let leadership = match self.only.known.hold() {
            Some(leadership) if named <= leadership.token() => leadership,
            held => {
                let newer = held.is_some();
                drop(held);
                let refusal = refusal(&self.only.known, grpc, newer);
                return LeaderOnlyFuture(Box::pin(async move { Ok(refusal) }));
            }
        };
        request.extensions_mut().insert(leadership.clone());
        let inner = self.inner.call(request);
        let drain = self.only.drain_streams;
        LeaderOnlyFuture(Box::pin(async move {
            match under(&leadership, inner).await {
                None => Ok(aborted(&leadership, grpc)),
                Some(answer) => answer.map(|answer| handled(answer, leadership, grpc, drain)),
            }
        }))
    }
}

/// The answer of a [`LeaderOnlyService`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use tenure_grpc::{LeaderOnly, LeaderOnlyFuture};
/// use tower_layer::Layer;
/// use tower_service::Service;
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let leadership = tenure.election("greeter").campaign().await?;
/// let mut service = LeaderOnly::new(tenure.election("greeter")).layer(axum::Router::new());
/// let answer: LeaderOnlyFuture<_, _> = service.call(http::Request::new(axum::body::Body::empty()));
/// assert_eq!(answer.await?.status(), 404); // the router's own answer
/// # drop(leadership); Ok(()) })
/// # }
/// ```
pub struct LeaderOnlyFuture<A, E = Infallible>(Answering<A, E>);

type Answering<A, E> = Pin<Box<dyn Future<Output = Result<Response<LeaderOnlyBody<A>>, E>> + Send>>;

impl<A, E> Future for LeaderOnlyFuture<A, E> {
    type Output = Result<Response<LeaderOnlyBody<A>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<A, E> fmt::Debug for LeaderOnlyFuture<A, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderOnlyFuture").finish_non_exhaustive()
    }
}

/// Runs a handler for as long as the term may be trusted; `None` if it ends before.
async fn under<F: Future>(leadership: &Leadership, handler: F) -> Option<F::Output> {
    let mut handler = std::pin::pin!(handler);
    let mut lost = None;
    std::future::poll_fn(|cx| {
        if !leadership.is_current() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(answer) = handler.as_mut().poll(cx) {
            return Poll::Ready(Some(answer));
        }
        // Only a handler that waits has to be woken when the term is lost.
        let lost = lost.get_or_insert_with(|| Box::pin(leadership.lost()));
        lost.as_mut().poll(cx).map(|_| None)
    })
    .await
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The handler's own answer.
fn handled<A>(
    answer: Response<A>,
    leadership: Leadership,
    grpc: bool,
    drain: bool,
) -> Response<LeaderOnlyBody<A>> {
    let (mut parts, body) = answer.into_parts();
    // Another server's refusal, which a handler passes on, would say that this one did not run.
    parts.headers.remove(REFUSED);
    parts.headers.remove(VACANT);
    parts.headers.insert(TERM, HeaderValue::from(leadership.token()));
    Response::from_parts(parts, LeaderOnlyBody::handled(body, leadership, grpc, drain))
}

/// The handler did not run.
fn refusal<A>(known: &Arc<Known>, grpc: bool, newer: bool) -> Response<LeaderOnlyBody<A>> {
    let mut headers = known.who_leads(newer);
    headers.insert(REFUSED, HeaderValue::from_static("1"));
    let leader = headers.get(crate::LEADER).and_then(|id| id.to_str().ok());
    let who =
        leader.map_or_else(|| "no leader is known here".to_owned(), |id| format!("{id} leads"));
    let text = format!(
        "this member does not lead election {}, or is about to stop: {who}. The call was not \
         handled",
        known.name()
    );
    answer(Status::failed_precondition(text), headers, grpc, StatusCode::MISDIRECTED_REQUEST)
}

/// The term ended while the handler ran.
fn aborted<A>(leadership: &Leadership, grpc: bool) -> Response<LeaderOnlyBody<A>> {
    let headers = HeaderMap::from_iter([
        (http::HeaderName::from_static(ENDED), HeaderValue::from_static("1")),
        (http::HeaderName::from_static(TERM), HeaderValue::from(leadership.token())),
    ]);
    let text = format!(
        "term {} of election {} ended while the call was handled: part of it may have been done. \
         Find out before you repeat it",
        leadership.token(),
        leadership.term().election
    );
    answer(Status::aborted(text), headers, grpc, StatusCode::SERVICE_UNAVAILABLE)
}

/// An answer of this layer's own.
fn answer<A>(
    status: Status,
    headers: HeaderMap,
    grpc: bool,
    code: StatusCode,
) -> Response<LeaderOnlyBody<A>> {
    if grpc {
        let metadata = MetadataMap::from_headers(headers);
        return Status::with_metadata(status.code(), status.message(), metadata).into_http();
    }
    let mut answer = Response::new(LeaderOnlyBody::text(format!("{}\n", status.message())));
    *answer.status_mut() = code;
    *answer.headers_mut() = headers;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    answer
}
