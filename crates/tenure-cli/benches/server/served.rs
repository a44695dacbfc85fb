//! The real program, as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::Outcome;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tenure");

/// A process that says where it listens; gone when this is.
pub(crate) struct Served {
    process: Child,
    pub(crate) at: String,
    _home: TempDir,
}

impl Served {
    /// `tenure serve` on a store; without one, on a file of its own.
    pub(crate) fn start(store: Option<&str>, args: &[&str]) -> Outcome<Self> {
        let home = tempfile::tempdir()?;
        let file = format!("sqlite:{}", home.path().join("t.db").display());
        let mut command = Command::new(PROGRAM);
        command.args(["--json", "serve", "--listen", "127.0.0.1:0"]).args(args);
        command.env("TENURE_STORE", store.unwrap_or(&file)).env("HOME", home.path());
        let (process, line) = spawn(command)?;
        let begin = line.find("http://").ok_or("it did not say where it serves")? + 7;
        let end = line[begin..].find('"').ok_or("it did not say where it serves")?;
        Ok(Self { process, at: line[begin..begin + end].to_owned(), _home: home })
    }

    /// This program in another part, which prints its address.
    pub(crate) fn again(part: &str) -> Outcome<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(part);
        let (process, line) = spawn(command)?;
        Ok(Self { process, at: line.trim().to_owned(), _home: tempfile::tempdir()? })
    }

    /// What the process has in memory.
    pub(crate) fn resident(&self) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let figure = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(figure.ok_or("no VmRSS")?.parse()?)
    }
}

fn spawn(mut command: Command) -> Outcome<(Child, String)> {
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(process.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    Ok((process, line))
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A thousand connections are more than most shells allow.
pub(crate) fn raise_the_limit_of_files() -> Outcome {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
