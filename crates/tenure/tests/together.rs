//! Standing for many elections at once.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, within};
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{Error, Leadership};

fn election(leadership: &Leadership) -> &str {
    leadership.term().election.as_str()
}

/// What is free is won; what another leads is won when it lets go; then it ends.
#[tokio::test]
async fn each_is_won_as_it_becomes_free_and_then_there_are_no_more() {
    let (stage, _a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let mut campaigns = b.campaign_all(["d", "e", "f", "f"]).unwrap();
    assert_eq!(campaigns.standing(), 3, "a name given twice counts once");
    let mut won = Vec::new();
    for _ in 0..2 {
        won.push(within(campaigns.next()).await.unwrap().unwrap());
    }
    assert_eq!(won.iter().map(election).collect::<Vec<_>>(), ["d", "f"]);
    assert_eq!(campaigns.standing(), 1);
    within(leadership.resign()).await.unwrap();
    let last = within(campaigns.next()).await.unwrap().unwrap();
    assert_eq!((election(&last), last.token()), ("e", 2));
    assert!(within(campaigns.next()).await.is_none());
    assert!(within(campaigns.next()).await.is_none(), "and none after that");
    drop(campaigns);
    stage.settle().await;
    assert!(won.iter().chain([&last]).all(Leadership::is_current), "what was won stays");
}

#[tokio::test]
async fn one_bad_name_refuses_them_all() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let refused = tenure.campaign_all(["good", ""]).unwrap_err();
    assert!(matches!(refused, Error::Name(_)), "{refused}");
    stage.settle().await;
    assert_eq!(stage.faults().counts().bids, 0);
    assert!(within(tenure.campaign_all([""; 0]).unwrap().next()).await.is_none());
}

#[tokio::test]
async fn an_election_that_is_led_here_already_is_told_and_the_others_go_on() {
    let (_stage, tenure, leadership) = leader().await;
    let mut campaigns = tenure.campaign_all(["d", "e", "f"]).unwrap();
    let refused = within(campaigns.next()).await.unwrap().unwrap_err();
    assert!(matches!(&refused, Error::AlreadyStanding(e) if e.as_str() == "e"), "{refused}");
    let d = within(campaigns.next()).await;
    let f = within(campaigns.next()).await;
    assert_eq!(election(&d.unwrap().unwrap()), "d");
    assert_eq!(election(&f.unwrap().unwrap()), "f");
    assert!(within(campaigns.next()).await.is_none());
    drop(campaigns);
    assert!(leadership.is_current(), "the one that was there is left alone");
}

/// B8: dropping the campaigns withdraws what waits, and gives back what was won
/// and never taken.
#[tokio::test]
async fn dropped_campaigns_leave_nothing_behind() {
    let (stage, _a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let mut campaigns = b.campaign_all(["d", "e", "f"]).unwrap();
    let d = within(campaigns.next()).await.unwrap().unwrap();
    // F is won by now, and no caller took it.
    stage.settle().await;
    assert!(b.election("f").is_led_here());
    drop(campaigns);
    stage.settle().await;
    let of = |name| b.election(name);
    assert!(within(of("f").leader()).await.unwrap().is_none());
    assert!(within(of("f").view()).await.unwrap().candidates.is_empty());
    let waiting = within(of("e").view()).await.unwrap();
    assert!(waiting.candidates.iter().all(|c| c.member.id != *b.id()), "{waiting:?}");
    assert!(d.is_current() && leadership.is_current());
}

/// H21: an answer that was lost costs a retry of the same batch, and no term.
#[tokio::test]
async fn a_batch_whose_answer_was_lost_is_adopted() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.faults().script(StoreVerb::Claim, [Fault::FailAfter]);
    let mut campaigns = tenure.campaign_all(["d", "e"]).unwrap();
    within(stage.faults().called(StoreVerb::Claim, 1)).await;
    stage.advance(common::secs(1)).await;
    for name in ["d", "e"] {
        let leadership = within(campaigns.next()).await.unwrap().unwrap();
        assert_eq!((election(&leadership), leadership.token()), (name, 1));
        std::mem::drop(leadership);
    }
    assert_eq!(stage.faults().counts().calls(StoreVerb::Claim), 2);
}

#[tokio::test]
async fn a_shutdown_ends_every_campaign() {
    let (stage, _a, _leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let mut campaigns = b.campaign_all(["e"]).unwrap();
    within(b.clone().shutdown()).await.unwrap();
    let ended = within(campaigns.next()).await.unwrap().unwrap_err();
    assert!(matches!(ended, Error::ShutDown), "{ended}");
    assert!(within(campaigns.next()).await.is_none());
    assert!(matches!(b.campaign_all(["e"]).unwrap_err(), Error::ShutDown));
}
