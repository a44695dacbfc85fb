//! What a member tells a store of what it has seen.

use crate::{Seq, TermNumber};

/// What a member tells a store that it has seen, in case the store has forgotten it.
///
/// A store whose journal ends before [`place`](Self::place) was rolled back. It raises its
/// era in the same step, before it gives out any number, and to above
/// [`number`](Self::number): see [`Era::above`](crate::Era::above) (rule M6). What lies
/// between the two members' knowledge:
///
/// - The member that tells first knows less than another. The journal goes on after what the
///   first has seen, so that the other may no longer find it too short. It then wins under a
///   number below one that it has seen, gives the win back, and tells a place that no journal
///   has reached: the era rises once more, above what it knows. Each member does that once.
/// - A member tells a number that was never given out. Where the store has forgotten
///   nothing the number means nothing: the place decides. A member that tells a place that
///   does not exist raises an era, as an operator may at any time, and lifts the floor at
///   most to [`Era::HEEDED`](crate::Era::HEEDED).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Told {
    /// The newest place in the journal that the member knows.
    pub place: Seq,
    /// The highest number of a term, in any election of the namespace, that the member
    /// knows.
    pub number: TermNumber,
}

impl Told {
    /// Nothing was seen.
    pub const NOTHING: Told = Told::new(Seq::START, TermNumber::NONE);

    /// The journal was seen up to `place`, and numbers up to `number`.
    #[must_use]
    pub const fn new(place: Seq, number: TermNumber) -> Self {
        Self { place, number }
    }
}

/// The journal was seen up to this place, and no number.
impl From<Seq> for Told {
    fn from(place: Seq) -> Self {
        Self { place, ..Self::NOTHING }
    }
}
