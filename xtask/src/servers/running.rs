//! A server process that is stopped when it is dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::failure::{Doing, Failure, Outcome};

/// How long a server may take to stop when asked, before it is killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it has started or stopped.
const LOOK: Duration = Duration::from_millis(20);
/// How much of its log is shown when it fails.
const LOG_LINES: usize = 20;

/// A server process.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stop: Signal,
    log: PathBuf,
    environment: Vec<(String, String)>,
}

impl Running {
    /// Starts a program with its output in a file.
    pub(crate) fn spawn(mut command: Command, log: &Path) -> Outcome<Self> {
        let shown = command.get_program().display().to_string();
        let out = File::create(log).doing(|| format!("create {}", log.display()))?;
        let err = out.try_clone().doing(|| format!("write to {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .doing(|| format!("start {shown}"))?;
        Ok(Self { child, stop: Signal::TERM, log: log.to_path_buf(), environment: Vec::new() })
    }

    /// Chooses the signal that stops it, if it is not the usual one.
    pub(crate) fn stopped_by(mut self, stop: Signal) -> Self {
        self.stop = stop;
        self
    }

    /// Adds something by which tests find it.
    pub(crate) fn with_environment(mut self, key: &str, value: &str) -> Self {
        self.environment.push((key.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    #[cfg(test)]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `answers` says so; fails if the process ends first or time
    /// runs out.
    pub(crate) fn wait_until(
        &mut self,
        within: Duration,
        mut answers: impl FnMut() -> bool,
    ) -> Outcome {
        let from = Instant::now();
        while !answers() {
            if let Some(why) = self.ended_by_itself() {
                return Err(Failure::new(format!("it ended before it answered: {why}")));
            }
            if from.elapsed() > within {
                let log = tail(&self.log);
                return Err(Failure::new(format!("it did not answer within {within:?}:\n{log}")));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// How it ended and the last it said, if it is no longer there.
    pub(crate) fn ended_by_itself(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("{status}; its last words:\n{}", tail(&self.log)))
    }

    fn stop(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        // The id cannot have been given to another: the child was not waited for.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, self.stop)?;
        }
        let from = Instant::now();
        while from.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
        self.child.kill()?;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            let id = self.child.id();
            eprintln!("xtask: process {id} could not be stopped: {error}; end it by hand");
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::*;

    fn sh(script: &str, scratch: &Scratch) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Running::spawn(command, &scratch.path().join("log")).unwrap()
    }

    /// A server that ends before it answers is told at once, with its log, and
    /// not waited for until time runs out.
    #[test]
    fn a_server_that_cannot_start_says_why() {
        let scratch = Scratch::new("running").unwrap();
        let mut running = sh("echo the port is taken; exit 1", &scratch);
        let long = Duration::from_secs(3600);
        let failure = running.wait_until(long, || false).expect_err("it ended").to_string();
        assert!(failure.contains("ended before it answered"), "{failure}");
        assert!(failure.contains("the port is taken"), "{failure}");
    }

    /// A server that never answers is given up.
    #[test]
    fn a_server_that_never_answers_is_given_up() {
        let scratch = Scratch::new("running").unwrap();
        let mut running = sh("exec sleep 600", &scratch);
        let failure = running.wait_until(Duration::ZERO, || false).expect_err("it is mute");
        assert!(failure.to_string().contains("did not answer within"), "{failure}");
    }

    /// The signal a server asks for is the one it gets.
    #[test]
    fn a_server_is_stopped_by_its_own_signal() {
        let scratch = Scratch::new("running").unwrap();
        let marker = scratch.path().join("stopped");
        let script = format!(
            "trap 'echo INT > {0}; exit' INT; trap 'echo TERM > {0}; exit' TERM; \
             echo up; while :; do sleep 0.01; done",
            marker.display()
        );
        let mut running = sh(&script, &scratch).stopped_by(Signal::INT);
        let log = scratch.path().join("log");
        let up = || fs::read_to_string(&log).is_ok_and(|text| text.contains("up"));
        running.wait_until(Duration::from_secs(30), up).unwrap();
        drop(running);
        assert_eq!(fs::read_to_string(marker).unwrap(), "INT\n");
    }

    /// Only the end of a long log is shown.
    #[test]
    fn the_end_of_the_log_is_shown() {
        let scratch = Scratch::new("running").unwrap();
        let log = scratch.path().join("long");
        let text: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        fs::write(&log, text.join("\n")).unwrap();
        let tail = tail(&log);
        assert!(tail.starts_with("line 80") && tail.ends_with("line 99"), "{tail}");
    }
}
