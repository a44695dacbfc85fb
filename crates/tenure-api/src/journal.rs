//! Journal entries, as `tenure watch` prints them: one on each line.

use std::fmt;

use serde::{Deserialize, Serialize};
use tenure_core::ElectionView;

use crate::{Cause, Event, Moment, because};

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place in the journal.
    pub seq: u64,
    /// When it was written, by the store's clock.
    pub at: Moment,
    /// What happened.
    #[serde(flatten)]
    pub what: Happening,
}

/// What happened. The name of the variant is the field `event`; `election` is `null`
/// where a member is concerned and no election in particular.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are those of `tenure_core::Happening`.
pub enum Happening {
    /// A member joined.
    Joined { election: Option<String>, member: String, endpoints: Vec<String> },
    /// A member left.
    Left { election: Option<String>, member: String },
    /// A member was ended.
    Ended { election: Option<String>, member: String, cause: Cause },
    /// A member began to stand for an election, or changed its priority.
    Stood { election: String, member: String, priority: u16 },
    /// A term was won.
    Elected { election: String, term: u64, member: String, incarnation: String },
    /// A term came to its end; the vacancy may be kept for an heir.
    Released { election: String, term: u64, member: String, cause: Cause, heir: Option<String> },
    /// The leader was asked to step down.
    StepDownAsked { election: String, term: u64, reason: String, by: String, to: Option<String> },
    /// The election was paused.
    Paused { election: String, reason: String, by: String },
    /// The pause was lifted.
    Resumed { election: String, by: String },
    /// Not an entry of the journal: who leads when a watch begins.
    Leads { election: String, term: u64, member: String },
}

impl Entry {
    /// Who leads an election when a watch begins at `seq`; `None` if it is vacant.
    #[must_use]
    pub fn leads(seq: tenure_core::Seq, view: &ElectionView) -> Option<Self> {
        let holder = view.holder.as_ref()?;
        let what = Happening::Leads {
            election: view.election.to_string(),
            term: view.number.get(),
            member: holder.member.id.to_string(),
        };
        Some(Self { seq: seq.get(), at: holder.elected_at.into(), what })
    }
}

impl From<&tenure_core::Entry> for Entry {
    fn from(entry: &tenure_core::Entry) -> Self {
        Self { seq: entry.seq.get(), at: entry.at.into(), what: (&entry.what).into() }
    }
}

impl Happening {
    /// The word in the field `event`.
    #[must_use]
    pub fn event(&self) -> Event {
        match self {
            Self::Joined { .. } => Event::Joined,
            Self::Left { .. } => Event::Left,
            Self::Ended { .. } => Event::Ended,
            Self::Stood { .. } => Event::Stood,
            Self::Elected { .. } => Event::Elected,
            Self::Released { .. } => Event::Released,
            Self::StepDownAsked { .. } => Event::StepDownAsked,
            Self::Paused { .. } => Event::Paused,
            Self::Resumed { .. } => Event::Resumed,
            Self::Leads { .. } => Event::Leads,
        }
    }
}

/// What happened, for people: one clause, which does not name the election.
impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { member, .. } => write!(f, "{member} joined"),
            Self::Left { member, .. } => write!(f, "{member} left"),
            Self::Ended { member, cause, .. } => write!(f, "{member} was ended: {cause}"),
            Self::Stood { member, priority, .. } => {
                write!(f, "{member} stands, priority {priority}")
            }
            Self::Elected { term, member, .. } | Self::Leads { term, member, .. } => {
                write!(f, "{member} leads with term {term}")
            }
            Self::Released { term, member, cause, heir, .. } => {
                write!(f, "term {term} of {member} is over: {cause}")?;
                heir.iter().try_for_each(|heir| write!(f, ", kept for {heir}"))
            }
            Self::StepDownAsked { term, reason, by, to, .. } => {
                write!(f, "term {term} is asked to step down")?;
                to.iter().try_for_each(|to| write!(f, " in favour of {to}"))?;
                write!(f, " {}", because(reason, by))
            }
            Self::Paused { reason, by, .. } => write!(f, "paused {}", because(reason, by)),
            Self::Resumed { by, .. } => write!(f, "resumed by {by}"),
        }
    }
}

impl From<&tenure_core::Happening> for Happening {
    fn from(what: &tenure_core::Happening) -> Self {
        use tenure_core::Happening as Core;
        match what {
            Core::Joined { member, profile } => Self::Joined {
                election: None,
                member: member.id.to_string(),
                endpoints: profile.endpoints().to_vec(),
            },
            Core::Left { member } => Self::Left { election: None, member: member.id.to_string() },
            Core::Ended { member, cause } => Self::Ended {
                election: None,
                member: member.id.to_string(),
                cause: (*cause).into(),
            },
            Core::Stood { election, member, priority } => Self::Stood {
                election: election.to_string(),
                member: member.id.to_string(),
                priority: priority.get(),
            },
            Core::Elected { term } => Self::Elected {
                election: term.election.to_string(),
                term: term.number.get(),
                member: term.member.id.to_string(),
                incarnation: term.member.incarnation.to_string(),
            },
            Core::Released { election, number, member, cause, heir } => Self::Released {
                election: election.to_string(),
                term: number.get(),
                member: member.id.to_string(),
                cause: (*cause).into(),
                heir: heir.as_ref().map(ToString::to_string),
            },
            Core::StepDownAsked { election, number, reason, by, to } => Self::StepDownAsked {
                election: election.to_string(),
                term: number.get(),
                reason: reason.to_string(),
                by: by.to_string(),
                to: to.as_ref().map(ToString::to_string),
            },
            Core::Paused { election, reason, by } => Self::Paused {
                election: election.to_string(),
                reason: reason.to_string(),
                by: by.to_string(),
            },
            Core::Resumed { election, by } => {
                Self::Resumed { election: election.to_string(), by: by.to_string() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: &str) -> String {
        word.into()
    }

    /// One of each kind.
    fn all() -> Vec<Happening> {
        let election = || text("jobs");
        let member = || text("a");
        let note = || text("why");
        vec![
            Happening::Joined { election: None, member: member(), endpoints: vec![text("h:1")] },
            Happening::Left { election: None, member: member() },
            Happening::Ended { election: None, member: member(), cause: Cause::Expired },
            Happening::Stood { election: election(), member: member(), priority: 7 },
            Happening::Elected {
                election: election(),
                term: u64::MAX,
                member: member(),
                incarnation: text("ff"),
            },
            Happening::Released {
                election: election(),
                term: 1,
                member: member(),
                cause: Cause::ProvenDead,
                heir: None,
            },
            Happening::StepDownAsked {
                election: election(),
                term: 1,
                reason: note(),
                by: note(),
                to: Some(member()),
            },
            Happening::Paused { election: election(), reason: note(), by: note() },
            Happening::Resumed { election: election(), by: note() },
            Happening::Leads { election: election(), term: 1, member: member() },
        ]
    }

    /// What an operator reads in `tenure watch` and `tenure top`.
    #[test]
    fn every_happening_is_one_clause_for_people() {
        let said: Vec<_> = all().iter().map(ToString::to_string).collect();
        let expected = [
            "a joined",
            "a left",
            "a was ended: expired",
            "a stands, priority 7",
            "a leads with term 18446744073709551615",
            "term 1 of a is over: its process died",
            "term 1 is asked to step down in favour of a by why: why",
            "paused by why: why",
            "resumed by why",
            "a leads with term 1",
        ];
        assert_eq!(said, expected);
        let election = text("jobs");
        let heir = Some(text("b"));
        let cause = Cause::Resigned;
        let kept = Happening::Released { election, term: 1, member: text("a"), cause, heir };
        assert_eq!(kept.to_string(), "term 1 of a is over: resigned, kept for b");
    }

    #[test]
    fn every_entry_reads_back_and_is_called_by_its_word() {
        assert_eq!(all().len(), Event::ALL.len());
        for (what, event) in all().into_iter().zip(Event::ALL) {
            assert_eq!(what.event(), *event);
            let at = "2026-11-15T22:08:23.000Z".parse().unwrap();
            let entry = Entry { seq: 7, at, what };
            let json = serde_json::to_string(&entry).unwrap();
            let start = format!(
                "{{\"seq\":7,\"at\":\"2026-11-15T22:08:23.000Z\",\"event\":\"{event}\",\"election\":"
            );
            assert!(json.starts_with(&start), "{json}");
            assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), entry);
        }
    }
}
