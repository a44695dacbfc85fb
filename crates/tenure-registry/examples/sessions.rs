//! Sessions of users over five processes, one of which is killed.
//!
//! `cargo run -p tenure-registry --example sessions [URL]`; without a URL, on a SQLite file of
//! its own. Each process owns the sessions of the users that came to it. A user who comes to
//! another process is sent on. When a process is killed, its users come back to the others, and
//! each session moves under a higher token.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::Value;
use tenure_registry::{Got, Registered, Registry};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const PROCESSES: usize = 5;
const USERS: usize = 20;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    match (args.next(), args.next()) {
        (Some(id), Some(url)) if id.starts_with("web-") => {
            tokio::runtime::Runtime::new()?.block_on(serve(&id, &url))
        }
        (Some(url), None) => play(&url),
        _ => {
            let file = std::env::temp_dir().join(format!("sessions-{}.db", std::process::id()));
            let outcome = play(&format!("sqlite:{}", file.display()));
            for name in std::fs::read_dir(std::env::temp_dir())?.flatten() {
                let ours = format!("sessions-{}.db", std::process::id());
                if name.file_name().to_string_lossy().starts_with(&ours) {
                    // A folder of lock files, or a file.
                    let _ = std::fs::remove_file(name.path());
                    let _ = std::fs::remove_dir_all(name.path());
                }
            }
            outcome
        }
    }
}

/// One process: a user on each line of its input, and on its output where the session is.
async fn serve(id: &str, url: &str) -> Result<()> {
    let tenure = Tenure::builder(url).id(id).ttl(Duration::from_secs(3)).connect().await?;
    let sessions = Registry::open(&tenure, "sessions")?;
    sessions.ready().await?;
    let mut here: BTreeMap<String, Registered> = BTreeMap::new();
    println!("ready");
    for user in std::io::stdin().lines() {
        let user = user?;
        // A session that was lost is not served here any more.
        here.retain(|_, session| session.is_current());
        let got = sessions.get_or_register(&user, || Value::at(id).unwrap_or_default()).await?;
        match got {
            Got::Registered(session) => {
                println!("{id} {}", session.token());
                here.insert(user, session);
            }
            Got::Found(binding) => {
                println!("{} {}", binding.value.endpoint().unwrap_or("?"), binding.token);
            }
        }
    }
    tenure.shutdown().await?;
    Ok(())
}

struct Process {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Process {
    fn start(n: usize, url: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([&format!("web-{n}"), url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().ok_or("no input")?;
        let from = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut process = Self { child, to, from };
        process.hear()?;
        Ok(process)
    }

    fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Sends a user there. Says which process has the session, and under which token.
    fn visit(&mut self, user: usize) -> Result<(String, u64)> {
        writeln!(self.to, "user/{user}")?;
        let line = self.hear()?;
        let (owner, token) = line.split_once(' ').ok_or("a process said nothing")?;
        Ok((owner.to_owned(), token.parse()?))
    }
}

fn play(url: &str) -> Result<()> {
    let mut web = (0..PROCESSES).map(|n| Process::start(n, url)).collect::<Result<Vec<_>>>()?;
    let mut first = BTreeMap::new();
    for user in 0..USERS {
        let (owner, token) = web[user % PROCESSES].visit(user)?;
        assert_eq!(owner, format!("web-{}", user % PROCESSES), "who is asked first has it");
        // Whichever process the user comes to next, the session stays where it is.
        assert_eq!(web[(user + 1) % PROCESSES].visit(user)?, (owner, token));
        first.insert(user, token);
    }
    println!("{USERS} sessions over {PROCESSES} processes");

    web[0].child.kill()?;
    web[0].child.wait()?;
    println!("web-0 was killed");
    let began = Instant::now();
    let mut moved = 0;
    for user in (0..USERS).step_by(PROCESSES) {
        // The user comes back, to another process, until a live process owns the session.
        let (owner, token) = loop {
            let (owner, token) = web[1 + user % (PROCESSES - 1)].visit(user)?;
            if owner != "web-0" {
                break (owner, token);
            }
            std::thread::sleep(Duration::from_millis(20));
            assert!(began.elapsed() < Duration::from_secs(60), "user/{user} stays with {owner}");
        };
        assert!(token > first[&user], "a higher token");
        println!("user/{user} moved to {owner}, token {} -> {token}", first[&user]);
        moved += 1;
    }
    for user in (0..USERS).filter(|user| user % PROCESSES != 0) {
        let (owner, token) = web[1].visit(user)?;
        assert_eq!((owner, token), (format!("web-{}", user % PROCESSES), first[&user]));
    }
    println!("{moved} sessions moved, {} stayed", USERS - moved);
    for mut process in web.into_iter().skip(1) {
        drop(process.to);
        process.child.wait()?;
    }
    Ok(())
}
