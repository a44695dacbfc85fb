//! Runs tests one by one, each in a process of its own, in the order given.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::failure::{Doing, Outcome};

/// How often to look whether a test has ended.
const LOOK: Duration = Duration::from_millis(10);

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Passed,
    Failed,
    /// It took so long that it was killed.
    Hung,
}

/// A test to run.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Which test this is, for the caller.
    pub(super) test: usize,
    pub(super) program: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) name: String,
    /// When to give it up.
    pub(super) limit: Duration,
}

/// What came of a test.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) test: usize,
    /// The process that it was.
    pub(super) process: u32,
    pub(super) ended: Ended,
    pub(super) took: Duration,
    /// Its output, if it did not pass.
    pub(super) said: String,
}

/// Runs up to `slots` tests at a time until all have ended or `go_on` says no; then those
/// that still run are killed. What they write goes to files in `scratch`.
pub(super) fn run(
    tasks: Vec<Task>,
    slots: usize,
    environment: &[(String, String)],
    scratch: &Path,
    mut go_on: impl FnMut(Finished) -> bool,
) -> Outcome {
    let mut waiting = tasks.into_iter().enumerate();
    let mut running: Vec<Running> = Vec::new();
    loop {
        while running.len() < slots {
            let Some((number, task)) = waiting.next() else { break };
            let log = scratch.join(format!("{number}.log"));
            running.push(Running::start(task, environment, log)?);
        }
        if running.is_empty() {
            return Ok(());
        }
        let mut place = 0;
        while place < running.len() {
            let Some(ended) = running[place].ended()? else {
                place += 1;
                continue;
            };
            let finished = running.swap_remove(place).finish(ended);
            if !go_on(finished) {
                return Ok(());
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// A test's process, killed with all that it started when this is dropped.
struct Running {
    task: Task,
    child: Child,
    from: Instant,
    log: PathBuf,
}

impl Running {
    fn start(task: Task, environment: &[(String, String)], log: PathBuf) -> Outcome<Self> {
        let doing = || format!("write {}", log.display());
        let out = fs::File::create(&log).doing(doing)?;
        let err = out.try_clone().doing(doing)?;
        let child = Command::new(&task.program)
            .args(["--exact", &task.name, "--nocapture", "--test-threads=1"])
            .current_dir(&task.folder)
            .envs(environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn()
            .doing(|| format!("start {}", task.program.display()))?;
        Ok(Self { task, child, from: Instant::now(), log })
    }

    fn ended(&mut self) -> Outcome<Option<Ended>> {
        let status = self.child.try_wait().doing(|| "wait for a test".into())?;
        Ok(match status {
            Some(status) if status.success() => Some(Ended::Passed),
            Some(_) => Some(Ended::Failed),
            None if self.from.elapsed() > self.task.limit => Some(Ended::Hung),
            None => None,
        })
    }

    fn finish(self, ended: Ended) -> Finished {
        let said = match ended {
            Ended::Passed => String::new(),
            _ => String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned(),
        };
        let process = self.child.id();
        Finished { test: self.task.test, process, ended, took: self.from.elapsed(), said }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The id of one that was waited for may be another's by now. Until then it names
        // the test and what it started.
        if matches!(self.child.try_wait(), Ok(None))
            && let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            eprintln!("xtask: a test could not be ended: {error}");
        }
        drop(self.child.wait());
        drop(fs::remove_file(&self.log));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that takes a test's arguments: it does as the name of the test says.
    fn tasks(folder: &Path, names: &[&str]) -> Vec<Task> {
        let program = folder.join("suite");
        let script = "#!/bin/sh\ncase $2 in pass) ;; fail) echo why; exit 1;; *) sleep 60;; esac\n";
        fs::write(&program, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&program, mode).unwrap();
        let task = |(test, name): (usize, &&str)| Task {
            test,
            program: program.clone(),
            folder: folder.to_owned(),
            name: (*name).to_owned(),
            limit: if *name == "hang" {
                Duration::from_millis(50)
            } else {
                Duration::from_secs(60)
            },
        };
        names.iter().enumerate().map(task).collect()
    }

    fn outcomes(names: &[&str], stop: bool) -> Vec<(usize, Ended)> {
        let count = names.len();
        let folder = std::env::temp_dir()
            .join(format!("tenure-runner-{}-{count}-{stop}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut found = Vec::new();
        run(tasks(&folder, names), 1, &[], &folder, |finished| {
            assert_eq!(finished.said.contains("why"), finished.ended == Ended::Failed);
            found.push((finished.test, finished.ended));
            !stop || finished.ended == Ended::Passed
        })
        .unwrap();
        fs::remove_dir_all(&folder).unwrap();
        found
    }

    #[test]
    fn each_test_is_told_as_it_ended() {
        assert_eq!(
            outcomes(&["pass", "fail", "hang", "pass"], false),
            [(0, Ended::Passed), (1, Ended::Failed), (2, Ended::Hung), (3, Ended::Passed)]
        );
    }

    #[test]
    fn nothing_is_run_after_the_first_that_failed() {
        assert_eq!(
            outcomes(&["pass", "fail", "sleep"], true),
            [(0, Ended::Passed), (1, Ended::Failed)]
        );
    }
}
