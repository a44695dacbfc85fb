//! A server of a test's own, to be stopped, killed and started again.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenure_testkit::{free_port, wait_for};

/// A private PostgreSQL on a free port; gone when this is.
pub struct Server {
    dir: tempfile::TempDir,
    pub port: u16,
    settings: &'static [&'static str],
    child: Option<Child>,
}

/// PostgreSQL and its kin refuse root: then it is the package's own user.
fn user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut fields = line.expect("a user `postgres`").split(':').skip(2);
    let mut number = || fields.next().unwrap().parse().unwrap();
    Some((number(), number()))
}

fn bin(program: &str) -> PathBuf {
    let named = std::env::var_os("TENURE_POSTGRES_BIN").map(PathBuf::from);
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<_> = debian.map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = named.into_iter().chain(folders).chain(std::env::split_paths(&path));
    let mut found = all.map(|folder| folder.join(program)).filter(|path| path.is_file());
    found.next().unwrap_or_else(|| panic!("{program} is not installed"))
}

/// Gives a file to the user that servers run as, which no other user may read.
pub fn give_to_server(file: &Path) {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    if let Some((uid, gid)) = user() {
        std::os::unix::fs::chown(file, Some(uid), Some(gid)).unwrap();
    }
}

/// A command as the user that servers run as, in a folder that is theirs.
pub fn command(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some((uid, gid)) = user() {
        std::os::unix::fs::chown(dir, Some(uid), Some(gid)).unwrap();
        command.uid(uid).gid(gid);
    }
    command
}

impl Server {
    /// Makes a cluster and starts it.
    pub fn start() -> Self {
        Self::start_with(|_| {}, &[])
    }

    /// The same, with something done to the data folder first, and settings.
    pub fn start_with(prepare: impl FnOnce(&Path), settings: &'static [&'static str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = command(&bin("initdb"), dir.path())
            .args(["-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8"])
            .args(["--no-locale", "--no-sync"])
            .status();
        assert!(made.unwrap().success(), "initdb");
        prepare(&dir.path().join("data"));
        let mut server = Self { dir, port: free_port(), settings, child: None };
        server.up();
        server
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Its data, where it also keeps its socket if it is told to: `.`
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Passwords are asked of this role, once the configuration is loaded again.
    pub fn ask_for_passwords_of(&self, role: &str) {
        let path = self.dir.path().join("data/pg_hba.conf");
        let rest = std::fs::read_to_string(&path).unwrap();
        let line = format!("host all {role} 127.0.0.1/32 scram-sha-256\n");
        std::fs::write(path, line + &rest).unwrap();
    }

    /// Starts it where it was, and waits until it takes connections.
    pub fn up(&mut self) {
        let mut line = command(&bin("postgres"), self.dir.path());
        line.args(["-D", "data", "-p", &self.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=20",
            "superuser_reserved_connections=3",
        ] {
            line.args(["-c", setting]);
        }
        for setting in self.settings {
            line.args(["-c", setting]);
        }
        wait_for("the server to start", || {
            // A server that was killed leaves children that take a moment to go,
            // and until then refuses to start; so it does while another
            // connection happens to have its port.
            let ended = self.child.as_mut().is_none_or(|c| c.try_wait().unwrap().is_some());
            if ended {
                self.child = Some(line.spawn().unwrap());
            }
            let ready = command(&bin("pg_isready"), self.dir.path())
                .args(["-q", "-h", "127.0.0.1", "-U", "postgres"])
                .args(["-p", &self.port.to_string()])
                .status();
            ready.unwrap().success().then_some(())
        });
    }

    /// A copy of it on another port, which follows it and takes no writes.
    pub fn standby(&self) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = command(&bin("pg_basebackup"), dir.path())
            .args(["-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync"])
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()])
            .status();
        assert!(made.unwrap().success(), "pg_basebackup");
        let mut standby = Self { dir, port: free_port(), settings: self.settings, child: None };
        standby.up();
        standby
    }

    /// Stops the server in good order.
    pub fn stop(&mut self) {
        let mut child = self.child.take().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        child.wait().unwrap();
    }

    /// Keeps a copy of all files as they are, with the server down.
    pub fn back_up(&self) {
        self.copy("data", "backup");
    }

    /// Puts that copy in the place of the files, with the server down.
    pub fn put_back(&self) {
        std::fs::remove_dir_all(self.dir.path().join("data")).unwrap();
        self.copy("backup", "data");
    }

    fn copy(&self, from: &str, to: &str) {
        let done = command(Path::new("cp"), self.dir.path()).args(["-a", from, to]).status();
        assert!(done.unwrap().success(), "cp -a {from} {to}");
    }

    /// Runs one of PostgreSQL's programs on a database of this server, in a folder
    /// of the server's own.
    pub fn client(&self, program: &str, args: &[&str]) {
        let done = command(&bin(program), self.dir.path())
            .args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()])
            .args(args)
            .status();
        assert!(done.unwrap().success(), "{program} {args:?}");
    }

    /// The same server's other database.
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Kills the server as a power cut would: its children notice and go too.
    pub fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
    }
}

/// A pooler in transaction mode, in front of the server at `url`.
pub struct Pooler {
    _dir: tempfile::TempDir,
    child: Child,
    pub url: String,
}

impl Pooler {
    pub fn start(url: &str) -> Self {
        let config: tokio_postgres::Config = url.parse().unwrap();
        let to = config.get_ports()[0];
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let ini = format!(
            "[databases]\npostgres = host=127.0.0.1 port={to} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = any\npool_mode = transaction\ndefault_pool_size = 8\n\
             max_client_conn = 200\n"
        );
        std::fs::write(dir.path().join("pgbouncer.ini"), ini).unwrap();
        let program = [Path::new("/usr/sbin/pgbouncer"), Path::new("/usr/bin/pgbouncer")];
        let program = program.into_iter().find(|path| path.is_file()).expect("pgbouncer");
        let mut line = command(program, dir.path());
        let child = line.arg("pgbouncer.ini").spawn().unwrap();
        let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
        let pooler = Self { _dir: dir, child, url };
        wait_for("pgbouncer to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
        pooler
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
