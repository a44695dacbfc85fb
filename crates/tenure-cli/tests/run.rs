//! `tenure run`, from the command line to the command's end.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{World, code, parent, pids, stderr, stdout, wait_for};
use rustix::process::Signal;

/// The code is passed on, whether the command exits or is killed.
#[test]
fn the_commands_code_is_passed_on() {
    let world = World::new();
    let run = |script: &str| world.code(&["run", "-q", "-e", "x", "--", "sh", "-c", script]);
    assert_eq!(run("exit 0"), 0);
    assert_eq!(run("exit 7"), 7);
    assert_eq!(run("kill -9 $$"), 137);
    assert_eq!(run("kill -TERM $$"), 143);
}

/// What the command is told about its term; the term number rises.
#[test]
fn the_command_finds_its_term_in_the_environment() {
    let world = World::new();
    let script =
        "echo $TENURE_ELECTION $TENURE_TERM $TENURE_MEMBER $TENURE_NAMESPACE $TENURE_STORE";
    let args = ["run", "-q", "-n", "ns", "-e", "jobs", "--id", "m1", "--", "sh", "-c", script];
    assert_eq!(world.text(&args), format!("jobs 1 m1 ns {}\n", world.store()));
    assert!(world.text(&args).starts_with("jobs 2 m1 ns "));
}

/// The three streams are the command's own.
#[test]
fn stdin_stdout_and_stderr_pass_through() {
    let world = World::new();
    let mut command =
        world.tenure(&["run", "-q", "-e", "x", "--", "sh", "-c", "cat; echo bad >&2"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("through\n", "bad\n"));
}

/// The command has no descriptor but its three and the lock of its work, out of the
/// way of others and named in the environment: the wire is the guardian's alone.
#[test]
fn the_command_inherits_nothing_but_its_streams_and_its_lock() {
    let world = World::new();
    let script = "echo fd $TENURE_LOCK_FD; exec ls -l /proc/self/fd";
    let list = world.text(&["run", "-q", "-e", "x", "--", "sh", "-c", script]);
    // The program that started the tests may have left some open: they pass through.
    let direct = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let count = |text: &str| text.lines().filter(|line| line.contains("->")).count();
    assert_eq!(count(&list), count(&stdout(&direct)) + 1, "{list}");
    let lock = list.lines().find(|line| line.ends_with(".work")).expect("the lock of its work");
    let number: i32 = list.strip_prefix("fd ").unwrap().lines().next().unwrap().parse().unwrap();
    assert!(number >= 900 && lock.contains(&format!(" {number} -> ")), "{list}");
    assert!(!list.contains(".lock") && !list.contains("t.db "), "{list}");
    assert_eq!(
        list.matches("socket:").count(),
        stdout(&direct).matches("socket:").count(),
        "{list}"
    );
}

/// Bad input: each gives one screen and the documented code, before anything
/// is written to the store.
#[test]
fn what_cannot_be_run_is_refused_with_its_code() {
    let world = World::new();
    std::fs::write(world.path("plain"), "").unwrap();
    let plain = world.path("plain");
    let missing = world.path("missing");
    // L24: a name that the machine has no command of.
    let unknown = world.dir().file_name().unwrap().to_str().unwrap();
    for (args, wanted, said) in [
        (&["run", "-e", "x", "--"][..], 2, "required"),
        (&["run", "-e", "x"], 2, "required"),
        (&["run", "--", "true"], 2, "--election"),
        (&["run", "-e", "x", "--", unknown], 127, "not found in PATH"),
        (&["run", "-e", "x", "--", missing.to_str().unwrap()], 127, "does not exist"),
        (&["run", "-e", "x", "--", plain.to_str().unwrap()], 126, "chmod +x"),
        (&["run", "-e", "", "--", "true"], 2, "the election name is empty"),
        (&["run", "-e", "x", "--ttl", "5", "--", "true"], 2, "is not a duration: write it like 5s"),
        (&["run", "-e", "x", "--ttl", "10s", "--grace", "9s", "--", "true"], 2, "leaves 7.49s"),
        (&["run", "-e", "x", "--meta", "novalue", "--", "true"], 2, "KEY=VALUE"),
        (&["run", "-e", "x", "--endpoint", "", "--", "true"], 2, "the endpoint is empty"),
        (&["--store", "oracle://u:hunter2@h/d", "run", "-e", "x", "--", "true"], 2, "oracle"),
    ] {
        let output = world.ask(args);
        let text = stderr(&output);
        assert_eq!(code(&output), wanted, "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
        assert!(text.lines().count() < 25 && !text.contains("hunter2"), "{text}");
    }
    assert!(!world.path("t.db").exists(), "nothing was begun");
}

/// `--no-wait` and `--wait` give up with their own code and say who leads.
#[test]
fn waiting_in_vain_has_a_code_of_its_own() {
    let world = World::new();
    let _leader = world.run("first", &["-e", "x", "--", "sleep", "1000"]);
    world.next_leader("x", 0);
    for wait in [&["--no-wait"][..], &["--wait", "300ms"]] {
        let mut args = vec!["run", "-e", "x"];
        args.extend(wait);
        args.extend(["--", "true"]);
        let output = world.ask(&args);
        assert_eq!(code(&output), 75, "{}", stderr(&output));
        assert!(stderr(&output).contains("led by first"), "{}", stderr(&output));
    }
}

/// R19: a candidate that never leads is not told that the election was taken.
#[test]
fn a_candidate_of_priority_zero_is_told_that_it_never_leads() {
    let world = World::new();
    for wait in [&["--no-wait"][..], &["--wait", "300ms"]] {
        let mut args = vec!["run", "-e", "x", "--priority", "0"];
        args.extend(wait);
        args.extend(["--", "true"]);
        let output = world.ask(&args);
        assert_eq!(code(&output), 75, "{}", stderr(&output));
        assert!(stderr(&output).contains("priority 0 never leads"), "{}", stderr(&output));
    }
}

/// R7: what is said on the side goes to a pipe whose reader has stopped. The run does without
/// saying it: it works, and ends when it is told to.
#[test]
fn a_reader_of_stderr_that_has_stopped_keeps_no_leader() {
    let world = World::new();
    let (_reader, mut writer) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(b"x").is_ok() {}
    rustix::fs::fcntl_setfl(&writer, flags).unwrap();
    let done = world.path("done");
    let script = format!("touch {}; exec sleep 1000", done.display());
    let mut run = world.tenure(&["run", "-e", "x", "--", "sh", "-c", &script]);
    let mut run = run.stdout(std::process::Stdio::null()).stderr(writer).spawn().unwrap();
    wait_for("the command", || done.exists().then_some(()));
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let ended = wait_for("the end of the run", || run.try_wait().unwrap());
    assert_eq!(ended.code(), Some(143), "as the command: {ended:?}");
    assert_eq!(world.leader("x").0, None);
}

/// R19: a file that may not grow is an error that names the limit, and no death without a word.
#[test]
fn a_limit_on_the_size_of_files_is_told_as_such() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "x", "--", "true"]);
    let exe = env!("CARGO_BIN_EXE_tenure");
    let script = format!("ulimit -c 0; ulimit -f 1; exec {exe} run -e x --wait 2s -- true");
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &script]).env("TENURE_STORE", world.store()).output().unwrap();
    assert_eq!(code(&output), 69, "{}", stderr(&output));
    assert!(stderr(&output).contains("ulimit -f"), "{}", stderr(&output));
}

/// B3: a second process of the same id is told so, and never leads beside it.
#[test]
fn a_second_run_of_the_same_id_is_told_what_is_wrong() {
    let world = World::new();
    let _leader = world.run("same", &["-e", "x", "--", "sleep", "1000"]);
    world.next_leader("x", 0);
    let output = world.ask(&["run", "-e", "y", "--id", "same", "--wait", "1s", "--", "true"]);
    assert_eq!(code(&output), 75);
    let text = stderr(&output);
    assert!(text.contains("another process is a member under this id"), "{text}");
}

/// H1, B7: TERM is forwarded, the work drains, and only then is the term free.
#[test]
fn a_signal_stops_the_command_before_the_term_is_released() {
    let world = World::new();
    let script = "trap 'echo stopping; sleep 0.3; echo stopped; exit 5' TERM; echo up; \
                  while :; do sleep 0.02; done";
    let mut leader = world.run("a", &["-e", "x", "--", "sh", "-c", script]);
    leader.until_printed("up");
    leader.signal(Signal::TERM);
    leader.until_printed("stopping");
    let while_stopping = world.leader("x").0;
    if !leader.printed().contains("stopped") {
        assert_eq!(while_stopping.as_deref(), Some("a"), "it leads until it has stopped");
    }
    assert_eq!(leader.code(), 5);
    assert!(leader.printed().contains("stopped"));
    assert_eq!(world.leader("x").0, None);
}

/// Signals that do not end anything reach the command too.
#[test]
fn other_signals_are_passed_on() {
    let world = World::new();
    let script = "trap 'echo got-usr1' USR1; trap 'echo got-hup; exit 0' HUP; echo up; \
                  while :; do sleep 0.02; done";
    let mut run = world.run("a", &["-e", "x", "--", "sh", "-c", script]);
    run.until_printed("up");
    run.signal(Signal::USR1);
    run.until_printed("got-usr1");
    run.signal(Signal::HUP);
    assert_eq!(run.code(), 0);
    assert!(run.printed().contains("got-hup"));
}

/// A command that ignores TERM is killed after the grace, with all its group.
#[test]
fn a_command_that_does_not_stop_is_killed_after_its_grace() {
    let world = World::new();
    let script =
        "trap '' TERM; echo $$; sh -c 'trap \"\" TERM; echo $$; sleep 1000' & sleep 1000; wait";
    let args = ["-e", "x", "--grace", "200ms", "--", "sh", "-c", script];
    let mut run = world.run("a", &args);
    let pids = wait_for("two processes", || Some(pids(&run.printed())).filter(|p| p.len() == 2));
    run.signal(Signal::TERM);
    assert_eq!(run.code(), 137);
    assert!(pids.iter().all(|pid| !common::is_alive(*pid)), "{pids:?}");
}

/// What the command leaves behind ends with it, also in a session of its own.
#[test]
fn orphans_of_the_command_end_with_it() {
    let world = World::new();
    let script = "setsid sh -c 'echo $$; exec sleep 1000' & sleep 0.2; exit 3";
    let mut run = world.run("a", &["-e", "x", "--grace", "2s", "--", "sh", "-c", script]);
    let orphan = wait_for("the orphan", || pids(&run.printed()).first().copied());
    assert_eq!(run.code(), 3);
    assert!(!common::is_alive(orphan));
    assert_eq!(world.leader("x"), (None, 1));
}

/// E4: asked to step down, the command stops, then another one leads.
#[test]
fn a_step_down_stops_the_command_and_ends_with_its_code() {
    let world = World::new();
    let mut first = world.run("a", &["-e", "x", "--", "sleep", "1000"]);
    world.next_leader("x", 0);
    let _second = world.run("b", &["-e", "x", "--", "sleep", "1000"]);
    wait_for("b to stand", || {
        let view = world.json(&["status", "x"]);
        (view["candidates"].as_array().unwrap().len() == 2).then_some(())
    });
    let said = world.text(&["resign", "x", "--reason", "deploy", "--to", "b", "--wait"]);
    assert!(said.contains("b leads with term 2"), "{said}");
    assert_eq!(first.code(), 73);
    assert!(
        first.said().contains("asked to step down in favour of b by tester@"),
        "{}",
        first.said()
    );
    assert!(first.said().contains(": deploy"), "{}", first.said());
}

/// Restarting is within one term; the code of the last one counts.
#[test]
fn a_failed_command_is_started_again_within_its_term() {
    let world = World::new();
    let count = world.path("count");
    let script =
        format!("echo t$TENURE_TERM; echo x >> {0}; test $(wc -l < {0}) -ge 3", count.display());
    let args = ["run", "-q", "-e", "x", "--restart", "on-failure", "--", "sh", "-c", &script];
    assert_eq!(world.text(&args), "t1\nt1\nt1\n");
}

/// The store must exist before a program can wait for it; a wrong path fails.
#[test]
fn a_store_that_cannot_be_used_says_which_and_fails() {
    let world = World::new();
    let store = format!("sqlite:{}", world.path("no/such/dir/t.db").display());
    let output = world.ask(&["--store", &store, "run", "-e", "x", "--", "true"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("no/such/dir") && stderr(&output).contains("create it"));
}

/// B12, R12: unreachable means not running: waited for by default, said at once with
/// the host and without the password, and final where the caller does not wait, or no longer.
#[test]
fn an_unreachable_store_is_waited_for_only_where_that_is_wanted() {
    let world = World::new();
    // A port that was free a moment ago, and refuses.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let store = format!("postgres://u:hunter2@127.0.0.1:{port}/db");
    for args in [
        &["--store", &store, "status"][..],
        &["--store", &store, "run", "-e", "x", "--no-wait", "--", "true"],
        &["--store", &store, "run", "-e", "x", "--wait", "200ms", "--", "true"],
    ] {
        let output = world.ask(args);
        let text = stderr(&output);
        assert_eq!(code(&output), 69, "{args:?}: {text}");
        assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let began = std::time::Instant::now();
    let wait = ["--store", &store, "run", "-e", "x", "--wait", "1500ms", "--", "true"];
    assert_eq!(world.code(&wait), 69);
    let waited = began.elapsed();
    assert!(waited >= std::time::Duration::from_millis(1_500), "it gave up after {waited:?}");
    let mut run =
        world.background("a", &["--store", &store, "run", "-e", "x", "--", "touch", "ran"]);
    wait_for("a word", || {
        run.said().contains("the store does not answer; trying again").then_some(())
    });
    assert!(run.child.try_wait().unwrap().is_none(), "it keeps trying");
    run.signal(Signal::INT);
    assert_eq!(run.code(), 130);
}

/// The guardian is the command's parent, and `tenure run` the guardian's.
#[test]
fn between_the_program_and_the_command_stands_the_guardian() {
    let world = World::new();
    let run = world.run("a", &["-e", "x", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    let command = wait_for("the command", || pids(&run.printed()).first().copied());
    let guardian = parent(command).unwrap();
    assert_eq!(parent(guardian), Some(run.pid().as_raw_pid()));
    let name = std::fs::read_to_string(format!("/proc/{guardian}/comm")).unwrap();
    assert_eq!(name.trim(), "guardian", "pkill tenure must not mean it");
}
