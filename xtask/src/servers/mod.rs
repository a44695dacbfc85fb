//! The servers that tests need: found or installed, started on a free loopback
//! port, waited for, and stopped whatever happens to this process.
//!
//! A server is a child of a **guard**, a second process of this program in a
//! process group of its own. The guard stops its server when its standard input
//! ends, and that happens however we end: normally, by a panic, at Ctrl-C, or by
//! `kill -9`. No signal handler is needed, and none can be forgotten.

mod cache;
mod chromium;
mod etcd;
mod guard;
mod install;
mod languages;
mod object;
mod ports;
mod postgres;
mod postgres18;
mod running;
mod scratch;
mod tools;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::failure::{Doing, Failure, Outcome};
use crate::metadata::Package;
use crate::steps::root;
pub(crate) use etcd::{own as etcd_programs, programs as names_programs};
pub(crate) use guard::guard;
pub(crate) use install::packages as install;
pub(crate) use languages::bench as bench_languages;
pub(crate) use postgres::programs as postgres_programs;
use running::Running;
use scratch::Scratch;

/// The verb by which this program starts itself as a guard.
pub(crate) const GUARD: &str = "guard-a-server";

/// The line by which a guard says that its server answers.
const READY: &str = "ready";

/// A server that tests can be run against.
pub(crate) trait Server: Sync {
    /// How it is called here.
    fn name(&self) -> &'static str;

    /// The variable by which tests find it. A crate whose sources name it needs the server.
    fn variable(&self) -> &'static str;

    /// Makes sure that its programs are on this machine, installing them if that
    /// is possible.
    fn provide(&self) -> Outcome;

    /// Whether tests say what is missing where it cannot be had. With `CI` in the environment
    /// they do not: there it is a failure.
    fn may_lack(&self) -> bool {
        false
    }

    /// Starts it with everything it keeps in `scratch`, and returns once it
    /// answers.
    fn start(&self, scratch: &Scratch) -> Outcome<Running>;
}

/// Every server there is. To add one, add a module and a line.
fn all() -> impl Iterator<Item = &'static dyn Server> {
    let postgres: [&'static dyn Server; 2] = [&postgres::Postgres, &postgres18::Postgres18];
    let others: [&'static dyn Server; 3] =
        [&etcd::Etcd, &chromium::Chromium, &languages::Languages];
    postgres.into_iter().chain(object::ALL).chain(others).chain(tools::ALL)
}

/// The servers that the tests of these crates find by their variables.
pub(crate) fn needed(packages: &[Package]) -> Vec<&'static dyn Server> {
    let mut texts = Vec::new();
    // The sources here name every server.
    for package in packages.iter().filter(|package| package.name != env!("CARGO_PKG_NAME")) {
        for folder in ["src", "tests"] {
            sources(&root().join(&package.dir).join(folder), &mut texts);
        }
    }
    all().filter(|server| texts.iter().any(|text| text.contains(server.variable()))).collect()
}

/// The Rust sources of a folder and those below it.
fn sources(folder: &Path, texts: &mut Vec<String>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, texts);
        } else if path.extension().is_some_and(|end| end == "rs") {
            texts.extend(fs::read_to_string(&path));
        }
    }
}

/// Starts servers, each with a guard, and all at once: some take seconds.
pub(crate) fn start(servers: &[&dyn Server]) -> Outcome<Servers> {
    let mut names = Vec::new();
    for server in servers {
        match server.provide() {
            Ok(()) => names.push(server.name()),
            Err(failure) if server.may_lack() && !is_ci() => {
                println!("    without {}: {failure}", server.name());
            }
            Err(failure) => return Err(failure),
        }
    }
    let kept = thread::scope(|scope| {
        let starting: Vec<_> =
            names.into_iter().map(|name| scope.spawn(move || Kept::start(name))).collect();
        let started = starting.into_iter().map(|starting| {
            starting.join().unwrap_or_else(|_| Err(Failure::new("a server's start panicked")))
        });
        // All of them, so that those that did start are stopped again.
        started.collect::<Vec<_>>().into_iter().collect::<Outcome<Vec<_>>>()
    })?;
    Ok(Servers { kept, complete: true })
}

/// Whether what is missing is a failure, as `cannot_test_here` of the tests has it.
fn is_ci() -> bool {
    std::env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")
}

/// `cargo xtask serve [name]`: the servers for tests that are run by hand.
pub(crate) fn serve(names: &[String]) -> Outcome {
    let chosen: Vec<&dyn Server> = if names.is_empty() {
        all().collect()
    } else {
        names.iter().map(|name| find(name)).collect::<Outcome<_>>()?
    };
    let servers = start(&chosen)?;
    for (key, value) in servers.environment() {
        println!("export {key}={value}");
    }
    println!("# up; press Ctrl-C, or close standard input, to stop");
    let mut sink = Vec::new();
    std::io::stdin()
        .read_to_end(&mut sink)
        .doing(|| "wait for the end of standard input".into())?;
    drop(servers);
    Ok(())
}

pub(crate) fn find(name: &str) -> Outcome<&'static dyn Server> {
    all().find(|server| server.name() == name).ok_or_else(|| {
        let known: Vec<&str> = all().map(|server| server.name()).collect();
        Failure::new(format!("no server `{name}`; there are: {}", known.join(", ")))
    })
}

/// Servers that run until this is dropped.
pub(crate) struct Servers {
    kept: Vec<Kept>,
    complete: bool,
}

impl Servers {
    /// Nothing was started yet.
    pub(crate) fn none() -> Self {
        Self { kept: Vec::new(), complete: false }
    }

    /// Whether all that was asked for is up.
    pub(crate) fn complete(&self) -> bool {
        self.complete
    }

    /// What tests find them by.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        self.kept.iter().flat_map(|kept| kept.environment.clone()).collect()
    }

    /// For the log.
    pub(crate) fn described(&self) -> String {
        let names: Vec<&str> = self.kept.iter().map(|kept| kept.name).collect();
        if names.is_empty() { "none needed".into() } else { format!("up: {}", names.join(", ")) }
    }
}

/// One server, by its guard.
struct Kept {
    name: &'static str,
    guard: Child,
    environment: Vec<(String, String)>,
}

impl Kept {
    fn start(name: &'static str) -> Outcome<Self> {
        let program = std::env::current_exe().doing(|| "find this program's own file".into())?;
        let mut guard = Command::new(program)
            .args([GUARD, name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C goes to the whole group of the terminal; the guard must
            // live to clean up.
            .process_group(0)
            .spawn()
            .doing(|| format!("start the guard of {name}"))?;
        let said = guard.stdout.take();
        let mut kept = Self { name, guard, environment: Vec::new() };
        for line in said.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            let line = line.doing(|| format!("hear from the guard of {name}"))?;
            match line.split_once('=') {
                Some((key, value)) => kept.environment.push((key.to_owned(), value.to_owned())),
                None if line == READY => return Ok(kept),
                None => {}
            }
        }
        // Dropping `kept` waits for the guard, whose words are on the screen.
        Err(Failure::new(format!("{name} did not start; the reason is shown above")))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        if let Err(error) = self.guard.wait() {
            eprintln!("xtask: could not wait for the guard of {}: {error}", self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed_by(name: &str) -> Vec<&'static str> {
        let package = Package { name: name.into(), ..Package::default() };
        let package = package.in_dir(&format!("crates/{name}"));
        needed(&[package]).iter().map(|server| server.name()).collect()
    }

    /// A server is started for the crates whose tests look for it, and for no other.
    #[test]
    fn a_crate_needs_the_servers_that_its_tests_look_for() {
        assert_eq!(needed_by("tenure-core"), [""; 0]);
        assert_eq!(needed_by("tenure-sqlite"), [""; 0]);
        assert_eq!(needed_by("tenure-postgres"), ["postgres", "postgres-18"]);
        assert_eq!(needed_by("tenure"), ["postgres"]);
        assert_eq!(needed_by("tenure-server"), ["chromium"]);
        let program = needed_by("tenure-cli");
        for name in ["postgres", "postgres-18", "languages", "schemathesis", "promtool"] {
            assert!(program.contains(&name), "{name}: {program:?}");
        }
        assert_eq!(needed_by("tenure-etcd"), ["etcd"]);
        assert_eq!(needed_by("tenure-object").len(), object::ALL.len());
        let xtask = Package { name: "xtask".into(), ..Package::default() }.in_dir("xtask");
        assert!(needed(&[xtask]).is_empty());
    }

    /// Names are what guards are started by: each must find its own server.
    #[test]
    fn every_server_is_found_by_its_name() {
        for server in all() {
            assert_eq!(find(server.name()).unwrap().variable(), server.variable());
        }
        assert!(find("oracle").err().unwrap().to_string().contains("there are: postgres"));
    }
}
