//! Linearizability of take, drop, ownership and consistent lookup: from what callers were
//! really told, on real stores and under faults. How it is judged, and why that is sound, is
//! told in [`tenure_testkit::history`].

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use common::{Process, fresh_name, hear, postgres_url, role, seconds, torment, within};
use tenure::Tenure;
use tenure::naming::{Binding, Value};
use tenure::store::{BootClock, Store};
use tenure::testing::{Fault, FaultyStore, HintFault, StoreVerb};
use tenure_cas::{
    Batches, CasOptions, CasStore, Expect, Listed, Loaded, MemoryRegister, Register, Removed,
    Swapped, Version, Watching,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_registry::{RegisterError, Registered, Registry};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{Error, ErrorKind, MemoryStore, Result};
use tenure_testkit::history::{self, Call, Judge, Summary, Told};
use tenure_testkit::{Dice, let_pass, stamp};

/// Few, so that callers meet.
const NAMES: usize = 4;
const CALLERS: usize = 3;
const PROCESSES: usize = 5;
/// Short, so that a stopped process is past it in a moment.
const TTL: Duration = Duration::from_millis(800);

/// Where a caller asks who has a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    Store,
    Copy,
}

/// One member with its callers, and what it writes down.
#[derive(Clone)]
struct Caller {
    names: Registry,
    faults: FaultyStore,
    log: Arc<File>,
    me: Arc<str>,
    asks: Asks,
}

impl Caller {
    async fn new(store: Arc<dyn Store>, ns: &str, me: &str, log: &Path, asks: Asks) -> Self {
        let faults = FaultyStore::new(store);
        let member = Tenure::with_store(faults.shared()).namespace(ns).id(me).ttl(TTL);
        let names = Registry::open(&member.connect().await.unwrap(), "s").unwrap();
        within(names.ready()).await.unwrap();
        let log = Arc::new(File::options().append(true).create(true).open(log).unwrap());
        Self { names, faults, log, me: me.into(), asks }
    }

    /// Its callers, until `stop`.
    async fn work(self, stop: Arc<AtomicBool>) {
        let callers = (0..CALLERS).map(|_| {
            let caller = self.clone();
            let stop = stop.clone();
            tokio::spawn(async move {
                let mut dice = Dice::new(stamp());
                while !stop.load(Ordering::Relaxed) {
                    let name = format!("n{}", dice.below(NAMES));
                    caller.trouble(&mut dice).await;
                    if dice.one_in(2) {
                        caller.take(&name, &mut dice).await;
                    } else {
                        caller.look(&name).await;
                    }
                }
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
    }

    fn tell(&self, name: &str, from: u64, told: Told) {
        let call = Call { by: self.me.to_string(), from, until: stamp(), told };
        (&*self.log).write_all(call.line(name).as_bytes()).unwrap();
    }

    /// Something goes wrong with one of the next requests of any caller: mostly the answer
    /// is lost after the store has done what was asked.
    async fn trouble(&self, dice: &mut Dice) {
        let bind = match dice.below(24) {
            0..=3 => Fault::FailAfter,
            4 => Fault::LoseRequest,
            5 => Fault::Double,
            6 => Fault::DelayReply(TTL / 10),
            7 => Fault::Late,
            8 => return self.faults.script(StoreVerb::Names, [Fault::FailBefore]),
            9 => return drop(self.faults.deliver_late().await),
            _ => return,
        };
        self.faults.script(StoreVerb::Bind, [bind]);
    }

    async fn take(&self, name: &str, dice: &mut Dice) {
        let from = stamp();
        (&*self.log).write_all(history::unanswered(name, &self.me, from).as_bytes()).unwrap();
        match self.names.register(name, Value::empty()).await {
            Ok(mine) => {
                self.tell(name, from, Told::Took(mine.token().get()));
                self.own(name, mine, dice).await;
            }
            Err(RegisterError::Taken(binding)) => {
                let (token, owner) = seen(&binding);
                self.tell(name, from, Told::Refused(token, owner));
            }
            // It may have been done.
            Err(_) => {}
        }
    }

    /// Owns a name for a moment, and gives it back.
    async fn own(&self, name: &str, mine: Registered, dice: &mut Dice) {
        let token = mine.token().get();
        for _ in 0..dice.below(6) {
            let from = stamp();
            if !mine.is_current() {
                break;
            }
            self.tell(name, from, Told::Held(token));
            let_pass(Duration::from_millis(1), "the pace at which ownership is sampled").await;
        }
        if dice.one_in(4) {
            // Given back as well, and no task waits for the confirmation.
            return drop(mine);
        }
        let from = stamp();
        if mine.release().await.is_ok() {
            self.tell(name, from, Told::Dropped(token));
        }
    }

    async fn look(&self, name: &str) {
        let from = stamp();
        let found = match self.asks {
            Asks::Store => match self.names.lookup_consistent(name).await {
                Ok(found) => found.map(|binding| seen(&binding)),
                Err(_) => return,
            },
            Asks::Copy => self
                .names
                .lookup(name)
                .map(|found| (found.token().get(), found.owner().unwrap().id.to_string())),
        };
        let told = match found {
            Some((token, owner)) => Told::Found(token, owner),
            None => Told::FoundNothing,
        };
        self.tell(name, from, told);
    }
}

fn seen(binding: &Binding) -> (u64, String) {
    (binding.token.get(), binding.owner.as_ref().unwrap().id.to_string())
}

/// Judges what all logs of a folder say, name by name.
fn judged(dir: &Path, judge: Judge) -> std::result::Result<Summary, String> {
    let mut calls = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|is| is == "log") {
            history::parse(&std::fs::read_to_string(path).unwrap(), &mut calls);
        }
    }
    let check = |(name, calls): (&String, &Vec<Call>)| {
        history::check(calls, judge).map_err(|why| format!("{name}: {why}"))
    };
    let all = calls.iter().map(check).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(all.into_iter().fold(Summary::default(), Summary::and))
}

/// Whether a history says anything: enough happened of everything.
fn is_telling(summary: &Summary) -> bool {
    let Summary { tokens, unanswered, found, drops, .. } = *summary;
    tokens >= 100 && drops >= 30 && found.0 >= 100 && found.1 >= 30 && unanswered.1 > 0
}

/// Plays rounds until what callers were told says something, and judges all of it each time.
fn rounds(dir: &Path, judge: Judge, mut round: impl FnMut(usize)) {
    let began = Instant::now();
    for n in 0.. {
        round(n);
        let summary = judged(dir, judge).unwrap();
        println!("{:?}: {summary:?}", began.elapsed());
        if is_telling(&summary) {
            return;
        }
        assert!(n < 20, "little happens: {summary:?}");
    }
}

/// One of the processes: its role is a URL, a namespace, a log and its id.
async fn process(role: &[String]) {
    let [url, ns, log, me] = role else { panic!("{role:?}") };
    let store: Arc<dyn Store> = match url.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqliteStore::open(file, SqliteOptions::default()).await.unwrap()),
        None => {
            let options = PostgresOptions::from_url(url).unwrap();
            Arc::new(PostgresStore::open(options).await.unwrap())
        }
    };
    let caller = Caller::new(store, ns, me, Path::new(log), Asks::Store).await;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    std::thread::spawn(move || {
        hear();
        told.store(true, Ordering::Relaxed);
    });
    caller.work(stop).await;
}

/// Processes on one store, stopped beyond their ttl and killed, whose answers are lost.
fn processes(entry: &str, url: &str, ns: &str, dir: &Path) {
    rounds(dir, Judge::Store, |round| {
        let start = |n: usize, life: usize| {
            let me = format!("p{n}-{round}-{life}");
            let log = dir.join(format!("{me}.log"));
            Process::start(entry, &[url, ns, log.to_str().unwrap(), &me])
        };
        println!("{:?}", torment(PROCESSES, seconds("TENURE_HISTORY_SECONDS", 6), TTL, start));
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// U1, U2, U4, U5, U6 on SQLite: what fifteen callers in five processes were told of four
/// names is linearizable. `TENURE_HISTORY_SECONDS=60` makes more of it.
#[test]
fn what_callers_are_told_is_linearizable_on_sqlite() {
    if let Some(role) = role() {
        return runtime().block_on(process(&role));
    }
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("names.db").display());
    let entry = "what_callers_are_told_is_linearizable_on_sqlite";
    processes(entry, &url, "default", dir.path());
}

/// The same on PostgreSQL.
#[test]
fn what_callers_are_told_is_linearizable_on_postgres() {
    if let Some(role) = role() {
        return runtime().block_on(process(&role));
    }
    let dir = tempfile::tempdir().unwrap();
    let entry = "what_callers_are_told_is_linearizable_on_postgres";
    processes(entry, &postgres_url(), &fresh_name("history"), dir.path());
}

/// Members of one process, each with a store of its own, and faults that are more than lost
/// answers.
async fn members(
    dir: &Path,
    round: usize,
    limit: Duration,
    asks: Asks,
    store: impl Fn() -> Arc<dyn Store>,
    trouble: impl Fn(&FaultyStore, &mut Dice),
) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut work = Vec::new();
    let mut faults = Vec::new();
    for n in 0..PROCESSES {
        let me = format!("p{n}-{round}");
        let log = dir.join(format!("{me}.log"));
        let caller = Caller::new(store(), "default", &me, &log, asks).await;
        faults.push(caller.faults.clone());
        work.push(tokio::spawn(caller.work(stop.clone())));
    }
    let began = Instant::now();
    let mut dice = Dice::new(16);
    while began.elapsed() < limit {
        let_pass(TTL / 4, "the pace of the faults").await;
        let one = &faults[dice.below(PROCESSES)];
        trouble(one, &mut dice);
    }
    faults.iter().for_each(|faults| faults.outage(false));
    stop.store(true, Ordering::Relaxed);
    for caller in work {
        within(caller).await.unwrap();
    }
}

/// The same where observers judge, over single cells with compare-and-swap: members are cut
/// off for longer than their ttl, and answers of the store and of its cells are lost.
#[test]
fn what_callers_are_told_is_linearizable_over_compare_and_swap() {
    let dir = tempfile::tempdir().unwrap();
    let register = Arc::new(MemoryRegister::new());
    let clock = Arc::new(BootClock);
    let store = || -> Arc<dyn Store> {
        let cells = Arc::new(Lossy { cells: register.clone() });
        Arc::new(CasStore::new(cells, clock.clone(), CasOptions::default()).unwrap())
    };
    let cut = |faults: &FaultyStore, dice: &mut Dice| faults.outage(dice.one_in(3));
    let limit = seconds("TENURE_HISTORY_SECONDS", 6);
    rounds(dir.path(), Judge::Observer, |round| {
        runtime().block_on(members(dir.path(), round, limit, Asks::Store, store, cut));
    });
}

/// The judge would notice: the copy, which is a moment behind, is not linearizable.
#[test]
fn what_a_copy_tells_is_not_linearizable() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryStore::new());
    let late = |faults: &FaultyStore, _: &mut Dice| faults.hints(HintFault::Drop);
    let limit = Duration::from_secs(3);
    runtime().block_on(members(dir.path(), 0, limit, Asks::Copy, || memory.clone(), late));
    let why = judged(dir.path(), Judge::Store).unwrap_err();
    assert!(why.contains("or later, and"), "{why}");
}

/// Cells whose answers are lost now and then, after the cell was written.
#[derive(Debug)]
struct Lossy {
    cells: Arc<MemoryRegister>,
}

impl Lossy {
    fn loses<T>(answer: T) -> Result<T> {
        if Dice::new(stamp()).one_in(50) {
            let error = Error::new(ErrorKind::Timeout, "the answer was lost: a test lost it");
            return Err(error.maybe_applied());
        }
        Ok(answer)
    }
}

#[async_trait]
impl Register for Lossy {
    async fn load(&self, key: &str, known: Option<&Version>) -> Result<Loaded> {
        self.cells.load(key, known).await
    }

    async fn swap(&self, key: &str, expect: Expect, bytes: Vec<u8>) -> Result<Swapped> {
        Self::loses(self.cells.swap(key, expect, bytes).await?)
    }

    async fn remove(&self, key: &str, expect: &Version) -> Result<Removed> {
        Self::loses(self.cells.remove(key, expect).await?)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Listed>> {
        self.cells.list(prefix).await
    }

    fn watch(&self, _: &[String]) -> Option<Box<dyn Watching>> {
        None
    }

    fn batches(&self) -> Option<&dyn Batches> {
        None
    }
}
