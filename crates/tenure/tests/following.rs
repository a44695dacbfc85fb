//! Subscribers and observers: in order, nothing silently skipped, never back.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, secs, stands, within};
use tenure::journal::Seq;
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{Change, LostReason, Observed, Observer};

async fn see(observer: &mut Observer) -> (Seq, Observed) {
    let seen = within(observer.next()).await.expect("the stream goes on");
    (seen.seq, seen.observed)
}

/// The number of the term that is observed, and whether a member leads it.
async fn see_term(observer: &mut Observer) -> (u64, bool) {
    match see(observer).await.1 {
        Observed::Leads { term, .. } => (term.number.get(), true),
        Observed::Vacant { number } => (number.get(), false),
        other => panic!("not about a term: {other:?}"),
    }
}

/// C20, N2: the present state first, then every change in order.
#[tokio::test]
async fn a_subscriber_sees_every_change_in_order_from_the_present_state() {
    let (stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let mut changes = election.subscribe().unwrap();
    let term = leadership.term().clone();
    assert_eq!(within(changes.next()).await, Some(Change::Leading(term.clone())));
    stage.ask_to_step_down("e", "now").await.unwrap();
    assert!(matches!(within(changes.next()).await, Some(Change::Stopping(_))));
    let mut late = election.subscribe().unwrap();
    assert_eq!(within(late.next()).await, Some(Change::Leading(term)));
    assert!(matches!(within(late.next()).await, Some(Change::Stopping(_))), "part of the present");
    within(leadership.resign()).await.unwrap();
    for changes in [&mut changes, &mut late] {
        assert_eq!(within(changes.next()).await, Some(Change::Lost(LostReason::SteppedDown)));
    }
    let mut last = election.subscribe().unwrap();
    assert_eq!(within(last.next()).await, Some(Change::Following));
}

/// C20: however slow, a subscriber sees true, false, true, false … within a
/// generous bound.
#[tokio::test]
async fn a_slow_subscriber_skips_nothing_within_the_bound() {
    let (_stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let mut changes = election.subscribe().unwrap();
    within(leadership.resign()).await.unwrap();
    for _ in 0..100 {
        within(within(election.campaign()).await.unwrap().resign()).await.unwrap();
    }
    for number in 1..=101 {
        let change = within(changes.next()).await.unwrap();
        assert!(matches!(change, Change::Leading(t) if t.number.get() == number));
        assert_eq!(within(changes.next()).await, Some(Change::Lost(LostReason::Resigned)));
    }
}

/// N2: past the bound the stream says how many changes it skipped and goes on
/// from the present state; changes of other elections do not count.
#[tokio::test]
async fn a_subscriber_past_the_bound_is_told_how_many_it_skipped() {
    let (_stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let other = tenure.election("other");
    let mut changes = election.subscribe().unwrap();
    let mut others = other.subscribe().unwrap();
    assert!(matches!(within(changes.next()).await, Some(Change::Leading(_))));
    within(leadership.resign()).await.unwrap();
    for _ in 0..200 {
        within(within(election.campaign()).await.unwrap().resign()).await.unwrap();
    }
    let leads = within(election.campaign()).await.unwrap();
    assert_eq!(within(changes.next()).await, Some(Change::Skipped(402)));
    assert_eq!(within(changes.next()).await, Some(Change::Leading(leads.term().clone())));
    within(leads.resign()).await.unwrap();
    assert_eq!(within(changes.next()).await, Some(Change::Lost(LostReason::Resigned)));

    let _theirs = within(other.campaign()).await.unwrap();
    assert_eq!(within(others.next()).await, Some(Change::Following));
    assert!(matches!(within(others.next()).await, Some(Change::Leading(_))), "skipped nothing");
}

/// C21, H16: an observer that begins before any election sees the first one,
/// and every vacancy (N3).
#[tokio::test]
async fn an_observer_that_came_first_sees_the_first_election() {
    let stage = Stage::new();
    let watcher = stage.connect("w").await.unwrap();
    let a = stage.connect("a").await.unwrap();
    let mut observer = watcher.election("e").observe().unwrap();
    assert_eq!(see_term(&mut observer).await, (0, false));
    for number in 1..=3 {
        let leads = within(a.election("e").campaign()).await.unwrap();
        assert_eq!(see_term(&mut observer).await, (number, true));
        within(leads.resign()).await.unwrap();
        assert_eq!(see_term(&mut observer).await, (number, false));
    }
    assert_eq!(stage.faults().counts().calls(StoreVerb::Join), 1, "observing needs no member");
}

/// C22, H26: what the leader publishes is what observers get, byte for byte.
#[tokio::test]
async fn endpoints_and_metadata_arrive_byte_for_byte() {
    let stage = Stage::new();
    let metadata: Vec<u8> = (0..4096u32).map(|n| (n % 256) as u8).collect();
    let a = stage
        .connect_with(|m| m.id("a").endpoint("[::1]:80").endpoint("h:9").metadata(metadata.clone()))
        .await
        .unwrap();
    let w = stage.connect("w").await.unwrap();
    let mut early = w.election("e").observe().unwrap();
    assert_eq!(see_term(&mut early).await, (0, false));
    let _leads = within(a.election("e").campaign()).await.unwrap();
    for late in [false, true] {
        // What the first has heard is the present state of the second.
        let mut second = late.then(|| w.election("e").observe().unwrap());
        let observer = second.as_mut().unwrap_or(&mut early);
        let (_, Observed::Leads { profile, .. }) = see(observer).await else { panic!() };
        assert_eq!(profile.endpoints(), ["[::1]:80", "h:9"]);
        assert_eq!(profile.metadata(), metadata);
    }
    let listed = w.members().await.unwrap();
    assert_eq!(listed[0].profile.metadata(), metadata);
    let over = stage.connect_with(|m| m.id("b").metadata(vec![0; 4097])).await.unwrap_err();
    assert!(over.to_string().contains("4096"), "{over}");
}

/// C23: the watch survives an outage, and tells what happened meanwhile.
#[tokio::test]
async fn an_observer_hears_after_an_outage_what_happened_meanwhile() {
    let stage = Stage::new();
    let w = stage.connect("w").await.unwrap();
    let a = stage.connect("a").await.unwrap();
    // It joined before the watch began, so the watch must ask who it is.
    a.join().unwrap();
    stage.settle().await;
    let mut observer = w.election("e").observe().unwrap();
    assert_eq!(see_term(&mut observer).await, (0, false));
    stage.settle().await;
    stage.faults().script(StoreVerb::Read, [Fault::FailBefore; 40]);
    for _ in 0..3 {
        within(within(a.election("e").campaign()).await.unwrap().resign()).await.unwrap();
    }
    stage.advance(secs(300)).await;
    for number in 1..=3 {
        assert_eq!(see_term(&mut observer).await, (number, true), "nothing is skipped");
        assert_eq!(see_term(&mut observer).await, (number, false));
    }
}

/// B6: a dead leader's name vanishes when its ttl has run out, although no process
/// writes anything about it.
#[tokio::test]
async fn a_dead_leaders_name_vanishes_with_its_ttl() {
    let stage = Stage::new();
    let w = stage.connect("w").await.unwrap();
    let a = stage.connect("a").await.unwrap();
    let leads = within(a.election("e").campaign()).await.unwrap();
    let mut observer = w.election("e").observe().unwrap();
    assert_eq!(see_term(&mut observer).await, (1, true));
    stage.faults().script(StoreVerb::Heartbeat, [Fault::LoseRequest; 1000]);
    stage.faults().script(StoreVerb::Release, [Fault::LoseRequest; 1000]);
    let (before, _) = w.journal(100).await.unwrap();
    stage.advance(secs(9)).await;
    stage.settle().await;
    assert!(w.election("e").leader().await.unwrap().is_some(), "not before its ttl");
    stage.advance(secs(2)).await;
    assert_eq!(see_term(&mut observer).await, (1, false));
    let (after, _) = w.journal(100).await.unwrap();
    assert_eq!(before, after, "without any journal entry");
    assert!(w.members().await.unwrap().is_empty(), "C30: never the expired");
    assert!(!leads.is_current());
}

/// N3: an observer resumes from where it was, and hears all that happened
/// since, also about the leader it knew.
#[tokio::test]
async fn an_observer_resumes_from_where_it_was() {
    let (stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let mut observer = election.observe().unwrap();
    let (seq, Observed::Leads { .. }) = see(&mut observer).await else { panic!() };
    drop(observer);
    within(leadership.resign()).await.unwrap();
    within(within(election.campaign()).await.unwrap().resign()).await.unwrap();
    election.pause("p").await.unwrap();
    election.resume().await.unwrap();
    // The first tries to catch up fail, and go on where they were.
    stage.faults().script(StoreVerb::Read, [Fault::FailBefore, Fault::FailBefore]);
    stage.faults().script(StoreVerb::Follow, [Fault::FailBefore]);
    let mut resumed = election.observe_from(seq).unwrap();
    stage.settle().await;
    stage.advance(secs(10)).await;
    assert_eq!(see_term(&mut resumed).await, (1, false), "the leader it knew is gone");
    assert_eq!(see_term(&mut resumed).await, (2, true));
    assert_eq!(see_term(&mut resumed).await, (2, false));
    assert!(matches!(see(&mut resumed).await.1, Observed::Paused(_)));
    let (end, last) = see(&mut resumed).await;
    assert_eq!(last, Observed::Resumed);

    // From the end there is nothing to catch up on but the present state.
    let mut again = election.observe_from(end).unwrap();
    assert_eq!(see_term(&mut again).await, (2, false));
    let _leads = within(election.campaign()).await.unwrap();
    for observer in [&mut resumed, &mut again] {
        assert_eq!(see_term(observer).await, (3, true));
    }
    // A place that this journal never had: told so, then the present state.
    let mut lost = election.observe_from(Seq::new(1_000_000)).unwrap();
    assert_eq!(see(&mut lost).await.1, Observed::Skipped);
    assert_eq!(see_term(&mut lost).await, (3, true));
}

/// N3: nothing an observer is told goes back to an older term.
#[tokio::test]
async fn an_observer_never_goes_back() {
    let stage = Stage::new();
    let w = stage.connect("w").await.unwrap();
    let mut observer = w.election("e").observe().unwrap();
    let mut members = Vec::new();
    for id in ["a", "b", "c"] {
        members.push(stage.connect(id).await.unwrap());
    }
    let watching = tokio::spawn(async move {
        let mut newest = (0, false);
        let mut changes = 0;
        while newest != (60, false) {
            let seen = see_term(&mut observer).await;
            assert!(seen.0 >= newest.0, "{seen:?} after {newest:?}");
            newest = seen;
            changes += 1;
        }
        changes
    });
    for n in 0..60 {
        let leads = within(members[n % 3].election("e").campaign()).await.unwrap();
        within(leads.resign()).await.unwrap();
    }
    assert_eq!(within(watching).await.unwrap(), 121, "and none is skipped");
}

/// An observer's stream ends when its member is shut down.
#[tokio::test]
async fn an_observation_ends_with_its_member() {
    let stage = Stage::new();
    let w = stage.connect("w").await.unwrap();
    let mut observer = w.election("e").observe().unwrap();
    assert_eq!(see_term(&mut observer).await, (0, false));
    within(w.shutdown()).await.unwrap();
    assert_eq!(within(observer.next()).await, None);
    assert_eq!(within(observer.next()).await, None, "and stays at its end");
    assert!(w.election("e").observe().is_err());
}

/// H15: a store that hangs does not end an observation.
#[tokio::test]
async fn an_observation_survives_a_store_that_hangs() {
    let stage = Stage::new();
    let w = stage.connect("w").await.unwrap();
    let a = stage.connect("a").await.unwrap();
    stage.faults().script(StoreVerb::Read, [Fault::Hang, Fault::Hang]);
    stage.faults().script(StoreVerb::Follow, [Fault::Hang]);
    let mut observer = w.election("e").observe().unwrap();
    stage.settle().await;
    stage.advance(secs(20)).await;
    assert_eq!(see_term(&mut observer).await, (0, false));
    let _leads = within(a.election("e").campaign()).await.unwrap();
    assert_eq!(see_term(&mut observer).await, (1, true));
}

/// C30: `members()` lists the live; one that leaves disappears at once. A
/// member need not stand for anything.
#[tokio::test]
async fn members_lists_the_live_alone() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    assert!(a.members().await.unwrap().is_empty(), "connected is not joined");
    a.join().unwrap();
    let campaign = stands(&stage, &b, 100).await;
    within(campaign).await.unwrap();
    let ids = |members: Vec<tenure::MemberView>| {
        let mut ids: Vec<_> = members.into_iter().map(|m| m.member.id.to_string()).collect();
        ids.sort();
        ids
    };
    assert_eq!(ids(a.members().await.unwrap()), ["a", "b"]);
    assert_eq!(a.status().member.map(|m| m.id), Some(a.id().clone()));
    stage.advance(secs(300)).await;
    assert_eq!(ids(a.members().await.unwrap()), ["a", "b"], "both beat");
    within(b.shutdown()).await.unwrap();
    assert_eq!(ids(a.members().await.unwrap()), ["a"]);
}
