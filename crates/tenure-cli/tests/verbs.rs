//! The verbs that look and steer.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Running, World, bare, code, stderr, stdout, wait_for};
use serde_json::{Value, json};

const FOREVER: [&str; 3] = ["--", "sleep", "1000"];

fn stand(world: &World, id: &str, election: &str, more: &[&str]) -> Running {
    let mut args = vec!["-e", election];
    args.extend(more);
    args.extend(FOREVER);
    world.run(id, &args)
}

/// `a` leads, `b` waits.
fn two(world: &World) -> (Running, Running) {
    let options = ["--endpoint", "10.0.0.7:80", "--meta", "zone=x"];
    let a = stand(world, "a", "jobs", &options);
    world.next_leader("jobs", 0);
    let b = stand(world, "b", "jobs", &["--priority", "7"]);
    wait_for("b to stand", || {
        let view = world.json(&["status", "jobs"]);
        (view["candidates"].as_array().unwrap().len() == 2).then_some(())
    });
    (a, b)
}

/// The fields that scripts rely on.
#[test]
fn status_has_the_documented_fields() {
    let world = World::new();
    let (_a, _b) = two(&world);
    let view = world.json(&["status", "jobs"]);
    assert_eq!(view["namespace"], "default");
    assert_eq!(view["election"], "jobs");
    assert_eq!(view["term"], 1);
    assert_eq!(view["leader"]["id"], "a");
    assert_eq!(view["leader"]["incarnation"].as_str().unwrap().len(), 32);
    assert_eq!(view["leader"]["endpoints"], json!(["10.0.0.7:80"]));
    assert_eq!(view["leader"]["metadata"], r#"{"zone":"x"}"#);
    assert!(view["elected_at"].as_str().unwrap().ends_with('Z'));
    assert!((1..=10_000).contains(&view["expires_in_ms"].as_u64().unwrap()));
    assert_eq!((&view["paused"], &view["step_down"]), (&Value::Null, &Value::Null));
    let b = view["candidates"].as_array().unwrap().iter().find(|c| c["id"] == "b").unwrap();
    assert_eq!(b["priority"], 7);
    assert!(b["waiting_ms"].is_u64());
    let text = world.text(&["status", "jobs"]);
    for shown in ["leader", "a", "10.0.0.7:80", "b, priority 7", "notifications native"] {
        assert!(text.contains(shown), "{text}");
    }
    let all = world.json(&["status"]);
    assert_eq!(all["elections"][0]["leader"]["id"], "a");
}

/// A vacant election has a null leader; one that never was is not found.
#[test]
fn vacant_is_not_absent() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let view = world.json(&["status", "jobs"]);
    assert_eq!((&view["leader"], &view["term"]), (&Value::Null, &json!(1)));
    let output = world.ask(&["status", "jbos"]);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("did you mean \"jobs\"?"), "{}", stderr(&output));
    assert_eq!(world.code(&["-n", "other", "status", "jobs"]), 4);
}

#[test]
fn members_and_elections_are_listed() {
    let world = World::new();
    assert_eq!(world.text(&["members"]), "no members\n");
    let (_a, _b) = two(&world);
    let members = world.json(&["members"]);
    let ids: Vec<&str> =
        members["members"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!(members["members"][0]["holds"], 1);
    assert!(world.text(&["members"]).contains("10.0.0.7:80"));
    assert_eq!(world.json(&["elections"])["elections"][0]["election"], "jobs");
    assert!(world.text(&["elections"]).contains("jobs"));
}

/// N3: a watch begins with the present, and one that resumes skips nothing.
#[test]
fn watch_resumes_where_another_one_ended() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--id", "a", "--", "true"]);
    let lines = world.text(&["--json", "watch", "--from", "0", "--count", "3"]);
    let lines: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|l| l["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["joined", "stood", "elected"]);
    let from = lines[2]["seq"].to_string();
    let rest = world.text(&["--json", "watch", "jobs", "--from", &from, "--count", "1"]);
    let rest: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!((&rest["event"], &rest["cause"]), (&json!("released"), &json!("resigned")));
    let _a = stand(&world, "b", "jobs", &[]);
    world.next_leader("jobs", 1);
    let first = world.text(&["watch", "jobs", "--count", "1"]);
    assert!(first.contains("b leads with term 2"), "{first}");
}

/// C23: the watch goes on after the store could not be used for a while, and
/// tells what happened since.
#[test]
fn watch_goes_on_after_the_store_was_locked() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--id", "a", "--", "true"]);
    let watch = world.background("watch", &["watch", "jobs", "--from", "0"]);
    watch.until_printed("a leads with term 1");
    let db = rusqlite::Connection::open(world.path("t.db")).unwrap();
    db.busy_timeout(common::LIMIT).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let stood = world.run("b", &["-e", "jobs", "--", "sleep", "1000"]);
    wait_for("the trouble of the locked store", || {
        stood
            .said()
            .contains("waiting for jobs")
            .then_some(())
            .or_else(|| stood.said().contains("the store does not answer").then_some(()))
    });
    db.execute_batch("ROLLBACK").unwrap();
    watch.until_printed("b leads with term 2");
}

#[test]
fn history_says_who_how_long_and_why_and_points_out_flapping() {
    let world = World::new();
    for _ in 0..5 {
        world.text(&["run", "-q", "-e", "jobs", "--id", "a", "--", "true"]);
    }
    let text = world.text(&["history", "jobs"]);
    assert!(text.contains("resigned") && text.contains("flapping: 5 terms"), "{text}");
    let history = world.json(&["history"]);
    let jobs = &history["elections"][0];
    assert_eq!(jobs["terms"].as_array().unwrap().len(), 5);
    assert_eq!(jobs["terms"][4]["term"], 5);
    assert!(jobs["terms"][4]["lasted_ms"].is_u64());
    assert_eq!(world.json(&["history", "--limit", "2"])["elections"][0]["terms"][0]["term"], 4);
    assert!(world.text(&["history", "--since", "1h"]).contains("jobs"));
}

/// L13: a leader that was killed, and that has no successor, is not said to lead
/// until now; one that leads is.
#[test]
fn history_does_not_say_now_of_a_leader_that_was_killed() {
    let world = World::new();
    let leader = world.run("a", &["-e", "jobs", "--ttl", "2s", "--", "sleep", "1000"]);
    wait_for("the leader", || world.leader("jobs").0);
    let last = |world: &World| world.json(&["history", "jobs"])["elections"][0]["terms"][0].clone();
    let says_now = |text: &str| text.split_whitespace().any(|word| word == "now");
    assert!(says_now(&world.text(&["history", "jobs"])));
    assert_eq!(last(&world)["stands"], true);

    leader.signal(rustix::process::Signal::KILL);
    wait_for("the vacancy", || world.leader("jobs").0.is_none().then_some(()));
    let text = world.text(&["history", "jobs"]);
    assert!(!says_now(&text), "{text}");
    assert!(text.contains("unknown") && text.contains("not live any more"), "{text}");
    let term = last(&world);
    assert_eq!((&term["stands"], &term["to"]), (&serde_json::json!(false), &Value::Null), "{term}");

    // It has a successor: now it is known.
    world.text(&["run", "-q", "-e", "jobs", "--id", "b", "--", "true"]);
    let term = last(&world);
    assert!(term["to"].is_string() && term["ended"].is_string(), "{term}");
}

/// What happened to the request is said, also when nothing did.
#[test]
fn resign_says_what_happened() {
    let world = World::new();
    assert_eq!(world.code(&["resign", "jobs"]), 4);
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    assert_eq!(world.code(&["resign", "jobs"]), 3);
    let (mut a, _b) = two(&world);
    let output = world.ask(&["resign", "jobs", "--to", "c"]);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("\"c\" is not a live candidate"), "{}", stderr(&output));
    let done = world.json(&["resign", "jobs", "--wait"]);
    assert_eq!(done["successor"]["id"], "b");
    assert_eq!(done["ended"], "stepped down as asked");
    assert_eq!(a.code(), 73);
}

/// E6: no member is newly elected while paused; the reason is shown.
#[test]
fn pause_and_resume() {
    let world = World::new();
    assert_eq!(world.code(&["pause", "jobs"]), 4, "a misspelt name is not paused");
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    assert!(world.text(&["pause", "jobs", "--reason", "migration"]).contains("no member is newly"));
    assert!(world.text(&["pause", "jobs", "--reason", "migration"]).contains("paused"));
    let view = world.json(&["status", "jobs"]);
    assert_eq!(view["paused"]["reason"], "migration");
    assert!(view["paused"]["by"].as_str().unwrap().starts_with("tester@"));
    let output = world.ask(&["run", "-e", "jobs", "--no-wait", "--", "true"]);
    assert_eq!(code(&output), 75);
    assert!(stderr(&output).contains("is paused"), "{}", stderr(&output));
    assert!(world.text(&["resume", "jobs"]).contains("no longer paused"));
    assert!(world.text(&["resume", "jobs"]).contains("was not paused"));
    assert_eq!(world.code(&["run", "-q", "-e", "jobs", "--no-wait", "--", "true"]), 0);
}

/// The warning names the time, and by default it is waited out.
#[test]
fn evict_waits_until_the_member_cannot_believe_that_it_leads() {
    let world = World::new();
    let mut a = stand(&world, "a", "jobs", &["--ttl", "2s"]);
    world.next_leader("jobs", 0);
    let output = world.ask(&["evict", "aa"]);
    assert_eq!(code(&output), 4);
    assert!(stderr(&output).contains("did you mean \"a\"?"), "{}", stderr(&output));
    let output = world.ask(&["evict", "a"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("may still trust its terms for up to"));
    assert!(stdout(&output).contains("what it held is free"));
    assert_eq!(world.leader("jobs").0, None);
    assert_eq!(a.code(), 73, "the evicted one stopped its command");
}

/// M6, P1: the operator's word after a restore. It can be told from the next number, and
/// disturbs no member.
#[test]
fn restored_lets_numbers_jump_and_disturbs_no_member() {
    let world = World::new();
    let mut a = stand(&world, "a", "jobs", &["--ttl", "2s"]);
    world.next_leader("jobs", 0);
    let eras = world.json(&["restored"]);
    assert_eq!((&eras["era_before"], &eras["era_after"]), (&0.into(), &1.into()));
    assert_eq!(world.leader("jobs").0.as_deref(), Some("a"));
    assert!(world.text(&["restored"]).contains("from 1 to 2"));
    world.text(&["evict", "a"]);
    a.code();
    assert_eq!(world.code(&["run", "-q", "-e", "jobs", "--no-wait", "--", "true"]), 0);
    let number = world.json(&["status", "jobs"])["term"].as_u64().unwrap();
    assert!(number > 2 << 40, "{number}");
}

/// For scripts and probes.
#[test]
fn check_and_fence_answer_by_code() {
    let world = World::new();
    assert_eq!(world.code(&["check", "jobs"]), 3);
    assert_eq!(world.code(&["fence", "jobs", "0"]), 4);
    let (_a, _b) = two(&world);
    assert_eq!(world.code(&["check", "jobs"]), 0);
    assert_eq!(world.code(&["check", "jobs", "--leader-is", "a"]), 0);
    assert_eq!(world.code(&["check", "jobs", "--leader-is", "b"]), 1);
    assert_eq!(world.code(&["fence", "jobs", "1"]), 0);
    assert_eq!(world.code(&["fence", "jobs", "2"]), 4);
    world.text(&["resign", "jobs", "--wait"]);
    assert_eq!(world.code(&["fence", "jobs", "1"]), 1);
    assert_eq!(world.json(&["fence", "jobs", "2"])["ok"], true);
    assert_eq!(world.code(&["fence", "jobs", "one"]), 2);
}

/// M6: the doctor says when and why the era began, and finds numbers that the clock has
/// not reached: they would come again after a restore.
#[test]
fn the_doctor_tells_of_eras_and_of_numbers_ahead_of_the_clock() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let finding = |code: &str| {
        let output = world.ask(&["--json", "doctor", "--clock-for", "100ms"]);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = report["findings"].as_array().unwrap().iter().find(|f| f["code"] == code);
        (common::code(&output), found.cloned().unwrap_or_default())
    };
    assert_eq!(finding("era").1["verdict"], "fine");
    world.text(&["restored"]);
    let (exit, era) = finding("era");
    assert_eq!((exit, &era["verdict"]), (0, &json!("note")), "{era}");
    assert!(era["found"].as_str().unwrap().contains("said to be restored"), "{era}");
    assert!(era["remedy"].as_str().unwrap().contains("tenure restored"), "{era}");
    assert_eq!(finding("numbers-ahead").1, Value::Null);
    let db = rusqlite::Connection::open(world.path("t.db")).unwrap();
    db.execute("UPDATE tenure_elections SET number = 1 << 52", []).unwrap();
    let (exit, ahead) = finding("numbers-ahead");
    assert_eq!((exit, &ahead["verdict"]), (1, &json!("wrong")), "{ahead}");
}

/// M6, R6: a file that was put back is told before anything is written to it. The doctor's own
/// election is the next write: after that the era tells.
#[test]
fn the_doctor_tells_of_a_file_that_was_put_back() {
    let world = World::new();
    let run = || world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    run();
    std::fs::copy(world.path("t.db"), world.path("copy.db")).unwrap();
    run();
    for end in ["-wal", "-shm"] {
        drop(std::fs::remove_file(world.path(&format!("t.db{end}"))));
    }
    std::fs::copy(world.path("copy.db"), world.path("t.db")).unwrap();
    let verdicts = || {
        let report = world.json(&["doctor", "--clock-for", "100ms"]);
        let findings = report["findings"].as_array().unwrap().clone();
        let verdict = |code: &str| {
            let found = findings.iter().find(|finding| finding["code"] == code);
            found.map(|finding| finding["verdict"].as_str().unwrap().to_owned())
        };
        [verdict("rolled-back"), verdict("era")]
    };
    let note = Some("note".to_owned());
    assert_eq!(verdicts(), [note.clone(), note.clone()]);
    assert_eq!(verdicts(), [None, note], "an era has begun");
}

#[test]
fn the_doctor_finds_a_healthy_store_healthy_and_a_broken_one_not() {
    let world = World::new();
    let report = world.json(&["doctor", "--clock-for", "300ms"]);
    for finding in report["findings"].as_array().unwrap() {
        assert_ne!(finding["verdict"], "wrong", "{finding}");
    }
    assert!(report["findings"].as_array().unwrap().len() >= 6, "{report}");
    std::fs::write(world.path("junk"), "not a database, but long enough to be looked at").unwrap();
    let junk = format!("sqlite:{}", world.path("junk").display());
    let output = world.ask(&["--store", &junk, "doctor"]);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("wrong") && stdout(&output).contains("→"), "{output:?}");
}

#[test]
fn timing_gives_settings_or_says_why_not() {
    let world = World::new();
    let plan = world.json(&["timing", "--recover-in", "5s", "--tolerate", "3s"]);
    assert!(plan["recover_in_ms"].as_u64().unwrap() <= 5000);
    assert!(plan["tolerates_ms"].as_u64().unwrap() >= 3000);
    let output = world.ask(&["timing", "--recover-in", "3s", "--tolerate", "5s"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("contradict"), "{}", stderr(&output));
}

/// The SQL makes what the store itself makes.
#[test]
fn the_schema_can_be_applied_by_hand() {
    let world = World::new();
    let sql = world.text(&["schema", "sqlite"]);
    let db = rusqlite::Connection::open(world.path("t.db")).unwrap();
    db.execute_batch(&sql).unwrap();
    drop(db);
    let store = format!("{}?share_file=1", world.store());
    let args = ["--store", &store, "run", "-q", "-e", "jobs", "--", "true"];
    assert_eq!(world.code(&args), 0, "{}", stderr(&world.ask(&args)));
    let output = world.ask(&["schema", "sqlit"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("did you mean \"sqlite\"?"), "{}", stderr(&output));
    assert_eq!(world.text(&["schema", "sqlite", "--from", "1"]), "");
    assert_eq!(world.code(&["schema", "memory"]), 2);
}

/// Nothing is set up: the state directory is used, and made.
#[test]
fn without_a_store_the_users_state_directory_is_used() {
    let world = World::new();
    let run = |home: &str, value: &std::path::Path| {
        bare(&["run", "-q", "-e", "x", "--", "true"]).env(home, value).output().unwrap()
    };
    assert_eq!(code(&run("XDG_STATE_HOME", &world.path("state"))), 0);
    assert!(world.path("state/tenure/tenure.db").exists());
    assert_eq!(code(&run("HOME", &world.path("home"))), 0);
    assert!(world.path("home/.local/state/tenure/tenure.db").exists());
    let output = bare(&["status"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("give --store"), "{}", stderr(&output));
}

/// Command line over environment over file.
#[test]
fn the_config_file_gives_defaults() {
    let world = World::new();
    let config = world.path("config.toml");
    let text =
        format!("store = '{}'\nnamespace = 'filed'\n[run]\nid = 'from-file'\n", world.store());
    std::fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap().to_owned();
    let script = "echo $TENURE_MEMBER $TENURE_NAMESPACE";
    let run = |more: &[&str], env: Option<&str>| {
        let mut args = vec!["--config", &config];
        args.extend(more);
        args.extend(["run", "-q", "-e", "x", "--", "sh", "-c", script]);
        let mut command = bare(&args);
        command.envs(env.map(|ns| ("TENURE_NAMESPACE", ns)));
        stdout(&command.output().unwrap())
    };
    assert_eq!(run(&[], None), "from-file filed\n");
    assert_eq!(run(&[], Some("env")), "from-file env\n");
    assert_eq!(run(&["-n", "line"], Some("env")), "from-file line\n");
    std::fs::write(&config, "stroe = 'x'").unwrap();
    let output = world.ask(&["--config", &config, "status"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("did you mean \"store\"?"), "{}", stderr(&output));
    let missing = world.path("missing.toml").to_str().unwrap().to_owned();
    assert_eq!(world.code(&["--config", &missing, "status"]), 2);
}

/// Coloured only when asked for, in a pipe.
#[test]
fn a_pipe_gets_plain_text_unless_colour_is_asked_for() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    assert!(!world.text(&["status"]).contains('\x1b'));
    assert!(world.text(&["--color", "always", "status"]).contains('\x1b'));
}

/// A reader that leaves is not an error.
#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let world = World::new();
    world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    let exe = env!("CARGO_BIN_EXE_tenure");
    let script = format!("{exe} watch --from 0 | head -n 1");
    let mut command = std::process::Command::new("sh");
    let shell = command.args(["-c", &script]).env("TENURE_STORE", world.store());
    let child = shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = child.spawn().unwrap();
    // The first change after the reader left is written into the closed pipe.
    while child.try_wait().unwrap().is_none() {
        world.text(&["run", "-q", "-e", "jobs", "--", "true"]);
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(stdout(&output).lines().count(), 1);
    assert_eq!(stderr(&output), "");
}

/// What is generated is complete.
#[test]
fn completions_and_the_man_page_know_every_verb() {
    let world = World::new();
    let man = world.text(&["man"]);
    let bash = world.text(&["completions", "bash"]);
    for verb in ["run", "status", "watch", "history", "resign", "evict", "fence", "top", "doctor"] {
        assert!(man.contains(&format!("TENURE {}", verb.to_uppercase())), "{verb}");
        assert!(bash.contains(verb), "{verb}");
    }
    assert!(man.contains("EXIT CODES"));
    assert!(world.text(&["codes"]).contains("| 73 |"));
    let output = world.ask(&["staus"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("status"), "{}", stderr(&output));
}

/// The README's first command.
#[test]
fn the_demo_plays_to_its_end_and_leaves_nothing() {
    let world = World::new();
    let mut demo = world.tenure(&["demo"]);
    let output = demo.env("TMPDIR", world.dir()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for shown in ["leads with term 1", "leads with term 2", "leads with term 3", "answers no"] {
        assert!(text.contains(shown), "{text}");
    }
    assert_eq!(std::fs::read_dir(world.dir()).unwrap().count(), 0, "it cleans up");
}

/// Names that a process has registered are listed, filtered and looked up, as text and as JSON.
#[test]
fn names_are_listed_and_looked_up() {
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let taken = runtime.block_on(async {
        let tenure = tenure::Tenure::builder(world.store()).id("web-1").connect().await.unwrap();
        let value = tenure::naming::Value::at("10.0.0.7:9000").unwrap();
        let value = value.with_index([("role", "worker")]).unwrap();
        let name = |text: &str| tenure::naming::Name::new(text).unwrap();
        let first = tenure.names().take(name("orders:user/42"), value).await.unwrap();
        let second =
            tenure.names().take(name("orders:user/43"), tenure::naming::Value::empty()).await;
        (first, second.unwrap())
    });
    let listed = world.json(&["names", "orders:"]);
    assert_eq!(listed["names"].as_array().unwrap().len(), 2);
    assert_eq!(listed["names"][0]["token"], taken.0.token().get());
    let workers = world.text(&["names", "--where", "role=worker", "--owner", "web-1"]);
    assert!(workers.contains("user/42") && !workers.contains("user/43"), "{workers}");
    assert_eq!(world.text(&["names", "--owner", "no-member-of-this-name"]), "no names\n");
    assert_eq!(world.json(&["lookup", "orders:user/42"])["endpoint"], "10.0.0.7:9000");
    let free = world.ask(&["lookup", "orders:user/44"]);
    assert_eq!(free.status.code(), Some(4));
    let said = String::from_utf8_lossy(&free.stdout).into_owned();
    assert!(said.contains("orders:user/44 has no owner"), "{said}");
    drop(taken);
}
