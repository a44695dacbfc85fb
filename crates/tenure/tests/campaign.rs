//! Standing: how campaigns end, and that nothing ends them that should not.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, secs, stands, within};
use tenure::testing::{Fault, Stage, StoreVerb};
use tenure::{Attempt, Error, Left, LostReason};

/// H15, F1: hours of outage do not end a campaign, and it wins after.
#[tokio::test]
async fn a_campaign_survives_hours_of_outage_and_wins_after() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.outage(true);
    let election = tenure.election("e");
    let campaign = tokio::spawn(async move { election.campaign().await });
    within(stage.faults().called(StoreVerb::Join, 1)).await;
    stage.advance(secs(2 * 3600)).await;
    assert!(!campaign.is_finished());
    let status = tenure.status();
    assert!(status.failures > 100, "visible: {status:?}");
    assert!(status.last_error.unwrap().contains("cannot be reached"));
    assert_eq!(status.standing, 1);
    // H11: bounded retries. At most one in the 2.5 seconds of a heartbeat,
    // shortened by a quarter of jitter, for joins and for the hints each.
    let calls = stage.faults().counts();
    let joins = calls.calls(StoreVerb::Join);
    let follows = calls.calls(StoreVerb::Follow);
    assert!(joins < 7200 * 10 / 18 && follows < 7200, "{joins} joins, {follows} follows");
    stage.outage(false);
    stage.advance(secs(6)).await;
    let leadership = within(campaign).await.unwrap().unwrap();
    assert!(leadership.is_current());
    assert_eq!(tenure.status().failures, 0);
    assert_eq!(tenure.status().standing, 0);
}

/// H21, E2: the answer to a win is lost; the retry adopts its own term.
#[tokio::test]
async fn a_win_whose_answer_was_lost_is_adopted() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.faults().script(StoreVerb::Claim, [Fault::FailAfter, Fault::FailAfter]);
    let election = tenure.election("e");
    let campaign = tokio::spawn(async move { election.campaign().await.unwrap() });
    within(stage.faults().called(StoreVerb::Claim, 1)).await;
    stage.advance(secs(1)).await;
    let leadership = within(campaign).await.unwrap();
    assert_eq!(leadership.token(), 1, "the very term it won at first");
    assert_eq!(stage.faults().counts().calls(StoreVerb::Claim), 3);
}

/// L20: a try ends with the store's first answer and leaves no candidacy behind.
#[tokio::test]
async fn a_try_wins_what_is_free_and_does_not_wait_for_what_is_not() {
    let (stage, a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let election = b.election("e");
    let tried = within(election.try_campaign()).await.unwrap();
    let leader = tried.leader().map(|holder| holder.member.id.clone());
    assert_eq!(leader.as_ref(), Some(a.id()), "it says who leads (L20): {tried:?}");
    assert!(tried.leadership().is_none());
    stage.settle().await;
    let candidates = election.view().await.unwrap().candidates;
    assert!(candidates.iter().all(|c| c.member.id == *a.id()), "{candidates:?}");
    within(leadership.resign()).await.unwrap();
    let won = within(election.try_campaign()).await.unwrap();
    let Attempt::Elected(won) = won else { panic!("{won:?}") };
    assert_eq!(won.token(), 2);
    let again = within(election.try_campaign()).await.unwrap();
    let Attempt::LedHere(held) = again else { panic!("{again:?}") };
    drop(held);
    assert!(won.is_current(), "a hold that is dropped gives nothing up");
}

/// A try says so when the store does not answer, with the store's error.
#[tokio::test]
async fn a_try_fails_when_the_store_does_not_answer() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.outage(true);
    let election = tenure.election("e");
    let tried = tokio::spawn(async move { election.try_campaign().await.map(|_| ()) });
    within(stage.faults().called(StoreVerb::Join, 1)).await;
    stage.advance(secs(6)).await;
    let error = within(tried).await.unwrap().unwrap_err();
    let said = error.to_string();
    assert!(said.contains("election e was not won within 5s"), "{said}");
    assert!(said.contains("cannot be reached"), "{said}");
    assert_eq!(tenure.status().standing, 0);
}

/// A campaign with a limit ends on time and says who leads.
#[tokio::test]
async fn a_campaign_with_a_limit_ends_on_time_and_says_why() {
    let (stage, _a, _leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let election = b.election("e");
    let campaign = tokio::spawn(async move { election.campaign_timeout(secs(30)).await });
    within(stage.faults().called(StoreVerb::Claim, 2)).await;
    stage.advance(secs(29)).await;
    assert!(!campaign.is_finished());
    stage.advance(secs(2)).await;
    let error = within(campaign).await.unwrap().unwrap_err();
    let Error::NotElected { waited, because, .. } = &error else { panic!("{error}") };
    assert!(*waited >= secs(30), "{waited:?}");
    assert_eq!(because.as_deref(), Some("a leads it"));
    stage.settle().await;
    assert_eq!(b.election("e").view().await.unwrap().candidates.len(), 1, "withdrawn");
}

/// A dropped campaign withdraws and leaves nothing behind, wherever it was.
#[tokio::test]
async fn a_dropped_campaign_leaves_nothing_behind() {
    let (stage, _a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let waiting = stands(&stage, &b, 100).await;
    waiting.abort();
    within(waiting).await.unwrap_err();
    stage.settle().await;
    let view = b.election("e").view().await.unwrap();
    assert_eq!(view.candidates.len(), 1, "{view:?}");
    assert_eq!(b.status().standing, 0);
    within(leadership.resign()).await.unwrap();
    stage.settle().await;
    assert!(b.election("e").leader().await.unwrap().is_none(), "no member stands any more");
}

/// The same while the answer to its winning bid is on its way: the term is
/// given back.
#[tokio::test]
async fn a_campaign_dropped_while_it_wins_gives_the_term_back() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.faults().script(StoreVerb::Claim, [Fault::HoldReply]);
    let election = tenure.election("e");
    let campaign = tokio::spawn(async move { election.campaign().await.map(drop) });
    within(stage.faults().called(StoreVerb::Claim, 1)).await;
    stage.settle().await;
    assert!(tenure.election("e").leader().await.unwrap().is_some());
    campaign.abort();
    within(campaign).await.unwrap_err();
    stage.settle().await;
    stage.faults().let_go();
    stage.advance(secs(1)).await;
    let view = tenure.election("e").view().await.unwrap();
    assert!(view.holder.is_none() && view.candidates.is_empty(), "{view:?}");
}

/// A second campaign of the same member for the same election is refused, and
/// giving it up does not touch the first.
#[tokio::test]
async fn a_refused_campaign_does_not_touch_the_one_under_way() {
    let (stage, tenure, leadership) = leader().await;
    let election = tenure.election("e");
    let error = within(election.campaign()).await.unwrap_err();
    assert!(matches!(error, Error::AlreadyStanding(_)), "{error}");
    assert!(error.to_string().contains("stands for election e already"));
    for _ in 0..50 {
        // Dropped before its refusal arrives, unless that is very quick.
        let mut refused = Box::pin(election.campaign());
        if let Some(answer) = futures_now(refused.as_mut()) {
            assert!(matches!(answer, Err(Error::AlreadyStanding(_))), "{answer:?}");
        }
        drop(refused);
    }
    stage.settle().await;
    assert!(leadership.is_current());
    assert_eq!(tenure.status().leading.len(), 1);
}

/// Polls once.
fn futures_now<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut cx) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    }
}

/// C9: after a resignation the highest live candidate leads; 0 never does.
#[tokio::test]
async fn the_preferred_candidate_leads_after_a_resignation() {
    let (stage, _a, leadership) = leader().await;
    let mut campaigns = Vec::new();
    for (id, priority) in [("low", 1), ("never", 0), ("high", 300), ("middle", 200)] {
        let tenure = stage.connect(id).await.unwrap();
        let campaign = stands(&stage, &tenure, priority).await;
        campaigns.push((tenure, campaign));
    }
    let mut expected = ["high", "middle", "low"].into_iter();
    let mut leads = leadership;
    let mut next = expected.next();
    while let Some(id) = next {
        within(leads.resign()).await.unwrap();
        let at = campaigns.iter().position(|(t, _)| t.id().as_str() == id).unwrap();
        let (tenure, campaign) = campaigns.remove(at);
        leads = within(campaign).await.unwrap();
        assert_eq!(leads.term().member.id, *tenure.id());
        next = expected.next();
        // Keep the member: its leadership lives as long.
        campaigns.push((tenure, tokio::spawn(std::future::pending())));
    }
    within(leads.resign()).await.unwrap();
    stage.advance(secs(60)).await;
    let (never, campaign) = campaigns.remove(0);
    assert_eq!(never.id().as_str(), "never");
    assert!(!campaign.is_finished());
    assert!(never.election("e").leader().await.unwrap().is_none());
}

/// B3: two processes with one id: the second is told, and stands again when the
/// first is gone.
#[tokio::test]
async fn an_id_in_use_is_visible_in_the_status() {
    let (stage, a, leadership) = leader().await;
    let namesake = stage.connect("a").await.unwrap();
    let election = namesake.election("other");
    let campaign = tokio::spawn(async move { election.campaign().await.unwrap() });
    within(stage.faults().called(StoreVerb::Join, 2)).await;
    stage.settle().await;
    let conflict = namesake.status().conflict.expect("the conflict is visible");
    assert!(conflict.contains("another process") && conflict.contains("id of its own"));
    assert!(namesake.status().member.is_none());
    assert!(leadership.is_current(), "the first is left alone");
    let limited = within(async {
        let wait = namesake.election("third");
        let limited = tokio::spawn(async move { wait.campaign_timeout(secs(3)).await });
        stage.settle().await;
        stage.advance(secs(4)).await;
        limited.await.unwrap().unwrap_err().to_string()
    })
    .await;
    assert!(limited.contains("another process"), "{limited}");
    drop(leadership);
    assert_eq!(within(a.shutdown()).await.unwrap(), Left::Confirmed);
    stage.advance(secs(60)).await;
    within(campaign).await.unwrap();
    assert!(namesake.status().conflict.is_none());
}

/// A name that cannot be used is refused by the call that needs it, with what
/// is wrong with it.
#[tokio::test]
async fn a_bad_name_is_refused_with_what_is_wrong() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let error = within(tenure.election("").campaign()).await.unwrap_err();
    assert!(error.to_string().contains("is empty"), "{error}");
    let error = within(tenure.election("a\nb").leader()).await.unwrap_err();
    assert!(error.to_string().contains("control character"), "{error}");
    let error = stage.connect(&"x".repeat(201)).await.unwrap_err();
    assert!(error.to_string().contains("the limit is 200 bytes"), "{error}");
}

/// After a shutdown every call says so, and the campaigns end.
#[tokio::test]
async fn a_shutdown_ends_campaigns_and_further_calls() {
    let (stage, a, leadership) = leader().await;
    let b = stage.connect("b").await.unwrap();
    let waiting = b.election("e");
    let campaign = tokio::spawn(async move { waiting.campaign().await.map(drop) });
    within(stage.faults().called(StoreVerb::Claim, 2)).await;
    assert_eq!(within(b.shutdown()).await.unwrap(), Left::Confirmed);
    assert!(matches!(within(campaign).await.unwrap(), Err(Error::ShutDown)));
    let after = within(b.election("e").campaign()).await.unwrap_err();
    assert!(after.to_string().contains("connect again"), "{after}");
    assert_eq!(within(b.shutdown()).await.unwrap(), Left::Already);

    // A leader is asked to stop first; resigning then is confirmed (E4).
    let (stopped, shut) = within(async {
        let stops = async {
            leadership.stopping().await;
            assert!(leadership.is_current());
            leadership.clone().resign().await
        };
        tokio::join!(stops, a.shutdown())
    })
    .await;
    stopped.unwrap();
    assert_eq!(shut.unwrap(), Left::Confirmed);
    assert_eq!(within(leadership.lost()).await, LostReason::Resigned);
}
