//! The journal: the ordered, gap-free log of a namespace.

use core::fmt;

use crate::{ElectionName, Happening, Incarnation, MemberId, Term, Timestamp};

/// A place in a namespace's journal. The first entry is 1; 0 is before it.
///
/// ```
/// use tenure_core::Seq;
/// assert_eq!(Seq::START.next().get(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(u64);

impl Seq {
    /// Before the first entry.
    pub const START: Seq = Seq(0);

    /// The place with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The place after this one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Its place: one more than the entry before.
    pub seq: Seq,
    /// When it was written, by the store's wall clock; for people.
    pub at: Timestamp,
    /// What happened.
    pub what: Happening,
}

/// A word from the store that something may have changed. Every hint only
/// causes a look (rule N1): lost, late, doubled or forged hints change nothing
/// but latency.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Anything at all may have changed: look at everything.
    Anything,
    /// Something about this election changed.
    Election(ElectionName),
    /// This election became vacant, and is kept for `heir` if one is named.
    Vacant {
        /// The election.
        election: ElectionName,
        /// For whom it is kept.
        heir: Option<MemberId>,
    },
    /// This election was handed over to a member, who bid for it before.
    Handed {
        /// The election.
        election: ElectionName,
        /// To whom.
        to: MemberId,
    },
    /// This life of a member seems to be over.
    Gone(Incarnation),
    /// Names changed: see [`WhichNames::Since`](crate::WhichNames). No candidate needs to look.
    Names,
}

impl Entry {
    /// The hints that entries amount to for those who only want hints. None
    /// where no candidate has a reason to look: that a member joined, or stands
    /// too, changes no plan. Nor is an election vacant whose heir was
    /// elected in the same step.
    pub fn hints(entries: &[Entry]) -> impl Iterator<Item = Hint> {
        let next = entries.iter().skip(1).map(Some).chain([None]);
        entries.iter().zip(next).filter_map(|(entry, next)| match next.map(|next| &next.what) {
            Some(Happening::Elected { term, .. }) if entry.frees(&term.election) => {
                entry.passed_on(term)
            }
            _ => entry.hint(),
        })
    }

    fn frees(&self, name: &ElectionName) -> bool {
        matches!(&self.what, Happening::Released { election, .. } if election == name)
    }

    /// The hint of a release after which another holds this term at once. A reader that
    /// gave up an older term of its own knows.
    fn passed_on(&self, term: &Term) -> Option<Hint> {
        let from =
            matches!(&self.what, Happening::Released { member, .. } if *member != term.member);
        let election = term.election.clone();
        let to = term.member.id.clone();
        from.then_some(Hint::Handed { election, to })
    }

    fn hint(&self) -> Option<Hint> {
        match &self.what {
            Happening::Joined { .. } | Happening::Stood { .. } => None,
            Happening::Left { member, .. } | Happening::Ended { member, .. } => {
                Some(Hint::Gone(member.incarnation))
            }
            Happening::Released { election, heir, .. } => {
                Some(Hint::Vacant { election: election.clone(), heir: heir.clone() })
            }
            Happening::Elected { term, .. } => Some(Hint::Election(term.election.clone())),
            Happening::StepDownAsked { election, .. }
            | Happening::Paused { election, .. }
            | Happening::Resumed { election, .. } => Some(Hint::Election(election.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::{MemberRef, Note, Priority, ReleaseCause, TermNumber};

    fn election(name: &str) -> ElectionName {
        ElectionName::new(name).unwrap()
    }

    fn member(id: &str) -> MemberRef {
        MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(9))
    }

    fn released(name: &str, by: &str) -> Happening {
        Happening::Released {
            election: election(name),
            number: TermNumber::new(1),
            member: member(by),
            cause: ReleaseCause::Resigned,
            heir: Some(member("heir").id),
        }
    }

    fn elected(name: &str, who: &str) -> Happening {
        Happening::Elected {
            term: Term {
                election: election(name),
                number: TermNumber::new(2),
                member: member(who),
                elected_at: Timestamp::from_unix_millis(0),
            },
        }
    }

    fn hints(happened: &[Happening]) -> Vec<Hint> {
        let entry = |what: &Happening| Entry {
            seq: Seq::START,
            at: Timestamp::from_unix_millis(0),
            what: what.clone(),
        };
        Entry::hints(&happened.iter().map(entry).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn places_are_counted_from_the_start() {
        assert_eq!(Seq::START.get(), 0);
        assert_eq!(Seq::new(7).next().get(), 8);
        assert_eq!(Seq::new(u64::MAX).next().get(), u64::MAX);
    }

    #[test]
    fn each_happening_names_its_election() {
        let by = Note::default();
        let named = [
            released("e", "a"),
            elected("e", "a"),
            Happening::Stood {
                election: election("e"),
                member: member("a"),
                priority: Priority::new(1),
            },
            Happening::Resumed { election: election("e"), by },
        ];
        for what in named {
            assert_eq!(what.election(), Some(&election("e")), "{what:?}");
        }
        assert_eq!(Happening::Left { member: member("a") }.election(), None);
    }

    /// A vacancy is told with its heir, and a life that is over with its incarnation.
    #[test]
    fn what_changes_a_plan_is_hinted_at() {
        let heir = Some(member("heir").id);
        let vacant = Hint::Vacant { election: election("e"), heir };
        assert_eq!(hints(&[released("e", "a")]), [vacant]);
        assert_eq!(hints(&[elected("e", "a")]), [Hint::Election(election("e"))]);
        let gone = Happening::Left { member: member("a") };
        assert_eq!(hints(&[gone]), [Hint::Gone(Incarnation::from_u128(9))]);
        let stood = Happening::Stood {
            election: election("e"),
            member: member("a"),
            priority: Priority::new(1),
        };
        assert_eq!(hints(&[stood]), []);
    }

    /// An election that is won in the step that frees it is not vacant: who got it from
    /// another is told, and who won it anew itself knows.
    #[test]
    fn a_term_that_is_passed_on_leaves_no_vacancy() {
        let on = Hint::Handed { election: election("e"), to: member("b").id };
        let won = Hint::Election(election("e"));
        assert_eq!(hints(&[released("e", "a"), elected("e", "b")]), [on, won.clone()]);
        assert_eq!(hints(&[released("e", "a"), elected("e", "a")]), [won]);
        // Another election's vacancy stays one.
        let both = hints(&[released("e", "a"), elected("f", "b")]);
        assert!(matches!(&both[..], [Hint::Vacant { .. }, Hint::Election(_)]), "{both:?}");
    }
}
