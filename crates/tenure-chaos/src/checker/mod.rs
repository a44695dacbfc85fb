//! The checker: from what workers wrote down and what is left in the store to a
//! verdict. It is a function; it reads no file and no clock.

mod ledger;
mod trust;

use std::fmt;

use crate::clock::Nanos;
use crate::record::Line;

/// A worker process: which place it had, and which life of that place it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Worker {
    /// The place, from 0.
    pub slot: usize,
    /// The life, from 1: each start is a new one.
    pub life: u32,
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}g{}", self.slot, self.life)
    }
}

/// One worker trusted that it leads, at every moment from `from` to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reign {
    /// Who.
    pub worker: Worker,
    /// Under which term.
    pub term: u64,
    /// The first moment that is known.
    pub from: Nanos,
    /// The last moment that is known.
    pub to: Nanos,
}

/// One row of a set in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whose it is: every write has its own.
    pub element: String,
    /// The term it was written under.
    pub term: u64,
    /// What the counter was raised to by the same write.
    pub value: u64,
}

/// A counter with its set, as it is left in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The counter.
    pub counter: u64,
    /// The set.
    pub rows: Vec<Row>,
}

/// Everything a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The log of each worker.
    pub logs: Vec<(Worker, Vec<Line>)>,
    /// What was written under the fence.
    pub fenced: Ledger,
    /// What was written without one.
    pub loose: Ledger,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two workers trusted at the same moment.
    Overlap {
        /// Who was there first.
        first: Reign,
        /// Who came while the first still trusted.
        second: Reign,
    },
    /// A later reign has no higher term than an earlier one.
    NotRising {
        /// The earlier.
        earlier: Reign,
        /// The later.
        later: Reign,
    },
    /// A write that the store acknowledged is not there.
    Lost(String),
    /// A write is there more than once.
    Doubled(String),
    /// A write is there that nobody tried, or that the fence refused.
    Unasked(String),
    /// A write under an older term came after one under a newer.
    Stale {
        /// The write.
        row: Row,
        /// The newer term that was written under before.
        after: u64,
    },
    /// The counter is not the number of increments.
    Sum {
        /// What it is.
        counter: u64,
        /// How many increments there are.
        rows: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap { first, second } => write!(
                f,
                "overlap: {} trusted term {} until {} ns, {} trusted term {} from {} ns",
                first.worker, first.term, first.to, second.worker, second.term, second.from
            ),
            Self::NotRising { earlier, later } => write!(
                f,
                "terms do not rise: {} had term {}, and later {} had term {}",
                earlier.worker, earlier.term, later.worker, later.term
            ),
            Self::Lost(element) => write!(f, "lost: {element} was acknowledged and is not there"),
            Self::Doubled(what) => write!(f, "doubled: {what} is there more than once"),
            Self::Unasked(element) => {
                write!(f, "unasked: {element} is there, though it was refused or never tried")
            }
            Self::Stale { row, after } => write!(
                f,
                "stale: {} was accepted under term {} after a write under term {after}",
                row.element, row.term
            ),
            Self::Sum { counter, rows } => {
                write!(f, "the counter is {counter} after {rows} increments")
            }
        }
    }
}

/// What came out.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// What must not be; empty if all is well.
    pub violations: Vec<Violation>,
    /// Who trusted when, in order.
    pub reigns: Vec<Reign>,
    /// Fenced writes that were acknowledged.
    pub acknowledged: u64,
    /// Fenced writes whose outcome no worker learned.
    pub in_doubt: u64,
    /// Fenced writes that the fence refused.
    pub refused: u64,
    /// Unfenced writes that were acknowledged.
    pub loose: u64,
    /// How many of those the counter does not show: at least that many updates
    /// were lost.
    pub loose_lost: u64,
}

impl Verdict {
    /// How many violations are two who trusted at once.
    pub fn overlaps(&self) -> usize {
        self.violations.iter().filter(|v| matches!(v, Violation::Overlap { .. })).count()
    }

    /// How many violations are about fenced writes.
    pub fn broken_writes(&self) -> usize {
        let trust =
            |v: &&Violation| matches!(v, Violation::Overlap { .. } | Violation::NotRising { .. });
        self.violations.len() - self.violations.iter().filter(trust).count()
    }
}

/// Looks at everything.
pub fn check(evidence: &Evidence) -> Verdict {
    let reigns = trust::reigns(&evidence.logs);
    let mut verdict = ledger::check(evidence);
    verdict.violations.splice(0..0, trust::check(&reigns));
    verdict.reigns = reigns;
    verdict
}
