//! The guardian: whatever process is killed or stopped, nothing of the command outlives
//! the term.

#![allow(clippy::unwrap_used)]

mod common;

use common::boottime;
use common::{Running, World, is_alive, parent, pids, wait_for};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};

/// A command of three processes, one of them in a session of its own.
const FAMILY: &str = "echo $$; sh -c 'echo $$; exec sleep 1000' & \
                      setsid sh -c 'echo $$; exec sleep 1000' & wait";

fn family(world: &World, args: &[&str]) -> (Running, Vec<i32>) {
    let mut all = vec!["-e", "x"];
    all.extend(args);
    all.extend(["--", "sh", "-c", FAMILY]);
    let run = world.run("a", &all);
    let pids = wait_for("three processes", || Some(pids(&run.printed())).filter(|p| p.len() == 3));
    (run, pids)
}

fn all_gone(pids: &[i32]) -> Option<()> {
    pids.iter().all(|pid| !is_alive(*pid)).then_some(())
}

/// B9: kill -9 of `tenure run` leaves nothing behind; the benchmark says how
/// fast.
#[test]
fn nothing_is_left_after_the_program_is_killed() {
    let world = World::new();
    let (run, pids) = family(&world, &[]);
    run.signal(Signal::KILL);
    wait_for("the group to be gone", || all_gone(&pids));
}

/// M4: the lock that proves life is free only once the whole group is gone, so
/// that a quick successor cannot overlap. Here the group takes its time to die.
#[test]
fn a_successor_waits_for_the_dead_leaders_group() {
    // Else the kernel would wake the stopped guardian: it does so for a group
    // of which no process of its session is the parent any more.
    set_child_subreaper(Some(getpid())).unwrap();
    let world = World::new();
    let (run, pids) = family(&world, &["--ttl", "60s"]);
    let _successor = world.run("b", &["-e", "x", "--ttl", "60s", "--", "sleep", "1000"]);
    let candidates = || world.json(&["status", "x"])["candidates"].as_array().unwrap().len();
    wait_for("b to stand", || (candidates() == 2).then_some(()));
    let guardian = Pid::from_raw(parent(pids[0]).unwrap()).unwrap();
    // A guardian that cannot act keeps its share of the lock.
    kill_process(guardian, Signal::STOP).unwrap();
    run.signal(Signal::KILL);
    wait_for("the program to be gone", || (!is_alive(run.pid().as_raw_pid())).then_some(()));
    for _ in 0..20 {
        assert_eq!(world.leader("x").0.as_deref(), Some("a"), "its group still runs");
    }
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    kill_process(guardian, Signal::CONT).unwrap();
    let (id, term) = world.next_leader("x", 1);
    assert_eq!((id.as_str(), term), ("b", 2));
    assert!(all_gone(&pids).is_some(), "the successor was elected before the group was gone");
}

/// H4: a stopped `tenure run` renews nothing; its command is told to stop, then
/// killed, before the term can go to another.
#[test]
fn a_stopped_program_does_not_keep_its_command_running() {
    let world = World::new();
    let ttl = std::time::Duration::from_secs(2);
    let (mut run, pids) = family(&world, &["--ttl", "2s"]);
    run.signal(Signal::STOP);
    // It may have renewed just before.
    let stopped = boottime();
    let gone = wait_for("the group to be gone", || all_gone(&pids).map(|()| boottime()));
    let ttl = u64::try_from(ttl.as_nanos()).unwrap();
    assert!(gone < stopped + ttl, "gone {} ms after the stop", (gone - stopped) / 1_000_000);
    run.signal(Signal::CONT);
    assert_eq!(run.code(), 73, "{}", run.said());
}

/// The command is told to stop a grace before it is killed.
#[test]
fn a_command_whose_term_runs_out_has_its_grace() {
    let world = World::new();
    let script = "trap 'echo told; exit 0' TERM; echo up; while :; do sleep 0.02; done";
    let mut run = world.run("a", &["-e", "x", "--ttl", "2s", "--", "sh", "-c", script]);
    run.until_printed("up");
    run.signal(Signal::STOP);
    run.until_printed("told");
    run.signal(Signal::CONT);
    assert_eq!(run.code(), 73, "{}", run.said());
}

/// A killed guardian takes the command along, and the program ends the rest.
#[test]
fn nothing_is_left_after_the_guardian_is_killed() {
    let world = World::new();
    let (mut run, pids) = family(&world, &[]);
    let guardian = Pid::from_raw(parent(pids[0]).unwrap()).unwrap();
    kill_process(guardian, Signal::KILL).unwrap();
    assert_eq!(run.code(), 137, "{}", run.said());
    assert!(all_gone(&pids).is_some());
    assert_eq!(world.leader("x").0, None, "and the term is released");
}

/// Both at once: the kernel kills the command itself.
#[test]
fn the_command_dies_with_both_program_and_guardian() {
    let world = World::new();
    let run = world.run("a", &["-e", "x", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let command = wait_for("the command", || pids(&run.printed()).first().copied());
    let guardian = Pid::from_raw(parent(command).unwrap()).unwrap();
    run.signal(Signal::STOP);
    kill_process(guardian, Signal::KILL).unwrap();
    run.signal(Signal::KILL);
    wait_for("the command to be gone", || (!is_alive(command)).then_some(()));
}

/// B1, F1: the store is away for longer than the ttl; the command is gone
/// before another could have the term, and runs again afterwards.
#[test]
fn an_outage_stops_the_command_in_time_and_standby_comes_back() {
    let world = World::new();
    let (run, pids) = family(&world, &["--ttl", "2s", "--on-lost", "standby"]);
    let db = rusqlite::Connection::open(world.path("t.db")).unwrap();
    db.busy_timeout(common::LIMIT).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let locked = boottime();
    let gone = wait_for("the group to be gone", || all_gone(&pids).map(|()| boottime()));
    assert!(gone < locked + 2_000_000_000, "after {} ms", (gone - locked) / 1_000_000);
    wait_for("a word about it", || run.said().contains("not renewed in time").then_some(()));
    db.execute_batch("ROLLBACK").unwrap();
    wait_for("the command again", || (common::pids(&run.printed()).len() == 6).then_some(()));
}
