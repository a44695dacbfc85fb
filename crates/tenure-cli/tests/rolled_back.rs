//! Stores that are rolled back under programs that live on (P1, rule M6). A machine that
//! goes back to a snapshot takes its processes along; a disk, a volume or a database server
//! does not.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../tenure-postgres/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub)]
mod server;

use std::path::Path;
use std::process::Command;

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

    /// After the copy was put back: a member finds out, before any member is elected, the
    /// leader gives up what it led, and the next number is above all of those before. On a busy
    /// machine the leader may be told that its life or its term is over before it finds out more,
    /// and that is all that it says then.
    fn notices(&self, highest: u64) {
        wait_for("a word of a member", || {
            let said = self.a.said() + &self.b.said();
            let words = ["the store was rolled back", "the store has ended b, or its term"];
            words.iter().any(|word| said.contains(word)).then_some(())
        });
        wait_for("the leader to give up", || {
            self.b.said().contains("the command was killed").then_some(())
        });
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

/// Writes the content of a file into another, which stays the file that it is and is never
/// empty meanwhile. By another process: closing a database's file would drop the locks that
/// this one holds on it.
fn copy_into(from: &Path, to: &Path) {
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", from.display())).arg(format!("of={}", to.display()));
    let done = dd.args(["bs=1M", "conv=notrunc", "status=none"]).status().unwrap();
    assert!(done.success(), "dd to {}", to.display());
}

/// The database, its log and its shared memory, all of one moment: no process writes.
fn without_a_writer(world: &World, each: impl Fn(&Path, &Path)) {
    let db = rusqlite::Connection::open(world.path("t.db")).unwrap();
    db.busy_timeout(common::LIMIT).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    for end in ["", "-wal", "-shm"] {
        each(&world.path(&format!("t.db{end}")), &world.path(&format!("copy.db{end}")));
    }
    db.execute_batch("ROLLBACK").unwrap();
}

/// P1, R6: the content of an SQLite file, put back into the very file that the programs have
/// open.
#[test]
fn programs_notice_that_their_file_was_rolled_back_under_them() {
    let pair = Pair::new(World::new());
    without_a_writer(&pair.world, copy_into);
    let highest = pair.go_on();
    without_a_writer(&pair.world, |file, copy| copy_into(copy, file));
    pair.notices(highest);
}
