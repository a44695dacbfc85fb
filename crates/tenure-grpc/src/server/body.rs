//! The body of an answer, which ends when its term does.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tenure::{Cancellation, Leadership};
use tonic::Status;

use crate::header::{ENDED, REFUSED, TERM, VACANT};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer behind [`LeaderOnly`](crate::LeaderOnly): the service's own, until its
/// term ends.
///
/// ```
/// use http_body::Body;
/// use tenure_grpc::LeaderOnlyBody;
///
/// // The answer that the layer makes where it has none of the service's.
/// let none = LeaderOnlyBody::<axum::body::Body>::default();
/// assert!(none.is_end_stream());
/// ```
pub struct LeaderOnlyBody<A>(Kind<A>);

enum Kind<A> {
    /// Of this layer's own: a text, if any.
    Own(Option<Bytes>),
    Handled(Handled<A>),
}

struct Handled<A> {
    body: Pin<Box<A>>,
    term: u64,
    grpc: bool,
    ends: Cancellation,
    /// Woken when the term ends; made when the body has to be waited for.
    ended: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// How many messages have passed.
    messages: u32,
    /// Keeps the term, if the server drains streams.
    _hold: Option<Leadership>,
}

impl<A> fmt::Debug for LeaderOnlyBody<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaderOnlyBody").finish_non_exhaustive()
    }
}

impl<A> Default for LeaderOnlyBody<A> {
    fn default() -> Self {
        Self(Kind::Own(None))
    }
}

impl<A> LeaderOnlyBody<A> {
    pub(super) fn text(text: String) -> Self {
        Self(Kind::Own(Some(text.into())))
    }

    pub(super) fn handled(body: A, leadership: Leadership, grpc: bool, drain: bool) -> Self {
        // Where it is no gRPC there is no way to say why a body ends: it goes on for the drain.
        let on_loss = drain || !grpc;
        let ends = match on_loss {
            true => leadership.cancellation_on_loss(),
            false => leadership.cancellation(),
        };
        Self(Kind::Handled(Handled {
            body: Box::pin(body),
            term: leadership.token(),
            grpc,
            ends,
            ended: None,
            messages: 0,
            _hold: drain.then_some(leadership),
        }))
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl<A> Handled<A>
where
    A: Body<Data = Bytes>,
    A::Error: Into<BoxError>,
{
    /// Whether this is a stream under way, and not an answer that is there as a whole.
    fn goes_on(&self) -> bool {
        self.ended.is_some() || self.messages > 1
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Cut<A>>> {
        if self.goes_on() && self.ends.is_cancelled() {
            return Poll::Ready(Err(Cut::Ended));
        }
        match self.body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(mut frame))) => {
                self.messages = self.messages.saturating_add(u32::from(frame.is_data()));
                if let Some(trailers) = frame.trailers_mut() {
                    trailers.remove(REFUSED);
                    trailers.remove(VACANT);
                }
                return Poll::Ready(Ok(Some(frame)));
            }
            Poll::Ready(None) => return Poll::Ready(Ok(None)),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(Cut::Failed(error))),
            Poll::Pending => {}
        }
        let ends = self.ends.clone();
        let ended =
            self.ended.get_or_insert_with(|| Box::pin(async move { ends.cancelled().await }));
        ended.as_mut().poll(cx).map(|()| Err(Cut::Ended))
    }

    /// How the body ends with its term.
    fn cut(&self) -> Result<Frame<Bytes>, BoxError> {
        let text = format!(
            "term {} ended, or was asked to, and the stream with it: open it again",
            self.term
        );
        if !self.grpc {
            return Err(text.into());
        }
        let mut trailers = HeaderMap::new();
        trailers.insert(ENDED, HeaderValue::from_static("1"));
        trailers.insert(TERM, HeaderValue::from(self.term));
        Status::unavailable(text).add_header(&mut trailers)?;
        Ok(Frame::trailers(trailers))
    }
}

/// Why a body goes on no more.
enum Cut<A: Body> {
    Ended,
    Failed(A::Error),
}

impl<A> Body for LeaderOnlyBody<A>
where
    A: Body<Data = Bytes>,
    A::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let handled = match &mut self.0 {
            Kind::Own(text) => return Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Kind::Handled(handled) => handled,
        };
        match handled.poll_frame(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(frame)) => Poll::Ready(frame.map(Ok)),
            Poll::Ready(Err(Cut::Failed(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(Err(Cut::Ended)) => {
                let last = handled.cut();
                // The handler's stream is dropped here, and with it what it did.
                self.0 = Kind::Own(None);
                Poll::Ready(Some(last))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Own(text) => text.is_none(),
            Kind::Handled(handled) => handled.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Own(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Handled(handled) => handled.body.size_hint(),
        }
    }
}
