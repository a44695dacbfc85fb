//! A server that is rolled back under programs that live on (P1, rule M6). A machine that
//! goes back to a snapshot takes its processes along; a disk, a volume or a database server
//! does not.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../tenure-postgres/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub)]
mod server;

use common::{Running, World, wait_for};
use server::Server;

/// Prints the number of each term that it leads.
const SCRIPT: &str = "echo $TENURE_TERM; exec sleep 1000";

/// Two programs that stand for one election, the first of which leads.
struct Pair {
    world: World,
    a: Running,
    b: Running,
}

impl Pair {
    fn new(world: World) -> Self {
        // Longer than a store is away.
        let args = ["-e", "x", "--ttl", "20s", "--on-lost", "standby", "--", "sh", "-c", SCRIPT];
        let a = world.run("a", &args);
        wait_for("the first leader", || common::pids(&a.printed()).pop());
        let b = world.run("b", &args);
        wait_for("the second to stand", || b.said().contains("stands for x").then_some(()));
        Self { world, a, b }
    }

    /// The numbers that either led with, those of the first program first.
    fn terms(&self) -> Vec<u64> {
        let printed = self.a.printed() + &self.b.printed();
        printed.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// After the copy was made: the second leads, and the store knows what the copy does not.
    fn go_on(&self) -> u64 {
        wait_for("the store to answer", || {
            self.world.ask(&["resign", "x"]).status.success().then_some(())
        });
        wait_for("the second leader", || (self.terms().len() == 2).then_some(()));
        self.terms().into_iter().max().unwrap()
    }

    /// After the copy was put back: the leader says so and gives up what it led, and the
    /// next number is above all of those before.
    fn notices(&self, highest: u64) {
        wait_for("a word of the leader", || {
            self.b.said().contains("the store was rolled back").then_some(())
        });
        assert!(self.b.said().contains("the command was killed"), "{}", self.b.said());
        let newest = wait_for("the next leader", || {
            self.terms().get(2).map(|_| *self.terms().iter().max().unwrap())
        });
        assert!(newest > highest + 60_000, "the numbers jump: {newest} after {highest}");
        let mut terms = self.terms();
        let count = terms.len();
        terms.sort_unstable();
        terms.dedup();
        assert_eq!(terms.len(), count, "no number is given out twice");
        let doctor = common::stdout(&self.world.ask(&["doctor"]));
        assert!(doctor.contains("era"), "{doctor}");
    }
}

/// P1: `cp -a` of PostgreSQL's files, put back while the server is down and the programs are
/// not.
#[test]
fn programs_notice_that_their_server_was_rolled_back_under_them() {
    let mut server = Server::start();
    let pair = Pair::new(World::on(server.url()));
    server.stop();
    server.back_up();
    server.up();
    let highest = pair.go_on();
    server.kill();
    server.put_back();
    server.up();
    pair.notices(highest);
}
