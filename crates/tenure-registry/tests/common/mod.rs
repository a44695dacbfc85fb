//! What the tests of this crate share.
#![allow(dead_code, unused_imports, unreachable_pub, clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tenure::Tenure;
use tenure_registry::Registry;
use tenure_testkit::{Dice, LIMIT, let_pass_blocking};
pub use tenure_testkit::{fresh_name, within};

/// Where the server is. `cargo xtask test` starts one.
pub fn postgres_url() -> String {
    std::env::var("TENURE_TEST_POSTGRES_URL")
        .expect("run the tests by `cargo xtask test`, or start a server by `cargo xtask serve`")
}

/// A registry of a member of its own.
pub async fn open(url: &str, ns: &str, id: &str, ttl: Duration) -> Registry {
    let member = Tenure::builder(url).namespace(ns).id(id).ttl(ttl);
    // A short ttl makes short requests, of which one may fail on a busy machine.
    let member = member.wait_for_store(LIMIT).connect().await.unwrap();
    let names = Registry::open(&member, "s").unwrap();
    within(names.ready()).await.unwrap();
    names
}

/// A session of the application's own.
pub async fn session() -> tokio_postgres::Client {
    let (client, connection) =
        tokio_postgres::connect(&postgres_url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

const ROLE: &str = "TENURE_TEST_ROLE";

/// What this process is to do, if it was started by a test to do something.
pub fn role() -> Option<Vec<String>> {
    Some(std::env::var(ROLE).ok()?.split('|').map(String::from).collect())
}

/// Says a line to the parent.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "@{line}").unwrap();
    out.flush().unwrap();
}

/// Waits until the parent says something, or is gone.
pub fn hear() {
    let mut line = String::new();
    drop(std::io::stdin().lock().read_line(&mut line));
}

/// This test binary, started once more in a role; killed when it is dropped.
pub struct Process {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Runs the test `entry` in a role.
    pub fn start(entry: &str, role: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([entry, "--exact", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role.join("|")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take();
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

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Lets it come to its end.
    pub fn ends(&mut self) {
        drop(self.to.take());
        assert!(self.child.wait().unwrap().success(), "the child failed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A number that a person may change for a longer run.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// The same, of seconds.
pub fn seconds(name: &str, default: u64) -> Duration {
    Duration::from_secs(setting(name, default))
}

/// How often processes were stopped beyond their ttl, and killed.
#[derive(Clone, Copy, Debug)]
pub struct Torments {
    pub stops: usize,
    pub kills: usize,
}

/// Starts processes, each with its number and its life, and hurts them for a while; then lets
/// them come to their end.
pub fn torment(
    count: usize,
    limit: Duration,
    ttl: Duration,
    start: impl Fn(usize, usize) -> Process,
) -> Torments {
    let mut processes: Vec<_> = (0..count).map(|n| start(n, 0)).collect();
    let began = Instant::now();
    let mut dice = Dice::new(7);
    let mut stopped = Vec::<(Instant, usize)>::new();
    let mut done = Torments { stops: 0, kills: 0 };
    while began.elapsed() < limit || done.kills < 3 || done.stops < 3 {
        let_pass_blocking(Duration::from_millis(100), "the pace of the faults");
        stopped.retain(|(at, n)| {
            let goes_on = at.elapsed() > ttl * 2;
            if goes_on {
                processes[*n].signal(Signal::CONT);
            }
            !goes_on
        });
        let n = dice.below(count);
        if stopped.iter().any(|(_, other)| *other == n) {
            continue;
        }
        match dice.below(4) {
            0 => {
                processes[n].kill();
                done.kills += 1;
                processes[n] = start(n, done.kills);
            }
            1 => {
                processes[n].signal(Signal::STOP);
                done.stops += 1;
                stopped.push((Instant::now(), n));
            }
            _ => {}
        }
    }
    stopped.iter().for_each(|(_, n)| processes[*n].signal(Signal::CONT));
    processes.iter_mut().for_each(Process::ends);
    done
}
