//! The built program, driven as a user would.

// Each test file uses its own part of this.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::unwrap_used, clippy::print_stderr)]

pub mod house;
pub mod overlap;
pub mod pty;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tenure_testkit::process;
pub use tenure_testkit::process::{children, is_alive, parent};
pub use tenure_testkit::{LIMIT, stamp as boottime, wait_for};

/// A store of its own, and programs that know nothing but it.
pub struct World {
    dir: tempfile::TempDir,
    store: String,
    namespace: String,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", dir.path().join("t.db").display());
        Self { dir, store, namespace: "default".into() }
    }

    /// On a server that others use too, in a namespace of its own.
    pub fn on(store: String) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let namespace = format!("cli-{}-{}", std::process::id(), boottime());
        Self { dir, store, namespace }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn store(&self) -> String {
        self.store.clone()
    }

    /// The program in a clean environment, on this world's store.
    pub fn tenure(&self, args: &[&str]) -> Command {
        let mut command = bare(args);
        command.env("TENURE_STORE", self.store()).env("HOME", self.dir());
        if self.namespace != "default" {
            command.env("TENURE_NAMESPACE", &self.namespace);
        }
        command
    }

    /// Runs it to its end.
    pub fn ask(&self, args: &[&str]) -> Output {
        self.tenure(args).output().unwrap()
    }

    pub fn code(&self, args: &[&str]) -> i32 {
        code(&self.ask(args))
    }

    /// What it prints when it succeeds.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        stdout(&output)
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let mut with_json = vec!["--json"];
        with_json.extend(args);
        serde_json::from_str(&self.text(&with_json)).unwrap()
    }

    /// `tenure run` in the background.
    pub fn run(&self, name: &str, args: &[&str]) -> Running {
        let mut all = vec!["run", "--id", name];
        all.extend(args);
        self.background(name, &all)
    }

    /// The program in the background, with what it prints and says in files: a
    /// pipe would outlive a test that fails.
    pub fn background(&self, name: &str, args: &[&str]) -> Running {
        self.start(name, self.tenure(args))
    }

    /// Any command in the background, in the same way.
    pub fn start(&self, name: &str, mut command: Command) -> Running {
        let log = self.path(&format!("{name}.err"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let out = File::create(self.path(&format!("{name}.out"))).unwrap();
        let child = command.stdin(Stdio::null()).stdout(out).stderr(file).spawn();
        Running { child: child.unwrap(), log, out: self.path(&format!("{name}.out")) }
    }

    /// Who leads, and with which term; 0 before the first.
    pub fn leader(&self, election: &str) -> (Option<String>, u64) {
        let output = self.ask(&["--json", "status", election]);
        match serde_json::from_slice::<Value>(&output.stdout) {
            Ok(view) => {
                let id = view["leader"]["id"].as_str().map(str::to_owned);
                (id, view["term"].as_u64().unwrap())
            }
            Err(_) => (None, 0),
        }
    }

    /// Waits until a member leads with a term above `term`.
    pub fn next_leader(&self, election: &str, term: u64) -> (String, u64) {
        wait_for(&format!("a leader of {election} above term {term}"), || {
            let (id, number) = self.leader(election);
            id.filter(|_| number > term).map(|id| (id, number))
        })
    }
}

/// The program with nothing in its environment but a path.
pub fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("USER", "tester");
    command
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A program in the background, ended with the test.
pub struct Running {
    pub child: Child,
    log: PathBuf,
    out: PathBuf,
}

impl Running {
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        process::signal(self.child.id(), signal);
    }

    /// What it said on the side.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What its command printed.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap_or_default()
    }

    pub fn until_printed(&self, text: &str) {
        wait_for(&format!("{text:?} in the output; it said: {}", self.said()), || {
            self.printed().contains(text).then_some(())
        });
    }

    /// Waits for its end.
    pub fn code(&mut self) -> i32 {
        let status = wait_for("the end of tenure run", || self.child.try_wait().unwrap());
        use std::os::unix::process::ExitStatusExt;
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process ids that a command printed, one on each line.
pub fn pids(text: &str) -> Vec<i32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}
