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
//! A process that works under a member's term elsewhere, such as the command of
//! `tenure run`, holds a lock of its own, on `<incarnation>.work` or, beside another such
//! process, on `.work.2` and so on ([`work`]). All of its descendants inherit it. As long
//! as one of them is held the member is not ended, neither by proof nor because its ttl
//! has run out: a process still works.
//!
//! A process that can open a lock file can lock it, also for reading alone, and a lock on the
//! file of a dead member's work keeps its terms. So the files are opened to those alone who
//! may write the database: where that is its owner, no other user can open them. Where others may
//! write as well, all of them must be able to look, whatever the mask of the process that
//! made the file, and the kernel's rights cannot tell them from those who may read.
//!
//! A file that is there and cannot be opened proves nothing. If it is that of a work, then
//! a process may work: the rights were changed, or no more files may be opened here.
//!
//! The lock is taken before the member's row is written, and outlives it. A
//! store handle that is dropped while its members have not left keeps their
//! locks for one more ttl: a task of this process may still trust its term.
//! Handles of one process that speak for the same life share its lock.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use tenure_core::{Incarnation, Mono};
use tenure_store::{BootClock, Error, ErrorKind, Result};

use crate::identity::FileId;
use crate::limits;

mod work;

pub(crate) use work::work_of;

/// The bell's name in the directory.
pub(crate) const BELL: &str = "bell";
/// The name of the file before which writers line up.
const LINE: &str = "line";
/// How the name of the lock file of a life ends, and that of its work.
const LIFE: &str = ".lock";
const WORK: &str = ".work";

/// The locks that this store handle holds, and the directory they lie in.
#[derive(Debug)]
pub(crate) struct Lives {
    database: PathBuf,
    directory: PathBuf,
    /// `None` for those who only look.
    bell: Option<File>,
    held: Mutex<HashMap<Incarnation, Held>>,
}

#[derive(Debug)]
struct Held {
    lock: Arc<File>,
    /// The file that is locked.
    id: FileId,
    /// The files that those lock who work under the life elsewhere, each where it lies.
    /// They stay for as long as the life does.
    works: BTreeMap<PathBuf, FileId>,
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
    /// There is no file.
    Missing,
    /// There is one that cannot be opened.
    Closed,
    /// A process holds the lock.
    Held,
    /// No process holds the lock.
    Free,
}

impl Lives {
    /// Opens the directory that belongs to `database`, making it if need be.
    pub(crate) fn open(database: &Path) -> Result<Self> {
        let directory = directory_of(database);
        fs::create_dir_all(&directory).map_err(|e| unwritable(&directory, e))?;
        let bell = directory.join(BELL);
        let bell = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&bell)
            .map_err(|e| unwritable(&bell, e))?;
        reap();
        let bell = Some(bell);
        let lives = Self { database: database.into(), directory, bell, held: Mutex::default() };
        // Without the line each process asks SQLite for itself.
        if let Err(error) = open(&lives.line(), lives.mode()) {
            tracing::debug!(%error, line = %lives.line().display(), "writers do not wait in line");
        }
        Ok(lives)
    }

    /// The same for a process that only looks: nothing is made.
    pub(crate) fn look(database: &Path) -> Self {
        let directory = directory_of(database);
        Self { database: database.into(), directory, bell: None, held: Mutex::default() }
    }

    /// Whether this one decides nothing.
    fn only_looks(&self) -> bool {
        self.bell.is_none()
    }

    /// The rights on a lock file: who may write the database may look at it.
    fn mode(&self) -> u32 {
        let owner = rustix::process::geteuid().as_raw();
        let only_owner = |found: fs::Metadata| found.uid() == owner && found.mode() & 0o022 == 0;
        match fs::metadata(&self.database).is_ok_and(only_owner) {
            true => 0o600,
            false => 0o644,
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file before which writers line up.
    pub(crate) fn line(&self) -> PathBuf {
        self.directory.join(LINE)
    }

    fn path(&self, life: Incarnation) -> PathBuf {
        self.directory.join(format!("{life}{LIFE}"))
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
            None => Arc::new(take(&path, self.mode())?.ok_or_else(|| doubled(life))?),
        };
        let id = FileId::of(&lock.metadata().map_err(|error| unwritable(&path, error))?);
        ours.retain(|_, lock| lock.strong_count() > 0);
        ours.insert(path, Arc::downgrade(&lock));
        held.insert(life, Held { lock, id, works: BTreeMap::new(), ttl, doubted: false });
        Ok(true)
    }

    /// The inode of the lock that is held for a life.
    pub(crate) fn lock_of(&self, life: Incarnation) -> Option<u64> {
        locked(&self.held).get(&life).map(|held| held.id.inode())
    }

    /// Whether others still find the lock that is held for a life, and those of its work.
    pub(crate) fn check(&self, life: Incarnation) -> Result<()> {
        let held = locked(&self.held).get(&life).map(|held| (held.id, held.works.clone()));
        let Some((lock, works)) = held else { return Ok(()) };
        let works = works.into_iter().map(|(path, file)| (path, file, "works"));
        for (path, open, what) in std::iter::once((self.path(life), lock, "lives")).chain(works) {
            let found = FileId::at(&path);
            if found != Some(open) {
                return Err(mislaid(&path, found.is_some(), what));
            }
        }
        Ok(())
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
    /// no other takes its closing for a death.
    pub(crate) fn let_go(&self, life: Incarnation) {
        let Some(held) = locked(&self.held).remove(&life) else { return };
        let mut ours = locked(&OURS);
        if Arc::strong_count(&held.lock) == 1 {
            let path = self.path(life);
            drop(fs::remove_file(&path));
            ours.remove(&path);
            self.clear_work(life);
        }
    }

    /// Removes the file of a life that was proven dead and ended.
    pub(crate) fn bury(&self, life: Incarnation) {
        if !locked(&self.held).contains_key(&life) && self.probe(life) == Probe::Free {
            drop(fs::remove_file(self.path(life)));
            self.clear_work(life);
        }
    }

    /// Whether the process of a life holds its lock.
    pub(crate) fn is_held(&self, life: Incarnation) -> bool {
        look(&self.path(life)) == Probe::Held
    }

    /// Looks at the lock of a life. It is not free while a process works.
    pub(crate) fn probe(&self, life: Incarnation) -> Probe {
        self.unless_at_work(life, look(&self.path(life)))
    }

    /// The same, for a caller that must be certain: a file with another inode than the
    /// one that the life was begun with is not its lock. While a lock is held no
    /// other file gets its inode.
    pub(crate) fn probe_lock(&self, life: Incarnation, lock: u64) -> Probe {
        let Ok(file) = File::open(self.path(life)) else { return Probe::Missing };
        match file.metadata() {
            Ok(found) if found.ino() == lock => self.unless_at_work(life, probe(&file)),
            _ => Probe::Missing,
        }
    }

    fn unless_at_work(&self, life: Incarnation, found: Probe) -> Probe {
        match found {
            Probe::Free if self.at_work(life) => Probe::Held,
            found => found,
        }
    }

    /// Every life that has a lock file.
    pub(crate) fn all(&self) -> Vec<Incarnation> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        entries.filter_map(|entry| life_of(entry.ok()?.file_name().to_str()?)).collect()
    }

    /// Removes lock files that are free and belong to no member. A member's file
    /// is locked shared at most: an exclusive lock, however short, would look
    /// like life to a process that wants to prove a death this very moment.
    pub(crate) fn sweep(&self, mut is_member: impl FnMut(Incarnation) -> bool) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let name = path.file_name().and_then(|name| name.to_str());
            let Some(life) = name.and_then(|name| life_of(name).or_else(|| work_of(name))) else {
                continue;
            };
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
        let Some(bell) = &self.bell else { return };
        if let Err(error) = bell.write_at(b"\n", 0) {
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

/// Closes abandoned locks whose time is over.
fn reap() {
    let now = BootClock::read();
    locked(&ABANDONED).retain(|(until, _)| *until > now);
}

/// Looks at a lock. The file is opened for reading only, so that the look itself
/// wakes no watcher, and locked shared, so that looks do not disturb each other.
fn look(path: &Path) -> Probe {
    match File::open(path) {
        Ok(file) => probe(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Probe::Missing,
        Err(_) => Probe::Closed,
    }
}

fn probe(file: &File) -> Probe {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Probe::Free,
        Err(_) => Probe::Held,
    }
}

fn directory_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-live");
    PathBuf::from(name)
}

/// The life whose lock file has this name.
pub(crate) fn life_of(name: &str) -> Option<Incarnation> {
    named(name, LIFE)
}

fn named(name: &str, ending: &str) -> Option<Incarnation> {
    let life: Incarnation = name.strip_suffix(ending)?.parse().ok()?;
    // Digits can be written in more than one way; the file's name cannot.
    (format!("{life}{ending}") == name).then_some(life)
}

/// Opens a file that others lock too, making it if need be. The mask of this process does not
/// count: it would keep those out who have to look.
fn open(path: &Path, mode: u32) -> io::Result<File> {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(mode)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    if found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o777 != mode {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    Ok(file)
}

/// Creates and locks a file; `None` if another process holds the lock. A process
/// that sweeps may have removed the file between the two steps: then the lock is
/// on a file that no other finds, and is taken anew.
fn take(path: &Path, mode: u32) -> Result<Option<File>> {
    let failed = |error: io::Error| unwritable(path, error);
    if let Some(directory) = path.parent() {
        // A user may have removed it with all that was in it.
        fs::create_dir_all(directory).map_err(failed)?;
    }
    for _ in 0..50 {
        let file = open(path, mode).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            // Perhaps another process is only looking at it this very moment.
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

fn mislaid(path: &Path, replaced: bool, what: &str) -> Error {
    let how = if replaced { "replaced" } else { "removed or renamed" };
    let what = format!(
        "the lock file {}, which proves that this member {what}, was {how}: others can no longer \
         tell whether it does",
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
    let remedy = match limits::is_limit(&error) {
        true => limits::REMEDY,
        false => "let this process create and write files beside the database",
    };
    Error::new(kind, format!("writing {} failed", path.display())).caused_by(error).remedy(remedy)
}

#[cfg(test)]
mod tests;
