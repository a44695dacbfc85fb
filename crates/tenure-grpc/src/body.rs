//! The body of a request, kept for a repetition.
//!
//! What the transport takes of a body is kept as it passes, up to 64 KiB, without a copy. A body
//! can be sent again when nothing was taken of it, or when all of it was and is kept: a unary
//! call. A stream whose first message was taken and that has not ended is never sent again.
//!
//! A transport may hold the body of an attempt that is over, in a task of its own. Each body
//! that is lent has a number, and only the last one gets anything: an older one ends with an
//! error, so that two attempts never share a stream of the application's.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

/// So much of a body is kept.
pub(crate) const KEPT: usize = 64 * 1024;

/// What was taken of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Nothing.
    Nothing,
    /// All of it, and all is kept.
    Whole,
    /// Some of it, and there may be more.
    Part,
    /// More than is kept.
    TooMuch,
}

/// A body that can be lent for an attempt, and for the next.
#[derive(Debug)]
pub(crate) struct Kept(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    body: Body,
    frames: Vec<Piece>,
    bytes: usize,
    ended: bool,
    too_much: bool,
    /// Which lent body is the present one.
    lent: u32,
}

/// A frame, which cannot be cloned itself.
#[derive(Clone, Debug)]
enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl From<Piece> for Frame<Bytes> {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Data(data) => Frame::data(data),
            Piece::Trailers(trailers) => Frame::trailers(trailers),
        }
    }
}

impl Kept {
    pub(crate) fn new(body: Body) -> Self {
        let ended = body.is_end_stream();
        let frames = Vec::new();
        let state = State { body, frames, bytes: 0, ended, too_much: false, lent: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The body for the next attempt; one that was lent before gets nothing any more.
    pub(crate) fn lend(&self) -> Body {
        let mut state = lock(&self.0);
        state.lent += 1;
        if state.ended && state.frames.is_empty() {
            return Body::empty();
        }
        let number = state.lent;
        // Making a body asks it whether it has ended, which takes the lock.
        drop(state);
        Body::new(Lent { kept: self.0.clone(), number, at: 0 })
    }

    /// What was taken so far. Looks whether the body has ended, if that is known at once.
    pub(crate) fn taken(&self) -> Taken {
        let mut state = lock(&self.0);
        if !state.ended && !state.frames.is_empty() && !state.too_much {
            let mut context = Context::from_waker(Waker::noop());
            // A unary body has ended with its message, or does so without a wait.
            if let Poll::Ready(Err(_)) = state.pull(&mut context) {
                return Taken::Part;
            }
        }
        match &*state {
            State { too_much: true, .. } => Taken::TooMuch,
            State { ended: true, .. } => Taken::Whole,
            State { frames, .. } if frames.is_empty() => Taken::Nothing,
            State { .. } => Taken::Part,
        }
    }
}

impl State {
    /// Takes the next frame of the application's body, and keeps it.
    fn pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Status>> {
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {
                self.ended = true;
                return Poll::Ready(Ok(None));
            }
            Poll::Ready(Some(Err(status))) => return Poll::Ready(Err(status)),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        let piece = match frame.into_data() {
            Ok(data) => Piece::Data(data),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Piece::Trailers(trailers),
                Err(_) => return Poll::Ready(Err(Status::internal("a frame of an unknown kind"))),
            },
        };
        if let Piece::Data(data) = &piece {
            self.bytes += data.len();
        }
        if self.bytes > KEPT {
            self.too_much = true;
            self.frames = Vec::new();
        } else {
            self.frames.push(piece.clone());
        }
        self.ended |= self.body.is_end_stream();
        Poll::Ready(Ok(Some(piece)))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of one attempt.
struct Lent {
    kept: Arc<Mutex<State>>,
    number: u32,
    /// How many of the kept frames were given out.
    at: usize,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let mut state = lock(&this.kept);
        if state.lent != this.number {
            return Poll::Ready(Some(Err(Status::cancelled("this attempt is over"))));
        }
        if let Some(piece) = state.frames.get(this.at).cloned() {
            this.at += 1;
            return Poll::Ready(Some(Ok(piece.into())));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.pull(cx).map(|pulled| {
            this.at += 1;
            pulled.map(|piece| piece.map(Frame::from)).transpose()
        })
    }

    fn is_end_stream(&self) -> bool {
        let state = lock(&self.kept);
        state.ended && (state.too_much || self.at >= state.frames.len())
    }

    /// No more than the application's body said of itself, which is nothing for a stream.
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A stream of the application's: its messages, and then an end or a wait.
    struct Stream(VecDeque<&'static str>, bool);

    impl HttpBody for Stream {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            match self.0.pop_front() {
                Some(message) => Poll::Ready(Some(Ok(Frame::data(message.into())))),
                None if self.1 => Poll::Ready(None),
                None => Poll::Pending,
            }
        }
    }

    fn stream(messages: &[&'static str], ends: bool) -> Kept {
        Kept::new(Body::new(Stream(messages.iter().copied().collect(), ends)))
    }

    /// The next message of an attempt: `Ok(None)` at the end, `None` if there is a wait.
    fn next(body: &mut Body) -> Option<Result<Option<Bytes>, Status>> {
        match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => None,
            Poll::Ready(None) => Some(Ok(None)),
            Poll::Ready(Some(frame)) => Some(frame.map(|frame| frame.into_data().ok())),
        }
    }

    fn word(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    /// A unary body is whole with its message, and comes again as often as it is asked for.
    #[test]
    fn a_unary_body_is_sent_again_whole() {
        let kept = stream(&["hello"], true);
        assert_eq!(kept.taken(), Taken::Nothing);
        for _ in 0..3 {
            let mut body = kept.lend();
            assert_eq!(next(&mut body).unwrap().unwrap(), word("hello"));
            assert_eq!(kept.taken(), Taken::Whole);
            assert_eq!(next(&mut body).unwrap().unwrap(), None);
        }
        assert_eq!(Kept::new(Body::empty()).taken(), Taken::Whole);
    }

    /// A stream of which a message was taken is never whole before it has ended.
    #[test]
    fn a_stream_that_goes_on_is_taken_in_part() {
        let kept = stream(&["one", "two"], false);
        assert_eq!(next(&mut kept.lend()).unwrap().unwrap(), word("one"));
        assert_eq!(kept.taken(), Taken::Part);
        let untouched = stream(&["one"], false);
        drop(untouched.lend());
        assert_eq!(untouched.taken(), Taken::Nothing);
    }

    /// What is longer than 64 KiB passes, and is not kept.
    #[test]
    fn a_long_body_passes_and_is_not_kept() {
        let long: &'static str = "x".repeat(KEPT).leak();
        let kept = stream(&["a", long, "b"], true);
        let mut body = kept.lend();
        for expected in [word("a"), word(long), word("b"), None] {
            assert_eq!(next(&mut body).unwrap().unwrap(), expected);
        }
        assert_eq!(kept.taken(), Taken::TooMuch);
        let just = stream(&[long], true);
        assert_eq!(next(&mut just.lend()).unwrap().unwrap(), word(long));
        assert_eq!(just.taken(), Taken::Whole);
    }

    /// An attempt that is over takes nothing from the one that follows it.
    #[test]
    fn an_older_attempt_gets_nothing() {
        let kept = stream(&["one"], true);
        let mut first = kept.lend();
        let mut second = kept.lend();
        assert!(next(&mut first).unwrap().is_err());
        assert_eq!(next(&mut second).unwrap().unwrap(), word("one"));
    }
}
