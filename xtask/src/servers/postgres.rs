//! PostgreSQL: a cluster of its own for each run, on a free port.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::ports::free_port;
use super::{Running, Scratch, Server, install};
use crate::failure::{Doing, Failure, Outcome};

/// Where tests find the server.
const URL: &str = "TENURE_TEST_POSTGRES_URL";
/// Names a folder with another version's programs.
const BIN: &str = "TENURE_POSTGRES_BIN";
/// Names whom to run a server as, where it cannot be ourselves: `uid:gid`.
const USER: &str = "TENURE_POSTGRES_USER";
/// What we run of it.
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_isready"];
/// Where Debian puts them, in a folder for each version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Keeps Debian's package from making a cluster and starting it at boot.
const NO_CLUSTER: &str = "/etc/postgresql-common/createcluster.d/tenure.conf";
/// What is installed by Debian's package manager where it is missing.
const SERVER: &str = "postgresql";
const POOLER: &str = "pgbouncer";
const PYTHON: &str = "python3-psycopg2";
const CLOCK: &str = "faketime";
/// From start to the first answer; it takes about a second.
const PATIENCE: Duration = Duration::from_secs(60);
/// Another process may take a port between our looking and the server's start.
const ATTEMPTS: u32 = 3;

/// The server of `tenure-postgres`.
pub(crate) struct Postgres;

impl Server for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    fn variable(&self) -> &'static str {
        URL
    }

    fn provide(&self) -> Outcome {
        self.provide_server()?;
        provide_company()
    }

    fn start(&self, scratch: &Scratch) -> Outcome<Running> {
        // Room for tests that bring a hundred candidates.
        let settings = &["max_connections=300"];
        let bin = locate()?;
        Place { bin: &bin, isready: &bin, settings, url: URL, scratch }.start()
    }
}

impl Postgres {
    pub(super) fn provide_server(&self) -> Outcome {
        if std::env::var_os(BIN).is_some() || locate().is_ok() {
            return locate().map(drop);
        }
        if rustix::process::geteuid().is_root() && Path::new("/etc/debian_version").exists() {
            keep_the_package_from_starting_one()?;
        }
        install::packages(&[SERVER])?;
        locate().map(drop)
    }
}

/// What the tests start beside the server themselves: a pooler in front of it, a
/// Python that speaks to it, and a client whose wall clock is moved.
fn provide_company() -> Outcome {
    let mut missing = Vec::new();
    if !["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].iter().any(|p| Path::new(p).is_file()) {
        missing.push(POOLER);
    }
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", "import psycopg2"]).stdin(Stdio::null()).stderr(Stdio::null());
    if !python.status().is_ok_and(|status| status.success()) {
        missing.push(PYTHON);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("faketime").is_file()) {
        missing.push(CLOCK);
    }
    if missing.is_empty() { Ok(()) } else { install::packages(&missing) }
}

/// For a program that runs servers of its own: where PostgreSQL's programs are,
/// installed if need be, and whom to run them as.
pub(crate) fn programs() -> Outcome<Vec<(String, String)>> {
    Postgres.provide()?;
    let mut environment = vec![(BIN.to_owned(), locate()?.display().to_string())];
    if let Some((uid, gid)) = user()? {
        environment.push((USER.to_owned(), format!("{uid}:{gid}")));
    }
    Ok(environment)
}

/// What makes up one server.
pub(super) struct Place<'s> {
    /// The folder of its programs.
    pub(super) bin: &'s Path,
    /// The folder of a client's: it may be of another version.
    pub(super) isready: &'s Path,
    pub(super) settings: &'s [&'s str],
    /// The variable to tell its URL by.
    pub(super) url: &'s str,
    pub(super) scratch: &'s Scratch,
}

impl Place<'_> {
    /// Makes a cluster and starts a server for it.
    pub(super) fn start(&self) -> Outcome<Running> {
        if let Some((uid, gid)) = user()? {
            self.scratch.give_to(uid, gid)?;
        }
        self.make_cluster()?;
        let mut last = Failure::new("it was not tried");
        for _ in 0..ATTEMPTS {
            match self.run(free_port()?) {
                Ok(running) => return Ok(running),
                Err(failure) => last = failure,
            }
        }
        Err(Failure::new(format!("PostgreSQL did not start in {ATTEMPTS} attempts: {last}")))
    }

    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }

    fn command(&self, program: &Path) -> Outcome<Command> {
        let mut command = Command::new(program);
        // The folder we were started in may be closed to that user.
        command.current_dir(self.scratch.path()).stdin(Stdio::null());
        if let Some((uid, gid)) = user()? {
            command.uid(uid).gid(gid);
        }
        Ok(command)
    }

    fn make_cluster(&self) -> Outcome {
        let output = self
            .command(&self.bin.join("initdb"))?
            .arg("-D")
            .arg(self.data())
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync"])
            .output()
            .doing(|| "run initdb".into())?;
        if output.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(format!("initdb could not make a cluster: {}\n{why}", output.status)))
    }

    fn run(&self, port: u16) -> Outcome<Running> {
        let mut command = self.command(&self.bin.join("postgres"))?;
        command.arg("-D").arg(self.data()).args(["-p", &port.to_string()]);
        // No socket files.
        let everywhere = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
        for setting in everywhere.iter().chain(self.settings) {
            command.args(["-c", setting]);
        }
        // SIGINT is its fast shutdown; SIGTERM would wait for clients to leave.
        let mut running = Running::spawn(command, &self.scratch.path().join("postgres.log"))?
            .stopped_by(Signal::INT)
            .with_environment(self.url, &format!("postgres://postgres@127.0.0.1:{port}/postgres"));
        running.wait_until(PATIENCE, || self.answers(port))?;
        Ok(running)
    }

    fn answers(&self, port: u16) -> bool {
        let asked = self.command(&self.isready.join("pg_isready")).and_then(|mut command| {
            command.args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
            command.status().doing(|| "run pg_isready".into())
        });
        asked.is_ok_and(|status| status.success())
    }
}

/// The folder with the programs: the one named, else Debian's newest, else the
/// first on the path that has them all.
pub(super) fn locate() -> Outcome<PathBuf> {
    if let Some(named) = std::env::var_os(BIN).map(PathBuf::from) {
        return complete(&named).ok_or_else(|| {
            let shown = named.display();
            let all = PROGRAMS.join(", ");
            Failure::new(format!("{BIN} names {shown}, which does not hold all of {all}"))
        });
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions(Path::new(DEBIAN))
        .into_iter()
        .chain(std::env::split_paths(&path))
        .find_map(|folder| complete(&folder))
        .ok_or_else(|| {
            let text = "PostgreSQL is not installed, or not on the PATH; its folder of programs \
                        can be named in";
            Failure::new(format!("{text} {BIN}"))
        })
}

fn complete(folder: &Path) -> Option<PathBuf> {
    PROGRAMS.iter().all(|program| folder.join(program).is_file()).then(|| folder.to_path_buf())
}

/// The program folders of all versions below `parent`, newest first.
fn versions(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, folder)| folder).collect()
}

/// PostgreSQL refuses to run as root: then it is the package's own user.
fn user() -> Outcome<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").doing(|| "read /etc/passwd".into())?;
    user_in(&users, "postgres").map(Some).ok_or_else(|| {
        let text = "PostgreSQL refuses to run as root, and there is no user `postgres` to run it \
                    as; add one, or run this as another user";
        Failure::new(text)
    })
}

fn user_in(users: &str, name: &str) -> Option<(u32, u32)> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        Some((uid, fields.next()?.parse().ok()?))
    })
}

fn keep_the_package_from_starting_one() -> Outcome {
    let path = Path::new(NO_CLUSTER);
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).doing(|| format!("create {}", folder.display()))?;
    fs::write(path, "create_main_cluster = false\n").doing(|| format!("write {NO_CLUSTER}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L25: the pages that give the test command say what it installs as root.
    #[test]
    fn the_front_page_names_every_package_that_is_installed() {
        for page in ["README.md", "CONTRIBUTING.md"] {
            let text = fs::read_to_string(crate::steps::root().join(page)).unwrap();
            for package in [SERVER, POOLER, PYTHON, CLOCK] {
                assert!(text.contains(&format!("`{package}`")), "{page}: {package}");
            }
        }
    }

    /// 15 is newer than 9, though not by its letters.
    #[test]
    fn the_newest_version_comes_first() {
        let scratch = Scratch::new("versions").unwrap();
        for version in ["9", "15", "13", "common"] {
            fs::create_dir_all(scratch.path().join(version).join("bin")).unwrap();
        }
        let found = versions(scratch.path());
        let expected = ["15", "13", "9"].map(|v| scratch.path().join(v).join("bin"));
        assert_eq!(found, expected);
        assert!(versions(&scratch.path().join("missing")).is_empty());
    }

    /// A client-only installation is not a server.
    #[test]
    fn a_folder_without_all_programs_is_passed_over() {
        let scratch = Scratch::new("programs").unwrap();
        fs::write(scratch.path().join("pg_isready"), "").unwrap();
        assert_eq!(complete(scratch.path()), None);
        for program in PROGRAMS {
            fs::write(scratch.path().join(program), "").unwrap();
        }
        assert_eq!(complete(scratch.path()).as_deref(), Some(scratch.path()));
    }

    /// The user is found by the whole name, with both of its numbers.
    #[test]
    fn the_user_is_read_from_the_list_of_users() {
        let users = "root:x:0:0::/root:/bin/sh\npostgres2:x:7:8:::\npostgres:x:101:104:::\n";
        assert_eq!(user_in(users, "postgres"), Some((101, 104)));
        assert_eq!(user_in(users, "mysql"), None);
        assert_eq!(user_in("postgres:x:nonsense", "postgres"), None);
    }
}
