//! The member of a program without async.

#![allow(clippy::unwrap_used)]
#![cfg(feature = "sqlite")]

mod common;

use std::time::Duration;

use common::secs;
use tenure::blocking::{Tenure, block_on};
use tenure::{Attempt, LeadError, Left, LostReason, Observed, Stopping};
use tenure_testkit::wait_for;

fn connect(url: &str, id: &str) -> Tenure {
    Tenure::with(tenure::Tenure::builder(url).id(id).ttl(secs(5))).unwrap()
}

/// L23: two members that know no runtime lead in turn, see each other, and fence a
/// transaction.
#[test]
fn a_program_without_async_leads_observes_and_fences() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.db");
    let url = format!("sqlite:{}", path.display());
    let a = connect(&url, "a");
    let b = connect(&url, "b");
    let mut seen = b.election("e").observe().unwrap();
    assert!(matches!(seen.next().unwrap().observed, Observed::Vacant { .. }));

    let leadership = a.election("e").campaign().unwrap();
    assert!(matches!(seen.next().unwrap().observed, Observed::Leads { .. }));
    let attempt = b.election("e").try_campaign().unwrap();
    assert_eq!(attempt.leader().unwrap().member.id.as_str(), "a");
    let late = b.election("e").campaign_timeout(Duration::from_millis(50));
    assert!(matches!(late, Err(tenure::Error::NotElected { .. })), "{late:?}");

    let mut db = rusqlite::Connection::open(&path).unwrap();
    let immediate = rusqlite::TransactionBehavior::Immediate;
    let tx = db.transaction_with_behavior(immediate).unwrap();
    leadership.fence_blocking(&tx).unwrap();
    tx.commit().unwrap();
    let old = (*leadership).clone();
    leadership.resign().unwrap();
    assert!(matches!(seen.next().unwrap().observed, Observed::Vacant { .. }));

    // The store may still have had the candidacy of the campaign that ran out of time: then
    // it elected b at the release, and b gave that term back.
    let won = b.election("e").try_campaign().unwrap();
    assert!(matches!(&won, Attempt::Elected(by_b) if by_b.token() > old.token()), "{won:?}");
    let tx = db.transaction_with_behavior(immediate).unwrap();
    assert!(old.fence_blocking(&tx).is_err(), "its term is over");
    drop(tx);
    assert_eq!(a.shutdown().unwrap(), Left::Confirmed);
    assert_eq!(b.shutdown().unwrap(), Left::Confirmed);
    // What was left to tell, and then the end.
    assert!(seen.by_ref().count() <= 2);
}

/// The work is asked to stop, and ends; a loss is an error whatever it answered.
#[test]
fn work_on_a_thread_is_asked_to_stop_and_told_of_a_loss() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let a = connect(&url, "a");
    let operator = connect(&url, "operator");
    let (started, begun) = std::sync::mpsc::channel();
    let worker = std::thread::spawn({
        let a = a.clone();
        let started = started.clone();
        move || {
            a.election("e").lead(|leadership| {
                started.send(()).unwrap();
                let why = leadership.pause(secs(60));
                assert!(matches!(why, Some(Stopping::Asked { .. })), "{why:?}");
                assert!(leadership.is_current(), "renewed while it drains");
                Ok::<_, std::io::Error>(7)
            })
        }
    });
    begun.recv().unwrap();
    block_on(operator.asynchronous().election("e").ask_to_step_down("deploying")).unwrap();
    assert_eq!(worker.join().unwrap().unwrap(), 7);
    assert!(block_on(a.asynchronous().election("e").leader()).unwrap().is_none());

    let lost = std::thread::spawn(move || {
        a.election("f").lead(|leadership| {
            started.send(()).unwrap();
            assert_eq!(leadership.wait_until_lost(), LostReason::Superseded);
            Ok::<_, std::io::Error>(())
        })
    });
    begun.recv().unwrap();
    let id = tenure::MemberId::new("a").unwrap();
    block_on(operator.asynchronous().evict_now(&id)).unwrap();
    let lost = lost.join().unwrap();
    assert!(matches!(lost, Err(LeadError::Lost(LostReason::Superseded))), "{lost:?}");
}

/// A panic in the work gives the term back before it goes on.
#[test]
fn a_panic_of_the_work_gives_the_term_back() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", dir.path().join("tenure.db").display());
    let a = connect(&url, "a");
    let panics = std::thread::spawn({
        let a = a.clone();
        move || a.election("e").lead(|_| -> Result<(), std::io::Error> { panic!("it fails") })
    });
    assert!(panics.join().is_err());
    let b = connect(&url, "b");
    wait_for("the term to be free", || {
        matches!(b.election("e").try_campaign().unwrap(), Attempt::Elected(_)).then_some(())
    });
}
