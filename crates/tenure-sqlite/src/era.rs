//! Numbers that survive what the file forgets (rule M6).
//!
//! The file has one era for all its namespaces. It rises when a member has seen more
//! than the file has, when what lies beside it has, and at an operator's word.
//!
//! Beside the file, where the locks lie, stands what it has held: the sum of its
//! journals' places, and the highest number of a term. It is written after a commit that survives a power cut, and
//! not synced itself: so it may be *behind* the file, which proves nothing. If it is
//! *ahead*, the file is an older copy.

use std::fs;
use std::path::Path;

use rusqlite::params;
use tenure_core::{Seq, Timestamp};

use crate::error::{Fault, Outcome};
use crate::journal::number;
use crate::txn::Txn;

/// 2026-01-01, in milliseconds of Unix time.
const EPOCH_MS: u64 = 1_767_225_600_000;

impl Txn<'_> {
    /// The present era.
    pub(crate) fn era(&self) -> Outcome<u64> {
        let found = self.one(include_str!("sql/meta_get.sql"), params!["era"], |row| {
            Ok(row.get::<_, u64>(0)?)
        })?;
        found.ok_or_else(|| Fault::Damaged("era of tenure_meta".into()))
    }

    /// Begins an era in which no number is below `least`, nor below the clock; and lets
    /// every member look at what it leads: its term may be among what was forgotten.
    pub(crate) fn raise(&mut self, least: u64) -> Outcome<()> {
        let floor = params![number(clock(self.wall).max(least))];
        self.run(include_str!("sql/meta_raise.sql"), floor)?;
        self.run(include_str!("sql/member_attention_all.sql"), [])?;
        Ok(())
    }

    /// All that the journals ever held.
    pub(crate) fn total(&self) -> Outcome<u64> {
        let sql = include_str!("sql/namespace_total.sql");
        Ok(self.one(sql, [], |row| Ok(row.get::<_, u64>(0)?))?.unwrap_or_default())
    }

    /// What lies beside the file may know of more than it has.
    pub(crate) fn compare(&mut self, beside: Beside) -> Outcome<()> {
        let lacking = beside.total.saturating_sub(self.total()?);
        self.go_on(Seq::new(self.seq().get() + lacking), beside.number + 1)
    }

    /// A member has heard of more than the journal has: what it heard of was
    /// forgotten. In the same step in which that is found out, and before any number
    /// is given out.
    pub(crate) fn catch_up(&mut self, seen: Seq) -> Outcome<()> {
        self.go_on(seen, 0)
    }

    fn go_on(&mut self, seen: Seq, least: u64) -> Outcome<()> {
        if self.seq() >= seen {
            return Ok(());
        }
        let found = self.seq().get();
        self.go_on_after(seen);
        self.raise(least)?;
        tracing::error!(
            namespace = self.ns,
            seen = seen.get(),
            found,
            "the file was rolled back: it has less of the journal than was seen of it before; the \
             era of term numbers rises"
        );
        Ok(())
    }
}

/// What is known beside the file of what it held.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beside {
    /// The sum of its journals' places.
    pub(crate) total: u64,
    /// The highest number of a term.
    pub(crate) number: u64,
}

/// Where that stands.
const HIGHEST: &str = "highest";

impl Beside {
    pub(crate) fn read(directory: &Path) -> Self {
        let text = fs::read_to_string(directory.join(HIGHEST)).unwrap_or_default();
        let mut words = text.split_whitespace().map(|word| word.parse().unwrap_or_default());
        let mut next = || words.next().unwrap_or_default();
        Self { total: next(), number: next() }
    }

    /// The file has held as much: that was committed, and survives a power cut.
    pub(crate) fn note(self, directory: &Path) {
        let known = Self::read(directory);
        let total = self.total.max(known.total);
        let text = format!("{total} {}\n", self.number.max(known.number));
        if let Err(error) = fs::write(directory.join(HIGHEST), text) {
            let directory = directory.display();
            tracing::debug!(%error, %directory, "what the file holds is not noted beside it");
        }
    }
}

/// The seconds since 2026-01-01 by the wall clock: no election has had as many terms,
/// unless it had more than one in each second since then.
pub(crate) fn clock(wall: Timestamp) -> u64 {
    wall.unix_millis().saturating_sub(EPOCH_MS) / 1000
}
