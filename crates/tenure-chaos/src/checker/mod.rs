//! The checker: from what workers wrote down and what is left in the store to a
//! verdict. It is a function; it reads no file and no clock.

mod families;
mod forgotten;
mod holders;
mod ledger;
mod trust;

use std::fmt;
use std::time::Duration;

use crate::clock::{Nanos, seconds};
use crate::guarded::LEAST_TTL;
use crate::record::Line;

pub use families::{Beside, Excuse, Family, Stamped};
pub use forgotten::{Rollback, Span};

/// A process of a place, a worker or a program that runs a command: which place it had, and
/// which life of that place it was. The places of programs come after those of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Worker {
    /// The place, from 0.
    pub slot: usize,
    /// The life, from 1: each start is a new one.
    pub life: u32,
}

impl Worker {
    /// Understands how it is written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers = text.strip_prefix('s')?.split_once('g')?;
        Some(Self { slot: numbers.0.parse().ok()?, life: numbers.1.parse().ok()? })
    }
}

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}g{}", self.slot, self.life)
    }
}

/// One worker trusted that it leads, at every moment from `from` to `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustSpan {
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

/// A holder of many elections was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// When.
    pub killed: Nanos,
    /// How many elections it led.
    pub held: u32,
    /// When another led a sample of them; `None` if that took too long.
    pub taken: Option<Nanos>,
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
    /// The ttl of the workers.
    pub ttl: Duration,
    /// Older copies of the store that were put back.
    pub rollbacks: Vec<Rollback>,
    /// Holders of many elections that were killed.
    pub deaths: Vec<Death>,
    /// What they and their heirs wrote down, in order.
    pub holders: Vec<Vec<Line>>,
    /// What each process of a guarded command stamped.
    pub stamped: Vec<Stamped>,
    /// What was done to programs of which nothing is promised.
    pub excuses: Vec<Excuse>,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Two workers trusted at the same moment.
    Overlap {
        /// Who was there first.
        first: TrustSpan,
        /// Who came while the first still trusted.
        second: TrustSpan,
    },
    /// A later leader has no higher term than an earlier one.
    NotRising {
        /// The earlier.
        earlier: TrustSpan,
        /// The later.
        later: TrustSpan,
    },
    /// Two guarded commands ran at the same moment.
    Beside {
        /// The one that began first.
        first: Family,
        /// The one that began while the first still ran.
        second: Family,
    },
    /// A later command has no higher term than an earlier one.
    CommandNotRising {
        /// The earlier.
        earlier: Family,
        /// The later.
        later: Family,
    },
    /// An election of a holder of many was won under a number not above an earlier.
    HeldNotRising {
        /// Which one.
        election: u32,
        /// The number before.
        before: u64,
        /// The number after.
        term: u64,
    },
    /// What a killed holder of many elections led was not taken over.
    NotTakenOver {
        /// How many it led.
        held: u32,
        /// The time there was.
        within: Duration,
    },
    /// No member led while a killed holder of many elections was ended and replaced.
    Unled {
        /// When the holder was killed.
        after: Nanos,
        /// For how long no member led.
        lasting: Nanos,
    },
    /// A write is there that an older copy of the store cannot have had.
    Returned(String),
    /// A write is there under a term that the store has forgotten.
    Forgotten(Row),
    /// A write that the store acknowledged is not there.
    Lost(String),
    /// A write is there more than once.
    Doubled(String),
    /// A write is there that no worker attempted, or that the fence refused.
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
            Self::Beside { first, second } => write!(
                f,
                "two commands: that of {} under term {} ran until {} ns, that of {} under term {} \
                 from {} ns",
                first.program, first.term, first.to, second.program, second.term, second.from
            ),
            Self::CommandNotRising { earlier, later } => write!(
                f,
                "terms do not rise: a command of {} had term {}, and a later one of {} had term {}",
                earlier.program, earlier.term, later.program, later.term
            ),
            Self::HeldNotRising { election, before, term } => write!(
                f,
                "terms do not rise: held-{election} had term {before}, and later term {term}"
            ),
            Self::NotTakenOver { held, within } => write!(
                f,
                "not taken over: a sample of {held} elections of a killed member, within {within:?}"
            ),
            Self::Unled { after, lasting } => write!(
                f,
                "the election had no leader for {:.1} s after a member of many elections was \
                 killed at {after} ns",
                seconds(*lasting)
            ),
            Self::Returned(element) => {
                write!(f, "returned: {element} is there, though the store was put back before it")
            }
            Self::Forgotten(row) => write!(
                f,
                "forgotten: {} is there under term {}, which the store has forgotten",
                row.element, row.term
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
    pub spans: Vec<TrustSpan>,
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
    /// Fenced writes that were acknowledged and forgotten with what an older copy of
    /// the store did not have.
    pub forgotten: u64,
    /// Overlaps of a term that was so forgotten with the first after it.
    pub excused: usize,
    /// The guarded commands, in order.
    pub families: Vec<Family>,
    /// Those that overlapped without breaking a promise.
    pub beside: Beside,
    /// The longest time without a leader after each death of a holder of many.
    pub unled: Vec<Nanos>,
}

impl Verdict {
    /// How many violations are two who trusted at once.
    pub fn overlaps(&self) -> usize {
        self.violations.iter().filter(|v| matches!(v, Violation::Overlap { .. })).count()
    }

    /// How many violations are two guarded commands at once.
    pub fn commands_at_once(&self) -> usize {
        self.violations.iter().filter(|v| matches!(v, Violation::Beside { .. })).count()
    }

    /// How many violations are about fenced writes.
    pub fn broken_writes(&self) -> usize {
        let writes = |v: &&Violation| match v {
            Violation::Overlap { .. }
            | Violation::NotRising { .. }
            | Violation::Beside { .. }
            | Violation::CommandNotRising { .. }
            | Violation::HeldNotRising { .. }
            | Violation::NotTakenOver { .. }
            | Violation::Unled { .. } => false,
            Violation::Returned(_)
            | Violation::Forgotten(_)
            | Violation::Lost(_)
            | Violation::Doubled(_)
            | Violation::Unasked(_)
            | Violation::Stale { .. }
            | Violation::Sum { .. } => true,
        };
        self.violations.iter().filter(writes).count()
    }
}

/// Looks at everything.
pub fn check(evidence: &Evidence) -> Verdict {
    let spans = trust::spans(&evidence.logs);
    let mut verdict = ledger::check(evidence);
    let forgotten = forgotten::terms(&evidence.rollbacks, &spans, evidence.ttl);
    let late = evidence.fenced.rows.iter().filter(|row| forgotten.contains(&row.term));
    verdict.violations.extend(late.cloned().map(Violation::Forgotten));
    let (overlaps, excused) = trust::check(&spans, &evidence.rollbacks, evidence.ttl);
    verdict.violations.splice(0..0, overlaps);
    verdict.violations.extend(holders::check(&evidence.deaths, &evidence.holders, &spans));
    verdict.unled = evidence.deaths.iter().map(|death| holders::unled(death, &spans)).collect();
    let families = families::families(&evidence.stamped);
    let ttl = evidence.ttl.max(LEAST_TTL);
    let (at_once, beside) = families::check(&families, &evidence.excuses, &evidence.rollbacks, ttl);
    verdict.violations.extend(at_once);
    verdict.families = families;
    verdict.beside = beside;
    verdict.excused = excused;
    verdict.spans = spans;
    verdict
}
