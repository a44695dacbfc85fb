//! What a store says of itself when an operator asks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{Era, TermNumber, Timestamp};

/// What a store says of itself, beyond its elections: see
/// [`Query::examine`](crate::Query::examine).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Examined {
    /// The era of its term numbers; `None` where the store keeps none.
    pub era: Option<EraView>,
    /// What is peculiar to this kind of store.
    pub findings: Vec<Finding>,
    /// Why notifications may fail to arrive from this kind of store, and what to do.
    pub late_because: Option<&'static str>,
}

/// Where the term numbers of a store stand (rule M6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct EraView {
    /// The present era.
    pub era: Era,
    /// When and why it began; `None` of the first.
    pub raised: Option<Raised>,
    /// The highest number given out.
    pub highest: TermNumber,
    /// Where the store's wall clock stands on the scale of numbers: see [`Era::clock`].
    pub clock: u64,
}

impl EraView {
    /// By how much the highest number is ahead of the store's clock, if it is. Then the
    /// clock keeps no forgotten number from being given out again.
    ///
    /// ```
    /// use core::time::Duration;
    /// use tenure_core::{EraView, TermNumber};
    ///
    /// let view = EraView { highest: TermNumber::new(3_000_000), clock: 1_000_000, ..EraView::default() };
    /// assert_eq!(view.ahead(), Some(Duration::from_secs(2)));
    /// assert_eq!(EraView { clock: 3_000_000, ..view }.ahead(), None);
    /// ```
    #[must_use]
    pub fn ahead(&self) -> Option<Duration> {
        let micros = self.highest.get().checked_sub(self.clock).filter(|micros| *micros > 0)?;
        Some(Duration::from_micros(micros))
    }
}

/// The beginning of an era.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Raised {
    /// When, by the store's wall clock; for people.
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

/// How a finding is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// As it should be.
    Fine,
    /// Worth knowing.
    Note,
    /// To be put right.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Finding {
    /// A name for scripts, which never changes.
    pub code: &'static str,
    /// How it is meant.
    pub verdict: Verdict,
    /// What was looked at.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// The code of a finding that the store has less than it is known to have had, and has
    /// not begun another era yet.
    pub const ROLLED_BACK: &'static str = "rolled-back";

    /// The tables of a store that has some are of a version that this program knows. A
    /// program that does not know it opens no such store.
    #[must_use]
    pub fn schema(version: u64) -> Self {
        let found = format!("the tables are of version {version}, which this program knows");
        Self::fine("schema", "schema", found)
    }

    /// How many of the names of a namespace that are owned are void, since their owner does
    /// not live (rule M5). They are free, and no reader is told of them.
    ///
    /// ```
    /// use tenure_core::{Finding, Verdict};
    ///
    /// assert_eq!(Finding::void_names(0, 12).verdict, Verdict::Fine);
    /// let void = Finding::void_names(3, 12);
    /// assert_eq!((void.code, void.verdict), ("void-names", Verdict::Note));
    /// assert!(void.remedy.is_some_and(|remedy| remedy.contains("tenure purge")));
    /// ```
    #[must_use]
    pub fn void_names(void: u64, owned: u64) -> Self {
        if void == 0 {
            let found = format!("every owner of the {owned} names that are owned lives");
            return Self::fine("void-names", "names", found);
        }
        let found = format!(
            "the owners of {void} of the {owned} names that are owned do not live: these names are \
             free, and no reader is told of them"
        );
        let remedy = "joins and claims clear such rows away, a bounded number each; `tenure purge` \
                      clears all of them away";
        Self::note("void-names", "names", found, remedy)
    }

    /// All is as it should be.
    #[must_use]
    pub fn fine(code: &'static str, what: &'static str, found: impl Into<String>) -> Self {
        Self { code, verdict: Verdict::Fine, what, found: found.into(), remedy: None }
    }

    /// Worth knowing, with what to do.
    #[must_use]
    pub fn note(
        code: &'static str,
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { code, verdict: Verdict::Note, what, found: found.into(), remedy }
    }

    /// To be put right, and how.
    #[must_use]
    pub fn wrong(
        code: &'static str,
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Wrong, ..Self::note(code, what, found, remedy) }
    }
}
