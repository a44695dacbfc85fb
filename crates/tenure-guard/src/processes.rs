//! Whether this process can see its own processes at all. Everything below finds
//! children by `/proc`; one that shows another PID namespace would have it miss
//! them, or mean a stranger.

use rustix::process::getpid;

use std::fmt;

const REMEDY: &str = "mount the /proc of this PID namespace (unshare --mount-proc, bwrap --proc \
                      /proc), or run outside of it";

/// This system does not let a command be supervised; says why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

/// Checks that `/proc` is that of this PID namespace: the processes of a command are
/// found there. Call it before anything is started.
///
/// # Errors
///
/// `/proc` is missing, or shows the processes of another namespace.
///
/// ```
/// tenure_guard::check_processes()?;
/// # Ok::<(), tenure_guard::Unsupported>(())
/// ```
pub fn check_processes() -> Result<(), Unsupported> {
    let refused = |what: String| {
        let why = "the processes of a command could neither be found nor ended";
        Err(Unsupported(format!("{what}: {why}; {REMEDY}")))
    };
    let own = getpid().as_raw_pid();
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return refused("/proc does not show this process".into());
    };
    match seen_as(&status).as_slice() {
        // A kernel that lists no namespaces has at least the number.
        [] if number(&status, "Pid:") == Some(own) => Ok(()),
        [one] if *one == own => Ok(()),
        [first, ..] => refused(format!(
            "/proc is that of another PID namespace, in which this process is {first} and not {own}"
        )),
        [] => refused("/proc does not say which process this is".into()),
    }
}

/// The numbers of this process from the namespace of `/proc` down to its own:
/// exactly one where the two are the same.
fn seen_as(status: &str) -> Vec<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.unwrap_or("").split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn number(status: &str, name: &str) -> Option<i32> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// The signals that were ignored when this process was started, as a set of bits:
/// bit 0 is signal 1.
pub(crate) fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_namespace_has_two_numbers() {
        assert_eq!(seen_as("Name:\tx\nPid:\t7\nNSpid:\t7\n"), [7]);
        assert_eq!(seen_as("Pid:\t700\nNSpid:\t700\t7\n"), [700, 7]);
        assert_eq!(seen_as("Pid:\t7\n"), [0; 0]);
        assert_eq!(number("Pid:\t7\nNSpid:\t7\n", "Pid:"), Some(7));
        check_processes().unwrap();
    }
}
