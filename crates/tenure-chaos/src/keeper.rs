//! The keeper of a PostgreSQL server: a process that starts it, kills it and
//! starts it again when it is told to, copies its files away and back while it is
//! stopped, and takes it along when it ends.
//!
//! It is told by lines on its standard input, and it ends when that ends; that
//! happens however the process at the other end does. The server's data lies in a
//! folder of its own, which goes with it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::clock;
use crate::failure::{Doing, Failure, Outcome};

/// Names the folder with PostgreSQL's programs.
const BIN: &str = "TENURE_POSTGRES_BIN";
/// Names whom to run the server as, `uid:gid`; not set to run it as ourselves.
const USER: &str = "TENURE_POSTGRES_USER";
/// From start to the first answer, recovery included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// The word that starts the server.
const START: &str = "start";
/// The word that kills it.
const KILL: &str = "kill";
/// The word that stops it, as `pg_ctl stop -m immediate` does.
const STOP: &str = "stop";
/// The word that copies its files; it must be stopped.
const COPY: &str = "copy";
/// The word that puts the copy in the place of its files; it must be stopped.
const PUT_BACK: &str = "put-back";
/// The server's files, and their copy.
const DATA: &str = "data";
const DATA_COPY: &str = "copy";

/// Our end of a keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    process: Child,
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    port: u16,
}

impl Keeper {
    /// Starts a keeper with its server, whose log goes to `log`.
    pub(crate) fn start(log: &Path) -> Outcome<Self> {
        let program = std::env::current_exe().doing(|| "find this program's own file".into())?;
        let mut process = Command::new(program)
            .arg("keeper")
            .arg(log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C goes to the whole group of the terminal; this one must live
            // to clean up.
            .process_group(0)
            .spawn()
            .doing(|| "start the store's keeper".into())?;
        let (Some(words), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Failure::new("the store's keeper has no ears"));
        };
        let answers = BufReader::new(answers);
        let mut keeper = Self { process, words: Some(words), answers, port: 0 };
        keeper.up()?;
        Ok(keeper)
    }

    /// Where the server listens, whenever it runs.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Starts the server, and returns once it answers.
    pub(crate) fn up(&mut self) -> Outcome {
        let answer = self.tell(START)?;
        self.port = answer.parse().map_err(|_| Failure::new(format!("the keeper: {answer}")))?;
        Ok(())
    }

    /// Kills the server.
    pub(crate) fn down(&mut self) -> Outcome {
        self.tell(KILL).map(drop)
    }

    /// Stops the server; when this returns, none of its processes is left.
    pub(crate) fn stop(&mut self) -> Outcome {
        self.tell(STOP).map(drop)
    }

    /// Copies the files of the stopped server.
    pub(crate) fn copy(&mut self) -> Outcome {
        self.tell(COPY).map(drop)
    }

    /// Puts the copy in the place of the stopped server's files.
    pub(crate) fn put_back(&mut self) -> Outcome {
        self.tell(PUT_BACK).map(drop)
    }

    fn tell(&mut self, word: &str) -> Outcome<String> {
        let words = self.words.as_mut().ok_or_else(|| Failure::new("the keeper is gone"))?;
        writeln!(words, "{word}").doing(|| format!("tell the keeper to {word}"))?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).doing(|| "hear from the keeper".into())?;
        match answer.trim_end() {
            "" => Err(Failure::new(format!("the store's keeper ended at `{word}`; see above"))),
            answer => Ok(answer.to_owned()),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.words.take());
        drop(self.process.wait());
    }
}

/// The other end: keeps a server until standard input ends.
pub fn keep(log: &Path) -> Outcome {
    let mut server = Server::make(log)?;
    let mut output = std::io::stdout();
    for word in std::io::stdin().lock().lines() {
        let word = word.doing(|| "read standard input".into())?;
        match word.as_str() {
            START => server.start()?,
            KILL => server.kill()?,
            STOP => server.stop()?,
            COPY => server.replace(DATA, DATA_COPY)?,
            PUT_BACK => server.replace(DATA_COPY, DATA)?,
            _ => return Err(Failure::new(format!("a keeper does not know `{word}`"))),
        }
        writeln!(output, "{}", server.port).doing(|| "answer".into())?;
    }
    Ok(())
}

struct Server {
    folder: tempfile::TempDir,
    bin: PathBuf,
    user: Option<(u32, u32)>,
    log: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl Server {
    fn make(log: &Path) -> Outcome<Self> {
        let Some(bin) = std::env::var_os(BIN).map(PathBuf::from) else {
            let text = "must name the folder with initdb and postgres; `cargo xtask chaos` does so";
            return Err(Failure::new(format!("{BIN} {text}")));
        };
        let user = match std::env::var(USER) {
            Ok(text) => Some(ids(&text).ok_or_else(|| {
                Failure::new(format!("{USER} is {text:?}; it must be two numbers, uid:gid"))
            })?),
            Err(_) => None,
        };
        let folder = tempfile::Builder::new().prefix("tenure-chaos-").tempdir();
        let folder = folder.doing(|| "make a folder for the server".into())?;
        if let Some((uid, gid)) = user {
            chown(folder.path(), Some(uid), Some(gid)).doing(|| "give the folder away".into())?;
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr());
        let port = port.doing(|| "find a free port".into())?.port();
        let server = Self { folder, bin, user, log: log.into(), port, running: None };
        let made = server
            .command("initdb")?
            .args(["-D", DATA, "-A", "trust", "-U", "postgres", "-E", "UTF8"])
            .args(["--no-locale", "--no-sync"])
            .status()
            .doing(|| "run initdb".into())?;
        if made.success() {
            return Ok(server);
        }
        Err(Failure::new(format!("initdb failed: {made}; see {}", log.display())))
    }

    fn command(&self, program: &str) -> Outcome<Command> {
        let shown = || format!("write to {}", self.log.display());
        let out = fs::OpenOptions::new().append(true).create(true).open(&self.log).doing(shown)?;
        let err = out.try_clone().doing(shown)?;
        // What is none of PostgreSQL's is found by its name.
        let own = self.bin.join(program);
        let mut command = Command::new(if own.exists() { own } else { program.into() });
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(out).stderr(err);
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        Ok(command)
    }

    /// Starts it where it was. After a kill, its last children may still hold its
    /// memory for a moment; then it refuses, and is started again.
    fn start(&mut self) -> Outcome {
        let end = clock::now() + clock::nanos(PATIENCE);
        while clock::now() < end {
            match self.running.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => {
                    if self.answers()? {
                        return Ok(());
                    }
                }
                _ => self.running = Some(self.spawn()?),
            }
            std::thread::sleep(LOOK);
        }
        let log = self.log.display();
        Err(Failure::new(format!("PostgreSQL did not start within {PATIENCE:?}; see {log}")))
    }

    fn spawn(&self) -> Outcome<Child> {
        let mut command = self.command("postgres")?;
        command.args(["-D", DATA, "-p", &self.port.to_string()]);
        for setting in
            ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"]
        {
            command.args(["-c", setting]);
        }
        command.process_group(0).spawn().doing(|| "start postgres".into())
    }

    fn answers(&self) -> Outcome<bool> {
        let mut command = self.command("pg_isready")?;
        command.args(["-q", "-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        Ok(command.status().doing(|| "run pg_isready".into())?.success())
    }

    /// As a power cut would: its children notice, and go too.
    fn kill(&mut self) -> Outcome {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        running.kill().doing(|| "kill postgres".into())?;
        running.wait().map(drop).doing(|| "wait for postgres".into())
    }

    /// The first of its processes waits for all others, and ends last.
    fn stop(&mut self) -> Outcome {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let pid = i32::try_from(running.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::new("a server without a process id"))?;
        kill_process(pid, Signal::QUIT).doing(|| "stop postgres".into())?;
        running.wait().map(drop).doing(|| "wait for postgres".into())
    }

    /// Makes the folder `to` what the folder `from` is.
    fn replace(&self, from: &str, to: &str) -> Outcome {
        if self.running.is_some() {
            return Err(Failure::new("the server must be stopped before its files are copied"));
        }
        let target = self.folder.path().join(to);
        if target.exists() {
            fs::remove_dir_all(&target).doing(|| format!("remove {}", target.display()))?;
        }
        let copied = self.command("cp")?.args(["-a", from, to]).status();
        let copied = copied.doing(|| format!("copy {from} to {to}"))?;
        if copied.success() {
            return Ok(());
        }
        Err(Failure::new(format!("could not copy {from} to {to}; see {}", self.log.display())))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.kill());
        // Its children write into the folder until they notice.
        let end = clock::now() + clock::nanos(Duration::from_secs(10));
        while fs::remove_dir_all(self.folder.path()).is_err() && clock::now() < end {
            std::thread::sleep(LOOK);
        }
    }
}

fn ids(text: &str) -> Option<(u32, u32)> {
    let (uid, gid) = text.split_once(':')?;
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_two_numbers() {
        assert_eq!(ids("101:104"), Some((101, 104)));
        for bad in ["", "101", "postgres:postgres", "1:2:3"] {
            assert_eq!(ids(bad), None, "{bad}");
        }
    }
}
