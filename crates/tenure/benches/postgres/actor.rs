//! Candidates and holders as processes of their own: this program again, which
//! is told what to do and says when it was done.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tenure::{Leadership, Tenure};
use tenure_store::BootClock;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::Outcome;
use crate::peers::{River, listen};

/// Says that this program is to play a part, and which.
pub(crate) const PART: &str = "play-a-part";

/// What a process does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Stands for an election, through the library.
    Tenure,
    /// Stands for it by River's protocol.
    River,
    /// Holds so many elections, through the library.
    Holder(usize),
    /// Sends a bare NOTIFY whenever it is told to, and waits for the answer.
    Notifier,
    /// Answers each with one of its own.
    Echo,
}

/// A process that plays a part.
pub(crate) struct Actor {
    process: Child,
    orders: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Actor {
    /// `place` is a namespace, or the name of River's row.
    pub(crate) fn start(part: Part, url: &str, place: &str, ttl: Duration) -> Outcome<Self> {
        let part = match part {
            Part::Tenure => "tenure".to_owned(),
            Part::River => "river".to_owned(),
            Part::Notifier => "notifier".to_owned(),
            Part::Echo => "echo".to_owned(),
            Part::Holder(count) => count.to_string(),
        };
        let mut process = Command::new(std::env::current_exe()?)
            .args([PART, &part, url, place, &ttl.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take().ok_or("no stdin")?;
        let said = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        Ok(Self { process, orders, said })
    }

    /// Waits for a line that begins with `word`, and gives the number in it.
    pub(crate) fn hear(&mut self, word: &str) -> Outcome<u64> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.said.read_line(&mut line)? == 0 {
                return Err(format!("a process ended before it said {word:?}").into());
            }
            if let Some(rest) = line.trim_end().strip_prefix(word) {
                return Ok(rest.trim().parse()?);
            }
        }
    }

    pub(crate) fn order(&mut self, what: &str) -> Outcome {
        Ok(writeln!(self.orders, "{what}")?)
    }

    /// kill -9, and when.
    pub(crate) fn kill(&mut self) -> Outcome<u64> {
        self.process.kill()?;
        let at = now();
        self.process.wait()?;
        Ok(at)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A clock that all processes of a machine share, in nanoseconds.
pub(crate) fn now() -> u64 {
    BootClock::read().as_nanos()
}

fn say(word: &str, number: u64) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word} {number}")?;
    Ok(out.flush()?)
}

/// Plays the part that the arguments name.
pub(crate) async fn play(part: &str, url: &str, place: &str, ttl: &str) -> Outcome {
    let ttl = Duration::from_millis(ttl.parse()?);
    match part {
        "tenure" => stand(url, place, ttl).await,
        "river" => stand_by_river(url, place, ttl).await,
        "notifier" => notify(url, place).await,
        "echo" => echo(url, place).await,
        count => hold(count.parse()?, url, place, ttl).await,
    }
}

/// What the parent says. When it is gone, so are we.
fn orders() -> UnboundedReceiver<String> {
    let (order, orders) = unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if order.send(line).is_err() {
                break;
            }
        }
        std::process::exit(0);
    });
    orders
}

async fn stand(url: &str, namespace: &str, ttl: Duration) -> Outcome {
    let mut orders = orders();
    let tenure = Tenure::builder(url).namespace(namespace).ttl(ttl).connect().await?;
    let election = tenure.election("bench");
    loop {
        let campaign = election.campaign();
        tokio::pin!(campaign);
        let leadership = tokio::select! {
            biased;
            leadership = &mut campaign => leadership?,
            stands = stands(&tenure, &election) => {
                stands?;
                say("standing", now())?;
                campaign.await?
            }
        };
        say("elected", now())?;
        if orders.recv().await.is_none() {
            return Ok(());
        }
        // From here on it does not believe to lead. It says so when it is asked
        // to stand again, and wakes no other contender in the meantime.
        let from = now();
        leadership.resign().await?;
        if orders.recv().await.is_none() {
            return Ok(());
        }
        say("resigned", from)?;
    }
}

/// Returns once the store lists this member as a candidate behind a holder.
async fn stands(tenure: &Tenure, election: &tenure::Election) -> Outcome {
    loop {
        let view = election.view().await?;
        if view.candidates.iter().any(|c| c.member.id == *tenure.id()) && view.holder.is_some() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn stand_by_river(url: &str, name: &str, ttl: Duration) -> Outcome {
    let mut orders = orders();
    let mut river = River::connect(url, name, ttl).await?;
    loop {
        let mut first = true;
        while !river.attempt().await? {
            if std::mem::take(&mut first) {
                say("standing", now())?;
            }
            river.pause().await?;
        }
        say("elected", now())?;
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(_) => break,
                    None => return Ok(()),
                },
                () = tokio::time::sleep(river.interval()) => {
                    if !river.renew().await? {
                        return Err("River's row was lost".into());
                    }
                }
            }
        }
        let from = now();
        river.resign().await?;
        if orders.recv().await.is_none() {
            return Ok(());
        }
        say("resigned", from)?;
    }
}

/// Notifies, waits for the answer, and says from when on once it is asked to.
async fn notify(url: &str, channel: &str) -> Outcome {
    let mut orders = orders();
    let (client, mut heard) = listen(url, "back").await?;
    let text = format!("NOTIFY {channel}");
    say("listening", now())?;
    while orders.recv().await.is_some() {
        let from = now();
        let (sent, until) = tokio::join!(client.batch_execute(&text), async {
            heard.recv().await;
            now()
        });
        sent?;
        say("back", until)?;
        if orders.recv().await.is_none() {
            break;
        }
        say("notified", from)?;
    }
    Ok(())
}

/// Answers notifications, and says when it heard the last once it is asked to.
async fn echo(url: &str, channel: &str) -> Outcome {
    let mut orders = orders();
    let (client, mut heard) = listen(url, channel).await?;
    let mut at = now();
    say("listening", at)?;
    loop {
        tokio::select! {
            note = heard.recv() => {
                note.ok_or("the connection was lost")?;
                at = now();
                client.batch_execute("NOTIFY back").await?;
            }
            order = orders.recv() => match order {
                Some(_) => say("heard", at)?,
                None => return Ok(()),
            },
        }
    }
}

/// Holds many elections, and says how much memory it takes.
async fn hold(count: usize, url: &str, namespace: &str, ttl: Duration) -> Outcome {
    let mut orders = orders();
    let tenure = Tenure::builder(url).namespace(namespace).ttl(ttl).connect().await?;
    let mut campaigns = tenure.campaign_all((0..count).map(|n| format!("shard-{n}")))?;
    let mut held: Vec<Leadership> = Vec::with_capacity(count);
    while let Some(leadership) = campaigns.next().await {
        held.push(leadership?);
    }
    drop(campaigns);
    say("holding", now())?;
    while orders.recv().await.is_some() {
        let current = held.iter().filter(|leadership| leadership.is_current()).count();
        say("memory", resident()?)?;
        say("current", u64::try_from(current)?)?;
    }
    Ok(())
}

/// The bytes of memory that this process has touched and not shared.
fn resident() -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).ok_or("no RssAnon")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kib * 1024)
}
