//! Bad and hostile input: the message names the thing and the remedy, nothing is
//! made that was not asked for, and nothing of a stranger's name reaches the
//! terminal as it is.

#![allow(clippy::unwrap_used)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use common::pty::Pty;
use common::{World, bare, code, stderr, stdout, wait_for};

/// A name that turns, hides, breaks and marks.
const HOSTILE: &str = "a\u{202e}b\u{200b}c\u{2028}d\u{feff}e";
const WRITTEN: &str = "a\\u{202e}b\\u{200b}c\\u{2028}d\\u{feff}e";

fn refused(output: &Output, exit: i32, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(code(output), exit, "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// R17: to go on with the default store would look at another one than was meant.
#[test]
fn an_empty_store_is_named_and_not_replaced_by_the_default() {
    let world = World::new();
    let home = |args: &[&str]| {
        let mut command = bare(args);
        command.env("HOME", world.dir());
        command
    };
    refused(
        &home(&["--store", "", "status"]).output().unwrap(),
        2,
        &["--store is given, and empty"],
    );
    let variable = home(&["status"]).env("TENURE_STORE", "").output().unwrap();
    refused(&variable, 2, &["TENURE_STORE is set, and empty", "unset TENURE_STORE"]);
    let namespace = home(&["status"]).env("TENURE_NAMESPACE", "").output().unwrap();
    refused(&namespace, 2, &["TENURE_NAMESPACE is set, and empty"]);
    assert!(!world.path(".local").exists());
}

/// R19: the answer is the code. A term that is over is not said to be the newest because the
/// reader of the words is gone.
#[test]
fn a_reader_that_is_gone_changes_no_answer() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    for (args, answer) in [
        (&["fence", "jobs", "2"][..], 4),
        (&["fence", "jobs", "1"], 0),
        (&["check", "jobs"], 3),
        (&["lookup", "a:b"], 4),
        (&["--json", "check", "jobs"], 3),
        (&["--json", "fence", "jobs", "2"], 4),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world.tenure(args).stdout(writer).output().unwrap();
        assert_eq!(code(&output), answer, "{args:?}: {}", stderr(&output));
        assert_eq!(world.code(args), answer, "{args:?} with a reader");
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = world.tenure(&["pause", "jobs"]).stdout(full).output().unwrap();
    assert_eq!(code(&output), 70);
    assert!(stderr(&output).contains("has been made"), "{}", stderr(&output));
    assert!(world.json(&["status", "jobs"])["paused"].is_object(), "and it was");
}

/// R19: what is no text is named by its variable.
#[test]
fn a_variable_that_is_no_text_is_named() {
    let world = World::new();
    for variable in ["TENURE_STORE", "TENURE_NAMESPACE"] {
        let value = OsStr::from_bytes(b"\xff\xfe");
        let output = world.tenure(&["status"]).env(variable, value).output().unwrap();
        refused(&output, 2, &[variable, "no UTF-8"]);
    }
}

/// R19: a config file without an end is not read to its end.
#[test]
fn a_config_file_without_an_end_is_refused() {
    let world = World::new();
    refused(&world.ask(&["--config", "/dev/zero", "status"]), 2, &["/dev/zero", "a megabyte"]);
}

/// R19: what a message advises can be done, and is about what was given.
#[test]
fn advice_can_be_followed() {
    let world = World::new();
    let run = |more: &[&str]| {
        let mut args = vec!["run", "-e", "x"];
        args.extend(more);
        args.extend(["--", "true"]);
        world.ask(&args)
    };
    let long = run(&["--grace", "30h"]);
    refused(&long, 2, &["shorten --grace to 7.49s or less"]);
    assert!(!stderr(&long).contains("lengthen"), "no ttl is long enough: {}", stderr(&long));
    let short = run(&["--ttl", "1us"]);
    refused(&short, 2, &["lengthen --ttl to 200ms or more"]);
    assert!(!stderr(&short).contains("shorten"), "no grace is short enough: {}", stderr(&short));
    let meta = format!("k={}", "v".repeat(5_000));
    refused(&run(&["--meta", &meta]), 2, &["the metadata is 5008 bytes long"]);
    refused(&world.ask(&["history", "x", "--limit", "0"]), 2, &["--limit"]);
    refused(&world.ask(&["--store", "sqlite:/tmp%00x", "status"]), 2, &["the byte zero (%00)"]);
}

/// R14: whatever the home directory is called.
#[test]
fn the_default_store_lies_in_a_home_of_any_name() {
    let world = World::new();
    for name in [b"what?x=1".as_slice(), b"50%41", b"caf\xe9", "選挙".as_bytes()] {
        let home = world.dir().join(OsStr::from_bytes(name));
        let run =
            bare(&["run", "-q", "-e", "x", "--", "true"]).env("HOME", &home).output().unwrap();
        assert_eq!(code(&run), 0, "{}", stderr(&run));
        assert!(home.join(".local/state/tenure/tenure.db").is_file(), "{}", home.display());
        let status = bare(&["status"]).env("HOME", &home).output().unwrap();
        assert!(stdout(&status).contains('x'), "{}", stderr(&status));
    }
    let entries = std::fs::read_dir(world.dir()).unwrap().count();
    assert_eq!(entries, 4, "nothing beside them");
    let odd = bare(&["--store", "sqlite:/a%zz.db", "status"]).output().unwrap();
    refused(&odd, 2, &["% at byte 2", "%25"]);
}

/// R16: looking makes nothing.
#[test]
fn reading_verbs_make_neither_a_home_nor_a_file() {
    let world = World::new();
    let home = world.path("home");
    let look = |args: &[&str]| bare(args).env("HOME", &home).output().unwrap();
    for (args, exit) in [
        (&["status"][..], 0),
        (&["members"], 0),
        (&["elections"], 0),
        (&["history"], 0),
        (&["status", "x"], 4),
        (&["check", "x"], 3),
        (&["fence", "x", "1"], 4),
        (&["watch"], 4),
    ] {
        let output = look(args);
        refused(&output, exit, &["tenure.db is not there yet"]);
    }
    assert!(!home.exists());
    let json: serde_json::Value =
        serde_json::from_slice(&look(&["--json", "status"]).stdout).unwrap();
    assert_eq!(json["elections"], serde_json::json!([]));
    assert_eq!(json["store"]["kind"], "sqlite");
}

/// R16: who may only read can look, as long as a process has the file open.
#[test]
fn a_user_who_may_only_read_can_look() {
    let world = World::new();
    let _leader = world.run("ann", &["-e", "jobs", "--", "sleep", "1000"]);
    world.next_leader("jobs", 0);
    std::fs::set_permissions(world.dir(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let unprivileged = |args: &[&str]| {
        let mut command = world.tenure(args);
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        command.output().unwrap()
    };
    for args in [&["status"][..], &["members"], &["watch", "--count", "1"], &["history"]] {
        let output = unprivileged(args);
        assert_eq!(code(&output), 0, "{args:?}: {}", stderr(&output));
        assert!(stdout(&output).contains("ann"), "{args:?}: {}", stdout(&output));
    }
    refused(&unprivileged(&["pause", "jobs"]), 69, &["t.db", "let this process write"]);
    std::fs::set_permissions(world.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// R15: a place that the journal has not reached is no place to wait for.
#[test]
fn watching_from_beyond_the_journal_says_where_it_ends() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let lines = world.text(&["watch", "--from", "0", "--count", "3"]).lines().count();
    assert_eq!(lines, 3);
    let output = world.ask(&["watch", "--from", "1000000"]);
    refused(&output, 2, &["ends at ", "has no 1000000", "--from"]);
}

/// R10: numbers that nothing can count are refused, not a panic.
#[test]
fn numbers_beyond_their_bounds_are_refused() {
    let world = World::new();
    for (option, word) in [
        ("busy_timeout_ms=3000000000", "at most 86400000 ms"),
        ("busy_timeout_ms=99999999999999999999", "not a whole number"),
        ("busy_timeout_ms=-1", "not a whole number"),
        ("journal_keep=0", "at least one"),
        ("journal_keep=18446744073709551615", "at most"),
        ("share_file=7", "neither 0 nor 1"),
    ] {
        let store = format!("{}?{option}", world.store());
        let output = bare(&["--store", &store, "run", "-e", "x", "--", "true"]).output().unwrap();
        refused(&output, 2, &[word]);
    }
    let huge = "999999999999999999h";
    for args in [
        &["run", "-e", "x", "--ttl", huge, "--", "true"][..],
        &["run", "-e", "x", "--grace", huge, "--", "true"],
        &["run", "-e", "x", "--wait", huge, "--", "true"],
        &["timing", "--recover-in", huge, "--tolerate", huge],
        &["timing", "--recover-in", "5s", "--tolerate", "3s", "--members", "0"],
        &["timing", "--recover-in", "5s", "--tolerate", "3s", "--elections", "4294967295"],
        &["history", "--since", huge],
        &["history", "--limit", "18446744073709551615"],
        &["watch", "--count", "0", "--from", "0"],
        &["resign", "x", "--wait=999999999999999999h"],
        &["doctor", "--clock-for", huge],
    ] {
        let output = world.ask(args);
        assert!(!stderr(&output).contains("panicked"), "{args:?}: {}", stderr(&output));
        assert_ne!(code(&output), 101, "{args:?}");
    }
}

/// R18: neither on the terminal nor in JSON.
#[test]
fn nothing_hidden_in_a_name_is_printed_as_it_is() {
    let world = World::new();
    let reason = format!("why{HOSTILE}");
    let mut leader = world.run("x", &["-e", HOSTILE, "--endpoint", HOSTILE, "--", "sleep", "1000"]);
    world.next_leader(HOSTILE, 0);
    let mut all = leader.said();
    for args in [
        &["status"][..],
        &["status", HOSTILE],
        &["members"],
        &["elections"],
        &["history"],
        &["watch", "--from", "0", "--count", "3"],
        &["check", HOSTILE],
        &["fence", HOSTILE, "7"],
        &["pause", HOSTILE, "--reason", &reason],
        &["--json", "status", HOSTILE],
        &["--json", "watch", "--from", "0", "--count", "3"],
        &["status", "a\u{202e}b"],
        &["resign", HOSTILE, "--to", "a\u{202e}b"],
        &["evict", "a\u{202e}b"],
    ] {
        let output = world.ask(args);
        let out = stdout(&output);
        let err = stderr(&output);
        assert!(out.contains("202e") || err.contains("202e"), "{args:?}: {out}{err}");
        all += &format!("{out}{err}");
    }
    let status = world.text(&["status"]);
    assert!(status.contains(WRITTEN), "{status}");
    assert_eq!(world.json(&["status", HOSTILE])["election"], HOSTILE);
    world.text(&["resume", HOSTILE]);
    world.text(&["resign", HOSTILE, "--reason", &reason]);
    assert_eq!(leader.code(), 73);
    all += &leader.said();
    for hidden in ['\u{202e}', '\u{200b}', '\u{2028}', '\u{feff}'] {
        assert!(!all.contains(hidden), "{hidden:?} in {all:?}");
    }
}

/// On a terminal of a given size.
fn on_terminal(world: &World, rows: u16, columns: u16, args: &[&str]) -> Pty {
    let script = format!("stty rows {rows} cols {columns} && exec \"$0\" \"$@\"");
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", "sh", "-c", &script]);
    command.arg(env!("CARGO_BIN_EXE_tenure")).args(args);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.env("TENURE_STORE", world.store()).env("HOME", world.dir()).env("USER", "tester");
    Pty::start(command)
}

/// R18, R19: `top` writes hidden characters out, and has something to say on a
/// small screen.
#[test]
fn top_is_of_use_on_a_small_screen_and_shows_nothing_as_it_is() {
    let world = World::new();
    let _ann = world.run("ann", &["-e", "a\u{202e}b", "--", "sleep", "1000"]);
    world.next_leader("a\u{202e}b", 0);
    let mut top = on_terminal(&world, 5, 20, &["top"]);
    let screen = top.until_shows("ann");
    assert!(screen.contains("a\\u{202e}b"), "{screen}");
    top.press("q");
    assert_eq!(top.code(), 0);
    let mut top = on_terminal(&world, 40, 120, &["top"]);
    let screen = top.until_shows("q quit");
    assert!(screen.contains("a\\u{202e}b") && !screen.contains('\u{202e}'), "{screen}");
    top.press("q");
    assert_eq!(top.code(), 0);
}

/// R19: the leader is no candidate, and no near miss of itself.
#[test]
fn handing_over_to_the_leader_says_that_it_leads_already() {
    let world = World::new();
    let _ann = world.run("ann", &["-e", "jobs", "--", "sleep", "1000"]);
    world.next_leader("jobs", 0);
    let output = world.ask(&["resign", "jobs", "--to", "ann"]);
    refused(&output, 1, &["ann leads jobs already, with term 1"]);
    assert!(!stderr(&output).contains("did you mean"), "{}", stderr(&output));
}

/// R19: a vacancy during a cooldown has a reason.
#[test]
fn status_says_why_an_election_is_vacant_during_a_cooldown() {
    let world = World::new();
    let run = ["-e", "jobs", "--ttl", "30s", "--on-lost", "standby", "--", "sleep", "1000"];
    let _ann = world.run("ann", &run);
    world.next_leader("jobs", 0);
    world.text(&["resign", "jobs", "--reason", "a new disk"]);
    let view = wait_for("the vacancy", || {
        let view = world.json(&["status", "jobs"]);
        view["leader"].is_null().then_some(view)
    });
    assert_eq!(view["ended"]["member"], "ann");
    assert_eq!(view["ended"]["cause"], "stepped down as asked");
    let text = world.text(&["status", "jobs"]);
    for word in ["vacant", "term 1 of ann is over", "stepped down as asked", "cooldown"] {
        assert!(text.contains(word), "{word:?}: {text}");
    }
    assert!(world.text(&["status"]).contains("stepped down"));
}

/// R19: a local store answers in less than a millisecond, and not in none; and
/// there is no pooler in front of a file.
#[test]
fn a_round_trip_is_a_fraction_and_sqlite_has_no_pooler() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let took = world.json(&["status"])["store"]["round_trip_ms"].as_f64().unwrap();
    assert!(took > 0.0, "{took}");
    let output = world.ask(&["doctor", "--clock-for", "100ms"]);
    assert!(!stdout(&output).contains("pooler"), "{}", stdout(&output));
}

/// R19: too few open files are told as such.
#[test]
fn a_low_limit_on_open_files_is_told_as_such() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let exe = env!("CARGO_BIN_EXE_tenure");
    for limit in 4..16 {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {limit} && exec {exe} status")]);
        let output = command.env("TENURE_STORE", world.store()).output().unwrap();
        let said = stderr(&output).to_lowercase();
        assert!(!said.contains("panicked"), "{limit}: {said}");
        assert!(!said.contains("mount /proc") && !said.contains("directory that exists"), "{said}");
        if !output.status.success() && code(&output) != 127 {
            assert!(said.contains("too many open files"), "{limit}: {said}");
        }
    }
}

/// R5: under `run`, removing the database stops the command, and `run` says so.
#[test]
fn a_database_that_is_removed_stops_the_command_and_is_named() {
    let world = World::new();
    let mut leader = world.run("ann", &["-e", "jobs", "--ttl", "3s", "--", "sleep", "1000"]);
    world.next_leader("jobs", 0);
    remove(&world.path("t.db"));
    assert_eq!(leader.code(), 73);
    let said = leader.said();
    assert!(said.contains("t.db was removed or renamed while it was open"), "{said}");
}

fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}
