//! The headers by which a channel and a server speak of terms. They are public: a client in
//! another language reads them, and may follow them by the same rules.

use http::HeaderMap;

/// Of a request: the number of the term that the channel sends it to. Of an answer: the number
/// of the term under which it was handled, or, of a refusal, the newest that the server knows.
pub const TERM: &str = "tenure-term";
/// Of an answer: it was refused, and its handler did not run. Only
/// [`LeaderOnly`](crate::LeaderOnly) says so; it is taken out of what handlers answer.
pub const REFUSED: &str = "tenure-refused";
/// Of a refusal: the id of the member that leads, as far as the server knows.
pub const LEADER: &str = "tenure-leader";
/// Of a refusal: the first endpoint of that member.
pub const ENDPOINT: &str = "tenure-endpoint";
/// Of a status that the channel made: the election has no leader, and the call was not sent.
pub const VACANT: &str = "tenure-vacant";
/// Of an answer that was cut: the term ended, and the call may have been handled in part.
pub const ENDED: &str = "tenure-ended";

/// The number in a header; `None` if there is none, or it is no number.
pub(crate) fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// What a refusal says of who leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) number: u64,
    pub(crate) endpoint: String,
}

/// A refusal, as the follower is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The term that the call was sent to.
    pub(crate) to: u64,
    /// Where it is to go instead, if that is followed.
    pub(crate) hint: Option<Hint>,
}

impl Hint {
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let endpoint = headers.get(ENDPOINT)?.to_str().ok()?.to_owned();
        Some(Self { number: number(headers, TERM)?, endpoint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server may send that is no hint is none.
    #[test]
    fn only_a_number_with_an_endpoint_is_a_hint() {
        let mut headers = HeaderMap::new();
        assert_eq!(Hint::of(&headers), None);
        headers.insert(TERM, "18446744073709551616".parse().unwrap());
        headers.insert(ENDPOINT, "10.0.0.7:80".parse().unwrap());
        assert_eq!(Hint::of(&headers), None, "more than a term number can be");
        headers.insert(TERM, "7".parse().unwrap());
        let hint = Hint { number: 7, endpoint: "10.0.0.7:80".into() };
        assert_eq!(Hint::of(&headers), Some(hint));
    }
}
