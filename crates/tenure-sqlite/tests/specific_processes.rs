//! Real processes: killed, stopped, and racing one another.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use common::child::{Process, hear, role, say, signal, start};
use common::*;
use rustix::process::Signal;
use tenure_core::{
    Beat, Claimed, Claims, EndCause, Happening, Heartbeat, HeldUp, Hint, Join, MemberRef, Query,
    TermNumber,
};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{BootClock, Followed, Following, Store};
use tenure_testkit::until;
use tokio::time::timeout;

const ENTRY: &str = "a_child_plays_the_role_it_was_given";

/// Far beyond any hand-over that was noticed, far below the ttl.
const SOON: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(3_600);

/// Not a test of its own: what the processes of the tests below run. Without a
/// role there is nothing to play.
#[test]
fn a_child_plays_the_role_it_was_given() {
    let Some((role, file)) = role() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(play(&role, &file));
}

async fn play(role: &str, file: &Path) {
    let me = child_member();
    let open = async || SqliteStore::open(file, SqliteOptions::new()).await.unwrap();
    match role {
        "lead" => {
            let store = open().await;
            lead(&store, &me, LONG).await;
            hear();
        }
        "lead briefly" => {
            let store = open().await;
            let ttl = Duration::from_millis(1_500);
            lead(&store, &me, ttl).await;
            hear();
            let beat = Heartbeat::new(me, ttl);
            say(&format!("{:?}", store.heartbeat(&ns(), &beat).await.unwrap()));
            hear();
        }
        "lead with a guardian" => {
            let store = open().await;
            lead(&store, &me, LONG).await;
            say(&guardian(&store, &me).to_string());
            hear();
        }
        "lead with two guardians" => {
            let store = open().await;
            lead(&store, &me, Duration::from_millis(1_500)).await;
            for _ in 0..2 {
                say(&guardian(&store, &me).to_string());
            }
            hear();
        }
        "open" => {
            say("ready");
            hear();
            let opened = SqliteStore::open(file, SqliteOptions::new()).await;
            say(&opened.map_or_else(|error| error.to_string(), |_| "opened".into()));
            hear();
        }
        "race" => race(file).await,
        "stand by" => {
            let store = open().await;
            let other = member("standby", u128::from(std::process::id()) << 64);
            store.join(&ns(), &Join { ttl: LONG, ..join(&other) }).await.unwrap();
            let claimed = store.claim(&ns(), &claim(&other, "e", 1)).await.unwrap();
            held(claimed);
            let mut following = store.follow(&ns()).await.unwrap();
            following.next().await.unwrap();
            say("standing by");
            loop {
                following.next().await.unwrap();
            }
        }
        other => panic!("no such role: {other}"),
    }
}

fn child_member() -> MemberRef {
    member("child", 0xc0ffee)
}

async fn lead(store: &SqliteStore, me: &MemberRef, ttl: Duration) {
    store.join(&ns(), &Join { ttl, ..join(me) }).await.unwrap();
    let mut claim = claim(me, "e", 1);
    claim.ttl = ttl;
    let term = won(store.claim(&ns(), &claim).await.unwrap());
    say(&format!("won {}", term.number));
}

/// A process that works under a member, and inherits the lock as its standard input.
fn guardian(store: &SqliteStore, me: &MemberRef) -> u32 {
    let lock = store.liveness_lock(me.incarnation).unwrap();
    std::process::Command::new("sleep").arg("3600").stdin(lock).spawn().unwrap().id()
}

/// Ten candidates, each with connections of its own.
async fn race(file: &Path) {
    let mut stores = Vec::new();
    for n in 0..10u128 {
        let me = member(&format!("{}-{n}", std::process::id()), rand(n));
        let store = SqliteStore::open(file, SqliteOptions::new()).await.unwrap();
        stores.push((store, me));
    }
    say("ready");
    hear();
    let racers = stores.into_iter().map(|(store, me)| {
        tokio::spawn(async move {
            let joined = store.join(&ns(), &Join { ttl: LONG, ..join(&me) }).await;
            let mut told = joined.err().map_or_else(String::new, |e| format!("error {e}; "));
            for nonce in 1..=3 {
                match store.claim(&ns(), &claim(&me, "e", nonce)).await {
                    Ok(Claims::Answered(answers)) => match &answers[..] {
                        [Claimed::Won(term)] if nonce == 1 => {
                            told += &format!("won {}; ", term.number);
                            break;
                        }
                        [Claimed::Held(_)] => {}
                        other => told += &format!("error {other:?}; "),
                    },
                    other => told += &format!("error {other:?}; "),
                }
            }
            (told, store)
        })
    });
    let mut told = String::new();
    let mut kept = Vec::new();
    for racer in racers.collect::<Vec<_>>() {
        let (line, store) = racer.await.unwrap();
        told += &line;
        kept.push(store);
    }
    say(&format!("done {told}"));
    hear();
}

fn rand(salt: u128) -> u128 {
    u128::from(std::process::id()) << 64 | salt
}

async fn next_gone(following: &mut Box<dyn Following>) -> tenure_core::Incarnation {
    loop {
        if let Followed::Hint(Hint::Gone(life)) = following.next().await.unwrap() {
            return life;
        }
    }
}

async fn ended(store: &SqliteStore) -> Option<EndCause> {
    let seen = store.read(&ns(), &Query { history: 100, ..Query::everything() }).await.unwrap();
    seen.history.iter().find_map(|entry| match &entry.what {
        Happening::Ended { member, cause, .. } if *member == child_member() => Some(*cause),
        _ => None,
    })
}

async fn standby(place: &Place) -> (SqliteStore, MemberRef) {
    let store = place.open().await;
    let me = member("heir", 2);
    store.join(&ns(), &Join { ttl: LONG, ..join(&me) }).await.unwrap();
    (store, me)
}

/// M4, B23: kill -9 of the leader is noticed and hands over at once, although
/// its ttl is an hour.
#[tokio::test]
async fn a_killed_leader_is_noticed_and_replaced_at_once() {
    for native in [true, false] {
        let place = Place::new();
        let mut leader = start(ENTRY, "lead", &place.path());
        assert_eq!(leader.hears(), "won 1");
        let options = SqliteOptions::new().native_watch(native).poll(Duration::from_millis(50));
        let store = place.open_with(options).await;
        let me = member("heir", 2);
        joins(&store, &me).await;
        let mut following = store.follow(&ns()).await.unwrap();
        held(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());

        leader.kill();
        let gone = timeout(SOON, next_gone(&mut following)).await.expect("a hint");
        assert_eq!(gone, child_member().incarnation);
        let term = won(store.claim(&ns(), &claim(&me, "e", 2)).await.unwrap());
        assert_eq!(term.number, TermNumber::new(2));
        assert_eq!(ended(&store).await, Some(EndCause::ProvenDead));
        assert_eq!(place.lock_files(), [format!("{}.lock", me.incarnation)]);
    }
}

/// M4: a stopped process is not dead. It keeps its term for its ttl, is then
/// ended by it, and is told so when it goes on (M1, H4).
#[tokio::test]
async fn a_stopped_leader_is_replaced_after_its_ttl_and_not_before() {
    let place = Place::new();
    let (store, me) = standby(&place).await;
    let mut leader = start(ENTRY, "lead briefly", &place.path());
    assert_eq!(leader.hears(), "won 1");
    leader.signal(Signal::STOP);
    let before = BootClock::read();
    let view = held(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());
    let free_at = before + view.holder.unwrap().remaining;
    let mut nonce = 1;
    loop {
        nonce += 1;
        match only(store.claim(&ns(), &claim(&me, "e", nonce)).await.unwrap()) {
            Claimed::Won(term) => break assert_eq!(term.number, TermNumber::new(2)),
            // The store says how long is left, and is taken at its word.
            Claimed::Unknown(_) => panic!("one step decides all bids"),
            Claimed::Held(view) => {
                let left = view.holder.map_or(Duration::ZERO, |h| h.remaining);
                let_pass(left, "the ttl of the holder").await;
            }
        }
    }
    assert!(BootClock::read() >= free_at, "taken before its ttl had run out");
    assert_eq!(ended(&store).await, Some(EndCause::Expired));
    leader.signal(Signal::CONT);
    leader.tell("beat");
    assert_eq!(leader.hears(), format!("{:?}", Beat::Ended { superseded: false }));
}

/// The lock can be shared with a guardian: the member is dead when the last of
/// them is.
#[tokio::test]
async fn a_guardian_that_shares_the_lock_keeps_a_killed_leader_from_being_replaced() {
    let place = Place::new();
    let (store, me) = standby(&place).await;
    let mut following = store.follow(&ns()).await.unwrap();
    let mut leader = start(ENTRY, "lead with a guardian", &place.path());
    assert_eq!(leader.hears(), "won 1");
    let guardian: u32 = leader.hears().parse().unwrap();
    leader.kill();
    held(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());
    signal(guardian, Signal::KILL);
    let gone = timeout(SOON, next_gone(&mut following)).await.expect("a hint");
    assert_eq!(gone, child_member().incarnation);
    won(store.claim(&ns(), &claim(&me, "e", 2)).await.unwrap());
}

/// R2, M4: of two processes that work under a killed leader the first one ends, and the
/// ttl runs out: the term waits for the other.
#[tokio::test]
async fn a_killed_leader_is_not_replaced_before_the_last_of_its_guardians_is_gone() {
    for first in [0, 1] {
        let place = Place::new();
        let (store, me) = standby(&place).await;
        let mut leader = start(ENTRY, "lead with two guardians", &place.path());
        assert_eq!(leader.hears(), "won 1");
        let guardians = [(); 2].map(|()| leader.hears().parse::<u32>().unwrap());
        leader.kill();
        signal(guardians[first], Signal::KILL);
        let over = async || view(&store, "e").await.holder.is_none();
        until("the ttl to run out", over).await;
        let why = Some(HeldUp::Processes { member: child_member() });
        for nonce in 1..20 {
            let seen = held(store.claim(&ns(), &claim(&me, "e", nonce)).await.unwrap());
            assert_eq!(seen.held_up, why);
        }
        signal(guardians[1 - first], Signal::KILL);
        until("the kernel to drop the last lock", async || {
            view(&store, "e").await.held_up.is_none()
        })
        .await;
        won(store.claim(&ns(), &claim(&me, "e", 20)).await.unwrap());
    }
}

/// C33.
#[tokio::test]
async fn eight_processes_open_an_empty_path_at_once_and_all_succeed() {
    for _ in 0..5 {
        let place = Place::new();
        let start = |_| start(ENTRY, "open", &place.path());
        let mut openers: Vec<_> = (0..8).map(start).collect();
        openers.iter_mut().for_each(|opener| assert_eq!(opener.hears(), "ready"));
        openers.iter_mut().for_each(|opener| opener.tell("go"));
        for opener in &mut openers {
            assert_eq!(opener.hears(), "opened");
        }
    }
}

/// C1, H9: a hundred candidates in ten processes, each with connections of its
/// own: no error, no lock timeout, one leader, and all agree.
#[tokio::test]
async fn of_a_hundred_candidates_one_leads_and_none_gets_an_error() {
    let place = Place::new();
    let start = |_| start(ENTRY, "race", &place.path());
    let mut racers: Vec<_> = (0..10).map(start).collect();
    racers.iter_mut().for_each(|racer| assert_eq!(racer.hears(), "ready"));
    racers.iter_mut().for_each(|racer| racer.tell("go"));
    let told: Vec<_> = racers.iter_mut().map(Process::hears).collect();
    let all = told.concat();
    assert!(!all.contains("error"), "{all}");
    assert_eq!(all.matches("won 1;").count(), 1, "{all}");
    assert_eq!(all.matches("won").count(), 1, "{all}");

    let store = place.open().await;
    let seen = store.read(&ns(), &Query { history: 1_000, ..Query::everything() }).await.unwrap();
    assert_eq!(seen.members.len(), 100);
    assert_eq!(seen.elections[0].candidates.len(), 100);
    let mut kinds = BTreeMap::new();
    for entry in &seen.history {
        let kind = match entry.what {
            Happening::Joined { .. } => "joined",
            Happening::Stood { .. } => "stood",
            Happening::Elected { .. } => "elected",
            _ => "other",
        };
        *kinds.entry(kind).or_insert(0) += 1;
    }
    assert_eq!(kinds, BTreeMap::from([("elected", 1), ("joined", 100), ("stood", 100)]));
}

/// An idle standby uses under half a percent of a core, while the leader beats.
#[tokio::test]
async fn an_idle_standby_costs_next_to_nothing() {
    let place = Place::new();
    let (store, me) = standby(&place).await;
    won(store.claim(&ns(), &claim(&me, "e", 1)).await.unwrap());
    let mut standby = start(ENTRY, "stand by", &place.path());
    assert_eq!(standby.hears(), "standing by");
    let_pass(Duration::from_millis(200), "the cost of its start").await;
    let before = cpu_time(standby.id());
    let began = BootClock::read();
    for _ in 0..20 {
        let_pass(Duration::from_millis(200), "the pace of heartbeats").await;
        store.heartbeat(&ns(), &beat(&me)).await.unwrap();
    }
    let spent = cpu_time(standby.id()) - before;
    let passed = BootClock::read().since(began);
    assert!(spent.as_secs_f64() < passed.as_secs_f64() * 0.005, "{spent:?} of {passed:?}");
}

/// The processor time of all threads of a process.
fn cpu_time(id: u32) -> Duration {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let nanos = tasks.map(|task| {
        let stat = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        stat.split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanos.sum())
}
