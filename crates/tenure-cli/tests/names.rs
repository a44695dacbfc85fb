//! Names and forgetting, by the built program: on SQLite, and on PostgreSQL where it matters.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../tenure-postgres/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub)]
mod server;

use common::{World, code, stderr, wait_for};
use rustix::process::Signal;
use server::Server;

fn owner(world: &World, name: &str) -> Option<String> {
    let output = world.ask(&["--json", "lookup", name]);
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(found["owner"].as_str()?.to_owned())
}

/// U1, U2: the command knows its name and its token; the name is listed with its value while
/// the command runs, has no other owner, and goes to the next under a higher token.
fn a_command_runs_while_it_owns_its_name(world: &World) {
    let shown =
        world.text(&["register", "-q", "s:x", "--", "sh", "-c", "echo $TENURE_NAME $TENURE_TOKEN"]);
    let first: u64 = shown.trim().strip_prefix("s:x ").unwrap().parse().unwrap();
    assert_eq!(world.code(&["lookup", "s:x"]), 4, "it was given back");

    let value = ["--endpoint", "10.0.0.7:80", "--index", "zone=a", "--data", "hello"];
    let mut args = vec!["register", "s:x", "--id", "a"];
    args.extend(value);
    args.extend(["--", "sleep", "1000"]);
    let mut a = world.background("a", &args);
    wait_for("the owner", || owner(world, "s:x"));
    let found = world.json(&["names", "s:", "--where", "zone=a", "--owner", "a"]);
    assert_eq!(found["names"][0]["endpoint"], "10.0.0.7:80");
    assert_eq!(found["names"][0]["data"], "hello");
    assert!(found["names"][0]["token"].as_u64().unwrap() > first);
    assert_eq!(world.json(&["names", "--where", "zone=b"])["names"], serde_json::json!([]));

    let refused = world.ask(&["register", "s:x", "--no-wait", "--", "true"]);
    assert_eq!(code(&refused), 75);
    assert!(stderr(&refused).contains("s:x is owned by a (token"), "{}", stderr(&refused));
    let refused = world.ask(&["register", "s:x", "--wait", "200ms", "--", "true"]);
    assert_eq!(code(&refused), 75, "{}", stderr(&refused));

    let b = world.background("b", &["register", "s:x", "--id", "b", "--", "sleep", "1000"]);
    wait_for("the word of whom it waits for", || b.said().contains("a owns it").then_some(()));
    a.signal(Signal::TERM);
    a.code();
    wait_for("the next owner", || (owner(world, "s:x")? == "b").then_some(()));
}

#[test]
fn a_command_runs_while_it_owns_its_name_on_sqlite() {
    a_command_runs_while_it_owns_its_name(&World::new());
}

#[test]
fn a_command_runs_while_it_owns_its_name_on_postgres() {
    let server = Server::start();
    a_command_runs_while_it_owns_its_name(&World::on(server.url()));
}

/// U6: an owner that is evicted loses the name, its command is killed, and it ends with the
/// code of `run`.
#[test]
fn an_evicted_owner_stops_its_command() {
    let world = World::new();
    let args = ["register", "x", "--id", "a", "--ttl", "2s", "--", "sleep", "1000"];
    let mut a = world.background("a", &args);
    wait_for("the owner", || owner(&world, "x"));
    world.text(&["evict", "a"]);
    assert_eq!(a.code(), 73, "{}", a.said());
    assert_eq!(world.code(&["lookup", "x"]), 4);
}

/// Q4: an operator drops a name without an owner, under the exact token, and nothing else.
#[test]
fn only_a_name_without_an_owner_is_released_and_only_under_its_token() {
    let world = World::new();
    let _a = world.background("a", &["register", "mine", "--id", "a", "--", "sleep", "1000"]);
    wait_for("the owner", || owner(&world, "mine"));
    let token = world.json(&["lookup", "mine"])["token"].to_string();
    let refused = world.ask(&["release", "mine", "--token", &token]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("`tenure evict a`"), "{}", stderr(&refused));
    assert_eq!(owner(&world, "mine").as_deref(), Some("a"));

    let file = rusqlite::Connection::open(world.path("t.db")).unwrap();
    file.execute(
        "INSERT INTO tenure_names (ns, name, token, rev, nonce, pairs, data, bound_at)
         VALUES ('default', 'notice', 77, 77, 1, '', x'', 0)",
        [],
    )
    .unwrap();
    file.execute("UPDATE tenure_revisions SET rev = 77", []).unwrap();
    let refused = world.ask(&["release", "notice", "--token", &token]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("bound under token 77"), "{}", stderr(&refused));
    assert_eq!(world.json(&["release", "notice", "--token", "77"])["free"], true);
    assert_eq!(world.code(&["release", "notice", "--token", "77"]), 4);
}

#[test]
fn names_that_cannot_be_are_refused() {
    let world = World::new();
    let long = "n".repeat(201);
    let calls: [&[&str]; 5] = [
        &["register", &long, "--", "true"],
        &["register", "x", "--index", "pair", "--", "true"],
        &["register", "x", "--data", &"d".repeat(5_000), "--", "true"],
        &["release", "", "--token", "1"],
        &["release", "x"],
    ];
    for args in calls {
        let output = world.ask(args);
        assert_eq!(code(&output), 2, "{args:?}: {}", stderr(&output));
    }
}

/// Q8: what is bound, then each change; a revision that is gone is said to be, and the watch
/// goes on from the present.
fn a_watch_of_names_tells_each_change(world: &World) {
    world.text(&["register", "-q", "other", "--", "true"]);
    let watch = world.background("watch", &["--json", "watch", "--names", "s:"]);
    let text = world.background("text", &["watch", "--names", "s:", "--from", "999999999"]);
    wait_for("the word of the revision", || text.said().contains("goes on from").then_some(()));
    let mut a = world.background("a", &["register", "s:x", "--id", "a", "--", "sleep", "1000"]);
    watch.until_printed("\"bound\"");
    text.until_printed("bound to a under token");
    a.signal(Signal::TERM);
    a.code();
    watch.until_printed("\"free\"");
    text.until_printed("is free");
    assert!(!watch.printed().contains("other"), "{}", watch.printed());
}

#[test]
fn a_watch_of_names_tells_each_change_on_sqlite() {
    a_watch_of_names_tells_each_change(&World::new());
}

/// Q8: a watch that resumes tells what changed in between: what is free by now, who owns names
/// (so that a name of any other is free), and what is bound. Counts are told on request.
#[test]
fn a_watch_of_names_that_resumes_tells_what_is_free() {
    let world = World::new();
    world.text(&["register", "-q", "other", "--", "true"]);
    let from = world.json(&["names"])["rev"].to_string();
    world.text(&["register", "-q", "s:gone", "--", "true"]);
    let _a = world.background("a", &["register", "s:x", "--id", "a", "--", "sleep", "1000"]);
    wait_for("the owner", || owner(&world, "s:x"));
    let resumed = ["watch", "--names", "s:", "--from", &from, "--count", "2"];
    let lines = world.text(&[&["--json"], &resumed[..]].concat());
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0]["owners"][0]["owner"], "a");
    assert_eq!((&lines[1]["name"], &lines[1]["what"]), (&"s:gone".into(), &"free".into()));
    assert_eq!((&lines[2]["name"], &lines[2]["what"]), (&"s:x".into(), &"bound".into()));
    let text = world.text(&resumed);
    assert!(text.contains("owned by none of these is free: a"), "{text}");
    assert!(text.contains("s:gone  is free") && text.contains("s:x  bound to a"), "{text}");
    let counted = world.json(&["status", "--names"]);
    assert_eq!(counted["names"], serde_json::json!({ "bound": 1, "owners": 1 }));
    assert!(world.text(&["status", "--names"]).contains("1 names are bound, by 1 members"));
    assert!(world.json(&["status"]).get("names").is_none());
}

/// H5: no number comes back, a dry run changes nothing, and what is led stays.
fn a_purge_forgets_what_is_unused(world: &World) {
    for name in ["one", "two", "two"] {
        world.text(&["run", "-q", "-e", name, "--", "true"]);
    }
    world.text(&["register", "-q", "s:x", "--", "true"]);
    let _a = world.run("a", &["-e", "led", "--", "sleep", "1000"]);
    world.next_leader("led", 0);
    let old = world.json(&["purge"]);
    assert_eq!((&old["elections"], &old["complete"]), (&0.into(), &true.into()), "{old}");
    let dry = world.json(&["purge", "--older-than", "0s", "--dry-run"]);
    assert_eq!((&dry["elections"], &dry["dry_run"]), (&2.into(), &true.into()), "{dry}");
    // The age may be a setting; the command line wins over it.
    let config = world.path("config.toml");
    std::fs::write(&config, "[purge]\nolder_than = \"0s\"\n").unwrap();
    let set = ["--config", config.to_str().unwrap(), "purge", "--dry-run"];
    assert_eq!(world.json(&set)["elections"], 2);
    let wins = [&set[..], &["--older-than", "90d"]].concat();
    assert_eq!(world.json(&wins)["elections"], 0);
    let text = world.text(&["purge", "--older-than", "0s"]);
    assert!(text.contains("2 elections"), "{text}");
    assert_eq!(world.code(&["status", "one"]), 4);
    assert_eq!(world.leader("led").0.as_deref(), Some("a"));
    world.text(&["run", "-q", "-e", "one", "--", "true"]);
    assert_eq!(world.leader("one").1, 3, "above every number that was forgotten");
    assert_eq!(world.code(&["purge", "--older-than", "5"]), 2);
}

#[test]
fn a_purge_forgets_what_is_unused_on_sqlite() {
    a_purge_forgets_what_is_unused(&World::new());
}

#[test]
fn a_purge_forgets_what_is_unused_on_postgres() {
    let server = Server::start();
    a_purge_forgets_what_is_unused(&World::on(server.url()));
}
