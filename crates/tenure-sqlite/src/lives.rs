//! Proof of death (rule M4), and the bell.
//!
//! Beside the database `t.db` lies the directory `t.db-live`. Each member holds
//! an exclusive kernel lock on `<incarnation>.lock` in it for its life. The
//! kernel drops the lock when the last process that shares the open file is
//! gone, however it went; a stopped process keeps it. So:
//!
//! - a lock that is free, of a member of this same boot, proves death;
//! - a lock that is held, or a file that is missing, proves nothing.
//!
//! The lock is taken before the member's row is written, and outlives it. A
//! store handle that is dropped while its members have not left keeps their
//! locks for one more ttl: somebody in this process may still trust its term.
//! Handles of one process that speak for the same life share its lock.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use tenure_core::{Incarnation, Mono};
use tenure_store::{BootClock, Error, ErrorKind, Result};

use crate::identity::FileId;

/// The bell's name in the directory.
pub(crate) const BELL: &str = "bell";
/// The name of the file before which writers line up.
const LINE: &str = "line";

/// The locks that this store handle holds, and the directory they lie in.
#[derive(Debug)]
pub(crate) struct Lives {
    directory: PathBuf,
    bell: File,
    held: Mutex<HashMap<Incarnation, Held>>,
}

#[derive(Debug)]
struct Held {
    lock: Arc<File>,
    /// The file that is locked.
    id: FileId,
    ttl: Duration,
    /// Whether it was said that the file is no longer where it should be.
    doubted: bool,
}

/// Locks of handles that were dropped before their members left, each with the
/// time until which a term may still be trusted.
static ABANDONED: Mutex<Vec<(Mono, Arc<File>)>> = Mutex::new(Vec::new());

/// Every lock that this process holds, whichever handle took it.
static OURS: Mutex<BTreeMap<PathBuf, Weak<File>>> = Mutex::new(BTreeMap::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a look at a lock file found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// There is no file, or it may not be read.
    Missing,
    /// Somebody holds the lock.
    Held,
    /// Nobody holds the lock.
    Free,
}

impl Lives {
    /// Opens the directory that belongs to `database`, making it if need be.
    pub(crate) fn open(database: &Path) -> Result<Self> {
        let mut name = database.as_os_str().to_owned();
        name.push("-live");
        let directory = PathBuf::from(name);
        fs::create_dir_all(&directory).map_err(|e| unwritable(&directory, e))?;
        let bell = directory.join(BELL);
        let bell = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&bell)
            .map_err(|e| unwritable(&bell, e))?;
        reap();
        Ok(Self { directory, bell, held: Mutex::default() })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file before which writers line up.
    pub(crate) fn line(&self) -> PathBuf {
        self.directory.join(LINE)
    }

    fn path(&self, life: Incarnation) -> PathBuf {
        self.directory.join(format!("{life}.lock"))
    }

    /// Takes the lock of a life that is about to begin. `false` if this handle
    /// holds it already.
    pub(crate) fn hold(&self, life: Incarnation, ttl: Duration) -> Result<bool> {
        let mut held = locked(&self.held);
        if let Some(known) = held.get_mut(&life) {
            known.ttl = known.ttl.max(ttl);
            return Ok(false);
        }
        let path = self.path(life);
        let mut ours = locked(&OURS);
        let lock = match ours.get(&path).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => Arc::new(take(&path)?.ok_or_else(|| doubled(life))?),
        };
        let id = FileId::of(&lock.metadata().map_err(|error| unwritable(&path, error))?);
        ours.retain(|_, lock| lock.strong_count() > 0);
        ours.insert(path, Arc::downgrade(&lock));
        held.insert(life, Held { lock, id, ttl, doubted: false });
        Ok(true)
    }

    /// The inode of the lock that is held for a life.
    pub(crate) fn lock_of(&self, life: Incarnation) -> Option<u64> {
        locked(&self.held).get(&life).map(|held| held.id.inode())
    }

    /// Whether others still find the lock that is held for a life.
    pub(crate) fn check(&self, life: Incarnation) -> Result<()> {
        let Some(held) = locked(&self.held).get(&life).map(|held| held.id) else { return Ok(()) };
        let path = self.path(life);
        match FileId::at(&path) {
            Some(found) if found == held => Ok(()),
            found => Err(mislaid(&path, found.is_some())),
        }
    }

    /// Notes that something is wrong with the files a life goes by. Whether that
    /// is news; it is not for a life whose lock is not held here.
    pub(crate) fn doubt(&self, life: Incarnation) -> bool {
        let mut held = locked(&self.held);
        held.get_mut(&life).is_some_and(|held| !std::mem::replace(&mut held.doubted, true))
    }

    /// Notes that a life was granted `ttl` from now on.
    pub(crate) fn granted(&self, life: Incarnation, ttl: Duration) {
        if let Some(held) = locked(&self.held).get_mut(&life) {
            held.ttl = held.ttl.max(ttl);
        }
    }

    /// Lets go of a life that is over for certain. The file goes first, so that
    /// nobody takes its closing for a death.
    pub(crate) fn let_go(&self, life: Incarnation) {
        let Some(held) = locked(&self.held).remove(&life) else { return };
        let mut ours = locked(&OURS);
        if Arc::strong_count(&held.lock) == 1 {
            let path = self.path(life);
            drop(fs::remove_file(&path));
            ours.remove(&path);
        }
    }

    /// Removes the file of a life that was proven dead and ended.
    pub(crate) fn bury(&self, life: Incarnation) {
        if !locked(&self.held).contains_key(&life) && self.probe(life) == Probe::Free {
            drop(fs::remove_file(self.path(life)));
        }
    }

    /// Another reference to the lock of a life, sharing its fate.
    pub(crate) fn duplicate(&self, life: Incarnation) -> Option<OwnedFd> {
        let held = locked(&self.held);
        held.get(&life)?.lock.try_clone().ok().map(OwnedFd::from)
    }

    /// Looks at the lock of a life. The file is opened for reading only, so that
    /// the look itself wakes nobody, and locked shared, so that looks do not
    /// disturb each other.
    pub(crate) fn probe(&self, life: Incarnation) -> Probe {
        let Ok(file) = File::open(self.path(life)) else { return Probe::Missing };
        probe(&file)
    }

    /// The same, for one who must be certain: a file with another inode than the
    /// one that the life was begun with is not its lock. While a lock is held no
    /// other file gets its inode.
    pub(crate) fn probe_lock(&self, life: Incarnation, lock: u64) -> Probe {
        let Ok(file) = File::open(self.path(life)) else { return Probe::Missing };
        match file.metadata() {
            Ok(found) if found.ino() == lock => probe(&file),
            _ => Probe::Missing,
        }
    }

    /// Every life that has a lock file.
    pub(crate) fn all(&self) -> Vec<Incarnation> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        entries.filter_map(|entry| life_of(entry.ok()?.file_name().to_str()?)).collect()
    }

    /// Removes lock files that are free and belong to no member. A member's file
    /// is locked shared at most: an exclusive lock, however short, would look
    /// like life to somebody who wants to prove a death this very moment.
    pub(crate) fn sweep(&self, mut is_member: impl FnMut(Incarnation) -> bool) {
        for life in self.all() {
            let path = self.path(life);
            let Ok(file) = File::open(&path) else { continue };
            let lock = |how| rustix::fs::flock(&file, how).is_ok();
            // The row is looked for after the lock was seen free: one that is
            // written later was preceded by taking the lock.
            if lock(FlockOperation::NonBlockingLockShared)
                && !is_member(life)
                && lock(FlockOperation::NonBlockingLockExclusive)
            {
                drop(fs::remove_file(&path));
            }
        }
    }

    /// Tells every process that follows that the journal has grown. If the bell
    /// cannot be rung they notice at their next slow look.
    pub(crate) fn ring(&self) {
        if let Err(error) = self.bell.write_at(b"\n", 0) {
            tracing::debug!(%error, directory = %self.directory.display(), "the bell is mute");
        }
    }
}

impl Drop for Lives {
    fn drop(&mut self) {
        let now = BootClock::read();
        let held = std::mem::take(&mut *locked(&self.held));
        locked(&ABANDONED).extend(held.into_values().map(|held| (now + held.ttl, held.lock)));
        reap();
    }
}

fn probe(file: &File) -> Probe {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Probe::Free,
        Err(_) => Probe::Held,
    }
}

/// Closes abandoned locks whose time is over.
fn reap() {
    let now = BootClock::read();
    locked(&ABANDONED).retain(|(until, _)| *until > now);
}

/// The life whose lock file has this name.
pub(crate) fn life_of(name: &str) -> Option<Incarnation> {
    let life: Incarnation = name.strip_suffix(".lock")?.parse().ok()?;
    // Digits can be written in more than one way; the file's name cannot.
    (format!("{life}.lock") == name).then_some(life)
}

/// Creates and locks a file; `None` if another process holds the lock. Somebody
/// who sweeps may have removed the file between the two steps: then the lock is
/// on a file nobody finds, and is taken anew.
fn take(path: &Path) -> Result<Option<File>> {
    let failed = |error: io::Error| unwritable(path, error);
    if let Some(directory) = path.parent() {
        // Somebody may have removed it with all that was in it.
        fs::create_dir_all(directory).map_err(failed)?;
    }
    for _ in 0..50 {
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Perhaps somebody is only looking at it this very moment.
            Err(rustix::io::Errno::WOULDBLOCK) => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => return Err(failed(error.into())),
        }
        let here = file.metadata().map_err(failed)?;
        if fs::metadata(path).is_ok_and(|there| there.ino() == here.ino()) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn doubled(life: Incarnation) -> Error {
    let what = format!("another process already lives as the incarnation {life}");
    Error::new(ErrorKind::Invalid, what).remedy("join with a fresh random incarnation")
}

fn mislaid(path: &Path, replaced: bool) -> Error {
    let how = if replaced { "replaced" } else { "removed or renamed" };
    let what = format!(
        "the lock file {}, which proves that this member lives, was {how}: others can no longer \
         tell whether it is dead",
        path.display()
    );
    Error::new(ErrorKind::Foreign, what).remedy(
        "this member gives up what it leads and joins anew; do not touch the files in that \
         directory while any process of the store runs",
    )
}

fn unwritable(path: &Path, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        _ => ErrorKind::Unwritable,
    };
    Error::new(kind, format!("writing {} failed", path.display()))
        .caused_by(error)
        .remedy("let this process create and write files beside the database")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> (tempfile::TempDir, Lives) {
        let dir = tempfile::tempdir().unwrap();
        let lives = Lives::open(&dir.path().join("t.db")).unwrap();
        (dir, lives)
    }

    const A: Incarnation = Incarnation::from_u128(0xa);
    const B: Incarnation = Incarnation::from_u128(0xb);
    const TTL: Duration = Duration::from_secs(1);

    /// M4: only a lock that exists and is free proves anything.
    #[test]
    fn a_lock_is_held_until_it_is_let_go_and_a_missing_one_proves_nothing() {
        let (_dir, lives) = fixture();
        assert_eq!(lives.probe(A), Probe::Missing);
        assert!(lives.hold(A, TTL).unwrap());
        assert!(!lives.hold(A, TTL).unwrap(), "a repeated join takes no second lock");
        assert_eq!(lives.probe(A), Probe::Held);
        lives.bury(A);
        assert_eq!(lives.probe(A), Probe::Held, "what is held is not buried");
        lives.let_go(A);
        assert_eq!(lives.probe(A), Probe::Missing);
    }

    #[test]
    fn a_shared_reference_keeps_the_lock_held() {
        let (_dir, lives) = fixture();
        lives.hold(A, TTL).unwrap();
        let guardian = lives.duplicate(A).unwrap();
        let lock = locked(&lives.held).remove(&A).unwrap();
        drop(lock);
        assert_eq!(lives.probe(A), Probe::Held);
        drop(guardian);
        assert_eq!(lives.probe(A), Probe::Free);
        assert!(lives.duplicate(B).is_none());
    }

    /// Two handles of one process that speak for one life: it lives as long as
    /// either does.
    #[test]
    fn handles_of_one_process_share_the_lock_of_a_life() {
        let (dir, first) = fixture();
        let second = Lives::open(&dir.path().join("t.db")).unwrap();
        assert!(first.hold(A, TTL).unwrap());
        assert!(second.hold(A, TTL).unwrap());
        first.let_go(A);
        assert_eq!(second.probe(A), Probe::Held);
        second.let_go(A);
        assert_eq!(second.probe(A), Probe::Missing);
    }

    #[test]
    fn a_life_that_another_process_leads_is_refused() {
        let (_dir, lives) = fixture();
        let other = File::create(lives.path(A)).unwrap();
        rustix::fs::flock(&other, FlockOperation::LockExclusive).unwrap();
        let error = lives.hold(A, TTL).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("fresh random incarnation"), "{error}");
    }

    #[test]
    fn sweeping_removes_free_orphans_and_nothing_else() {
        let (_dir, lives) = fixture();
        lives.hold(A, TTL).unwrap();
        File::create(lives.path(B)).unwrap();
        let member = Incarnation::from_u128(0xc);
        File::create(lives.path(member)).unwrap();
        lives.sweep(|life| life == member);
        let mut left = lives.all();
        left.sort();
        assert_eq!(left, [A, member]);
    }

    /// A dropped handle is not a dead process: its locks stay for the ttl.
    #[test]
    fn a_dropped_handle_proves_nothing_until_its_ttl_is_over() {
        let (dir, lives) = fixture();
        lives.hold(A, Duration::from_secs(3600)).unwrap();
        lives.hold(B, Duration::ZERO).unwrap();
        drop(lives);
        let again = Lives::open(&dir.path().join("t.db")).unwrap();
        assert_eq!(again.probe(A), Probe::Held);
        assert_eq!(again.probe(B), Probe::Free);
    }

    #[test]
    fn only_lock_files_are_taken_for_lives() {
        assert_eq!(life_of(&format!("{A}.lock")), Some(A));
        assert_eq!(life_of("bell"), None);
        assert_eq!(life_of("a.lock"), None);
        assert_eq!(life_of("zz000000000000000000000000000000.lock"), None);
    }
}
