//! Processes of others: what belongs to a program, found in `/proc`.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tenure_testkit::process::{all, children, parent};

use crate::failure::{Doing, Outcome};

/// One process, and no later one of the same number.
#[derive(Debug)]
pub(super) struct Process(OwnedFd);

impl Process {
    /// The process of this number, if it is the one that is meant. That is asked when the
    /// number can no longer come to mean another.
    fn held(id: i32, is_it: impl Fn(i32) -> bool) -> Option<Self> {
        let held = pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()?;
        is_it(id).then_some(Self(held))
    }

    /// One that is gone needs no signal.
    pub(super) fn signal(&self, signal: Signal) -> Outcome {
        match pidfd_send_signal(&self.0, signal) {
            Err(error) if error != Errno::SRCH => {
                Err(error).doing(|| "signal a process of a program".into())
            }
            _ => Ok(()),
        }
    }
}

/// Sends a signal to each.
pub(super) fn signal<'p>(
    mut processes: impl Iterator<Item = &'p Process>,
    signal: Signal,
) -> Outcome {
    processes.try_for_each(|process| process.signal(signal))
}

/// A child of this process.
pub(super) fn child(id: i32) -> Option<Process> {
    let us = std::process::id().cast_signed();
    Process::held(id, |id| parent(id) == Some(us))
}

/// Who stands between a program and its command.
#[derive(Debug)]
pub(super) struct Auxiliaries {
    pub(super) guardian: Option<Process>,
    /// Where there is a control group.
    pub(super) watchman: Option<Process>,
}

/// Those of a program that runs a command now.
pub(super) fn auxiliaries(program: i32) -> Auxiliaries {
    let find = |is_it: fn(&[u8]) -> bool| {
        children(program).into_iter().find_map(|id| {
            Process::held(id, |id| parent(id) == Some(program) && is_it(&arguments(id)))
        })
    };
    Auxiliaries {
        guardian: find(|arguments| arguments.starts_with(b"guardian\0")),
        watchman: find(|arguments| arguments.ends_with(b"\0watchman\0")),
    }
}

/// Every process that has these words one after the other among its arguments.
pub(super) fn with_arguments(words: &[String]) -> Vec<Process> {
    let wanted = format!("\0{}\0", words.join("\0")).into_bytes();
    let has = |id: i32| arguments(id).windows(wanted.len()).any(|part| part == wanted);
    all().filter(|id| has(*id)).filter_map(|id| Process::held(id, has)).collect()
}

/// Each ends with a zero byte. Nothing of a zombie, or of a process that is gone.
fn arguments(id: i32) -> Vec<u8> {
    std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn sleeper(script: &str, words: &[&str]) -> std::process::Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).args(words).stdin(Stdio::null());
        command.spawn().unwrap()
    }

    /// A process is found by whole words of its arguments, and only until it has ended.
    #[test]
    fn a_process_is_found_by_its_arguments() {
        let mine = format!("s7g{}", std::process::id());
        let words = |last: &str| vec!["command".to_owned(), mine.clone(), last.to_owned()];
        let mut child = sleeper("sleep 60; true", &["command", &mine, "first"]);
        let found = tenure_testkit::wait_for("its arguments", || {
            Some(with_arguments(&words("first"))).filter(|found| found.len() == 1)
        });
        assert!(with_arguments(&words("firs")).is_empty());
        assert!(super::child(child.id().cast_signed()).is_some());
        // The shell waits for one that would stay behind.
        let behind = tenure_testkit::wait_for("its child", || {
            Some(children(child.id().cast_signed())).filter(|found| !found.is_empty())
        });
        for id in behind {
            Process::held(id, |_| true).unwrap().signal(Signal::KILL).unwrap();
        }
        signal(found.iter(), Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(with_arguments(&words("first")).is_empty());
        found[0].signal(Signal::KILL).unwrap();
    }

    /// Guardian and watchman are told from the other children of a program.
    #[test]
    fn auxiliaries_are_found_by_what_they_call_themselves() {
        use std::os::unix::process::CommandExt;
        let us = std::process::id().cast_signed();
        let mut guardian = Command::new("sleep").arg0("guardian").arg("60").spawn().unwrap();
        let mut watchman = sleeper("read _", &["watchman"]);
        let found = tenure_testkit::wait_for("both", || {
            Some(auxiliaries(us)).filter(|found| found.guardian.is_some())
        });
        signal(found.guardian.iter(), Signal::KILL).unwrap();
        assert!(!guardian.wait().unwrap().success());
        drop(watchman.kill());
        watchman.wait().unwrap();
        assert!(auxiliaries(us).guardian.is_none() && auxiliaries(us).watchman.is_none());
    }
}
