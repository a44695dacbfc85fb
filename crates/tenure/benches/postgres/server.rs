//! Servers of the benchmark's own: one on disk, one in memory.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::Outcome;

/// Databases, one for each kind of contender: a notification wakes every session that
/// listens in its database, on whatever channel.
pub(crate) const DATABASES: [&str; 4] = ["tenure", "peers", "floor", "bare"];

/// A private PostgreSQL; gone when this is.
pub(crate) struct Server {
    child: Child,
    port: u16,
    dir: TempDir,
}

impl Server {
    /// Makes a cluster below a folder and starts it with the server's own
    /// settings, but for those given.
    pub(crate) async fn start(below: &Path, settings: &[&str]) -> Outcome<Self> {
        let dir = tempfile::Builder::new().prefix("tenure-bench-").tempdir_in(below)?;
        let made = command("initdb", dir.path())?
            .args(["-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8"])
            .args(["--no-locale", "--no-sync"])
            .status()?;
        if !made.success() {
            return Err(format!("initdb could not make a cluster: {made}").into());
        }
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut line = command("postgres", dir.path())?;
        line.args(["-D", "data", "-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1"]);
        line.args(["-c", "unix_socket_directories=", "-c", "max_connections=1200"]);
        for setting in settings {
            line.args(["-c", setting]);
        }
        let server = Self { child: line.spawn()?, port, dir };
        let admin = server.answers().await?;
        for database in DATABASES {
            admin.batch_execute(&format!("CREATE DATABASE {database}")).await?;
        }
        Ok(server)
    }

    async fn answers(&self) -> Outcome<Client> {
        for _ in 0..1_500 {
            if let Ok(client) = connect(&self.url("postgres")).await {
                return Ok(client);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err("the server did not answer within 30 s".into())
    }

    pub(crate) fn url(&self, database: &str) -> String {
        self.url_as("postgres", database)
    }

    /// As a role of its own, by which what it does is counted.
    pub(crate) fn url_as(&self, role: &str, database: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{database}", self.port)
    }

    /// The kind of file system that its data lies on.
    pub(crate) fn file_system(&self) -> Outcome<String> {
        let said = Command::new("stat").args(["-f", "-c", "%T"]).arg(self.dir.path()).output()?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGQUIT is its immediate shutdown: there is nothing to keep.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if pid.is_none_or(|pid| kill_process(pid, Signal::QUIT).is_err()) {
            drop(self.child.kill());
        }
        drop(self.child.wait());
    }
}

/// A program of the server's, as the user that it runs as.
fn command(program: &str, dir: &Path) -> Outcome<Command> {
    let bin = std::env::var_os("TENURE_POSTGRES_BIN").map(PathBuf::from);
    let bin = bin.ok_or("run this by `cargo xtask bench postgres`, which finds the server")?;
    let mut command = Command::new(bin.join(program));
    command.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(user) = std::env::var("TENURE_POSTGRES_USER") {
        let (uid, gid) = user.split_once(':').ok_or("TENURE_POSTGRES_USER is not uid:gid")?;
        let uid = uid.parse()?;
        let gid = gid.parse()?;
        chown(dir, Some(uid), Some(gid))?;
        command.uid(uid).gid(gid);
    }
    Ok(command)
}

pub(crate) async fn connect(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The nanoseconds of processor time that the backends of a role have used.
pub(crate) async fn backends_cpu(admin: &Client, role: &str) -> Outcome<f64> {
    let asked =
        "SELECT pid FROM pg_stat_activity WHERE usename = $1 AND backend_type = 'client backend'";
    let mut nanos = 0.0;
    for row in admin.query(asked, &[&role]).await? {
        let pid: i32 = row.get(0);
        let stat = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        nanos += stat.split(' ').next().unwrap_or("0").parse::<f64>()?;
    }
    Ok(nanos)
}

/// How many statements a role has sent, by the server's own count.
pub(crate) async fn statements(admin: &Client, role: &str) -> Outcome<f64> {
    let asked = "SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements s \
                 JOIN pg_roles r ON r.oid = s.userid WHERE r.rolname = $1 AND s.toplevel";
    Ok(admin.query_one(asked, &[&role]).await?.get(0))
}
