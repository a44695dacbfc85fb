//! Callers, replicas and leaders as processes of their own: this program again, which is
//! told what to do and says when it was done.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::Value;
use tenure::store::BootClock;
use tenure_registry::{Change, Registry};
use tokio_postgres::{AsyncMessage, NoTls};

use crate::Outcome;
use crate::words::{self, micros};

/// Says that this program is to play a part, and which.
pub(crate) const PART: &str = "play-a-part";
/// The ttl of the actors' members.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// So many names a leader owns that is to be killed.
const OWNED: usize = 1_000;

/// A process that plays a part.
pub(crate) struct Actor {
    process: Child,
    orders: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Actor {
    pub(crate) fn start(part: &str, url: &str, place: &str) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([PART, part, url, place])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take().ok_or("no stdin")?;
        let said = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        Ok(Self { process, orders, said })
    }

    /// Waits for a line that begins with `word`, and gives the number in it.
    pub(crate) fn hear(&mut self, word: &str) -> Outcome<f64> {
        Ok(self.line(word)?.trim().parse()?)
    }

    fn line(&mut self, word: &str) -> Outcome<String> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.said.read_line(&mut line)? == 0 {
                return Err(format!("a process ended before it said {word:?}").into());
            }
            if let Some(rest) = line.trim_end().strip_prefix(word) {
                return Ok(rest.to_owned());
            }
        }
    }

    /// Waits for a line that begins with `word`, and gives the numbers in it.
    pub(crate) fn hear_all(&mut self, word: &str) -> Outcome<Vec<f64>> {
        let rest = self.line(word)?;
        Ok(rest.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }

    pub(crate) fn order(&mut self, what: &str) -> Outcome {
        Ok(writeln!(self.orders, "{what}")?)
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) -> Outcome {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A clock that all processes of a machine share, in microseconds.
pub(crate) fn now() -> f64 {
    BootClock::read().as_nanos() as f64 / 1e3
}

fn say(word: &str, number: f64) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word} {number}")?;
    Ok(out.flush()?)
}

/// Waits for the parent's word.
fn ordered() -> Outcome {
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        return Err("the parent is gone".into());
    }
    Ok(())
}

/// Plays the part that the arguments name.
pub(crate) async fn play(part: &str, url: &str, place: &str) -> Outcome {
    if part == "hearer" {
        return hear(url, place).await;
    }
    let tenure = Tenure::builder(url).namespace(place).ttl(TTL).connect().await?;
    let registry = Registry::open(&tenure, "bench")?;
    registry.ready().await?;
    match part.split_once('-') {
        Some((count, seconds)) => call(&registry, count.parse()?, seconds.parse()?).await,
        None if part == "leader" => {
            // What its death voids as well.
            let value = Value::at(words::ENDPOINT)?;
            let names = (0..OWNED).map(|n| (format!("leaders/{n}"), value.clone()));
            let _owned = registry.register_all(names).await?;
            let _leadership = registry.leader_election().campaign().await?;
            say("elected", now())?;
            std::future::pending().await
        }
        None => replicate(&registry).await,
    }
}

/// So many callers register names, each one after the other.
async fn call(registry: &Registry, count: usize, seconds: f64) -> Outcome {
    say("ready", now())?;
    ordered()?;
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let me = std::process::id();
    let mut tasks = Vec::new();
    for caller in 0..count {
        let registry = registry.clone();
        tasks.push(tokio::spawn(async move {
            let mut kept = Vec::new();
            let mut times = Vec::new();
            while Instant::now() < until {
                let name = format!("user/{me}-{caller}-{}", times.len());
                let value = Value::at(words::ENDPOINT).map_err(|error| error.to_string())?;
                let from = Instant::now();
                let registered = registry.register(&name, value).await;
                kept.push(registered.map_err(|error| error.to_string())?);
                times.push(micros(from));
            }
            Ok::<_, String>((kept, times))
        }));
    }
    let mut all = Vec::new();
    let mut kept = Vec::new();
    for task in tasks {
        let (names, times) = task.await??;
        kept.push(names);
        all.extend(times);
    }
    say("count", all.len() as f64)?;
    let mut line = String::from("times");
    for time in &all {
        write!(line, " {time:.0}")?;
    }
    writeln!(std::io::stdout().lock(), "{line}")?;
    // The names go with the process.
    std::future::pending().await
}

/// Says when it sees a name that another process has registered.
async fn replicate(registry: &Registry) -> Outcome {
    let mut watch = registry.watch("");
    let mut first = true;
    loop {
        match watch.next().await {
            Some(Change::Registered(_)) => say("seen", now())?,
            Some(Change::Resynced { .. }) if std::mem::take(&mut first) => say("ready", now())?,
            Some(_) => {}
            None => return Ok(()),
        }
    }
}

/// Says when it hears a bare notification.
async fn hear(url: &str, channel: &str) -> Outcome {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            if matches!(message, AsyncMessage::Notification(_)) {
                drop(say("heard", now()));
            }
        }
    });
    client.batch_execute(&format!("LISTEN {channel}")).await?;
    say("ready", now())?;
    std::future::pending().await
}
