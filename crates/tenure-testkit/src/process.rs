//! Real processes: this test program, started once more to run one of its tests.
//!
//! What a child says is marked, so that it is told from what the test harness prints on
//! the same stream. A thread reads it: a child that is never listened to does not block on
//! a full pipe, and a test waits with a limit.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::wait::{wait_for, within};

/// Stands before each line that a child says. The harness may have printed something on
/// the same line before it.
const MARK: char = '@';

/// Says a line to the test that started this process.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{MARK}{line}").expect("the parent reads");
    out.flush().expect("the parent reads");
}

/// Waits for a line from the test that started this process. Ends the process if that
/// test is gone.
pub fn hear() -> String {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(0);
    }
    line.trim().to_owned()
}

/// Sends a signal to a process of this machine.
pub fn signal(id: u32, signal: Signal) {
    let id = Pid::from_raw(id.cast_signed()).expect("the id of a process");
    kill_process(id, signal).expect("a process that exists");
}

/// Whether a process exists and is not a zombie.
#[must_use]
pub fn is_alive(id: i32) -> bool {
    word_of(id, 0).is_some_and(|state| !matches!(state.as_str(), "Z" | "X"))
}

/// The parent of a process; `None` if there is no such process.
#[must_use]
pub fn parent(id: i32) -> Option<i32> {
    word_of(id, 1)?.parse().ok()
}

/// All children of a process, zombies too.
#[must_use]
pub fn children(id: i32) -> Vec<i32> {
    all().filter(|other| parent(*other) == Some(id)).collect()
}

/// Every process of this machine.
pub fn all() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A word of `/proc/PID/stat`, counted from behind the name, which may hold anything.
fn word_of(id: i32, at: usize) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split_whitespace().nth(at).map(str::to_owned)
}

/// A process that a test has started. Killed when it is dropped, however the test ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    said: UnboundedReceiver<String>,
}

impl Process {
    /// The command that starts this test program again, to run `test` alone.
    #[must_use]
    pub fn again(test: &str) -> Command {
        let mut command = Command::new(Self::program());
        command.args(Self::arguments(test));
        command
    }

    /// The file of this test program.
    #[must_use]
    pub fn program() -> std::path::PathBuf {
        std::env::current_exe().expect("a test program has a file")
    }

    /// With these a test program runs `test` alone, and what it says is not kept back.
    #[must_use]
    pub fn arguments(test: &str) -> [&str; 4] {
        [test, "--exact", "--nocapture", "--test-threads=1"]
    }

    /// Starts it, with its input and output connected to this test.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?} starts: {error}"));
        let out = child.stdout.take().expect("its output is a pipe");
        let (say, said) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if let Some((_, words)) = line.split_once(MARK) {
                    drop(say.send(words.to_owned()));
                }
            }
        });
        Self { child, said }
    }

    /// Sends it a line.
    pub fn tell(&mut self, line: &str) {
        let to = self.child.stdin.as_mut().expect("its input is a pipe");
        writeln!(to, "{line}").expect("it reads");
    }

    /// The next line that it says; for tests that may block their thread.
    pub fn hears(&mut self) -> String {
        use tokio::sync::mpsc::error::TryRecvError;
        let said = &mut self.said;
        wait_for("a line from a process", || match said.try_recv() {
            Err(TryRecvError::Empty) => None,
            heard => Some(heard),
        })
        .expect("the process goes on")
    }

    /// The next line that it says.
    pub async fn says(&mut self) -> String {
        within(self.said.recv()).await.expect("the process goes on")
    }

    /// Sends it a line, and waits for what it says to that.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.hears()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, with: Signal) {
        signal(self.id(), with);
    }

    /// Closes its input, and waits until it has ended by itself.
    pub fn finish(mut self) -> ExitStatus {
        self.child.wait().expect("a child of this process")
    }

    /// Kills it, and waits until it is gone: it gives nothing back.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().expect("a child of this process");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = "TENURE_TEST_ROLE";

    /// Not a test by itself: the process of the next one.
    #[test]
    fn a_child_says_what_it_hears() {
        if std::env::var_os(ROLE).is_none() {
            return;
        }
        println!("not marked, and so not for the test");
        loop {
            say(&format!("heard {}", hear()));
        }
    }

    /// Lines go both ways, a stopped process says nothing, and one that is dropped is gone.
    #[tokio::test]
    async fn a_process_says_what_it_is_told_and_ends_with_its_test() {
        let mut command = Process::again("process::tests::a_child_says_what_it_hears");
        let mut process = Process::start(command.env(ROLE, "echo"));
        assert_eq!(process.ask("one"), "heard one");
        process.signal(Signal::STOP);
        process.tell("two");
        assert!(process.said.try_recv().is_err(), "a stopped process says nothing");
        process.signal(Signal::CONT);
        assert_eq!(process.says().await, "heard two");
        let id = process.id().cast_signed();
        let this = std::process::id().cast_signed();
        assert!(is_alive(id) && parent(id) == Some(this) && children(this).contains(&id));
        drop(process);
        assert!(!is_alive(id) && parent(id).is_none() && !all().any(|other| other == id));
    }
}
