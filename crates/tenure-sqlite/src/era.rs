//! Numbers that survive what the file forgets (rule M6).
//!
//! The file has one era for all its namespaces. It rises when a member has seen more
//! than the file has, and at an operator's word.

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

    /// Begins an era, and lets every member look at what it leads: its term may be
    /// among what was forgotten.
    pub(crate) fn raise(&mut self) -> Outcome<()> {
        let floor = params![number(clock(self.wall))];
        self.run(include_str!("sql/meta_raise.sql"), floor)?;
        self.run(include_str!("sql/member_attention_all.sql"), [])?;
        Ok(())
    }

    /// A member has heard of more than the journal has: what it heard of was
    /// forgotten. In the same step in which that is found out, and before any number
    /// is given out.
    pub(crate) fn catch_up(&mut self, seen: Seq) -> Outcome<()> {
        if self.seq() >= seen {
            return Ok(());
        }
        let found = self.seq().get();
        self.go_on_after(seen);
        self.raise()?;
        tracing::error!(
            namespace = self.ns,
            seen = seen.get(),
            found,
            "the file was rolled back: a member has seen more of the journal than it has; the era \
             of term numbers rises"
        );
        Ok(())
    }
}

/// The seconds since 2026-01-01 by the wall clock: no election has had as many terms,
/// unless it had more than one in each second since then.
pub(crate) fn clock(wall: Timestamp) -> u64 {
    wall.unix_millis().saturating_sub(EPOCH_MS) / 1000
}
