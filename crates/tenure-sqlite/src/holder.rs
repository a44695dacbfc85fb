//! Who holds the lock that a request waits for.
//!
//! The kernel lists every lock with its process in `/proc/locks`. In the
//! write-ahead log's way of locking, a writer holds byte 120 of the shared
//! memory; a process that keeps all others out holds the bytes from 2^30 on of the
//! database itself. That byte is never locked for reading, except by a process that wants to
//! keep writers out.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const WRITE_LOCK: u64 = 120;

/// Which process keeps others from writing to `database`, and what to do
/// about it, as far as this system tells.
pub(crate) fn told(database: &Path) -> String {
    let shown = database.display();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let mut memory = OsString::from(database);
    memory.push("-shm");
    let held = [(database, None), (Path::new(&memory), Some(WRITE_LOCK))];
    let found = held.iter().find_map(|(file, byte)| {
        let file = fs::metadata(file).ok()?;
        let major = rustix::fs::major(file.dev());
        let minor = rustix::fs::minor(file.dev());
        writer(&locks, &format!("{major:02x}:{minor:02x}:{}", file.ino()), *byte)
    });
    match found {
        Some(process) if process == std::process::id() => format!(
            "this very process holds the write lock on {shown} in another connection: keep fenced \
             transactions short, and end each of them"
        ),
        Some(process) => format!(
            "process {process}{} holds the write lock on {shown}: end its transaction, or the \
             process",
            name(process)
        ),
        None => format!(
            "another program holds the write lock on {shown} for too long: look for a transaction \
             left open"
        ),
    }
}

/// The process that has locked `file` for writing, by the text of `/proc/locks`.
/// Processes of another namespace are listed without a number.
fn writer(locks: &str, file: &str, byte: Option<u64>) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        // One that only waits for a lock is listed with an arrow.
        let kind = words.next()?;
        let _ = words.next()?;
        let mode = words.next()?;
        let process = words.next()?;
        let locked = words.next()?;
        let from = words.next()?.parse::<u64>().ok()?;
        let to = words.next()?;
        let to = to.parse().unwrap_or(u64::MAX);
        let covers = byte.is_none_or(|byte| (from..=to).contains(&byte));
        let in_the_way = mode == "WRITE" || byte.is_some();
        let held = kind != "FLOCK" && in_the_way && locked == file && covers;
        process.parse().ok().filter(|process| held && *process != 0)
    })
}

/// What a process is called, in brackets.
fn name(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { String::new() } else { format!(" ({name})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R11, R16.
    #[test]
    fn the_writer_is_told_from_readers_waiters_and_other_files() {
        let locks = "\
1: POSIX  ADVISORY  READ 11 08:01:77 123 123
2: POSIX  ADVISORY  WRITE 12 08:01:78 120 120
3: POSIX  ADVISORY  WRITE 13 08:01:77 120 120
3: -> POSIX  ADVISORY  WRITE 14 08:01:77 120 120
4: FLOCK  ADVISORY  WRITE 15 08:01:79 0 EOF
5: POSIX  ADVISORY  WRITE 16 08:01:80 1073741824 1073742335
6: OFDLCK ADVISORY  WRITE -1 08:01:81 0 EOF
";
        assert_eq!(writer(locks, "08:01:77", Some(120)), Some(13));
        assert_eq!(writer(locks, "08:01:77", Some(121)), None);
        assert_eq!(writer(locks, "08:01:77", Some(123)), Some(11), "shared, and in the way");
        assert_eq!(writer(locks, "08:01:79", None), None);
        assert_eq!(writer(locks, "08:01:80", None), Some(16));
        assert_eq!(writer(locks, "08:01:81", None), None);
        assert_eq!(writer("nonsense\n", "08:01:81", None), None);
    }
}
