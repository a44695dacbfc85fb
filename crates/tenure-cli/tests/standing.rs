//! `tenure run` when it is told to end, comes too late, cannot reach its store, or
//! is no member any more.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;
use std::time::Duration;

use common::boottime;
use common::house::{inside, unshare};
use common::{World, code, is_alive, parent, pids, stderr, stdout, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const TTL: Duration = Duration::from_secs(1);

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// R7: a signal to end ends, also while the leader is stepping down as asked and
/// would stand by again.
#[test]
fn a_signal_while_stepping_down_ends_a_run_that_would_stand_by() {
    let world = World::new();
    let script = "trap 'echo stopping; sleep 1; exit 6' TERM; echo up; \
                  while :; do sleep 0.02; done";
    let mut run = world.run("a", &["-e", "x", "--on-lost", "standby", "--", "sh", "-c", script]);
    run.until_printed("up");
    world.text(&["resign", "x"]);
    run.until_printed("stopping");
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 6, "{}", run.said());
}

/// R8: when program and guardian were stopped past the end of trust, the guardian
/// has no time left for TERM. It kills, that is said, and standing by is kept.
#[test]
fn a_command_that_is_killed_too_late_to_be_told_is_followed_by_standing_by() {
    let world = World::new();
    let args = ["-e", "x", "--ttl", "1s", "--on-lost", "standby", "--", "sh", "-c"];
    let mut args = args.to_vec();
    args.push("echo $$; exec sleep 1000");
    let run = world.run("a", &args);
    let command = wait_for("the command", || pids(&run.printed()).first().copied());
    let guardian = parent(command).unwrap();
    let program = run.pid().as_raw_pid();
    signal(program, Signal::STOP);
    signal(guardian, Signal::STOP);
    let until = boottime() + u64::try_from((TTL * 3 / 2).as_nanos()).unwrap();
    wait_for("the end of the ttl", || (boottime() > until).then_some(()));
    signal(guardian, Signal::CONT);
    wait_for("the command to be killed", || (!is_alive(command)).then_some(()));
    signal(program, Signal::CONT);
    wait_for("the command again", || (pids(&run.printed()).len() == 2).then_some(()));
    assert!(run.said().contains("its time is over: the command is killed"), "{}", run.said());
}

/// R9: what was ignored when `tenure` was started stays ignored, by `tenure` while
/// it waits and by the command.
#[test]
fn inherited_ignored_signals_stay_ignored() {
    let world = World::new();
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let run = ["run", "-q", "-e", "x", "--", "grep", "SigIgn", "/proc/self/status"];
    let mut nohup = inside(Command::new("sh"), &world);
    nohup.args(["-c", "trap '' HUP INT; exec \"$0\" \"$@\"", tenure]).args(run);
    let output = nohup.output().unwrap();
    let text = stdout(&output);
    let bits = text.split_whitespace().nth(1).expect("a line of /proc/self/status");
    let bits = u64::from_str_radix(bits, 16).unwrap();
    assert_eq!(bits & 0b111, 0b011, "HUP and INT are ignored and QUIT is not: {text}");

    let _leader = world.run("first", &["-e", "y", "--", "sleep", "1000"]);
    world.next_leader("y", 0);
    let mut waiting = Command::new("sh");
    let run = ["run", "-e", "y", "--", "sleep", "1000"];
    waiting.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", tenure]).args(run);
    let mut waiting = world.start("waiting", inside(waiting, &world));
    wait_for("it to wait", || waiting.said().contains("stands for y").then_some(()));
    waiting.signal(Signal::HUP);
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.code(), 143, "HUP changed nothing: {}", waiting.said());
}

/// R12: a program that is not to wait gets an answer soon, although another holds
/// the file's lock for ever.
#[test]
fn no_wait_is_short_under_a_foreign_lock() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "x", "--", "true"]);
    let db = rusqlite::Connection::open(world.path("t.db")).unwrap();
    db.busy_timeout(common::LIMIT).unwrap();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let began = std::time::Instant::now();
    let output = world.ask(&["run", "-e", "x", "--no-wait", "--", "true"]);
    let took = began.elapsed();
    assert_eq!(code(&output), 69, "{}", stderr(&output));
    // 4.5 s are documented; the rest is for a busy machine.
    assert!(took < Duration::from_secs(7), "{took:?}: {}", stderr(&output));
}

/// R12: a full disk is the store's failure, and has its code.
#[test]
fn a_full_disk_has_the_code_of_a_failed_store() {
    let world = World::new();
    let dir = world.path("small");
    std::fs::create_dir(&dir).unwrap();
    let Some(mut own) = unshare(&["--mount"]) else { return };
    // What the first run leaves of room when it closes the file is taken as well.
    let script = "mount -t tmpfs -o size=512k none \"$1\" && \"$0\" run -q -e x -- true; \
                  for how in --no-wait '--wait=2s'; do \
                  { cat /dev/zero >>\"$1/filler\"; } 2>/dev/null; \
                  \"$0\" run -e x $how -- true; echo $?; done";
    own.args(["sh", "-c", script, env!("CARGO_BIN_EXE_tenure")]).arg(&dir);
    let mut own = inside(own, &world);
    own.env("TENURE_STORE", format!("sqlite:{}", dir.join("t.db").display()));
    let output = own.output().unwrap();
    assert_eq!(stdout(&output), "69\n69\n", "{}", stderr(&output));
    assert!(stderr(&output).contains("disk"), "{}", stderr(&output));
}

/// P14: a run whose member was ended says so, and by what.
#[test]
fn a_run_says_that_its_member_was_ended_and_why() {
    let world = World::new();
    let mut run = world.run("a", &["-e", "x", "--", "sleep", "1000"]);
    world.next_leader("x", 0);
    assert_eq!(code(&world.ask(&["evict", "a", "--now"])), 0);
    assert_eq!(run.code(), 73, "{}", run.said());
    assert!(run.said().contains("the store has ended a"), "{}", run.said());
    assert!(run.said().contains("evicted"), "{}", run.said());
}
