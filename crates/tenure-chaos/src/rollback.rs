//! Copies of the store that are made and put back, as an operator does who restores a
//! backup or a snapshot. There is one copy at a time, so that what was forgotten does
//! not come back with a later one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::checker::{Rollback, Span};
use crate::clock;
use crate::failure::{Doing, Failure, Outcome};
use crate::keeper::Keeper;

/// What was copied and put back so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past(Arc<Mutex<Copies>>);

#[derive(Debug, Default)]
struct Copies {
    /// When the present copy was made.
    made: Option<Span>,
    rollbacks: Vec<Rollback>,
}

impl Past {
    fn copies(&self) -> MutexGuard<'_, Copies> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every copy that was put back.
    pub(crate) fn rollbacks(&self) -> Vec<Rollback> {
        self.copies().rollbacks.clone()
    }

    /// Makes a copy in the place of the one before; `work` stops the store for it.
    fn made(&self, work: impl FnOnce() -> Outcome) -> Outcome {
        let from = clock::now();
        work()?;
        self.copies().made = Some(Span { from, to: clock::now() });
        Ok(())
    }

    /// Puts the copy back. `context` is what both steps need.
    fn put_back<T>(
        &self,
        context: &mut T,
        stop: impl FnOnce(&mut T) -> Outcome,
        put: impl FnOnce(&mut T) -> Outcome,
    ) -> Outcome {
        let copied = self.copies().made.ok_or_else(|| Failure::new("there is no copy yet"))?;
        let stopping = clock::now();
        stop(context)?;
        let stopped = clock::now();
        put(context)?;
        let up = clock::now();
        self.copies().rollbacks.push(Rollback { copied, stopping, stopped, up });
        Ok(())
    }

    /// Stops the server, copies its files, and starts it again.
    pub(crate) fn copy_server(&self, keeper: &mut Keeper) -> Outcome {
        self.made(|| {
            keeper.stop()?;
            keeper.copy()?;
            keeper.up()
        })
    }

    /// Stops the server, puts the copy of its files back, and starts it again.
    pub(crate) fn put_server_back(&self, keeper: &mut Keeper) -> Outcome {
        self.put_back(keeper, Keeper::stop, |keeper| {
            keeper.put_back()?;
            keeper.up()
        })
    }

    /// Copies the file and its log; `stop` ends all processes that have it open. What lies
    /// beside it, in `tenure.db-live`, is not part of a copy.
    pub(crate) fn copy_file(&self, path: &str, stop: &mut dyn FnMut() -> Outcome) -> Outcome {
        self.made(|| {
            stop()?;
            for part in parts(path) {
                replace(&part, &beside(&part))?;
            }
            Ok(())
        })
    }

    /// Puts the copy of the file and its log back; `stop` ends all processes that have it
    /// open.
    pub(crate) fn put_file_back(&self, path: &str, stop: &mut dyn FnMut() -> Outcome) -> Outcome {
        self.put_back(
            &mut (),
            |()| stop(),
            |()| {
                // It belongs to the log that goes.
                remove(Path::new(&format!("{path}-shm")))?;
                for part in parts(path) {
                    replace(&beside(&part), &part)?;
                }
                Ok(())
            },
        )
    }
}

/// The database and its write-ahead log.
fn parts(path: &str) -> [PathBuf; 2] {
    [PathBuf::from(path), PathBuf::from(format!("{path}-wal"))]
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".copy");
    name.into()
}

/// Makes `to` what `from` is: gone, or a new file of the same content.
fn replace(from: &Path, to: &Path) -> Outcome {
    remove(to)?;
    if from.exists() {
        fs::copy(from, to).doing(|| format!("copy {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}

fn remove(path: &Path) -> Outcome {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file and its log go back together, also where one of them was not there.
    #[test]
    fn a_file_is_put_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.db").display().to_string();
        let wal = format!("{path}-wal");
        let past = Past::default();
        fs::write(&path, "old").unwrap();
        past.copy_file(&path, &mut || Ok(())).unwrap();
        for text in ["new", "newer"] {
            fs::write(&path, text).unwrap();
            fs::write(&wal, text).unwrap();
            fs::write(format!("{path}-shm"), text).unwrap();
            past.put_file_back(&path, &mut || Ok(())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
            assert!(!Path::new(&wal).exists());
            assert!(!Path::new(&format!("{path}-shm")).exists());
        }
        let rollbacks = past.rollbacks();
        assert_eq!(rollbacks.len(), 2);
        assert_eq!(rollbacks[0].copied, rollbacks[1].copied, "one copy was put back twice");
        assert!(rollbacks[0].copied.to <= rollbacks[0].stopping);
        assert!(rollbacks[0].up <= rollbacks[1].stopping);
    }

    #[test]
    fn nothing_is_put_back_before_there_is_a_copy() {
        let past = Past::default();
        let refused = past.put_file_back("t.db", &mut || Ok(())).unwrap_err();
        assert!(refused.to_string().contains("no copy yet"), "{refused}");
        assert_eq!(past.rollbacks(), []);
    }
}
