//! What the threads and the followers of one store handle share.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use tenure_core::Incarnation;
use tenure_store::{Error, ErrorKind, Result, StoreId};
use tokio::sync::watch;

use crate::era::Beside;
use crate::error::Outcome;
use crate::identity::Identity;
use crate::judge::Sightings;
use crate::lives::Lives;
use crate::txn::Txn;
use crate::{BootKey, SqliteOptions};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) id: StoreId,
    pub(crate) options: SqliteOptions,
    pub(crate) boot: BootKey,
    pub(crate) sightings: Sightings,
    pub(crate) lives: Lives,
    /// Rises whenever there may be something to look at.
    pub(crate) stirred: watch::Sender<u64>,
    pub(crate) gone: Gone,
    pub(crate) identity: Identity,
}

impl Shared {
    /// Raises the era if the file has less than the note beside it says (rule M6). Every step
    /// that writes to the journal does this first: what it adds to a file that was rolled back
    /// would make up for what is lacking.
    pub(crate) fn compare(&self, txn: &mut Txn<'_>) -> Outcome<()> {
        txn.compare(Beside::read(self.lives.directory()))
    }

    /// What follows a commit: lives that are over are let go, and those who
    /// follow, here and in other processes, are woken.
    pub(crate) fn settle(&self, wrote: bool, over: &[Incarnation]) {
        for life in over {
            self.sightings.forget(*life);
            self.lives.let_go(*life);
            self.lives.bury(*life);
        }
        if wrote {
            self.lives.ring();
            self.stir();
        }
    }

    /// Refuses to write through a handle that was opened to look.
    pub(crate) fn may_write(&self, doing: &str) -> Result<()> {
        if !self.options.read_only {
            return Ok(());
        }
        let what =
            format!("{doing} in {} is refused: it was opened to look only", self.path.display());
        Err(Error::new(ErrorKind::Invalid, what).remedy("open it without read_only"))
    }

    /// Whether the paths by which other processes find this store and the lock
    /// of this life still lead to what is open here.
    pub(crate) fn is_itself(&self, life: Incarnation) -> Result<()> {
        self.identity.check()?;
        self.lives.check(life)
    }

    pub(crate) fn stir(&self) {
        self.stirred.send_modify(|times| *times = times.wrapping_add(1));
    }
}

/// The deaths noticed lately, each numbered, so that every follower can take up
/// where it was.
#[derive(Debug, Default)]
pub(crate) struct Gone(Mutex<Noticed>);

#[derive(Debug, Default)]
struct Noticed {
    lately: VecDeque<Incarnation>,
    /// How many there were before those.
    before: u64,
}

/// A follower further behind than this looks at everything instead.
const MOST: usize = 1_000;

impl Gone {
    pub(crate) fn push(&self, life: Incarnation) {
        let mut noticed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noticed.lately.push_back(life);
        if noticed.lately.len() > MOST {
            noticed.lately.pop_front();
            noticed.before += 1;
        }
    }

    /// How many deaths were noticed so far.
    pub(crate) fn count(&self) -> u64 {
        let noticed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noticed.before + noticed.lately.len() as u64
    }

    /// The deaths after the first `seen`; `None` if some are forgotten.
    pub(crate) fn after(&self, seen: u64) -> Option<Vec<Incarnation>> {
        let noticed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skip = usize::try_from(seen.checked_sub(noticed.before)?).ok()?;
        Some(noticed.lately.iter().skip(skip).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_far_behind_is_told_that_some_deaths_are_forgotten() {
        let gone = Gone::default();
        for n in 0..(MOST as u128 + 5) {
            gone.push(Incarnation::from_u128(n));
        }
        assert_eq!(gone.count(), MOST as u64 + 5);
        assert_eq!(gone.after(4), None);
        assert_eq!(gone.after(5).unwrap().len(), MOST);
        let last = Incarnation::from_u128(MOST as u128 + 4);
        assert_eq!(gone.after(MOST as u64 + 4).unwrap(), [last]);
        assert!(gone.after(MOST as u64 + 5).unwrap().is_empty());
    }
}
