//! Real processes: this test binary, started once more in a role.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "TENURE_TEST_ROLE";
const FILE: &str = "TENURE_TEST_FILE";

/// What this process is to do, if it was started by a test to do something.
pub fn role() -> Option<(String, std::path::PathBuf)> {
    Some((std::env::var(ROLE).ok()?, std::env::var_os(FILE)?.into()))
}

/// Says a line to the parent.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{line}").unwrap();
    out.flush().unwrap();
}

/// Waits for a line from the parent; exits if the parent is gone.
pub fn hear() -> String {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(0);
    }
    line.trim().to_owned()
}

/// A process started by a test; killed when it is dropped.
pub struct Process {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts this test binary again, to run the test `entry` in a role.
    pub fn start(entry: &str, role: &str, file: &Path) -> Self {
        let command = Command::new(std::env::current_exe().unwrap());
        Self::spawn(command, entry, role, file)
    }

    /// The same, in a mount namespace of its own after `script` has run in it.
    pub fn start_within(script: &str, entry: &str, role: &str, file: &Path) -> Self {
        let mut command = Command::new("unshare");
        let script = format!("{script} && exec \"$0\" \"$@\"");
        command.args(["-rm", "sh", "-c", &script]).arg(std::env::current_exe().unwrap());
        Self::spawn(command, entry, role, file)
    }

    /// Whether this system lets a script run in a mount namespace of its own.
    pub fn can_unshare(script: &str) -> bool {
        let status = Command::new("unshare").args(["-rm", "sh", "-c", script]).status();
        status.is_ok_and(|status| status.success())
    }

    fn spawn(mut command: Command, entry: &str, role: &str, file: &Path) -> Self {
        command.args([entry, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(FILE, file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, to, from }
    }

    /// The next line the child says.
    pub fn hears(&mut self) -> String {
        loop {
            let line = self.from.next().expect("the child went on").unwrap();
            // The harness of the child prints on the same line before its test.
            if let Some((_, said)) = line.split_once('@') {
                return said.to_owned();
            }
        }
    }

    pub fn tell(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        signal_process(self.child.id(), signal);
    }

    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub fn signal_process(id: u32, signal: Signal) {
    let id = Pid::from_raw(id.cast_signed()).unwrap();
    kill_process(id, signal).unwrap();
}
