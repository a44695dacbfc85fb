//! Real processes that are stopped and killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{
    Process, fresh_name, hear, open, postgres_url, role, say, seconds, setting, torment, within,
};
use tenure::naming::Value;
use tenure_testkit::{Dice, let_pass, stamp};

const NAMES: usize = 100;
const FIGHTERS: usize = 16;
/// Short, so that a stopped process is past it in a moment.
const TTL: Duration = Duration::from_millis(800);

/// Owns names at random, and writes down between which moments it surely did: from after the
/// first time that `is_current()` was true to before the last time.
async fn fight(role: &[String]) {
    let [url, ns, log, me, ttl] = role else { panic!("{role:?}") };
    let ttl = Duration::from_millis(ttl.parse().unwrap());
    let names = open(url, ns, me, ttl).await;
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    std::thread::spawn(move || {
        hear();
        told.store(true, Ordering::Relaxed);
    });
    let mut log = std::fs::File::options().append(true).create(true).open(log).unwrap();
    let mut dice = Dice::new(stamp());
    while !stop.load(Ordering::Relaxed) {
        let name = format!("n{}", dice.below(NAMES));
        let Ok(mine) = names.register(&name, Value::empty()).await else { continue };
        if !mine.is_current() {
            continue;
        }
        let from = stamp();
        let mut until = from;
        for _ in 0..dice.below(40) {
            let before = stamp();
            if !mine.is_current() {
                break;
            }
            until = before.max(from);
            let_pass(Duration::from_millis(1), "the pace at which ownership is sampled").await;
        }
        let mut line = String::new();
        writeln!(line, "{name} {} {from} {until} {me}", mine.token()).unwrap();
        log.write_all(line.as_bytes()).unwrap();
        if dice.below(4) > 0 {
            drop(mine.release().await);
        }
    }
}

/// Sixteen processes fight for a hundred names while they are stopped past their ttl and
/// killed. On the clock that all processes of a machine share, no two intervals of ownership
/// of a name overlap, and tokens rise.
fn fought(entry: &str, url: &str, ns: &str, ttl: Duration) {
    let dir = tempfile::tempdir().unwrap();
    let began = Instant::now();
    // A machine that is busy takes longer until they fight.
    for round in 0..20 {
        let start = |n: usize, life: usize| {
            let me = format!("p{n}-{round}-{life}");
            let log = dir.path().join(&me);
            Process::start(
                entry,
                &[url, ns, log.to_str().unwrap(), &me, &ttl.as_millis().to_string()],
            )
        };
        let done = torment(FIGHTERS, seconds("TENURE_FIGHT_SECONDS", 6), ttl, start);
        let count = judge(read_logs(dir.path()));
        println!("{:?}: {done:?}, {count} registrations", began.elapsed());
        if count > NAMES {
            return;
        }
    }
    panic!("they do not fight");
}

/// Says how many intervals of ownership there were, of which no two may overlap.
fn judge(held: BTreeMap<String, Vec<Held>>) -> usize {
    let count = held.values().map(Vec::len).sum();
    for (name, mut intervals) in held {
        intervals.sort();
        for pair in intervals.windows(2) {
            let [(first, _, end, one), (second, begin, _, two)] = pair else { unreachable!() };
            assert!(first < second, "{name}: token {first} was given to {one} and {two}");
            assert!(end <= begin, "{name} was {one}'s until {end} and {two}'s from {begin}");
        }
    }
    count
}

/// What this process does if it is one of those that fight.
fn fights() -> bool {
    let Some(role) = role() else { return false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(fight(&role));
    true
}

/// U1, U2, U6 on SQLite. `TENURE_FIGHT_SECONDS=60` fights longer.
#[test]
fn no_name_has_two_owners_while_processes_are_stopped_and_killed() {
    if !fights() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("names.db").display());
        let entry = "no_name_has_two_owners_while_processes_are_stopped_and_killed";
        fought(entry, &url, "default", TTL);
    }
}

/// The same on PostgreSQL, with a ttl that leaves time to connect on a busy machine.
#[test]
fn no_name_has_two_owners_on_postgres_while_processes_are_stopped_and_killed() {
    if !fights() {
        let entry = "no_name_has_two_owners_on_postgres_while_processes_are_stopped_and_killed";
        fought(entry, &postgres_url(), &fresh_name("fight"), TTL * 4);
    }
}

type Held = (u64, u64, u64, String);

/// Token, from, until and owner of each registration, by name.
fn read_logs(dir: &Path) -> BTreeMap<String, Vec<Held>> {
    let mut held: BTreeMap<String, Vec<Held>> = BTreeMap::new();
    for log in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(log.unwrap().path()).unwrap();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            // The last line of one that was killed may be cut short.
            let [name, token, from, until, owner] = words[..] else { continue };
            let number = |word: &str| word.parse::<u64>().unwrap();
            let of = (number(token), number(from), number(until), owner.to_owned());
            held.entry(name.to_owned()).or_default().push(of);
        }
    }
    held
}

/// M5, R4, U8: a process is killed that owns a hundred thousand names. Every copy drops all of
/// them in one step, and one of them is taken as soon as the ttl is over: no process writes
/// anything for each of them.
#[test]
fn the_names_of_a_killed_process_go_together() {
    let entry = "the_names_of_a_killed_process_go_together";
    let count = usize::try_from(setting("TENURE_OWNED_NAMES", 100_000)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ttl = Duration::from_secs(10);
    if let Some(role) = role() {
        return runtime.block_on(async {
            let names = open(&role[0], &role[1], "owner", ttl).await;
            let numbers: Vec<_> = (0..count).collect();
            let mut owned = Vec::new();
            // All of one call are waited for together, for one ttl: on a busy machine that is
            // too short for a hundred thousand.
            for some in numbers.chunks(10_000) {
                let batch = some.iter().map(|n| (format!("n{n}"), Value::empty()));
                let all = names.register_all(batch).await.unwrap();
                owned.extend(all.into_iter().map(Result::unwrap));
            }
            say("owns");
            std::future::pending::<()>().await;
        });
    }
    let url = postgres_url();
    let ns = fresh_name("owned");
    let mut owner = Process::start(entry, &[&url, &ns]);
    assert_eq!(owner.hears(), "owns");
    runtime.block_on(async {
        let a = open(&url, &ns, "a", ttl).await;
        let b = open(&url, &ns, "b", ttl).await;
        assert_eq!((a.all().len(), b.all().len()), (count, count));
        let token = a.lookup("n7").unwrap().token();
        owner.kill();
        let killed = Instant::now();
        for names in [&a, &b] {
            let mut seen = names.all().len();
            while seen > 0 {
                assert_eq!(seen, count, "some were dropped before others");
                assert!(killed.elapsed() < Duration::from_secs(60), "they stay");
                let_pass(Duration::from_millis(2), "the pace at which copies are sampled").await;
                seen = names.all().len();
            }
        }
        let took = Instant::now();
        let mine = within(a.register("n7", Value::empty())).await.unwrap();
        println!("dropped after {:?}, taken in {:?}", killed.elapsed(), took.elapsed());
        assert!(mine.token() > token);
        within(b.reached(mine.rev())).await.unwrap();
        assert_eq!(b.all().len(), 1);
    });
}

/// DGen: a lock stays locked if the process that has it is killed. Here a lock is a name: it is
/// free when the ttl of its owner is over, and the next in line has it then, under a higher token.
#[test]
fn a_lock_of_a_killed_process_is_free() {
    let entry = "a_lock_of_a_killed_process_is_free";
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ttl = Duration::from_secs(3);
    if let Some(role) = role() {
        return runtime.block_on(async {
            let names = open(&role[0], &role[1], "owner", ttl).await;
            let held = names.lock("transition", Value::empty()).await.unwrap();
            say(&held.token().to_string());
            std::future::pending::<()>().await;
        });
    }
    let url = postgres_url();
    let ns = fresh_name("lock");
    let mut owner = Process::start(entry, &[&url, &ns]);
    let token: u64 = owner.hears().parse().unwrap();
    runtime.block_on(async {
        let names = open(&url, &ns, "next", ttl).await;
        assert!(names.register("transition", Value::empty()).await.is_err(), "it is locked");
        owner.kill();
        let next = within(names.lock("transition", Value::empty())).await.unwrap();
        assert!(next.token().get() > token);
    });
}

/// The worked example of the documentation, as it stands there.
#[test]
fn sessions_move_from_a_process_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("sessions.db").display());
    let here = std::env::current_exe().unwrap();
    let program = here.parent().unwrap().parent().unwrap().join("examples/sessions");
    let run = std::process::Command::new(&program).arg(url).output();
    let run = run.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("4 sessions moved, 16 stayed"), "{said}");
}
