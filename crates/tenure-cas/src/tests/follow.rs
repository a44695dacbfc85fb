//! Following by polling, on tokio's paused time.

use super::*;
use tenure_store::{Followed, Following, Watch};

fn election(name: &str) -> Followed {
    Followed::Hint(Hint::Election(named(name)))
}

async fn following(process: &Process) -> Box<dyn Following> {
    let mut following = process.store.follow(&ns()).await.unwrap();
    assert_eq!(following.next().await.unwrap(), Followed::Hint(Hint::Anything));
    following
}

/// What comes within a minute.
async fn heard(following: &mut dyn Following) -> tenure_store::Result<Followed> {
    let next = tokio::time::timeout(Duration::from_secs(60), following.next()).await;
    next.expect("nothing was heard in a minute")
}

/// Whether nothing comes within a minute.
async fn is_quiet(following: &mut dyn Following) -> bool {
    tokio::time::timeout(Duration::from_secs(60), following.next()).await.is_err()
}

/// N1, N3: what is news is told once; heartbeats are no news.
#[tokio::test(start_paused = true)]
async fn changes_are_hinted_and_heartbeats_are_not() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let mut hints = following(&b).await;
    a.win("e", 1);
    assert_eq!(heard(&mut *hints).await.unwrap(), election("e"));
    a.beat();
    assert!(is_quiet(&mut *hints).await);
    a.amend(step_down("e", "drain"));
    assert_eq!(heard(&mut *hints).await.unwrap(), election("e"));
    a.release("e", Some(1));
    let vacant = Hint::Vacant { election: named("e"), heir: None };
    assert_eq!(heard(&mut *hints).await.unwrap(), Followed::Hint(vacant));
    assert!(is_quiet(&mut *hints).await);
}

/// B6, N3: an observer sees that a holder died, though no process wrote anything.
#[tokio::test(start_paused = true)]
async fn a_holder_that_stops_renewing_is_news() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    let mut hints = following(&b).await;
    assert!(is_quiet(&mut *hints).await);
    b.clock.advance(WIDE);
    let vacant = Hint::Vacant { election: named("e"), heir: None };
    assert_eq!(heard(&mut *hints).await.unwrap(), Followed::Hint(vacant));
}

/// H13, H15: an error ends nothing, and what happened meanwhile is one hint.
#[tokio::test(start_paused = true)]
async fn a_look_that_failed_is_made_up_for_by_a_hint() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    let mut hints = following(&b).await;
    wire.load_meets("elections", Fault::Fail);
    heard(&mut *hints).await.unwrap_err();
    assert_eq!(heard(&mut *hints).await.unwrap(), Followed::Hint(Hint::Anything));
    a.release("e", Some(1));
    assert!(matches!(heard(&mut *hints).await.unwrap(), Followed::Hint(Hint::Vacant { .. })));
}

/// H13 for the very first look.
#[tokio::test(start_paused = true)]
async fn a_first_look_that_fails_is_tried_again() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    wire.load_meets("elections", Fault::Fail);
    let mut hints = b.store.follow(&ns()).await.unwrap();
    heard(&mut *hints).await.unwrap_err();
    assert_eq!(heard(&mut *hints).await.unwrap(), Followed::Hint(Hint::Anything));
}

/// Cancel-safe: a future dropped while it waits loses no time and no hint.
#[tokio::test(start_paused = true)]
async fn a_wait_that_is_dropped_loses_nothing() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    let mut hints = following(&b).await;
    a.win("e", 1);
    for _ in 0..200 {
        let wait = Duration::from_millis(10);
        if let Ok(next) = tokio::time::timeout(wait, hints.next()).await {
            assert_eq!(next.unwrap(), election("e"));
            return;
        }
    }
    panic!("two seconds in small waits, and no hint");
}

/// H5: a leader is told to look when its election's record is gone: within a ttl
/// if it leads a few, within a few if it leads many.
#[tokio::test(start_paused = true)]
async fn a_record_that_was_removed_under_its_holder_is_news() {
    for (led, ttls) in [(1, 1), (4, 1), (5, 4)] {
        removed_under_its_holder(led, ttls).await;
    }
}

async fn removed_under_its_holder(led: u64, ttls: u32) {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    a.win("e", 1);
    for other in 1..led {
        a.win(&format!("other-{other}"), 1 + other);
    }
    let mut hints = following(&a).await;
    assert!(is_quiet(&mut *hints).await);
    let key = "tenure/default/elections/e";
    let Loaded::Found { version, .. } = ready(wire.load(key, None)).unwrap() else {
        panic!("no record");
    };
    ready(wire.remove(key, &version)).unwrap();
    assert!(is_quiet(&mut *hints).await, "it is not looked for at every turn");
    for _ in 0..ttls * 2 {
        a.clock.advance(TTL / 2);
        a.beat();
    }
    assert_eq!(heard(&mut *hints).await.unwrap(), election("e"));
    let held = Query { which: Which::HeldBy(a.me.incarnation), ..Query::nothing() };
    let held = ready(a.store.read(&ns(), &held)).unwrap().elections;
    assert!(held.iter().all(|view| view.election != named("e")), "{held:?}");
    assert_eq!(a.win("e", 99), 2);
}

/// H5: also if it was won and removed between two looks of a follower.
#[tokio::test(start_paused = true)]
async fn a_record_that_was_removed_before_it_was_followed_is_news() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let mut hints = following(&a).await;
    a.win("e", 1);
    let key = "tenure/default/elections/e";
    let Loaded::Found { version, .. } = ready(wire.load(key, None)).unwrap() else {
        panic!("no record");
    };
    ready(wire.remove(key, &version)).unwrap();
    assert_eq!(heard(&mut *hints).await.unwrap(), election("e"));
}

/// What waits for a term looks by itself; following adds nothing to that.
#[tokio::test(start_paused = true)]
async fn following_a_held_election_asks_nothing_before_its_ttl_is_over() {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    a.win("e", 1);
    b.lose("e", 1);
    let mut hints = following(&b).await;
    b.clock.advance(WIDE);
    wire.load_meets("e", Fault::Fail);
    assert!(is_quiet(&mut *hints).await, "it looked, and met the fault");
    b.clock.advance(TTL / 10);
    heard(&mut *hints).await.unwrap_err();
}

#[test]
fn the_pace_is_what_the_capabilities_say() {
    let wire = Wire::default();
    let capabilities = Process::new(&wire, "a", 1).store.capabilities();
    assert_eq!(capabilities.watch, Watch::Polled(Duration::from_secs(1)));
    assert!(!capabilities.journal);
    assert!(!capabilities.transactional_fence && !capabilities.proof_of_death);
}
