//! Campaigns on PostgreSQL while the server is restarted, and while the wall
//! clock of a client is moved.

#![cfg(feature = "postgres")]
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod common;
#[path = "../../tenure-postgres/tests/common/server.rs"]
#[allow(dead_code, unreachable_pub)]
mod server;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use common::{let_pass, secs, until, within};
use server::Server;
use tenure::journal::Happening;
use tenure::{Error, Tenure};
use tenure_testkit::Process;
use tenure_testkit::process::say;

async fn connect(url: &str, id: &str, ttl: Duration) -> Tenure {
    let member = Tenure::builder(url).namespace("n").id(id).ttl(ttl);
    within(member.connect()).await.unwrap()
}

/// H15, H18, F1: the server is killed under a leader and a candidate, stays away
/// for longer than the ttl, and comes back. The leader stops to believe; both
/// campaigns, the one that went on and the one that began meanwhile, end in a
/// term, newer than before, and no caller gets an error.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_restarted_ends_no_campaign() {
    let mut server = Server::start();
    let ttl = secs(2);
    let a = connect(&server.url(), "a", ttl).await;
    let b = connect(&server.url(), "b", ttl).await;
    let leadership = within(a.election("e").campaign()).await.unwrap();
    let first = leadership.token();
    let standing = b.election("e");
    let of_b = tokio::spawn(async move { standing.campaign().await });
    until("two candidates", || async {
        a.election("e").view().await.unwrap().candidates.len() >= 2
    })
    .await;

    server.kill();
    within(leadership.lost()).await;
    drop(leadership);
    let again = a.election("e");
    let of_a = tokio::spawn(async move { again.campaign().await });
    assert!(!of_b.is_finished(), "no member is elected without a server");
    server.up();

    // One of them wins; when it resigns, so does the other.
    let mut of_a = of_a;
    let mut of_b = of_b;
    let (won, other) = within(async {
        tokio::select! {
            won = &mut of_a => (won, of_b),
            won = &mut of_b => (won, of_a),
        }
    })
    .await;
    let second = won.unwrap().expect("no error reaches the caller");
    assert!(second.is_current() && second.token() > first, "{} after {first}", second.token());
    let token = second.token();
    second.resign().await.unwrap();
    let third = within(other).await.unwrap().expect("nor this one");
    assert!(third.is_current() && third.token() > token, "{} after {token}", third.token());
}

/// L14: a store that is down when the program starts is waited for, if the program wants
/// that, and only so long; what waiting cannot mend is answered at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_down_at_the_start_is_waited_for() {
    let mut server = Server::start();
    server.kill();
    let url = server.url();
    let at_once = within(Tenure::connect(&url)).await.unwrap_err();
    assert!(matches!(at_once, Error::Store(_)) && at_once.may_pass(), "{at_once}");

    let patience = Duration::from_millis(300);
    let too_short = within(Tenure::builder(&url).wait_for_store(patience).connect()).await;
    let error = too_short.unwrap_err();
    let Error::StoreAway { waited, tries, last } = &error else { panic!("{error:?}") };
    assert!(*waited >= patience && *tries > 1 && last.may_pass(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains("within") && said.contains(&last.to_string()), "{said}");

    let waits = Tenure::builder(&url).wait_for_store(secs(120));
    let waits = tokio::spawn(waits.connect());
    server.up();
    let tenure = within(waits).await.unwrap().unwrap();
    within(tenure.election("e").campaign()).await.unwrap();

    let wrong = format!("{url}?sslmode=bad");
    let never = Tenure::builder(wrong).wait_for_store(secs(3_600));
    assert!(!within(never.connect()).await.unwrap_err().may_pass());
}

/// Long enough that a machine with much else to do hands a term over in time.
const MOVED_TTL: Duration = Duration::from_secs(4);
const MOVED: &str = "TENURE_TEST_MOVED";
const TEST: &str = "a_client_whose_wall_clock_is_moved_neither_loses_nor_wins_wrongly";

/// Where Debian and others put it.
fn faketime() -> PathBuf {
    let mut folders = vec![PathBuf::from("/usr/lib/faketime")];
    let below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    folders.extend(below.map(|entry| entry.path().join("faketime")));
    let mut found = folders.into_iter().map(|folder| folder.join("libfaketime.so.1"));
    found.find(|file| file.is_file()).expect("libfaketime is installed: `apt install faketime`")
}

/// A client in a process whose wall clock follows a file.
struct Moved {
    process: Process,
    clock: tempfile::NamedTempFile,
}

impl Moved {
    fn start(url: &str) -> Self {
        let clock = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(clock.path(), "+0").unwrap();
        let mut command = Process::again(TEST);
        command
            .env(MOVED, url)
            .env("LD_PRELOAD", faketime())
            .env("FAKETIME_TIMESTAMP_FILE", clock.path())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Self { process: Process::start(&mut command), clock }
    }

    /// Gives an order and waits for the answer to it.
    fn ask(&mut self, order: &str) -> String {
        self.process.ask(order)
    }

    /// Moves its wall clock, and sees that it has moved.
    fn move_to(&mut self, offset: &str, seconds: i64) {
        std::fs::write(self.clock.path(), offset).unwrap();
        let theirs: i64 = self.ask("clock").parse().unwrap();
        let off = theirs - unix();
        assert!((off - seconds).abs() < 60, "its clock is off by {off} s");
    }
}

fn unix() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// The client with the moved clock: does what it is told, line by line.
async fn moved(url: &str) {
    let tenure = connect(url, "moved", MOVED_TTL).await;
    let election = tenure.election("e");
    let mut held = None;
    let mut campaign = None;
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let answer = match order.as_str() {
            "clock" => unix().to_string(),
            "stand" => {
                let election = election.clone();
                campaign = Some(tokio::spawn(async move { election.campaign().await.unwrap() }));
                "yes".into()
            }
            "lead" => {
                held = Some(within(campaign.take().unwrap()).await.unwrap());
                held.as_ref().map_or(0, tenure::Leadership::token).to_string()
            }
            "leads" => {
                let leads = held.as_ref().is_some_and(tenure::Leadership::is_current);
                (leads || campaign.as_ref().is_some_and(|c| c.is_finished())).to_string()
            }
            _ => {
                held.take().unwrap().resign().await.unwrap();
                "yes".into()
            }
        };
        say(&answer);
    }
}

/// T5: a client's wall clock is moved by an hour, ahead and back. While it leads
/// it keeps its term, and its candidate waits; while it stands it does not win
/// what another holds. Hand-overs work both ways, and the journal knows of no
/// other change.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_wall_clock_is_moved_neither_loses_nor_wins_wrongly() {
    if let Ok(url) = std::env::var(MOVED) {
        return moved(&url).await;
    }
    // Clocks are moved here, and no member is to lose a term because a disk is busy.
    let server = Server::start_with(|_| {}, &["fsync=off"]);
    let mut moved = Moved::start(&server.url());
    let other = connect(&server.url(), "other", MOVED_TTL).await;
    let hours = [("+3600", 3_600), ("-3600", -3_600)];
    let while_it_is_so = MOVED_TTL + secs(1);
    let why = "longer than a term could last that is not renewed";

    moved.ask("stand");
    assert_eq!(moved.ask("lead"), "1");
    let standing = other.election("e");
    let campaign = tokio::spawn(async move { standing.campaign().await.unwrap() });
    for (offset, seconds) in hours {
        moved.move_to(offset, seconds);
        let_pass(while_it_is_so, why).await;
        assert_eq!(moved.ask("leads"), "true", "it lost its term at {offset}");
        assert!(!campaign.is_finished(), "another won at {offset}");
    }
    moved.ask("resign");
    let leadership = within(campaign).await.unwrap();
    assert_eq!(leadership.token(), 2);

    moved.ask("stand");
    for (offset, seconds) in hours {
        moved.move_to(offset, seconds);
        let_pass(while_it_is_so, why).await;
        assert_eq!(moved.ask("leads"), "false", "it won at {offset}");
        assert!(leadership.is_current(), "the leader was ended at {offset}");
    }
    leadership.resign().await.unwrap();
    assert_eq!(moved.ask("lead"), "3");

    let journal = other.election("e").journal(100).await.unwrap();
    let elected = journal.iter().filter(|e| matches!(e.what, Happening::Elected { .. })).count();
    let released = journal.iter().filter(|e| matches!(e.what, Happening::Released { .. })).count();
    assert_eq!((elected, released), (3, 2), "{journal:?}");
}
