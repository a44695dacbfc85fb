//! etcd beside itself, in one run on one server: what a heartbeat, a hand-over, a take-over, a
//! claim of very many and a member that waits cost, against a bare write, against etcd's own
//! recipe for elections and against a poller. All speak to the server by the same client.
//!
//! The server is the benchmark's own, with its data on disk.

#![allow(clippy::print_stdout, missing_docs, clippy::disallowed_methods)]

mod counting;

use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use counting::Counting;
use tenure_cas::{CasOptions, CasStore, Change, Expect, Loaded, Swapped};
use tenure_core::{
    Bid, Claim, Claimed, Claims, ElectionName, Heartbeat, Hint, Incarnation, Join, MemberId,
    MemberRef, Namespace, Nonce, Priority, Release, ReleaseItem, Term, TermRef,
};
use tenure_etcd::{EtcdOptions, EtcdStore};
use tenure_store::{BootClock, Followed, Following, SharedStore};
use tokio::process::{Child, Command};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LONG: Duration = Duration::from_secs(60);
const ROUNDS: usize = 60;

/// Bars, of which a missed one fails the run.
#[derive(Default)]
struct Bars {
    missed: u32,
}

impl Bars {
    fn at_most(&mut self, what: &str, value: f64, bar: f64) {
        let held = value <= bar;
        self.missed += u32::from(!held);
        println!("{what:<66} {value:>9.3}  bar {bar:>8}  {}", if held { "ok" } else { "MISSED" });
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn millis(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1e3
}

struct Server {
    at: String,
    folder: std::path::PathBuf,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

async fn serve() -> Outcome<Server> {
    let folder = std::env::temp_dir().join(format!("tenure-etcd-bench-{}", std::process::id()));
    let at = format!("127.0.0.1:{}", free_port()?);
    let clients = format!("http://{at}");
    let peers = format!("http://127.0.0.1:{}", free_port()?);
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(&folder)
        .args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("default={peers}")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let child = command.spawn()?;
    let server = Server { at, folder, child };
    let begun = Instant::now();
    while let Err(error) = server.store("probe").await {
        if begun.elapsed() > LONG {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(server)
}

impl Server {
    async fn store(&self, prefix: &str) -> Outcome<EtcdStore> {
        let options = EtcdOptions::from_url(&format!("etcd://{}/{prefix}", self.at))?;
        Ok(EtcdStore::open(options).await?)
    }

    /// A store of its own, as another process has, whose requests are counted.
    async fn counted(&self, prefix: &str) -> Outcome<(SharedStore, Counting)> {
        let inner = self.store(prefix).await?.register();
        let counting = Counting::new(inner);
        let options =
            CasOptions { name: "etcd", prefix: prefix.into(), batch: 63, ..CasOptions::default() };
        let store = CasStore::new(Arc::new(counting.clone()), Arc::new(BootClock), options)?;
        Ok((Arc::new(store), counting))
    }
}

/// One process: its member and its store.
struct Process {
    me: MemberRef,
    store: SharedStore,
    requests: Counting,
    ttl: Duration,
    nonce: u64,
}

impl Process {
    async fn joined(
        server: &Server,
        prefix: &str,
        id: &str,
        life: u128,
        ttl: Duration,
    ) -> Outcome<Self> {
        let (store, requests) = server.counted(prefix).await?;
        let me = MemberRef::new(MemberId::new(id)?, Incarnation::from_u128(life));
        store.join(&Namespace::default(), &Join::new(me.clone(), ttl)).await?;
        Ok(Self { me, store, requests, ttl, nonce: 0 })
    }

    async fn claim(&mut self, names: impl IntoIterator<Item = String>) -> Outcome<Vec<Claimed>> {
        let mut bids = Vec::new();
        for name in names {
            self.nonce += 1;
            let bid = Bid::new(ElectionName::new(name)?, Nonce::new(self.nonce));
            bids.push(bid.with_priority(Priority::new(100)));
        }
        let claim =
            Claim::new(self.me.clone(), self.ttl, bids).with_heir_grace(Duration::from_millis(500));
        match self.store.claim(&Namespace::default(), &claim).await? {
            Claims::Answered(answers) => Ok(answers),
            Claims::Ended { .. } => Err("ended".into()),
        }
    }

    async fn win(&mut self, name: &str) -> Outcome<Term> {
        loop {
            if let Some(Claimed::Won(term)) = self.claim([name.to_owned()]).await?.pop() {
                return Ok(term);
            }
        }
    }

    async fn beat(&self) -> Outcome<()> {
        let beat = Heartbeat::new(self.me.clone(), self.ttl);
        self.store.heartbeat(&Namespace::default(), &beat).await?;
        Ok(())
    }

    async fn resign(&self, term: &Term) -> Outcome<()> {
        let item = ReleaseItem::term(TermRef::new(term.election.clone(), term.number));
        let release = Release::new(self.me.clone(), [item]);
        let release = release.with_heir_grace(Duration::from_millis(500));
        self.store.release(&Namespace::default(), &release).await?;
        Ok(())
    }

    async fn follows(&self) -> Outcome<Box<dyn Following>> {
        let mut hints = self.store.follow(&Namespace::default()).await?;
        hints.next().await?;
        Ok(hints)
    }
}

async fn until_vacant(hints: &mut dyn Following) -> Outcome<()> {
    while !matches!(hints.next().await?, Followed::Hint(Hint::Vacant { .. })) {}
    Ok(())
}

/// A heartbeat beside a bare swap of as many bytes, in turns.
async fn heartbeats(server: &Server, bars: &mut Bars) -> Outcome<()> {
    let mut leader = Process::joined(server, "beats", "a", 1, LONG).await?;
    leader.win("e").await?;
    let register = server.store("beats").await?.register();
    let key = "beats/default/members/a";
    let Loaded::Found { bytes, .. } = register.load(key, None).await? else {
        return Err("no record".into());
    };
    let mut version = match register.swap("bare", Expect::Absent, bytes.clone()).await? {
        Swapped::Stored(version) => version,
        Swapped::Conflict => return Err("a conflict".into()),
    };
    let mut beats = Vec::new();
    let mut bare = Vec::new();
    for _ in 0..5 * ROUNDS {
        let from = Instant::now();
        let swapped = register.swap("bare", Expect::Version(version), bytes.clone()).await?;
        bare.push(millis(from));
        let Swapped::Stored(next) = swapped else { return Err("a conflict".into()) };
        version = next;
        let from = Instant::now();
        leader.beat().await?;
        beats.push(millis(from));
    }
    let beat = median(&mut beats);
    let bare = median(&mut bare);
    println!("a heartbeat {beat:.3} ms, a bare write of {} bytes {bare:.3} ms", bytes.len());
    bars.at_most("a heartbeat / a bare write of the same size", beat / bare, 1.15);
    Ok(())
}

/// Ten thousand elections of one member: to claim them, and what an interval costs.
async fn many(server: &Server, bars: &mut Bars) -> Outcome<()> {
    const MANY: u64 = 10_000;
    const BATCH: u64 = 63;
    let mut leader = Process::joined(server, "many", "a", 1, 10 * LONG).await?;
    let before = leader.requests.so_far();
    for from in (0..MANY).step_by(usize::try_from(BATCH)?) {
        let names = (from..MANY.min(from + BATCH)).map(|n| format!("e{n}"));
        let won = leader.claim(names).await?;
        if !won.iter().all(|one| matches!(one, Claimed::Won(_))) {
            return Err("not all were won".into());
        }
    }
    let claimed = leader.requests.so_far() - before;
    bars.at_most("claiming 10,000: requests", claimed as f64, (3 * MANY).div_ceil(BATCH) as f64);
    let before = leader.requests.so_far();
    leader.beat().await?;
    bars.at_most(
        "requests per interval, holding 10,000",
        (leader.requests.so_far() - before) as f64,
        1.0,
    );
    Ok(())
}

/// A bare write until its change is told.
async fn told(server: &Server) -> Outcome<f64> {
    let register = server.store("told").await?.register();
    let mut watching = register.watch(&["told/".to_owned()]).ok_or("no watch")?;
    watching.next().await?;
    let mut times = Vec::new();
    for n in 0..ROUNDS {
        let from = Instant::now();
        register.swap(&format!("told/x/names/{n}"), Expect::Absent, vec![b'x'; 400]).await?;
        while !matches!(watching.next().await?, Change::Put { .. }) {}
        times.push(millis(from));
    }
    Ok(median(&mut times))
}

/// etcd's own recipe, written afresh over the same client: each candidate puts a key below the
/// election's, waits until the one before it is gone, and looks whether it is the oldest.
/// Leases are left out: they cost the recipe nothing at a hand-over.
async fn recipe(server: &Server) -> Outcome<f64> {
    let register = server.store("recipe").await?.register();
    let candidate = |n: usize| format!("recipe/x/elections/{n:06}");
    let Swapped::Stored(mut holder) =
        register.swap(&candidate(0), Expect::Absent, b"0".to_vec()).await?
    else {
        return Err("a conflict".into());
    };
    let mut times = Vec::new();
    for n in 1..=ROUNDS {
        let stored = register.swap(&candidate(n), Expect::Absent, b"n".to_vec()).await?;
        let Swapped::Stored(next) = stored else { return Err("a conflict".into()) };
        let before = candidate(n - 1);
        let mut watching = register.watch(std::slice::from_ref(&before)).ok_or("no watch")?;
        watching.next().await?;
        let waiter = register.clone();
        let waits = tokio::spawn(async move {
            loop {
                match watching.next().await {
                    Ok(Change::Gone { .. }) => break,
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
            let listed = waiter.list("recipe/x/elections/").await.ok()?;
            (listed.len() == 1).then(Instant::now)
        });
        tokio::task::yield_now().await;
        let from = Instant::now();
        register.remove(&before, &holder).await?;
        let elected = waits.await?.ok_or("not elected")?;
        times.push((elected - from).as_secs_f64() * 1e3);
        holder = next;
    }
    Ok(median(&mut times))
}

/// From a resignation until the next leads.
async fn hand_overs(server: &Server, bars: &mut Bars) -> Outcome<()> {
    let mut a = Process::joined(server, "hand", "a", 1, LONG).await?;
    let mut b = Process::joined(server, "hand", "b", 2, LONG).await?;
    let mut hints_a = a.follows().await?;
    let mut hints_b = b.follows().await?;
    let mut term = a.win("e").await?;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let (giver, taker, hints) = match round % 2 {
            0 => (&mut a, &mut b, &mut hints_b),
            _ => (&mut b, &mut a, &mut hints_a),
        };
        taker.claim(["e".to_owned()]).await?;
        // All that was told before.
        while tokio::time::timeout(Duration::from_millis(20), hints.next()).await.is_ok() {}
        let from = Instant::now();
        let next = async {
            until_vacant(&mut **hints).await?;
            let term = taker.win("e").await?;
            Outcome::Ok((term, millis(from)))
        };
        let (given, next) = tokio::join!(giver.resign(&term), next);
        given?;
        let (won, took) = next?;
        times.push(took);
        term = won;
    }
    let ours = median(&mut times);
    let bare = told(server).await?;
    let recipe = recipe(server).await?;
    println!(
        "hand-over {ours:.3} ms, bare write and event {bare:.3} ms, etcd's recipe {recipe:.3} ms"
    );
    bars.at_most("hand-over / (a bare write and its event)", ours / bare, 4.0);
    bars.at_most("hand-over / etcd's own recipe", ours / recipe, 1.0);
    Ok(())
}

/// How long after the ttl a silent leader is taken over, beside the mean of a poller.
async fn take_overs(server: &Server, bars: &mut Bars) -> Outcome<()> {
    const TTL: Duration = Duration::from_secs(2);
    let mut lags = Vec::new();
    for round in 0..5_u128 {
        let prefix = format!("over{round}");
        let mut a = Process::joined(server, &prefix, "a", 1, TTL).await?;
        let mut b = Process::joined(server, &prefix, "b", 2, TTL).await?;
        a.win("e").await?;
        let mut hints = b.follows().await?;
        let mut last = Instant::now();
        for _ in 0..3 {
            tokio::select! {
                () = tokio::time::sleep(TTL / 4) => {}
                _ = async { loop { if hints.next().await.is_err() { break } } } => {}
            }
            b.beat().await?;
            last = Instant::now();
            a.beat().await?;
        }
        let mut beat_at = Instant::now() + TTL / 4;
        let took = loop {
            let left = match b.claim(["e".to_owned()]).await?.pop() {
                Some(Claimed::Won(_)) => break last.elapsed(),
                Some(Claimed::Held(view)) => view.holder.map_or(Duration::ZERO, |h| h.remaining),
                _ => Duration::ZERO,
            };
            let until = (Instant::now() + left + Duration::from_millis(1)).min(beat_at);
            let time = tokio::time::sleep_until(until.into());
            tokio::pin!(time);
            loop {
                tokio::select! {
                    () = &mut time => break,
                    hint = hints.next() => { hint?; }
                }
            }
            if Instant::now() >= beat_at {
                b.beat().await?;
                beat_at += TTL / 4;
            }
        };
        lags.push(took.saturating_sub(TTL).as_secs_f64() * 1e3);
    }
    let lag = median(&mut lags);
    let poller = TTL.as_secs_f64() * 1e3 / 10.0;
    println!(
        "take-over {lag:.3} ms after the ttl; a poller at ttl/5 is {poller:.1} ms late on average"
    );
    bars.at_most("take-over lag behind the ttl / that of a poller", lag / poller, 0.05);
    Ok(())
}

/// What a member that waits asks for in a ttl.
async fn idle(server: &Server, bars: &mut Bars) -> Outcome<()> {
    const TTL: Duration = Duration::from_secs(2);
    const TTLS: u32 = 8;
    let mut a = Process::joined(server, "idle", "a", 1, TTL).await?;
    let mut b = Process::joined(server, "idle", "b", 2, TTL).await?;
    a.win("e").await?;
    b.claim(["e".to_owned()]).await?;
    let mut hints = b.follows().await?;
    let before = b.requests.so_far();
    for _ in 0..TTLS * 4 {
        let turn = tokio::time::sleep(TTL / 4);
        tokio::pin!(turn);
        loop {
            tokio::select! {
                () = &mut turn => break,
                hint = hints.next() => { hint?; }
            }
        }
        a.beat().await?;
        b.beat().await?;
    }
    let asked = (b.requests.so_far() - before) as f64 / f64::from(TTLS);
    bars.at_most("an idle follower's requests in a ttl, its heartbeats among them", asked, 1.5);
    Ok(())
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Outcome<()> {
    let server = serve().await?;
    let mut bars = Bars::default();
    heartbeats(&server, &mut bars).await?;
    hand_overs(&server, &mut bars).await?;
    take_overs(&server, &mut bars).await?;
    idle(&server, &mut bars).await?;
    many(&server, &mut bars).await?;
    if bars.missed > 0 {
        println!("{} bar(s) missed", bars.missed);
        drop(server);
        std::process::exit(1);
    }
    Ok(())
}
