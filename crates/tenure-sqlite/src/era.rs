//! Numbers that survive what the file forgets (rule M6).
//!
//! The file has one era for all its namespaces. It rises when a member has seen more
//! than the file has, when what lies beside it has, and at an operator's word.
//!
//! Beside the file, where the locks lie, stands what it has held: the sum of its
//! journals' places, how often names were bound, and the highest number of a term or
//! revision of names. It is written after a commit that survives a power cut, and not synced
//! itself: so it may be *behind* the file, which proves nothing. If it is *ahead*, the file
//! is an older copy.
//!
//! Names are counted for themselves: they are not in the journal, and in a sum of both what
//! the journal has gained since the copy was put back would hide the names that it lacks.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::params;
use tenure_core::{Era, EraView, Raised, Seq, TermNumber, Timestamp};
use tenure_rules::{EraCause, WriteRows};

use crate::error::{Fault, Outcome};
use crate::journal::number;
use crate::txn::Txn;

impl Txn<'_> {
    /// The present era. A claim of a thousand elections reads it once.
    pub(crate) fn present_era(&self) -> Outcome<Era> {
        if let Some(era) = self.era.get() {
            return Ok(era);
        }
        let era = Era::new(meta(self, "era")?, meta(self, "floor")?);
        self.era.set(Some(era));
        Ok(era)
    }

    /// Where the term numbers of the file stand.
    pub(crate) fn numbers(&self) -> Outcome<EraView> {
        let sql = include_str!("sql/election_highest.sql");
        let highest = self.one(sql, [], |row| Ok(row.get::<_, u64>(0)?))?.unwrap_or_default();
        let cause = written(self, "raised_for")?.and_then(cause_of);
        let raised = written(self, "raised_at")?.zip(cause).map(|(at, cause)| Raised {
            at: Timestamp::from_unix_millis(at),
            why: cause.as_str().into(),
        });
        let highest = TermNumber::new(highest);
        Ok(EraView { era: self.present_era()?, raised, highest, clock: Era::clock(self.wall) })
    }

    /// All that the journals ever held.
    pub(crate) fn total(&self) -> Outcome<u64> {
        let sql = include_str!("sql/namespace_total.sql");
        Ok(self.one(sql, [], |row| Ok(row.get::<_, u64>(0)?))?.unwrap_or_default())
    }

    /// What the file holds after this step.
    pub(crate) fn held(&self) -> Outcome<Beside> {
        let total = self.total()?;
        let bindings = meta(self, "bindings")?;
        Ok(Beside { total, number: self.highest, bindings })
    }

    /// What the file lacks of that which is known beside it.
    pub(crate) fn lacks(&self, beside: Beside) -> Outcome<Lack> {
        let entries = beside.total.saturating_sub(self.total()?);
        let bindings = beside.bindings.saturating_sub(meta(self, "bindings")?);
        Ok(Lack { entries, bindings })
    }

    /// What lies beside the file may know of more than it has.
    pub(crate) fn compare(&mut self, beside: Beside) -> Outcome<()> {
        let lack = self.lacks(beside)?;
        if lack.is_none() {
            return Ok(());
        }
        if lack.entries > 0 {
            self.go_on_after(Seq::new(self.seq().get() + lack.entries))?;
        }
        if lack.bindings > 0 {
            tracing::error!(
                namespace = self.ns,
                noted = beside.bindings,
                lacking = lack.bindings,
                "the file was rolled back: it has fewer changes of names than the note beside it \
                 says; the era of tokens rises"
            );
            let least = params![0, number(beside.bindings)];
            self.run(include_str!("sql/bindings_count.sql"), least)?;
            self.bound = true;
        }
        let era = self.present_era()?.raised(self.wall).at_least(beside.number + 1);
        self.begin_era(era, self.wall, EraCause::Noted)
    }
}

/// A figure of the file that is always there.
fn meta(txn: &Txn<'_>, name: &str) -> Outcome<u64> {
    written(txn, name)?.ok_or_else(|| Fault::Damaged(format!("{name} of tenure_meta")))
}

/// What stands under a name, if anything does.
fn written(txn: &Txn<'_>, name: &str) -> Outcome<Option<u64>> {
    let sql = include_str!("sql/meta_get.sql");
    txn.one(sql, params![name], |row| Ok(row.get::<_, u64>(0)?))
}

/// The causes as the file has them: the place in this list, from 1.
const CAUSES: [EraCause; 4] =
    [EraCause::Restored, EraCause::Seen, EraCause::Noted, EraCause::TookOver];

pub(crate) fn number_of(cause: EraCause) -> u64 {
    (1_u64..).zip(CAUSES).find(|(_, known)| *known == cause).map_or(0, |(number, _)| number)
}

fn cause_of(number: u64) -> Option<EraCause> {
    CAUSES.into_iter().find(|cause| number_of(*cause) == number)
}

/// What a file lacks of that which it has held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    /// Of its journals.
    pub(crate) entries: u64,
    /// How many steps that changed names.
    pub(crate) bindings: u64,
}

impl Lack {
    pub(crate) fn is_none(self) -> bool {
        self.entries == 0 && self.bindings == 0
    }
}

/// What is known beside the file of what it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside {
    /// The sum of its journals' places.
    pub(crate) total: u64,
    /// The highest number of a term or revision of names.
    pub(crate) number: u64,
    /// How often names were bound.
    pub(crate) bindings: u64,
}

/// No file has held as much, so no store has noted it. Such a note is passed over, and what
/// is counted on from a note stays within what SQLite can count.
const ABSURD: u64 = 1 << 62;

/// How the names of the files begin that say so: the numbers are in the name.
const HIGHEST: &str = "highest-";

impl Beside {
    pub(crate) fn read(directory: &Path) -> Self {
        Self::known(directory).into_iter().fold(Self::default(), Self::with)
    }

    /// The file has held as much: that was committed, and survives a power cut.
    ///
    /// A process can be killed or stopped between any two steps, and others do the same
    /// meanwhile. So nothing is written over: what is known is the highest of some
    /// files, each made in one step, and one is removed only if another stood beside it
    /// that says as much. The highest before stays until the next time, so that no process
    /// that reads the directory meanwhile misses both.
    pub(crate) fn note(self, directory: &Path) {
        let known = Self::known(directory);
        let before = known.iter().copied().fold(Self::default(), Self::with);
        let now = before.with(self);
        if !known.contains(&now)
            && let Err(error) = File::create(directory.join(now.name()))
        {
            let directory = directory.display();
            tracing::debug!(%error, %directory, "what the file holds is not noted beside it");
            return;
        }
        let kept = if known.contains(&before) { before } else { now };
        for old in known.into_iter().filter(|old| *old != kept && *old != now) {
            // Another process that removes it is right as well.
            drop(fs::remove_file(directory.join(old.name())));
        }
    }

    /// All that is said, in no order.
    fn known(directory: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| Self::parse(name.to_str()?)).collect()
    }

    /// The higher of both, in each respect.
    fn with(self, other: Self) -> Self {
        Self {
            total: self.total.max(other.total),
            number: self.number.max(other.number),
            bindings: self.bindings.max(other.bindings),
        }
    }

    fn name(self) -> String {
        format!("{HIGHEST}{}-{}-{}", self.total, self.number, self.bindings)
    }

    fn parse(name: &str) -> Option<Self> {
        let mut numbers = name.strip_prefix(HIGHEST)?.split('-').map(|part| part.parse().ok());
        let total = numbers.next()??;
        let number = numbers.next()??;
        let bindings = numbers.next()??;
        let parsed = Self { total, number, bindings };
        let makes_sense = [total, number, bindings].into_iter().all(|figure| figure < ABSURD);
        // Digits can be written in more than one way; the file's name cannot.
        (makes_sense && parsed.name() == name).then_some(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(total: u64, number: u64) -> Beside {
        Beside { total, number, bindings: total / 2 }
    }

    /// R6, M6: as of a process that is killed in the middle of a note, a reader at any
    /// moment between its steps still knows what was known before.
    #[test]
    fn what_lies_beside_a_file_never_goes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| (1..=1_000).for_each(|n| beside(n, n).note(path)));
            let mut seen = Beside::default();
            while !writer.is_finished() {
                let now = Beside::read(path);
                assert!(now.total >= seen.total && now.number >= seen.number, "{now:?} {seen:?}");
                seen = now;
            }
        });
        assert_eq!(Beside::read(path), beside(1_000, 1_000));
        assert_eq!(fs::read_dir(path).unwrap().count(), 2, "old notes are removed");
    }

    /// A process that was stopped for a while says what is long known.
    #[test]
    fn a_late_note_takes_nothing_back() {
        let dir = tempfile::tempdir().unwrap();
        for (total, number) in [(50, 3), (10, 2), (40, 9), (50, 9), (51, 0)] {
            beside(total, number).note(dir.path());
        }
        assert_eq!(Beside::read(dir.path()), Beside { bindings: 25, ..beside(51, 9) });
        assert_eq!(Beside::parse("highest-7-8-3"), Some(beside(7, 8)));
        for other in [
            "highest",
            "highest-7-8",
            "highest-7-a-8",
            "highest-7-8-3-1",
            "highest-7-+8-3",
            "highest-07-8-3",
            "highest-18446744073709551615-8-3",
            "highest-7-4611686018427387904-3",
            "7-8-3",
            "line",
        ] {
            assert_eq!(Beside::parse(other), None, "{other}");
        }
    }
}
