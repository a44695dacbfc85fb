//! What an error of the transport says about the request: whether it can have reached a handler.
//!
//! It is provably not handled (G2) in these cases alone:
//!
//! - no connection could be made ([`tonic::ConnectError`]);
//! - the request was still here when its connection ended: hyper calls it *canceled*;
//! - the server refused its stream (`REFUSED_STREAM`), which says that nothing was done with it;
//! - the server's `GOAWAY` named a last stream below it. To the streams up to that one this
//!   error is not given: they are answered, or end with an error of the connection, which proves
//!   nothing. A stream that is opened after the `GOAWAY` arrived was never sent.
//!
//! Each of the last two counts only if the server sent it. What this side of the connection did
//! by itself, on a protocol error or an expired ping, says nothing of the handler.

use std::error::Error;

/// What is known of a request that has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// No connection could be made to the endpoint.
    NotConnected,
    /// It was sent, if at all, to a server that will not handle it.
    NotHandled,
    /// It may have been handled.
    Unknown,
}

pub(crate) fn fate(error: &(dyn Error + 'static)) -> Fate {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<tonic::ConnectError>() {
            return Fate::NotConnected;
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled) {
            return Fate::NotHandled;
        }
        if let Some(h2) = error.downcast_ref::<h2::Error>() {
            let refused = h2.is_go_away() || h2.reason() == Some(h2::Reason::REFUSED_STREAM);
            return if h2.is_remote() && refused { Fate::NotHandled } else { Fate::Unknown };
        }
        next = error.source();
    }
    Fate::Unknown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_side_did_by_itself_proves_nothing() {
        let own: h2::Error = h2::Reason::REFUSED_STREAM.into();
        assert_eq!(fate(&own), Fate::Unknown, "it is not the server's");
        assert_eq!(fate(&std::io::Error::other("reset")), Fate::Unknown);
        assert_eq!(fate(&tonic::Status::unavailable("no")), Fate::Unknown);
    }

    #[test]
    fn a_connection_that_was_not_made_is_found_in_the_chain() {
        #[derive(Debug, thiserror::Error)]
        #[error("transport error")]
        struct Outer(#[source] tonic::ConnectError);
        let refused = Outer(tonic::ConnectError("refused".into()));
        assert_eq!(fate(&refused), Fate::NotConnected);
    }
}
