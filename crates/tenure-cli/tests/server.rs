//! The program on a PostgreSQL that dies and comes back.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../tenure-postgres/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub)]
mod server;

use common::{World, wait_for};
use server::Server;

/// C23, H13: the server is killed with -9 and started again. The watch says
/// nothing wrong meanwhile and goes on where it was: each term once, in order.
/// A standby rides it out and leads afterwards; a verb that asks once fails at
/// once, and says which host it did not reach.
#[test]
fn watch_and_run_ride_out_a_server_that_is_killed_and_restarted() {
    let mut server = Server::start();
    let world = World::on(server.url());
    world.text(&["run", "-q", "-e", "jobs", "--id", "a", "--", "true"]);
    let watch = world.background("watch", &["--json", "watch", "jobs", "--from", "0"]);
    watch.until_printed("\"term\":1");

    server.kill();
    let standby = world.run("b", &["-e", "jobs", "--", "sleep", "1000"]);
    wait_for("the standby's word that the store is away", || {
        standby.said().contains("the store does not answer").then_some(())
    });
    let asked = world.ask(&["status", "jobs"]);
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(!asked.status.success(), "{said}");
    assert!(said.contains(&format!("127.0.0.1:{}", server.port)), "which host: {said}");

    server.up();
    watch.until_printed("\"member\":\"b\"");
    wait_for("the second term", || watch.printed().matches("\"elected\"").nth(1).map(drop));
    let printed = watch.printed();
    let elected = printed.lines().filter(|line| line.contains("\"elected\""));
    let terms: Vec<u64> = elected
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["term"].as_u64().unwrap()
        })
        .collect();
    // A server that was started again may have forgotten numbers: the next one jumps.
    assert!(terms.len() == 2 && terms[0] == 1 && terms[1] > 1, "{printed}");
}

/// A program that is handed the election trusts it for less than its command's
/// grace at first. It waits for the heartbeat that changes that, and the command
/// then runs to its end like any other.
#[test]
fn a_command_whose_program_was_handed_the_election_runs_to_its_end() {
    let server = Server::start();
    let world = World::on(server.url());
    let mut first = world.run("a", &["-e", "jobs", "--", "sleep", "1000"]);
    wait_for("the first leader", || world.leader("jobs").0);
    let mut next = world.run("b", &["-e", "jobs", "--", "sh", "-c", "sleep 0.5; echo done"]);
    wait_for("the second in line", || next.said().contains("stands for jobs").then_some(()));
    first.signal(rustix::process::Signal::TERM);
    first.code();
    assert_eq!(next.code(), 0, "{}", next.said());
    assert_eq!((next.printed().as_str(), world.leader("jobs").1), ("done\n", 2), "{}", next.said());
}
