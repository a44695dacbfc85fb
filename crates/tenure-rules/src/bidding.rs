//! One bid, judged. Stores that run the rules and the compare-and-swap family go by the same
//! answers, in this order:
//!
//! 1. [`Bidder::opening`]: what the bid is, by the last win and the present holder.
//! 2. If it is [`Open`](Opening::Open), the store writes the candidacy down and makes sure of
//!    the holder, unless that is the caller: a holder that is over is ended before anything is
//!    taken from it (rule M2), and the vacancy that this uncovers is kept for its heir.
//! 3. [`Bidder::wins`]: whether the caller has the election's [`Seat`] now.
//!
//! What the second step costs and how it is made atomic is the store's; what counts as an
//! answer is not.

use core::cmp::Ordering;

use tenure_core::{Bid, Incarnation, MemberId, MemberRef, Nonce};

/// An election as a bid finds it, before anything is done about its holder.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found<'a> {
    /// The last winner and the newest of its attempts, whether or not the term stands.
    pub won: Option<(Incarnation, Nonce)>,
    /// The life that holds it, live or not.
    pub holder: Option<&'a MemberRef>,
    /// How the holder's term stands, if it was inherited.
    pub inherited: Option<Inherited>,
}

/// How an inherited term stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherited {
    /// It is confirmed, or may still be.
    Stands,
    /// It was not confirmed in time, and is over.
    Lapsed,
}

/// What a bid is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The caller holds the election already, and the answer is that term, which the bid
    /// confirms. The bid stands for something new if it does not repeat the winning one.
    Own {
        /// Whether the candidacy is written down all the same.
        stands: bool,
    },
    /// Lost, and nothing is written: a copy of the winning bid whose term is over, or of an
    /// earlier one (rule E2).
    Late,
    /// A bid for what comes next.
    Open,
}

/// What a bid finds once the holder was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat<'a> {
    /// Another life holds the election, or it cannot be said yet that none does.
    Taken,
    /// The caller itself holds it, under an older term.
    Own,
    /// It is vacant.
    Vacant {
        /// The candidate that the vacancy is kept for, while that has time left and lives.
        kept_for: Option<&'a MemberId>,
    },
}

/// One bid of one life.
///
/// ```
/// use tenure_core::{Bid, ElectionName, Incarnation, MemberId, MemberRef, Nonce};
/// use tenure_rules::bidding::{Bidder, Found, Opening, Seat};
///
/// let caller = MemberRef::new(MemberId::new("web-1")?, Incarnation::from_u128(1));
/// let other = MemberId::new("web-2")?;
/// let bid = Bid::new(ElectionName::new("nightly")?, Nonce::new(1));
/// let bidder = Bidder { caller: &caller, bid: &bid };
///
/// assert_eq!(bidder.opening(&Found::default()), Opening::Open);
/// assert!(bidder.wins(false, Seat::Vacant { kept_for: None }));
/// assert!(!bidder.wins(false, Seat::Vacant { kept_for: Some(&other) }));
/// assert!(!bidder.wins(true, Seat::Own), "the election is paused");
/// # Ok::<(), tenure_core::BadName>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bidder<'a> {
    /// Who bids.
    pub caller: &'a MemberRef,
    /// For what.
    pub bid: &'a Bid,
}

impl Bidder<'_> {
    /// What the bid is. An inherited term is the answer to any bid of its holder that may
    /// lead, however late the bid comes; any other term only to the bid that won it (rule
    /// E2). A term that has lapsed is the answer to none.
    #[must_use]
    pub fn opening(&self, found: &Found<'_>) -> Opening {
        let lapsed = found.inherited == Some(Inherited::Lapsed);
        let own = found.holder == Some(self.caller) && !lapsed;
        // Before the nonce is asked: what was inherited was won by no bid, so that the nonce
        // of none can be that of the win.
        if own && found.inherited.is_some() && self.bid.priority.may_lead() {
            return Opening::Own { stands: true };
        }
        match attempt(found.won, self.caller.incarnation, self.bid.nonce) {
            Attempt::Repeated if own => Opening::Own { stands: false },
            Attempt::Repeated | Attempt::Late => Opening::Late,
            Attempt::New => Opening::Open,
        }
    }

    /// Whether the bid may win at all: the election is not paused (rule E6), and the
    /// candidate may lead. A store that pays for each look asks this first.
    #[must_use]
    pub fn may_win(&self, paused: bool) -> bool {
        !paused && self.bid.priority.may_lead()
    }

    /// Whether the bid wins. An incumbent is never preempted (rule E3); a caller that is the
    /// incumbent begins a new term, before which its older one ends.
    #[must_use]
    pub fn wins(&self, paused: bool, seat: Seat<'_>) -> bool {
        let free = match seat {
            Seat::Taken => false,
            Seat::Own => true,
            Seat::Vacant { kept_for } => kept_for.is_none_or(|heir| *heir == self.caller.id),
        };
        free && self.may_win(paused)
    }
}

/// What a bid is, seen from the last win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// The winning bid once more.
    Repeated,
    /// A copy of a bid from before the last win.
    Late,
    /// A bid like any other.
    New,
}

/// What the nonce tells of a bid (rule E2).
fn attempt(won: Option<(Incarnation, Nonce)>, caller: Incarnation, nonce: Nonce) -> Attempt {
    let own = won.filter(|(winner, _)| *winner == caller);
    match own.map(|(_, newest)| nonce.cmp(&newest)) {
        Some(Ordering::Equal) => Attempt::Repeated,
        Some(Ordering::Less) => Attempt::Late,
        Some(Ordering::Greater) | None => Attempt::New,
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{ElectionName, Priority};

    use super::*;

    fn member(id: &str, life: u128) -> MemberRef {
        MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life))
    }

    fn bid(nonce: u64) -> Bid {
        Bid::new(ElectionName::new("e").unwrap(), Nonce::new(nonce))
    }

    /// The caller's bids, where attempt 5 of its own has won last.
    fn opening(nonce: u64, holder: Option<&MemberRef>, inherited: Option<Inherited>) -> Opening {
        let caller = member("a", 1);
        let won = Some((caller.incarnation, Nonce::new(5)));
        let bid = bid(nonce);
        Bidder { caller: &caller, bid: &bid }.opening(&Found { won, holder, inherited })
    }

    /// E2.
    #[test]
    fn the_nonce_tells_a_repeated_bid_from_a_late_and_from_a_new_one() {
        let life = Incarnation::from_u128(1);
        let won = Some((life, Nonce::new(5)));
        assert_eq!(attempt(won, life, Nonce::new(5)), Attempt::Repeated);
        assert_eq!(attempt(won, life, Nonce::new(4)), Attempt::Late);
        assert_eq!(attempt(won, life, Nonce::new(6)), Attempt::New);
        assert_eq!(attempt(won, Incarnation::from_u128(2), Nonce::new(5)), Attempt::New);
        assert_eq!(attempt(None, life, Nonce::new(0)), Attempt::New);
    }

    /// E2, E1: a repeated bid is answered with the term that it won, as long as exactly its
    /// life holds it. A copy that comes later wins nothing.
    #[test]
    fn a_repeated_bid_is_answered_with_its_term_only_while_its_own_life_holds_it() {
        let own = member("a", 1);
        let other = member("b", 2);
        let before = member("a", 9);
        assert_eq!(opening(5, Some(&own), None), Opening::Own { stands: false });
        for holder in [None, Some(&other), Some(&before)] {
            assert_eq!(opening(5, holder, None), Opening::Late, "{holder:?}");
        }
        assert_eq!(opening(4, Some(&own), None), Opening::Late);
        assert_eq!(opening(6, Some(&own), None), Opening::Open);
    }

    #[test]
    fn an_inherited_term_answers_any_bid_of_its_holder_until_it_lapses() {
        let own = member("a", 1);
        let other = member("b", 2);
        for nonce in [4, 5, 6] {
            let stands = opening(nonce, Some(&own), Some(Inherited::Stands));
            assert_eq!(stands, Opening::Own { stands: true }, "{nonce}");
            let others = opening(nonce, Some(&other), Some(Inherited::Stands));
            assert_eq!(others == Opening::Open, nonce == 6, "{nonce}");
        }
        assert_eq!(opening(5, Some(&own), Some(Inherited::Lapsed)), Opening::Late);
        assert_eq!(opening(6, Some(&own), Some(Inherited::Lapsed)), Opening::Open);
    }

    /// E3, E6, C10.
    #[test]
    fn a_bid_wins_a_vacancy_that_is_not_kept_for_another_and_what_is_its_own() {
        let caller = member("a", 1);
        let heir = member("b", 2);
        let seats = [
            (Seat::Taken, false),
            (Seat::Own, true),
            (Seat::Vacant { kept_for: None }, true),
            (Seat::Vacant { kept_for: Some(&caller.id) }, true),
            (Seat::Vacant { kept_for: Some(&heir.id) }, false),
        ];
        let may = bid(1);
        let never = bid(1).with_priority(Priority::new(0));
        for (seat, free) in seats {
            let wins = |bid, paused| Bidder { caller: &caller, bid }.wins(paused, seat);
            assert_eq!(wins(&may, false), free, "{seat:?}");
            assert!(!wins(&may, true) && !wins(&never, false), "{seat:?}");
        }
    }
}
