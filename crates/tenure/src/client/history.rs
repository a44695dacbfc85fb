//! Terms that are over, put together from the journal.
//!
//! A term ends with the first of these that the journal has: its own release, the end
//! of its holder's life (a store need not write one line for each term of a life that
//! is over), or the election of the next. The last one may be over before anything
//! is written: then the store no longer shows its holder, since its ttl ran out.

use std::time::Duration;

use tenure_core::{
    ElectionName, ElectionView, EndCause, Entry, Happening, MemberRef, Query, ReleaseCause, Seq,
    Snapshot, Term, TermNumber, Timestamp,
};

use super::Client;
use crate::Result;

/// A term, with its end if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastTerm {
    /// The term.
    pub term: Term,
    /// Where its beginning stands in the journal.
    pub seq: Seq,
    /// When it ended, by the store's wall clock, and why; `None` while it stands, and
    /// of a term that is over although the journal does not say yet when it ended.
    pub ended: Option<(Timestamp, ReleaseCause)>,
    /// Set while it stands: what was left of its holder's ttl when the store was
    /// asked. It ends then at the latest, unless it is renewed.
    pub stands: Option<Duration>,
}

impl PastTerm {
    /// It came to its end by `at`; what is known of the reason is kept if nothing
    /// better is told.
    fn end(&mut self, at: Timestamp, cause: ReleaseCause) {
        let first = self.ended.map_or(at, |(earlier, _)| earlier.min(at));
        self.ended = Some((first, cause));
    }

    /// Whether the end of its holder's life may tell when it ended, or tell better.
    fn is_in_doubt(&self) -> bool {
        let by_life = |(_, cause)| matches!(cause, ReleaseCause::Ended(_) | ReleaseCause::Left);
        self.stands.is_none() && self.ended.is_none_or(by_life)
    }
}

/// The newest terms of an election, oldest first.
pub(crate) async fn read(
    client: &Client,
    name: &ElectionName,
    limit: usize,
) -> Result<Vec<PastTerm>> {
    // A term makes two entries, and some of other kinds lie between: as many as there
    // are candidates.
    let mut asked = limit.saturating_mul(6);
    loop {
        let query = Query { history: asked, ..Query::elections([name.clone()]) };
        let Snapshot { elections, history, .. } = client.read(query).await?;
        let mut terms = terms(&history);
        if terms.len() < limit && history.len() >= asked {
            asked = asked.saturating_mul(8);
            continue;
        }
        terms.drain(..terms.len().saturating_sub(limit));
        if let (Some(last), Some(view)) = (terms.last_mut(), elections.first()) {
            last.stands = standing(last, view);
        }
        // The store tells the end of each life that was elected here.
        end_with_lives(&mut terms, &history);
        return Ok(terms);
    }
}

/// What is left of a term that the store shows as held.
fn standing(past: &PastTerm, view: &ElectionView) -> Option<Duration> {
    let holder = view.holder.as_ref()?;
    let this = view.number == past.term.number && holder.member == past.term.member;
    (this && past.ended.is_none()).then_some(holder.remaining)
}

/// Puts together the terms of one election, oldest first, from its own entries. A term
/// whose beginning is no longer in the journal is left out.
fn terms(entries: &[Entry]) -> Vec<PastTerm> {
    let mut terms: Vec<PastTerm> = Vec::new();
    for entry in entries {
        match &entry.what {
            Happening::Elected { term, .. } => {
                if let Some(before) = terms.last_mut().filter(|past| past.ended.is_none()) {
                    // Without a release, only the end of the holder's life makes room.
                    before.end(entry.at, ReleaseCause::Ended(EndCause::Expired));
                }
                let term = term.clone();
                let seq = entry.seq;
                terms.push(PastTerm { term, seq, ended: None, stands: None });
            }
            Happening::Released { number, cause, .. } => {
                end(&mut terms, *number, entry.at, *cause);
            }
            _ => {}
        }
    }
    terms
}

fn end(terms: &mut [PastTerm], number: TermNumber, at: Timestamp, cause: ReleaseCause) {
    if let Some(past) = terms.iter_mut().rev().find(|past| past.term.number == number) {
        past.end(at, cause);
    }
}

/// Whatever a life held is over with it.
fn end_with_lives(terms: &mut [PastTerm], entries: &[Entry]) {
    for entry in entries {
        match &entry.what {
            Happening::Ended { member, cause, .. } => {
                end_life(terms, member, entry.at, ReleaseCause::Ended(*cause));
            }
            Happening::Left { member, .. } => end_life(terms, member, entry.at, ReleaseCause::Left),
            _ => {}
        }
    }
}

fn end_life(terms: &mut [PastTerm], member: &MemberRef, at: Timestamp, cause: ReleaseCause) {
    let of_life = |past: &&mut PastTerm| past.term.member == *member && past.is_in_doubt();
    terms.iter_mut().filter(of_life).for_each(|past| past.end(at, cause));
}

#[cfg(test)]
mod tests {
    use tenure_core::{Holder, Incarnation, MemberId, Profile};
    use tenure_testkit::happenings::{self, ended, left};

    use super::*;

    fn member(life: u128) -> MemberRef {
        MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(life))
    }

    fn name() -> ElectionName {
        ElectionName::new("e").unwrap()
    }

    fn at(second: u64) -> Timestamp {
        Timestamp::from_unix_millis(second * 1_000)
    }

    fn entry(second: u64, what: Happening) -> Entry {
        Entry { seq: Seq::new(second), at: at(second), what }
    }

    fn elected(second: u64, number: u64, life: u128) -> Entry {
        let number = TermNumber::new(number);
        let member = member(life);
        let term = Term { election: name(), number, member, elected_at: at(second) };
        entry(second, happenings::elected(term))
    }

    fn released(second: u64, number: u64, life: u128, cause: ReleaseCause) -> Entry {
        let number = TermNumber::new(number);
        entry(second, happenings::released(name(), number, member(life), cause))
    }

    fn ends(terms: &[PastTerm]) -> Vec<Option<(Timestamp, ReleaseCause)>> {
        terms.iter().map(|past| past.ended).collect()
    }

    /// L13: a term ends with its release, with the life of its holder, or with the
    /// next election, whichever the journal has first.
    #[test]
    fn a_term_ends_with_its_release_its_life_or_the_next_election() {
        let expired = ReleaseCause::Ended(EndCause::Expired);
        let proven = ReleaseCause::Ended(EndCause::ProvenDead);
        let own = [
            elected(1, 1, 1),
            released(2, 1, 1, ReleaseCause::Resigned),
            elected(3, 2, 2),
            // Nothing was written for term 2, and for term 3 only much later.
            elected(10, 3, 3),
            elected(20, 4, 4),
            released(30, 3, 3, proven),
        ];
        let mut past = terms(&own);
        let resigned = Some((at(2), ReleaseCause::Resigned));
        assert_eq!(ends(&past), [resigned, Some((at(10), expired)), Some((at(20), proven)), None]);
        let lives = [
            entry(3, left(member(1))),
            entry(5, ended(member(2), EndCause::Evicted)),
            entry(15, ended(member(3), EndCause::ProvenDead)),
            entry(25, left(member(4))),
            entry(26, ended(member(9), EndCause::Expired)),
        ];
        end_with_lives(&mut past, &lives);
        let evicted = Some((at(5), ReleaseCause::Ended(EndCause::Evicted)));
        let left = Some((at(25), ReleaseCause::Left));
        assert_eq!(ends(&past), [resigned, evicted, Some((at(15), proven)), left]);
    }

    /// L13: only a term that the store shows as held stands.
    #[test]
    fn a_term_stands_while_the_store_shows_its_holder() {
        let past = terms(&[elected(1, 7, 1)]).remove(0);
        let holder = |life| Holder {
            member: member(life),
            profile: Profile::default(),
            elected_at: at(1),
            ttl: Duration::from_secs(10),
            remaining: Duration::from_secs(4),
            unconfirmed: false,
        };
        let number = TermNumber::new(7);
        let mut view = ElectionView { number, ..ElectionView::vacant(name()) };
        assert_eq!(standing(&past, &view), None, "its ttl has run out");
        view.holder = Some(holder(2));
        assert_eq!(standing(&past, &view), None, "another life");
        view.holder = Some(holder(1));
        assert_eq!(standing(&past, &view), Some(Duration::from_secs(4)));
        view.number = TermNumber::new(8);
        assert_eq!(standing(&past, &view), None, "a newer term");
    }
}
