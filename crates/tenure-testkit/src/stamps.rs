//! Stamps: what shows afterwards from when to when a process has certainly run.
//!
//! A process that is to be looked at keeps a file of sixteen bytes: the first and the last
//! moment at which it ran, on the clock that all processes of a machine share. The clock is
//! read before it is written down, so that a process that was killed or stopped between has
//! run for no less than what its file says.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::own::stamp;

/// Where the last moment stands in a file.
const LAST: u64 = 8;

/// The file of this process.
#[derive(Debug)]
pub struct Stamps(File);

impl Stamps {
    /// Begins to stamp, in a folder of such files. `label` says whose process this is, and
    /// under which `term` it runs; it is told from others by its process id.
    ///
    /// # Errors
    ///
    /// The file cannot be made.
    pub fn begin(folder: &Path, term: u64, label: &str) -> io::Result<Self> {
        let name = format!("{term:020}-{}-{label}", std::process::id());
        let file = File::create_new(folder.join(name))?;
        file.write_all_at(&stamp().to_ne_bytes(), 0)?;
        Ok(Self(file))
    }

    /// Says that this process still runs.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn again(&self) -> io::Result<()> {
        self.0.write_all_at(&stamp().to_ne_bytes(), LAST)
    }
}

/// What one process has stamped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The term under which it ran.
    pub term: u64,
    /// Its process id.
    pub id: i32,
    /// Whose process it was.
    pub label: String,
    /// The first moment at which it certainly ran.
    pub first: u64,
    /// The last one.
    pub last: u64,
}

/// What every process has stamped in a folder, in the order in which they began. One that
/// has not come to its first stamp is left out.
///
/// # Errors
///
/// The folder cannot be read, or something else lies in it.
pub fn lives(folder: &Path) -> io::Result<Vec<Life>> {
    let mut lives = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let strange = || io::Error::other(format!("{name} is no file of stamps"));
        let Owner { term, id, label } = owner(&name).ok_or_else(strange)?;
        let bytes = std::fs::read(entry.path())?;
        let at = |from: usize| {
            let moment = bytes.get(from..from + 8).and_then(|moment| moment.try_into().ok());
            moment.map(u64::from_ne_bytes)
        };
        if let Some(first) = at(0) {
            let last = at(8).map_or(first, |last| last.max(first));
            lives.push(Life { term, id, label, first, last });
        }
    }
    lives.sort_by_key(|life| life.first);
    Ok(lives)
}

struct Owner {
    term: u64,
    id: i32,
    label: String,
}

fn owner(name: &str) -> Option<Owner> {
    let mut parts = name.splitn(3, '-');
    let term = parts.next()?.parse().ok()?;
    let id = parts.next()?.parse().ok()?;
    Some(Owner { term, id, label: parts.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was stamped is what is read, and what has not begun is not there.
    #[test]
    fn lives_are_what_was_stamped() {
        let folder = tempfile::tempdir().unwrap();
        let before = stamp();
        let stamps = Stamps::begin(folder.path(), 7, "a-b").unwrap();
        let once = lives(folder.path()).unwrap();
        assert_eq!((once.len(), once[0].term, once[0].label.as_str()), (1, 7, "a-b"));
        assert_eq!(once[0].id, std::process::id().cast_signed());
        assert!(before <= once[0].first && once[0].first == once[0].last);
        stamps.again().unwrap();
        let twice = lives(folder.path()).unwrap();
        assert!(twice[0].first == once[0].first && twice[0].last > once[0].last, "{twice:?}");
        File::create(folder.path().join("00000000000000000008-1-c")).unwrap();
        assert_eq!(lives(folder.path()).unwrap(), twice);
        assert!(Stamps::begin(folder.path(), 7, "a-b").is_err(), "it is another's");
        File::create(folder.path().join("notes")).unwrap();
        assert!(lives(folder.path()).unwrap_err().to_string().contains("notes"));
    }
}
