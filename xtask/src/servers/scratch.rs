//! A folder for a server's data, removed when it is dropped.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Doing, Failure, Outcome};

/// A folder of our own that other users can be let into.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes a folder that no other user can read.
    ///
    /// It lies where every user of the machine can reach it: a server that
    /// refuses to run as root runs as a user of its own.
    pub(crate) fn new(name: &str) -> Outcome<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let places = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        let Some(place) = places.iter().find(|place| open_to_all(place)) else {
            let text = "no folder for temporary files can be reached by every user; set TMPDIR";
            return Err(Failure::new(text));
        };
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("tenure-{name}-{}-{number}", std::process::id()));
        // A folder that is there already belongs to another run: an error.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.doing(|| format!("create the folder {}", path.display()))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the folder to another user.
    pub(crate) fn give_to(&self, uid: u32, gid: u32) -> Outcome {
        chown(&self.path, Some(uid), Some(gid))
            .doing(|| format!("give {} to user {uid}", self.path.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("xtask: could not remove {}: {error}", self.path.display());
        }
    }
}

/// Whether any user can get to this folder.
fn open_to_all(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return false };
    folder.ancestors().all(|above| {
        above.metadata().is_ok_and(|m| m.is_dir() && m.permissions().mode() & 0o001 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two folders of one name do not meet, are private, and go away.
    #[test]
    fn a_scratch_folder_is_private_and_goes_away() {
        let one = Scratch::new("sample").unwrap();
        let two = Scratch::new("sample").unwrap();
        assert_ne!(one.path(), two.path());
        assert_eq!(one.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let path = one.path().to_path_buf();
        drop(one);
        assert!(!path.exists() && two.path().exists());
    }

    /// A folder below a private one is out of reach, though open itself.
    #[test]
    fn a_folder_below_a_private_one_is_not_open() {
        let scratch = Scratch::new("sample").unwrap();
        let below = scratch.path().join("open");
        fs::create_dir(&below).unwrap();
        fs::set_permissions(&below, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!open_to_all(&below));
        assert!(!open_to_all(&scratch.path().join("absent")));
        assert!(open_to_all(Path::new("/")));
    }
}
