//! What a journal entry records, and how a table has it. A field of a happening stands in
//! this file: its meaning, and its place in a row.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;

use crate::{
    ElectionName, MemberId, MemberRef, Note, Priority, Profile, Term, TermNumber, Timestamp,
};

/// What a journal entry records.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A member joined.
    Joined {
        /// Which life of which member.
        member: MemberRef,
        /// What it publishes.
        profile: Profile,
    },
    /// A member left of its own accord.
    Left {
        /// Which life of which member.
        member: MemberRef,
    },
    /// A member was ended.
    Ended {
        /// Which life of which member.
        member: MemberRef,
        /// Why.
        cause: EndCause,
    },
    /// A member began to stand for an election, or changed its priority.
    Stood {
        /// The election.
        election: ElectionName,
        /// Who.
        member: MemberRef,
        /// With which priority.
        priority: Priority,
    },
    /// A term was won.
    Elected {
        /// The term.
        term: Term,
    },
    /// A term came to its end and the election is vacant.
    Released {
        /// The election.
        election: ElectionName,
        /// The number of the term that ended.
        number: TermNumber,
        /// Who held it.
        member: MemberRef,
        /// Why it ended.
        cause: ReleaseCause,
        /// The heir for which the vacancy is kept, if there is one.
        heir: Option<MemberId>,
    },
    /// The holder was asked to step down.
    StepDownAsked {
        /// The election.
        election: ElectionName,
        /// The term it is meant for.
        number: TermNumber,
        /// Why.
        reason: Note,
        /// Who asked.
        by: Note,
        /// The candidate to hand over to.
        to: Option<MemberId>,
    },
    /// The election was paused.
    Paused {
        /// The election.
        election: ElectionName,
        /// Why.
        reason: Note,
        /// Who asked.
        by: Note,
    },
    /// The pause was lifted.
    Resumed {
        /// The election.
        election: ElectionName,
        /// Who asked.
        by: Note,
    },
}

impl Happening {
    /// The election this is about; `None` where it is about a member alone.
    pub fn election(&self) -> Option<&ElectionName> {
        match self {
            Self::Joined { .. } | Self::Left { .. } | Self::Ended { .. } => None,
            Self::Elected { term, .. } => Some(&term.election),
            Self::Stood { election, .. }
            | Self::Released { election, .. }
            | Self::StepDownAsked { election, .. }
            | Self::Paused { election, .. }
            | Self::Resumed { election, .. } => Some(election),
        }
    }
}

/// Why a member was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndCause {
    /// Its ttl ran out and another member wanted what it held, or its place.
    Expired,
    /// The store could prove its process dead (rule M4).
    ProvenDead,
    /// A newer life of the same id took its place; it held nothing.
    Superseded,
    /// An operator ended it.
    Evicted,
}

impl EndCause {
    /// The word by which journals know it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::ProvenDead => "proven dead",
            Self::Superseded => "superseded",
            Self::Evicted => "evicted",
        }
    }
}

/// Why a term ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReleaseCause {
    /// The holder gave it up of its own accord.
    Resigned,
    /// The holder gave it up because it was asked to step down.
    SteppedDown,
    /// The holder gave up a term it no longer trusted, or never knew it had.
    Abandoned,
    /// The holder left.
    Left,
    /// The holder was ended.
    Ended(EndCause),
}

impl ReleaseCause {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Resigned,
        Self::SteppedDown,
        Self::Abandoned,
        Self::Left,
        Self::Ended(EndCause::Expired),
        Self::Ended(EndCause::ProvenDead),
        Self::Ended(EndCause::Superseded),
        Self::Ended(EndCause::Evicted),
    ];

    /// The word by which journals know it.
    ///
    /// ```
    /// use tenure_core::{EndCause, ReleaseCause};
    ///
    /// assert_eq!(ReleaseCause::SteppedDown.word(), "stepped down");
    /// let evicted = ReleaseCause::Ended(EndCause::Evicted);
    /// assert_eq!(ReleaseCause::of_word("evicted"), Some(evicted));
    /// ```
    pub const fn word(self) -> &'static str {
        match self {
            Self::Resigned => "resigned",
            Self::SteppedDown => "stepped down",
            Self::Abandoned => "abandoned",
            Self::Left => "left",
            Self::Ended(cause) => cause.word(),
        }
    }

    /// What a word of a journal means; `None` if journals know no such word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.word() == word)
    }
}

/// A happening as a table has it: a kind, a column for each thing that statements go by,
/// and texts for what they do not.
///
/// Every store whose journal is a table writes and reads this form, so that a new field
/// changes none of them: it is a text among `details`.
///
/// ```
/// use tenure_core::{Happening, Note, Timestamp};
///
/// let what = Happening::Resumed { election: "jobs".parse()?, by: Note::new("ann") };
/// let row = what.columns();
/// assert_eq!(row.kind, "resumed");
/// assert_eq!(row.details["by"], "ann");
/// assert_eq!(row.happening(Timestamp::from_unix_millis(0)), Some(what));
/// # Ok::<(), tenure_core::BadName>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns<'a> {
    /// Which happening it is, in a word.
    pub kind: Cow<'a, str>,
    /// The election that it is about.
    pub election: Option<Cow<'a, ElectionName>>,
    /// The number of the term that it is about.
    pub number: Option<TermNumber>,
    /// The life of a member that it is about.
    pub member: Option<Cow<'a, MemberRef>>,
    /// The priority of a candidacy.
    pub priority: Option<Priority>,
    /// The word of a [`ReleaseCause`].
    pub cause: Option<Cow<'a, str>>,
    /// The member that is to come next.
    pub heir: Option<Cow<'a, MemberId>>,
    /// What a member publishes.
    pub profile: Option<Cow<'a, Profile>>,
    /// The fields that no SQL statement searches for or compares, each under a word. A text has no
    /// line breaks; an empty one is left out.
    pub details: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
}

impl Happening {
    /// This, as a row of a table has it.
    pub fn columns(&self) -> Columns<'_> {
        let row = Columns { election: self.election().map(Cow::Borrowed), ..Columns::default() };
        match self {
            Self::Joined { member, profile } => {
                Columns { profile: Some(Cow::Borrowed(profile)), ..row.of("joined", member) }
            }
            Self::Left { member } => row.of("left", member),
            Self::Ended { member, cause } => {
                Columns { cause: Some(cause.word().into()), ..row.of("ended", member) }
            }
            Self::Stood { election: _, member, priority } => {
                Columns { priority: Some(*priority), ..row.of("stood", member) }
            }
            Self::Elected { term } => {
                Columns { number: Some(term.number), ..row.of("elected", &term.member) }
            }
            Self::Released { election: _, number, member, cause, heir } => Columns {
                number: Some(*number),
                cause: Some(cause.word().into()),
                heir: heir.as_ref().map(Cow::Borrowed),
                ..row.of("released", member)
            },
            Self::StepDownAsked { election: _, number, reason, by, to } => Columns {
                kind: "step-down asked".into(),
                number: Some(*number),
                heir: to.as_ref().map(Cow::Borrowed),
                ..row.with("reason", reason.as_str()).with("by", by.as_str())
            },
            Self::Paused { election: _, reason, by } => Columns {
                kind: "paused".into(),
                ..row.with("reason", reason.as_str()).with("by", by.as_str())
            },
            Self::Resumed { election: _, by } => {
                Columns { kind: "resumed".into(), ..row.with("by", by.as_str()) }
            }
        }
    }
}

impl<'a> Columns<'a> {
    fn of(mut self, kind: &'static str, member: &'a MemberRef) -> Self {
        self.kind = kind.into();
        self.member = Some(Cow::Borrowed(member));
        self
    }

    fn with(mut self, word: &'static str, text: &'a str) -> Self {
        if !text.is_empty() {
            self.details.insert(word.into(), text.into());
        }
        self
    }

    /// What a row tells that was written at this time; `None` if it is not one that
    /// [`Happening::columns`] writes.
    pub fn happening(self, at: Timestamp) -> Option<Happening> {
        let Self { kind, election, number, member, priority, cause, heir, profile, details } = self;
        let election = || election.map(Cow::into_owned);
        let member = || member.map(Cow::into_owned);
        let heir = heir.map(Cow::into_owned);
        let cause = || ReleaseCause::of_word(&cause?);
        let note = |word| Note::new(details.get(word).map_or("", |text| text));
        Some(match &*kind {
            "joined" => {
                let profile = profile.map(Cow::into_owned).unwrap_or_default();
                Happening::Joined { member: member()?, profile }
            }
            "left" => Happening::Left { member: member()? },
            "ended" => match cause()? {
                ReleaseCause::Ended(cause) => Happening::Ended { member: member()?, cause },
                _ => return None,
            },
            "stood" => {
                let election = election()?;
                let member = member()?;
                Happening::Stood { election, member, priority: priority? }
            }
            "elected" => {
                let election = election()?;
                let member = member()?;
                let term = Term { election, number: number?, member, elected_at: at };
                Happening::Elected { term }
            }
            "released" => {
                let election = election()?;
                let member = member()?;
                let cause = cause()?;
                Happening::Released { election, number: number?, member, cause, heir }
            }
            "step-down asked" => {
                let reason = note("reason");
                let by = note("by");
                let election = election()?;
                let number = number?;
                Happening::StepDownAsked { election, number, reason, by, to: heir }
            }
            "paused" => {
                let reason = note("reason");
                let by = note("by");
                Happening::Paused { election: election()?, reason, by }
            }
            "resumed" => Happening::Resumed { election: election()?, by: note("by") },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incarnation;

    /// One of each kind, with something in every field.
    fn each() -> [Happening; 9] {
        let member = MemberRef::new(MemberId::new("a").unwrap(), Incarnation::from_u128(9));
        let election = ElectionName::new("e").unwrap();
        let number = TermNumber::new(7);
        let reason = Note::new("why");
        let by = Note::new("who");
        let heir = Some(MemberId::new("b").unwrap());
        let term = Term {
            election: election.clone(),
            number,
            member: member.clone(),
            elected_at: Timestamp::from_unix_millis(5),
        };
        [
            Happening::Joined {
                member: member.clone(),
                profile: Profile::new(["h:1"], [1]).unwrap(),
            },
            Happening::Left { member: member.clone() },
            Happening::Ended { member: member.clone(), cause: EndCause::Evicted },
            Happening::Stood {
                election: election.clone(),
                member: member.clone(),
                priority: Priority::new(3),
            },
            Happening::Elected { term },
            Happening::Released {
                election: election.clone(),
                number,
                member,
                cause: ReleaseCause::SteppedDown,
                heir: heir.clone(),
            },
            Happening::StepDownAsked {
                election: election.clone(),
                number,
                reason: reason.clone(),
                by: by.clone(),
                to: heir,
            },
            Happening::Paused { election: election.clone(), reason, by: by.clone() },
            Happening::Resumed { election, by },
        ]
    }

    /// H26: what is written is what is read.
    #[test]
    fn every_happening_comes_back_from_its_columns() {
        for what in each() {
            let row = what.columns();
            assert_eq!(row.election.as_deref(), what.election());
            assert_eq!(row.happening(Timestamp::from_unix_millis(5)).as_ref(), Some(&what));
        }
    }

    #[test]
    fn every_cause_comes_back_from_its_word() {
        for cause in ReleaseCause::ALL {
            assert_eq!(ReleaseCause::of_word(cause.word()), Some(cause));
        }
        assert_eq!(ReleaseCause::of_word("bored"), None);
    }

    /// Without any one of the columns that its kind has, a row tells nothing, or less;
    /// nor does one of another kind.
    #[test]
    fn a_row_that_is_not_complete_is_refused() {
        let at = Timestamp::from_unix_millis(5);
        for what in each() {
            let row = what.columns();
            let without = [
                Columns { election: None, ..row.clone() },
                Columns { number: None, ..row.clone() },
                Columns { member: None, ..row.clone() },
                Columns { priority: None, ..row.clone() },
                Columns { cause: None, ..row.clone() },
            ];
            for less in without.into_iter().filter(|less| *less != row) {
                assert_eq!(less.happening(at), None, "{what:?}");
            }
            assert_eq!(Columns { kind: "sang".into(), ..row }.happening(at), None);
        }
        let [_, _, ended, ..] = each();
        let resigned = Columns { cause: Some("resigned".into()), ..ended.columns() };
        assert_eq!(resigned.happening(at), None, "no life ends by that");
    }

    /// An empty note takes no room, and comes back empty.
    #[test]
    fn what_is_empty_is_not_written() {
        let what =
            Happening::Resumed { election: ElectionName::new("e").unwrap(), by: Note::default() };
        assert!(what.columns().details.is_empty());
        assert_eq!(what.columns().happening(Timestamp::default()).as_ref(), Some(&what));
    }
}
