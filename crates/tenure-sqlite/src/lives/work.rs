//! The locks of what is done under a life by other processes.
//!
//! A member may lead many elections and start a process under each. Every one of them
//! gets a lock of its own: `<incarnation>.work`, `.work.2`, `.work.3` and so on, the first
//! that is free. One file for all of them cannot do. A lock belongs to the open file, so a
//! second process could only share the first one's, and the member would have to keep a
//! copy of it to hand on. Then the file would stay locked after the last process has
//! ended, and a member that is stopped would keep its terms for good.
//!
//! A process works as long as *any* of them is held. They are looked at in turn up to the
//! first that is missing, so none may be missing in between: they are removed together,
//! the last one first, and only where all are free.
//!
//! **A look while locks come and go.** The look finds `.work` free, then the member locks
//! it for a new process, then the holder of `.work.2` ends, then the look finds that one
//! free as well: it missed both. Locks are given out by a member that lives, and the look
//! counts only once its ttl is over. So the new lock was taken when the member's trust was
//! over, and no lock that is taken that late protects anything: the look may as well have
//! come before it. Of a member that is dead no lock is taken any more, and one that was
//! found free stays free.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use tenure_core::Incarnation;

use super::{Lives, Probe, WORK, locked, look, named, take};
use crate::identity::FileId;

/// More processes than a member can have.
const MOST: u32 = 100_000;

impl Lives {
    /// The files that those lock who work under a life, in the order in which they are
    /// given out.
    fn work_paths(&self, life: Incarnation) -> impl Iterator<Item = PathBuf> {
        let first = format!("{life}{WORK}");
        let further = (2..=MOST).map(move |number| format!("{life}{WORK}.{number}"));
        std::iter::once(first).chain(further).map(|name| self.directory.join(name))
    }

    /// A lock for one more process that works under a life. This process keeps no
    /// reference to it: it is free when those who inherited it are gone.
    pub(crate) fn work(&self, life: Incarnation) -> Option<OwnedFd> {
        let mut held = locked(&self.held);
        let held = held.get_mut(&life)?;
        // One under which a process works is not waited for.
        for path in self.work_paths(life).filter(|path| look(path) != Probe::Held) {
            match take(&path, self.mode()) {
                Ok(Some(file)) => {
                    if let Ok(found) = file.metadata() {
                        held.works.insert(path, FileId::of(&found));
                    }
                    return Some(file.into());
                }
                // Another handle of this process was quicker.
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(
                        %error,
                        %life,
                        "a process that works for this member cannot be given a lock of its own, \
                         and shares the member's: if the member is killed, the others wait for \
                         that process until its ttl is over, and no longer"
                    );
                    break;
                }
            }
        }
        held.lock.try_clone().ok().map(OwnedFd::from)
    }

    /// Whether a process works under a life, dead or alive.
    pub(crate) fn at_work(&self, life: Incarnation) -> bool {
        let looks = self.work_paths(life).map(|path| look(&path));
        looks.take_while(|found| *found != Probe::Missing).any(|found| match found {
            Probe::Held => true,
            Probe::Closed => !self.only_looks(),
            Probe::Free | Probe::Missing => false,
        })
    }

    /// Removes the files of all work under a life, unless a process holds one of them.
    pub(super) fn clear_work(&self, life: Incarnation) {
        if self.at_work(life) {
            return;
        }
        let there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        let files: Vec<_> = self.work_paths(life).take_while(there).collect();
        for path in files.into_iter().rev() {
            drop(fs::remove_file(path));
        }
    }
}

/// The life one of whose works' lock files has this name.
pub(crate) fn work_of(name: &str) -> Option<Incarnation> {
    let (first, number) = match name.rsplit_once('.') {
        Some((first, number)) if first.ends_with(WORK) => (first, Some(number)),
        _ => (name, None),
    };
    let is_one = |number: &str| {
        let parsed = number.parse::<u32>().ok().filter(|parsed| (2..=MOST).contains(parsed));
        parsed.is_some_and(|parsed| parsed.to_string() == number)
    };
    number.is_none_or(is_one).then(|| named(first, WORK)).flatten()
}
