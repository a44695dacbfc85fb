//! What happens to an election's record: a win, a vacancy; and the short history
//! it keeps of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{
    ElectionName, EndCause, Entry, Happening, Incarnation, MemberId, MemberRef, Nonce, Priority,
    Profile, ReleaseCause, Seq, Term, TermNumber, Timestamp,
};

use super::election::{ElectionRecord, HolderRecord, ReservedRecord, WonRecord};
use super::format::{text, text_option};

/// How many terms a record remembers.
pub(crate) const HISTORY: usize = 16;

/// One term of the past, or the present one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Past {
    number: u64,
    #[serde(with = "text")]
    member: MemberId,
    #[serde(with = "text")]
    incarnation: Incarnation,
    elected_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<EndedRecord>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EndedRecord {
    at_ms: u64,
    cause: CauseRecord,
    #[serde(with = "text_option", default, skip_serializing_if = "Option::is_none")]
    heir: Option<MemberId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CauseRecord {
    Resigned,
    SteppedDown,
    Abandoned,
    Left,
    Expired,
    ProvenDead,
    Superseded,
    Evicted,
}

impl From<ReleaseCause> for CauseRecord {
    fn from(cause: ReleaseCause) -> Self {
        match cause {
            ReleaseCause::Resigned => Self::Resigned,
            ReleaseCause::SteppedDown => Self::SteppedDown,
            ReleaseCause::Abandoned => Self::Abandoned,
            ReleaseCause::Left => Self::Left,
            ReleaseCause::Ended(EndCause::Expired) => Self::Expired,
            ReleaseCause::Ended(EndCause::ProvenDead) => Self::ProvenDead,
            ReleaseCause::Ended(EndCause::Superseded) => Self::Superseded,
            ReleaseCause::Ended(EndCause::Evicted) => Self::Evicted,
        }
    }
}

impl From<CauseRecord> for ReleaseCause {
    fn from(cause: CauseRecord) -> Self {
        match cause {
            CauseRecord::Resigned => Self::Resigned,
            CauseRecord::SteppedDown => Self::SteppedDown,
            CauseRecord::Abandoned => Self::Abandoned,
            CauseRecord::Left => Self::Left,
            CauseRecord::Expired => Self::Ended(EndCause::Expired),
            CauseRecord::ProvenDead => Self::Ended(EndCause::ProvenDead),
            CauseRecord::Superseded => Self::Ended(EndCause::Superseded),
            CauseRecord::Evicted => Self::Ended(EndCause::Evicted),
        }
    }
}

/// What a win writes.
pub(crate) struct Win<'a> {
    pub(crate) number: TermNumber,
    pub(crate) member: &'a MemberRef,
    pub(crate) nonce: Nonce,
    pub(crate) ttl: Duration,
    pub(crate) priority: Priority,
    pub(crate) profile: &'a Profile,
    pub(crate) at: Timestamp,
}

impl ElectionRecord {
    /// A new term, under a number never used before; a reservation is used up.
    /// Whatever stood before must have been vacated.
    pub(crate) fn begin(&mut self, win: &Win<'_>) {
        debug_assert!(self.holder.is_none());
        let member = win.member.id.clone();
        let incarnation = win.member.incarnation;
        let elected_at_ms = win.at.unix_millis();
        self.number = win.number.get();
        self.won = Some(WonRecord { incarnation, nonce: win.nonce.get() });
        self.step_down = None;
        self.reserved = None;
        let number = self.number;
        self.history.push(Past {
            number,
            member: member.clone(),
            incarnation,
            elected_at_ms,
            ended: None,
        });
        let surplus = self.history.len().saturating_sub(HISTORY);
        self.history.drain(..surplus);
        self.holder = Some(HolderRecord {
            member,
            incarnation,
            ttl_ns: win.ttl,
            priority: win.priority.get(),
            profile: win.profile.clone(),
            elected_at_ms,
            other: serde_json::Map::new(),
        });
    }

    /// The end of the present term; the vacancy is kept for the heir. A
    /// step-down ends with the term it was meant for (rule E5).
    pub(crate) fn vacate(
        &mut self,
        cause: ReleaseCause,
        heir: Option<(MemberId, Duration)>,
        at: Timestamp,
    ) {
        if self.holder.take().is_none() {
            return;
        }
        self.step_down = None;
        let number = self.number;
        if let Some(past) = self.history.iter_mut().rev().find(|past| past.number == number) {
            let heir = heir.as_ref().map(|(id, _)| id.clone());
            past.ended = Some(EndedRecord { at_ms: at.unix_millis(), cause: cause.into(), heir });
        }
        self.reserved = heir.map(|(member, grace_ns)| ReservedRecord { member, grace_ns });
    }

    /// The term that stands, as its winner is told of it.
    pub(crate) fn term(&self) -> Option<Term> {
        let holder = self.holder.as_ref()?;
        let election = self.election.clone();
        let number = self.number();
        Some(Term { election, number, member: holder.member(), elected_at: holder.elected_at() })
    }

    /// The history as journal entries, oldest first. There is no journal, so
    /// they have no position.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.history.iter().flat_map(|past| past.entries(&self.election)).collect()
    }
}

impl Past {
    fn entries(&self, election: &ElectionName) -> impl Iterator<Item = Entry> {
        let member = MemberRef::new(self.member.clone(), self.incarnation);
        let number = TermNumber::new(self.number);
        let elected_at = Timestamp::from_unix_millis(self.elected_at_ms);
        let name = election.clone();
        let holder = member.clone();
        let term = Term { election: name, number, member: holder, elected_at };
        let elected = Entry { seq: Seq::START, at: elected_at, what: Happening::Elected { term } };
        let released = self.ended.as_ref().map(|ended| Entry {
            seq: Seq::START,
            at: Timestamp::from_unix_millis(ended.at_ms),
            what: Happening::Released {
                election: election.clone(),
                number,
                member,
                cause: ended.cause.into(),
                heir: ended.heir.clone(),
            },
        });
        std::iter::once(elected).chain(released)
    }
}
