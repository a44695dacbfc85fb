//! Who is preferred: the order of candidates, the place of one among them, and the heir
//! of a vacancy. Pure functions over whatever a store keeps of its candidates, for stores
//! that run the rules and for those that judge from outside.
//!
//! A store implements [`Stands`] for its own record of a candidate and gives a list of
//! those that **live and are not condemned**; whether a candidate lives is the store's to
//! judge.

use core::cmp::{Ordering, Reverse};
use core::time::Duration;

use tenure_core::{MemberId, MemberRef, Priority};

/// A candidate, as far as rank goes.
pub trait Stands {
    /// Which life of which member.
    fn member(&self) -> &MemberRef;

    /// How much it is preferred.
    fn priority(&self) -> Priority;

    /// Its place in the queue: a lower one has waited for longer. The journal's place of
    /// its beginning, or a number that the store counts.
    fn place(&self) -> u64;
}

/// Compares two candidates: the higher priority comes first, then the longer wait, then
/// the lower id.
pub fn compare<T: Stands>(a: &T, b: &T) -> Ordering {
    rank(a).cmp(&rank(b))
}

fn rank<T: Stands>(stands: &T) -> (Reverse<Priority>, u64, &MemberId) {
    (Reverse(stands.priority()), stands.place(), &stands.member().id)
}

/// Whether a candidate could lead if the election were vacant: its priority may lead, and
/// it is not the very life that holds the election or gives it up.
pub fn may_follow<T: Stands>(candidate: &T, holder: Option<&MemberRef>) -> bool {
    candidate.priority().may_lead() && Some(candidate.member()) != holder
}

/// How many candidates that may lead come before `asker`; 0 if it is none of them, or holds
/// the election and waits for nothing. `candidates` in any order, with the holder and with
/// those that never lead.
pub fn ahead<T: Stands>(candidates: &[T], holder: Option<&MemberRef>, asker: &MemberRef) -> u32 {
    if holder == Some(asker) {
        return 0;
    }
    let Some(own) = candidates.iter().find(|one| one.member() == asker) else { return 0 };
    let before = candidates.iter().filter(|one| may_follow(*one, holder));
    let before = before.filter(|one| compare(*one, own).is_lt());
    u32::try_from(before.count()).unwrap_or(u32::MAX)
}

/// The heir of a vacancy, and for how long the vacancy is kept for it: the `successor`
/// named, for its own time, if it is a candidate that may lead; or else the preferred
/// candidate, for `grace`. A time of zero keeps nothing.
///
/// `candidates` in any order; `holder` is the life that held the term, which is never its
/// own heir.
pub fn heir<'a, T: Stands>(
    candidates: &'a [T],
    holder: Option<&MemberRef>,
    successor: Option<&(MemberId, Duration)>,
    grace: Duration,
) -> Option<(&'a T, Duration)> {
    let eligible = || candidates.iter().filter(|one| may_follow(*one, holder));
    let named = successor.and_then(|(id, time)| {
        let found = eligible().find(|one| one.member().id == *id)?;
        Some((found, *time))
    });
    named.or_else(|| Some((eligible().min_by(|a, b| compare(*a, *b))?, grace)))
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use tenure_core::Incarnation;

    use super::*;

    struct One {
        member: MemberRef,
        priority: Priority,
        place: u64,
    }

    impl Stands for One {
        fn member(&self) -> &MemberRef {
            &self.member
        }

        fn priority(&self) -> Priority {
            self.priority
        }

        fn place(&self) -> u64 {
            self.place
        }
    }

    fn member(id: &str) -> MemberRef {
        MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(1))
    }

    fn one(id: &str, priority: u16, place: u64) -> One {
        One { member: member(id), priority: Priority::new(priority), place }
    }

    const GRACE: Duration = Duration::from_secs(1);

    #[test]
    fn priority_counts_before_waiting_and_waiting_before_the_id() {
        let mut all = [one("d", 5, 9), one("c", 7, 4), one("b", 7, 3), one("a", 7, 4)];
        all.sort_by(compare);
        let order: Vec<_> = all.iter().map(|one| one.member.id.as_str()).collect();
        assert_eq!(order, ["b", "a", "c", "d"]);
    }

    #[test]
    fn the_holder_and_those_that_never_lead_are_ahead_of_no_other() {
        let all = [one("holder", 9, 1), one("never", 0, 2), one("first", 9, 3), one("own", 9, 4)];
        let holder = member("holder");
        assert_eq!(ahead(&all, Some(&holder), &member("own")), 1);
        assert_eq!(ahead(&all, None, &member("own")), 2);
        assert_eq!(ahead(&all, None, &member("never")), 3);
        assert_eq!(ahead(&all, None, &member("absent")), 0);
    }

    /// C10: the successor named, or else the preferred candidate; never the holder.
    #[test]
    fn an_heir_is_the_successor_named_or_else_the_preferred_candidate() {
        let all = [one("holder", 9, 1), one("never", 0, 2), one("next", 5, 3), one("last", 5, 4)];
        let holder = member("holder");
        let chosen = |successor: Option<&str>| {
            let successor = successor.map(|id| (MemberId::new(id).unwrap(), GRACE * 2));
            let found = heir(&all, Some(&holder), successor.as_ref(), GRACE);
            found.map(|(one, time)| (one.member.id.to_string(), time))
        };
        assert_eq!(chosen(None), Some(("next".into(), GRACE)));
        assert_eq!(chosen(Some("last")), Some(("last".into(), GRACE * 2)));
        for absent in ["holder", "never", "absent"] {
            assert_eq!(chosen(Some(absent)), Some(("next".into(), GRACE)), "{absent}");
        }
    }
}
