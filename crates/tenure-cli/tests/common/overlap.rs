//! Children that stamp the time as long as they run, and the proof that no two
//! of one election ever ran at once.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
pub use tenure_testkit::Life;
use tenure_testkit::proxy::{Flow, Proxy};
use tenure_testkit::{Stamps, let_pass_blocking};

use super::{Running, World, boottime, parent, wait_for};

pub const TTL: Duration = Duration::from_secs(1);
const ELECTION: &str = "overlap";
const STAMPS: &str = "TENURE_TEST_STAMPS";

/// If this process was started as a stamping child: stamps until it is killed.
pub fn stamp_if_child() {
    let Some(dir) = std::env::var_os(STAMPS) else { return };
    let term = std::env::var("TENURE_TERM").unwrap().parse().unwrap();
    let stamps = Stamps::begin(Path::new(&dir), term, "child").unwrap();
    loop {
        stamps.again().unwrap();
        let_pass_blocking(Duration::from_micros(500), "the pace of the stamps");
    }
}

/// Every child's life, in the order in which they began.
pub fn lives(dir: &Path) -> Vec<Life> {
    tenure_testkit::lives(dir).unwrap()
}

/// Two neighbours that ran at the same time, or in the wrong order.
pub fn overlaps(lives: &[Life]) -> Vec<(Life, Life)> {
    let pairs = lives.windows(2).map(|pair| (pair[0].clone(), pair[1].clone()));
    pairs.filter(|(a, b)| b.first <= a.last || b.term <= a.term).collect()
}

/// What is done to the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// kill -9 of `tenure run` alone.
    Kill,
    /// SIGSTOP of `tenure run` alone, past its ttl, then SIGCONT.
    Stop,
    /// kill -9 of `tenure run` and its guardian.
    KillBoth,
    /// No process can write to the store for longer than the ttl.
    Outage,
}

/// Members, their stamps, and how to start one more.
pub struct Stage {
    pub world: World,
    /// In front of a server; an SQLite file is locked instead.
    proxy: Option<Proxy>,
    /// The program that stamps, with its arguments.
    child: Vec<String>,
    members: Vec<(String, Running)>,
}

impl Stage {
    /// Two members that stand for one election, each with the stamping child.
    pub fn new(child: Vec<String>, server: Option<&str>) -> Self {
        let (proxy, world) = match server.map(Proxy::before) {
            Some((proxy, url)) => (Some(proxy), World::on(url)),
            None => (None, World::new()),
        };
        std::fs::create_dir(world.path("stamps")).unwrap();
        let mut stage = Self { world, proxy, child, members: Vec::new() };
        for name in ["a", "b"] {
            let running = stage.start(name);
            stage.members.push((name.into(), running));
        }
        stage
    }

    fn start(&self, name: &str) -> Running {
        let mut args = vec!["--election", ELECTION, "--ttl", "1s", "--grace", "150ms"];
        args.extend(["--on-lost", "standby", "--"]);
        let stamps = format!("{STAMPS}={}", self.world.path("stamps").display());
        args.extend(["env", stamps.as_str()]);
        args.extend(self.child.iter().map(String::as_str));
        self.world.run(name, &args)
    }

    /// Waits until the child of a term above `term` has begun to stamp.
    pub fn settled(&self, term: u64) -> (String, u64) {
        let (id, number) = self.world.next_leader(ELECTION, term);
        let dir = self.world.path("stamps");
        let begun = || lives(&dir).iter().any(|life| life.term >= number).then_some(());
        wait_for(&format!("the child of term {number}"), begun);
        (id, number)
    }

    /// Makes one kind of trouble for the leader of `term`, and waits for the
    /// next.
    pub fn round(&mut self, trouble: Trouble, (id, term): (String, u64)) -> (String, u64) {
        let at = self.members.iter().position(|(name, _)| *name == id).unwrap();
        match trouble {
            Trouble::Kill => {
                self.members[at].1.signal(Signal::KILL);
                let next = self.settled(term);
                self.members[at].1 = self.start(&id);
                next
            }
            Trouble::KillBoth => {
                let newest = lives(&self.world.path("stamps")).pop().unwrap();
                let guardian = parent(newest.id).and_then(Pid::from_raw);
                // It may be gone already, if its child ended meanwhile.
                let _ = guardian.map(|guardian| kill_process(guardian, Signal::KILL));
                self.members[at].1.signal(Signal::KILL);
                let next = self.settled(term);
                self.members[at].1 = self.start(&id);
                next
            }
            Trouble::Stop => {
                self.members[at].1.signal(Signal::STOP);
                let next = self.settled(term);
                self.members[at].1.signal(Signal::CONT);
                next
            }
            Trouble::Outage => {
                let began = boottime();
                self.outage(|locked| {
                    let_pass_blocking(TTL * 5 / 4, "an outage that outlasts the ttl");
                    self.outlived(began, locked, boottime());
                });
                self.settled(term)
            }
        }
    }

    /// No process can write to the store while `meanwhile` runs, which is told since
    /// when.
    fn outage(&self, meanwhile: impl FnOnce(u64)) {
        if let Some(proxy) = &self.proxy {
            proxy.set_flow(Flow::Hold);
            meanwhile(boottime());
            return proxy.set_flow(Flow::Pass);
        }
        let db = rusqlite::Connection::open(self.world.path("t.db")).unwrap();
        db.busy_timeout(super::LIMIT).unwrap();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        meanwhile(boottime());
        db.execute_batch("ROLLBACK").unwrap();
    }

    /// No process could renew from `locked` on: no child may have run longer than
    /// the ttl after that, whether or not there is a successor.
    fn outlived(&self, began: u64, locked: u64, until: u64) {
        let ttl = u64::try_from(TTL.as_nanos()).unwrap();
        for life in lives(&self.world.path("stamps")) {
            let ran = life.first < began && life.last > locked;
            assert!(!ran || life.last < locked + ttl, "{life:?} survived its term");
            assert!(!ran || life.last < until, "{life:?} ran through the outage");
        }
    }
}

/// So many rounds of trouble, one kind after the other; gives the lives.
pub fn play(
    child: Vec<String>,
    server: Option<&str>,
    rounds: usize,
    mut each: impl FnMut(usize),
) -> Vec<Life> {
    let mut stage = Stage::new(child, server);
    let mut leader = stage.settled(0);
    for round in 0..rounds {
        let all = [Trouble::Kill, Trouble::Stop, Trouble::Outage, Trouble::KillBoth];
        let trouble = all[round % all.len()];
        leader = stage.round(trouble, leader);
        each(round + 1);
    }
    for (_, member) in &mut stage.members {
        member.signal(Signal::TERM);
    }
    for (_, member) in &mut stage.members {
        member.code();
    }
    lives(&stage.world.path("stamps"))
}
