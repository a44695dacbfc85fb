//! Real processes on a real file.

#![allow(clippy::unwrap_used)]
#![cfg(all(target_os = "linux", feature = "sqlite"))]

mod common;

use std::sync::mpsc;
use std::time::Duration;

use common::{secs, until, within};
use tenure::Tenure;
use tenure_store::BootClock;
use tenure_testkit::Process;
use tenure_testkit::process::{Signal, hear, say};

const ROLE: &str = "TENURE_TEST_URL";
const TTL: Duration = secs(4);

/// Stops the driver's thread for good, at the first word of the election `jam`:
/// from then on nothing but the clock can tell the leader that its time is over.
struct Jam(mpsc::Sender<()>);

#[derive(Default)]
struct Names(String);

impl tracing::field::Visit for Names {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if field.name() == "election" {
            self.0 = format!("{value:?}");
        }
    }
}

impl tracing::Subscriber for Jam {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == "tenure"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut names = Names::default();
        event.record(&mut names);
        if names.0 == "jam" {
            self.0.send(()).unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

/// Not a test by itself: the leader that the next test stops and continues. For
/// each line it is sent it asks whether it leads, and says what it was told, the
/// end of its trust, and the time before and after the question.
#[test]
fn a_child_plays_the_leader() {
    let Ok(url) = std::env::var(ROLE) else { return };
    let (jam, jammed) = mpsc::channel();
    tracing::subscriber::set_global_default(Jam(jam)).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (tenure, leadership) = runtime.block_on(async {
        let tenure = Tenure::builder(url).ttl(TTL).connect().await.unwrap();
        let leadership = tenure.election("e").campaign().await.unwrap();
        (tenure, leadership)
    });
    runtime.spawn(async move { tenure.election("jam").campaign().await });
    jammed.recv().unwrap();
    say("leads");
    loop {
        hear();
        // Read first: a mark that the term is over would make it zero.
        let until = leadership.trusted_until().as_nanos();
        let before = BootClock::read().as_nanos();
        let current = leadership.is_current();
        let after = BootClock::read().as_nanos();
        say(&format!("{current} {until} {before} {after}"));
    }
}

/// What the child says to one question.
#[derive(Debug)]
struct Said {
    current: bool,
    until: u64,
    before: u64,
    after: u64,
}

fn said(line: &str) -> Said {
    let words: Vec<_> = line.split(' ').collect();
    let number = |n: usize| words[n].parse().unwrap();
    let current = words[0] == "true";
    Said { current, until: number(1), before: number(2), after: number(3) }
}

/// H4, T4: stopped for longer than the ttl and continued, a leader's very first
/// question is answered no, although its driver has not run and never will;
/// another process leads by then, and not before the stopped one's trust was over.
#[tokio::test]
async fn a_stopped_and_continued_leader_knows_with_its_first_question() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let mut command = Process::again("a_child_plays_the_leader");
    let mut child = Process::start(command.env(ROLE, &url));
    assert_eq!(child.hears(), "leads");
    let first = said(&child.ask("does it lead"));
    assert!(first.current && first.before < first.until, "it leads: {first:?}");

    child.signal(Signal::STOP);
    let successor = Tenure::builder(&url).ttl(TTL).connect().await.unwrap();
    let leadership = within(successor.election("e").campaign()).await.unwrap();
    let succeeded = BootClock::read().as_nanos();
    assert_eq!(leadership.token(), 2);
    assert!(succeeded > first.until, "succeeded at {succeeded}: {first:?}");
    // The question waits for the child when it goes on.
    child.tell("does it lead");
    child.signal(Signal::CONT);
    let second = said(&child.hears());
    assert!(second.before > succeeded && second.after > second.before, "{second:?}");
    assert_eq!(second.until, first.until, "its driver has not run: {second:?}");
    assert!(!second.current, "another process leads since {succeeded}: {second:?}");
}

/// C1, and the bar: 100 candidates on one SQLite election, each with a
/// connection of its own: no error, one leader, and all agree who.
#[tokio::test]
async fn a_hundred_candidates_on_one_file_elect_one_leader() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let mut members = Vec::new();
    for n in 0..100 {
        let member = Tenure::builder(&url).id(format!("m{n}")).ttl(secs(240));
        members.push(within(member.connect()).await.unwrap());
    }
    let (won, mut wins) = tokio::sync::mpsc::unbounded_channel();
    let mut campaigns = tokio::task::JoinSet::new();
    for member in &members {
        let election = member.election("e");
        let won = won.clone();
        campaigns.spawn(async move {
            let leadership = election.campaign().await.unwrap();
            won.send(leadership.clone()).unwrap();
            leadership.lost().await;
        });
    }
    let leadership = within(wins.recv()).await.unwrap();
    assert_eq!(leadership.token(), 1);
    // Until the store knows all hundred candidates.
    let election = members[0].election("e");
    until("a hundred candidates", || async {
        election.view().await.unwrap().candidates.len() >= 100
    })
    .await;
    assert!(leadership.is_current());
    assert!(wins.try_recv().is_err(), "one leader");
    for member in &members {
        let status = member.status();
        assert_eq!((status.failures, status.last_error), (0, None), "no error");
        let holder = within(member.election("e").leader()).await.unwrap().unwrap();
        assert_eq!(holder.member, leadership.term().member, "all agree");
    }
}
