//! Resigning, handing over, stepping down, pausing.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, secs, stands, within};
use tenure::journal::ReleaseCause;
use tenure::testing::StoreVerb;
use tenure::views::Amended;
use tenure::{Attempt, Error, Left, LostReason};

/// A resignation is confirmed by the store before it returns.
#[tokio::test]
async fn a_resignation_returns_when_the_store_has_it() {
    let (_stage, tenure, leadership) = leader().await;
    let clone = leadership.clone();
    within(leadership.resign()).await.unwrap();
    let election = tenure.election("e");
    assert!(election.leader().await.unwrap().is_none());
    assert!(!clone.is_current());
    assert_eq!(clone.remaining(), secs(0));
    assert_eq!(within(clone.lost()).await, LostReason::Resigned);
    within(clone.resign()).await.expect("what is given back is given back");
    let again = within(election.campaign()).await.unwrap();
    assert_eq!(again.token(), 2, "H6: a new acquisition is a new number");
}

/// Two clones that resign at once are both confirmed.
#[tokio::test]
async fn clones_that_resign_at_once_are_both_confirmed() {
    let (_stage, _tenure, leadership) = leader().await;
    let clone = leadership.clone();
    let (one, other) = within(async { tokio::join!(leadership.resign(), clone.resign()) }).await;
    one.unwrap();
    other.unwrap();
}

/// A leadership whose last handle is dropped is given back.
#[tokio::test]
async fn a_dropped_leadership_is_given_back() {
    let (stage, tenure, leadership) = leader().await;
    let clone = leadership.clone();
    drop(leadership);
    stage.settle().await;
    assert!(clone.is_current(), "a clone still holds it");
    drop(clone);
    stage.settle().await;
    assert!(tenure.election("e").leader().await.unwrap().is_none());
    let past = tenure.election("e").history(1).await.unwrap();
    assert_eq!(past[0].ended.unwrap().1, ReleaseCause::Resigned);
}

/// B8: a resignation during an outage says that it is unconfirmed, and is
/// remembered: it is released when the store is back.
#[tokio::test]
async fn a_resignation_during_an_outage_is_unconfirmed_and_paid_later() {
    let (stage, tenure, leadership) = leader().await;
    stage.outage(true);
    let resigns = tokio::spawn(leadership.resign());
    within(stage.faults().called(StoreVerb::Release, 1)).await;
    // Short of the ttl, so that the term is still this member's in the store.
    stage.advance(secs(5)).await;
    assert!(!resigns.is_finished(), "it waits for as long as it makes a difference");
    stage.outage(false);
    stage.advance(secs(4)).await;
    within(resigns).await.unwrap().expect("confirmed, though late");
    assert_eq!(ended(&tenure).await, ReleaseCause::Resigned);

    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    stage.outage(true);
    stage.faults().reset_counts();
    let resigns = tokio::spawn(leadership.resign());
    within(stage.faults().called(StoreVerb::Release, 1)).await;
    stage.advance(secs(11)).await;
    let error = within(resigns).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Unconfirmed { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("term 2 of election e") && said.contains("is repeated"), "{said}");
    stage.outage(false);
    stage.advance(secs(5)).await;
    assert!(tenure.election("e").leader().await.unwrap().is_none());
    let again = within(tenure.election("e").campaign()).await.unwrap();
    assert_eq!(again.token(), 3);
}

async fn ended(tenure: &tenure::Tenure) -> ReleaseCause {
    let past = tenure.election("e").history(1).await.unwrap();
    past[0].ended.expect("it is over").1
}

/// C10: handed over to a named candidate, it leads and no other member in between.
#[tokio::test]
async fn a_hand_over_goes_to_the_one_named() {
    let (stage, _a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let c = stage.connect("c").await.unwrap();
    let preferred = stands(&stage, &b, 900).await;
    let named = stands(&stage, &c, 1).await;
    within(leadership.hand_over(c.id())).await.unwrap();
    let leads = within(named).await.unwrap();
    assert_eq!((leads.token(), &leads.term().member.id), (2, c.id()));
    assert!(!preferred.is_finished());
    // Asked to by an operator, it goes the same way.
    stage.ask_to_hand_over("e", b.id()).await.unwrap();
    within(leads.stopping()).await;
    within(leads.resign()).await.unwrap();
    assert_eq!(within(preferred).await.unwrap().token(), 3);
}

/// C10: if the one named is dead, the reservation lapses and the rest elect.
#[tokio::test]
async fn a_hand_over_to_one_who_is_gone_lapses() {
    let (stage, a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let c = stage.connect("c").await.unwrap();
    let rest = stands(&stage, &b, 100).await;
    let named = stands(&stage, &c, 100).await;
    let to = c.id().clone();
    named.abort();
    within(c.shutdown()).await.unwrap();
    within(leadership.hand_over(&to)).await.unwrap();
    stage.advance(secs(11)).await;
    let leads = within(rest).await.unwrap();
    assert_eq!(leads.term().member.id, *b.id());
    let asked = a.election("e").ask_to_hand_over(&to, "").await.unwrap();
    assert_eq!(asked, Amended::NoSuchCandidate);
}

/// H22, E5: who steps down does not win again within the cooldown, also if
/// no other stands; an attempt in that time is told no.
#[tokio::test]
async fn one_who_stepped_down_does_not_win_again_at_once() {
    let (stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let asked = election.ask_to_step_down("maintenance").await.unwrap();
    assert!(matches!(asked, Amended::Done { .. }), "{asked:?}");
    stage.advance(secs(1)).await;
    within(leadership.stopping()).await;
    assert!(leadership.is_stopping());
    let clone = leadership.clone();
    within(leadership.resign()).await.unwrap();
    assert_eq!(within(clone.lost()).await, LostReason::SteppedDown);
    drop(clone);

    let campaign = tokio::spawn({
        let election = election.clone();
        async move { election.campaign().await.unwrap() }
    });
    stage.advance(secs(9)).await;
    assert!(!campaign.is_finished(), "within the cooldown of one ttl");
    stage.advance(secs(2)).await;
    let leads = within(campaign).await.unwrap();
    assert_eq!(leads.token(), 2);

    election.ask_to_step_down("").await.unwrap();
    stage.advance(secs(1)).await;
    within(leads.stopping()).await;
    within(leads.resign()).await.unwrap();
    let tried = tokio::spawn({
        let election = election.clone();
        async move { election.try_campaign().await }
    });
    stage.settle().await;
    stage.advance(secs(6)).await;
    let tried = within(tried).await.unwrap().unwrap();
    assert!(tried.leadership().is_none(), "not now, and not an error");
}

/// E5: a step-down is meant for one term; a newer one is left alone.
#[tokio::test]
async fn a_step_down_of_an_older_term_changes_nothing() {
    let (_stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let older = leadership.number();
    within(leadership.resign()).await.unwrap();
    let vacant = election.ask_to_step_down("").await.unwrap();
    assert_eq!(vacant, Amended::Vacant);
    let leads = within(election.campaign()).await.unwrap();
    let asked = election.ask_term_to_step_down(older, None, "late").await.unwrap();
    assert_eq!(asked, Amended::Superseded { number: leads.number() });
    assert!(!leads.is_stopping());
}

/// E6: while paused no member is newly elected and the incumbent stays; resuming
/// lets the election go on.
#[tokio::test]
async fn a_pause_keeps_the_incumbent_and_elects_no_other() {
    let (stage, a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    a.election("e").pause("migrating").await.unwrap();
    let campaign = stands(&stage, &b, 100).await;
    stage.advance(secs(30)).await;
    assert!(leadership.is_current(), "the incumbent stays");
    within(leadership.resign()).await.unwrap();
    stage.advance(secs(30)).await;
    assert!(!campaign.is_finished(), "no member is newly elected");
    let paused = b.election("e").view().await.unwrap().paused.unwrap();
    assert_eq!((paused.reason.as_str(), paused.by.as_str()), ("migrating", "a"));
    let tried = within(a.election("e").try_campaign()).await.unwrap();
    let Attempt::NotNow(Some(view)) = tried else { panic!("{tried:?}") };
    assert!(view.paused.is_some() && view.holder.is_none(), "{view:?}");
    b.election("e").resume().await.unwrap();
    stage.advance(secs(1)).await;
    assert_eq!(within(campaign).await.unwrap().token(), 2);
}

/// C31: a member that leaves releases everything it held, and only that.
#[tokio::test]
async fn leaving_releases_everything_held_and_only_that() {
    let (stage, a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let theirs = within(b.election("theirs").campaign()).await.unwrap();
    let second = within(a.election("second").campaign()).await.unwrap();
    drop((leadership, second));
    assert_eq!(within(a.shutdown()).await.unwrap(), Left::Confirmed);
    assert!(b.election("e").leader().await.unwrap().is_none());
    assert!(b.election("second").leader().await.unwrap().is_none());
    assert!(theirs.is_current());
    assert_eq!(b.members().await.unwrap().len(), 1);
}

/// The terms of an election are told with their ends, however many candidates
/// stood in between.
#[tokio::test]
async fn the_history_finds_the_last_terms_among_many_candidacies() {
    let (stage, tenure, leadership) = leader().await;
    let mut standing = Vec::new();
    for n in 0..10 {
        let member = stage.connect(&format!("m{n}")).await.unwrap();
        let campaign = stands(&stage, &member, 100).await;
        standing.push((member, campaign));
    }
    let past = tenure.election("e").history(1).await.unwrap();
    assert_eq!(past.len(), 1, "ten candidacies lie after it in the journal");
    assert_eq!(past[0].term, *leadership.term());
    assert!(past[0].ended.is_none());
}
