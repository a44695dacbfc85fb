//! Hand-over between real processes on SQLite, at the default ttl of 10 s:
//! after kill -9 of the leader, and after its resignation; what an idle standby
//! costs; and what a dead leader of very many elections costs its successor.
//!
//! The candidates are this program again, started as `… candidate URL`.

#![allow(clippy::print_stdout, missing_docs)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use tenure::views::{Incarnation, MemberRef};
use tenure::{ElectionName, MemberId, Namespace, Tenure};
use tenure_core::{Bid, Claim, Claimed, Claims, Heartbeat, Join, Nonce};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{BootClock, Store};

const ROUNDS: usize = 20;
const IDLE: Duration = Duration::from_secs(12);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    if let [_, role, url] = &args[..]
        && role == "candidate"
    {
        return candidate(url);
    }
    let folder = tempfile::tempdir()?;
    let mut bars = common::Bars::default();

    let url = format!("sqlite:{}", folder.path().join("kill.db").display());
    let mut killed = rounds(&url, |leader| {
        let at = BootClock::read();
        leader.process.kill()?;
        leader.process.wait()?;
        Ok(at.as_nanos())
    })?;
    report(&mut bars, "kill -9 of the leader to a new leader (median of 20)", &mut killed, 250.0);

    let url = format!("sqlite:{}", folder.path().join("resign.db").display());
    let mut resigned = rounds(&url, |leader| {
        let at = BootClock::read();
        writeln!(leader.orders, "resign")?;
        leader.hear("resigned")?;
        Ok(at.as_nanos())
    })?;
    report(&mut bars, "resignation to a new leader (median of 20)", &mut resigned, 50.0);

    bars.at_most("an idle standby's share of a core", idle_share(&url)? * 100.0, 0.5, "%");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ratio = runtime.block_on(endings(&folder.path().join("endings.db")))?;
    bars.at_most("taken over from a dead holder of 100,000 / of one", ratio, 1.5, "x");
    bars.finish();
    Ok(())
}

/// How much longer it takes to take one election over from a dead member that held a
/// hundred thousand than from one that held a single one; in turns.
async fn endings(path: &Path) -> Outcome<f64> {
    let store = SqliteStore::open(path, SqliteOptions::new()).await?;
    let ns = Namespace::default();
    let heir = enter(&store, &ns, "heir", 1).await?;
    let mut one = Vec::new();
    let mut many = Vec::new();
    for round in 0..5 {
        for (times, count) in [(&mut one, 1), (&mut many, 100_000)] {
            let dead = enter(
                &store,
                &ns,
                &format!("dead-{round}-{count}"),
                2 + round * 10 + u128::from(count == 1),
            )
            .await?;
            let batch: usize = 1_000.min(count);
            for from in (0..count).step_by(batch) {
                let names = (from..from + batch).map(|n| format!("e-{round}-{count}-{n}"));
                claim(&store, &ns, &dead, names, 1).await?;
            }
            let ttl = Duration::from_millis(1);
            store.heartbeat(&ns, &Heartbeat::new(dead, ttl)).await?;
            tokio::time::sleep(Duration::from_millis(60)).await;
            let from = Instant::now();
            let name = format!("e-{round}-{count}-0");
            claim(&store, &ns, &heir, std::iter::once(name), 2).await?;
            times.push(common::millis(from.elapsed()));
        }
    }
    let (one, ..) = common::median(&mut one);
    let (many, ..) = common::median(&mut many);
    println!("taken over from a dead holder of one {one:.3} ms, of 100,000 {many:.3} ms");
    Ok(many / one)
}

async fn enter(store: &SqliteStore, ns: &Namespace, id: &str, life: u128) -> Outcome<MemberRef> {
    let member = MemberRef::new(MemberId::new(id)?, Incarnation::from_u128(life));
    store.join(ns, &Join::new(member.clone(), Duration::from_secs(3_600))).await?;
    Ok(member)
}

/// Claims elections that must all be won.
async fn claim(
    store: &SqliteStore,
    ns: &Namespace,
    member: &MemberRef,
    names: impl Iterator<Item = String>,
    nonce: u64,
) -> Outcome<()> {
    let bid = |name: String| -> Outcome<Bid> {
        Ok(Bid::new(ElectionName::new(name)?, Nonce::new(nonce)))
    };
    let bids = names.map(bid).collect::<Outcome<Vec<_>>>()?;
    let claim = Claim::new(member.clone(), Duration::from_secs(3_600), bids);
    match store.claim(ns, &claim).await? {
        Claims::Answered(answers) if answers.iter().all(|a| matches!(a, Claimed::Won(_))) => Ok(()),
        other => Err(format!("not won: {other:?}").into()),
    }
}

fn report(bars: &mut common::Bars, what: &str, values: &mut [f64], bar: f64) {
    let (median, low, high) = common::median(values);
    bars.at_most(what, median, bar, "ms");
    println!("{:<58} {low:>10.3} to {high:.3} ms", "  middle half");
}

/// Milliseconds from what is done to the leader until the standby leads.
fn rounds(url: &str, mut end: impl FnMut(&mut Candidate) -> Outcome<u64>) -> Outcome<Vec<f64>> {
    let mut taken = Vec::new();
    let mut leader = Candidate::start(url)?;
    leader.hear("elected")?;
    for _ in 0..ROUNDS {
        let mut standby = Candidate::start(url)?;
        standby.hear("standing")?;
        let from = end(&mut leader)?;
        let until = standby.hear("elected")?;
        taken.push((until.saturating_sub(from)) as f64 / 1e6);
        leader = standby;
    }
    Ok(taken)
}

/// The share of a core that a standby uses while nothing happens.
fn idle_share(url: &str) -> Outcome<f64> {
    let mut leader = Candidate::start(url)?;
    leader.hear("elected")?;
    let mut standby = Candidate::start(url)?;
    standby.hear("standing")?;
    let before = cpu_nanos(standby.process.id())?;
    std::thread::sleep(IDLE);
    let used = cpu_nanos(standby.process.id())? - before;
    Ok(used as f64 / IDLE.as_nanos() as f64)
}

fn cpu_nanos(pid: u32) -> Outcome<u64> {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += stat.split(' ').next().unwrap_or("0").parse::<u64>()?;
    }
    Ok(nanos)
}

struct Candidate {
    process: Child,
    orders: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Candidate {
    fn start(url: &str) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["candidate", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take().ok_or("no stdin")?;
        let said = BufReader::new(process.stdout.take().ok_or("no stdout")?);
        Ok(Self { process, orders, said })
    }

    /// Waits for a line that begins with `word`, and gives the time in it.
    fn hear(&mut self, word: &str) -> Outcome<u64> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.said.read_line(&mut line)? == 0 {
                return Err(format!("a candidate ended before it said {word:?}").into());
            }
            if let Some(rest) = line.trim_end().strip_prefix(word) {
                return Ok(rest.trim().parse()?);
            }
        }
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Says when it stands and when it leads; resigns when told to.
#[tokio::main(flavor = "current_thread")]
async fn candidate(url: &str) -> Outcome<()> {
    let tenure = Tenure::connect(url).await?;
    let election = tenure.election("bench");
    let campaign = election.campaign();
    tokio::pin!(campaign);
    let stands = stands(&tenure, &election);
    tokio::select! {
        biased;
        leadership = &mut campaign => return lead(leadership?).await,
        stands = stands => stands?,
    }
    println!("standing {}", BootClock::read().as_nanos());
    lead(campaign.await?).await
}

/// Returns once the store lists this member as a candidate.
async fn stands(tenure: &Tenure, election: &tenure::Election) -> Outcome<()> {
    loop {
        let view = election.view().await?;
        if view.candidates.iter().any(|c| c.member.id == *tenure.id()) && view.holder.is_some() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn lead(leadership: tenure::Leadership) -> Outcome<()> {
    println!("elected {}", BootClock::read().as_nanos());
    let order = tokio::task::spawn_blocking(|| std::io::stdin().lines().next());
    if order.await?.is_some() {
        leadership.resign().await?;
        println!("resigned {}", BootClock::read().as_nanos());
    }
    std::future::pending().await
}
