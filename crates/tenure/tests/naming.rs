//! Who is called a leader.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, secs, stands, within};
use tenure::Tenure;
use tenure::testing::{Fault, Stage, StoreVerb};

/// What every part of the interface that can call this process the leader says,
/// without asking the store.
fn leads_here(tenure: &Tenure) -> bool {
    let here = tenure.election("e").is_led_here();
    let held = tenure.status().leading;
    assert_eq!(here, !held.is_empty(), "they agree: {held:?}");
    here
}

/// What the store says of who leads.
async fn named(tenure: &Tenure) -> Option<String> {
    let election = tenure.election("e");
    let leader = election.leader().await.unwrap();
    let view = election.view().await.unwrap();
    assert_eq!(leader, view.holder, "they agree");
    leader.map(|holder| holder.member.id.to_string())
}

/// H23: one that asks who leads, joins, stands, may not lead or loses is never
/// told that it leads itself.
#[tokio::test]
async fn no_member_is_called_leader_without_a_term() {
    let stage = Stage::new();
    let a = stage.connect("a").await.unwrap();
    let b = stage.connect("b").await.unwrap();
    // Asking, and being a member, is not leading: not even of an empty election.
    a.join().unwrap();
    stage.settle().await;
    assert_eq!((leads_here(&a), named(&a).await), (false, None));
    // Nor is standing, alone, with a priority that never leads.
    let never = stands(&stage, &a, 0).await;
    stage.advance(secs(30)).await;
    assert_eq!((leads_here(&a), named(&a).await), (false, None));
    never.abort();
    // Nor is standing while another leads.
    let first = within(b.election("e").campaign()).await.unwrap();
    let waiting = stands(&stage, &a, 100).await;
    assert_eq!((leads_here(&a), leads_here(&b)), (false, true));
    assert_eq!((named(&a).await, named(&b).await), (Some("b".into()), Some("b".into())));
    // A member that has given it up is no leader, though no other may have noticed yet.
    first.resign().await.unwrap();
    assert!(!leads_here(&b));
    let second = within(waiting).await.unwrap();
    assert_eq!((leads_here(&a), named(&b).await), (true, Some("a".into())));
    drop(second);
}

/// H23: one whose trust has run out does not call itself leader, although the
/// store was never answered.
#[tokio::test]
async fn no_member_calls_itself_leader_past_its_trust() {
    let (stage, tenure, leadership) = leader().await;
    assert!(leads_here(&tenure));
    for verb in [StoreVerb::Heartbeat, StoreVerb::Read, StoreVerb::Claim, StoreVerb::Release] {
        stage.faults().script(verb, [Fault::Hang; 1000]);
    }
    // As after SIGSTOP: the clock is there before the loop has run.
    stage.jump(leadership.remaining());
    assert!(!leadership.is_current());
    assert!(!leads_here(&tenure), "at once, whatever the loop has done so far");
    within(leadership.lost()).await;
    assert!(!leads_here(&tenure));
}

/// H23: a bid whose answer was lost may have won; until that is known, no member is
/// called leader here.
#[tokio::test]
async fn a_bid_that_was_not_answered_makes_no_leader() {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    stage.faults().script(StoreVerb::Claim, [Fault::FailAfter]);
    stage.faults().script(StoreVerb::Read, [Fault::Hang; 1000]);
    let election = tenure.election("e");
    let campaign = tokio::spawn(async move { election.campaign().await.unwrap() });
    stage.settle().await;
    assert!(!leads_here(&tenure), "the store has a term for it, and it does not know");
    let leadership = within(async {
        while !campaign.is_finished() {
            stage.advance(secs(1)).await;
        }
        campaign.await.unwrap()
    })
    .await;
    assert!(leads_here(&tenure) && leadership.is_current());
    assert_eq!(leadership.token(), 1, "the same term, not another");
}
