//! One following of a namespace for all that subscribe to it on a connection.

#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, stands, within};
use tenure::Tenure;
use tenure::journal::{JournalStream, Journalled, Seq};
use tenure::testing::{Fault, StoreVerb};

/// Reads up to this place, and sees that nothing is skipped or told twice (N2).
async fn read_up_to(journal: &mut JournalStream, mut at: Seq, last: Seq) {
    while at < last {
        let Some(Journalled::Entries(entries)) = within(journal.next()).await else {
            panic!("after {at} no entries")
        };
        for entry in entries {
            assert_eq!(entry.seq, at.next());
            at = entry.seq;
        }
    }
    assert_eq!(at, last);
}

async fn place(tenure: &Tenure) -> Seq {
    within(tenure.journal(1)).await.unwrap().0
}

/// The driver, observers, journal streams and another member of the namespace share one
/// following of the store.
#[tokio::test]
async fn a_connection_follows_a_namespace_once() {
    let (stage, tenure, leadership) = leader().await;
    let mut observer = tenure.election("e").observe().unwrap();
    within(observer.next()).await.unwrap();
    let mut streams = [0, 1].map(|_| tenure.follow(Some(Seq::START)).unwrap());
    let other = tenure.member_in(tenure.namespace().as_str()).id("b").connect().await.unwrap();
    let stands = stands(&stage, &other, 1).await;
    within(leadership.resign()).await.unwrap();
    let led = within(stands).await.unwrap();
    let last = place(&tenure).await;
    for journal in &mut streams {
        read_up_to(journal, Seq::START, last).await;
    }
    assert_eq!(led.term().member.id, *other.id());
    assert_eq!(stage.faults().counts().calls(StoreVerb::Follow), 1);
}

/// C12: a process that only campaigns pays for no journal.
#[tokio::test]
async fn one_who_only_campaigns_reads_no_journal() {
    let (stage, tenure, leadership) = leader().await;
    within(leadership.resign()).await.unwrap();
    within(tenure.election("e").campaign()).await.unwrap();
    let counts = stage.faults().counts();
    assert_eq!((counts.calls(StoreVerb::Follow), counts.calls(StoreVerb::Journal)), (1, 0));
    // Nor does one whose streams are gone.
    let mut journal = tenure.follow(Some(Seq::START)).unwrap();
    within(journal.next()).await.unwrap();
    drop(journal);
    stage.settle().await;
    stage.faults().reset_counts();
    stage.pause("other").await.unwrap();
    stage.settle().await;
    assert_eq!(stage.faults().counts().calls(StoreVerb::Journal), 0);
}

/// H12: a page of the journal that does not come delays no hint: the vacancy is noticed
/// although the clock stands still.
#[tokio::test]
async fn a_hint_waits_for_no_page() {
    let (stage, tenure, leadership) = leader().await;
    let other = stage.connect("b").await.unwrap();
    stage.faults().script(StoreVerb::Journal, [Fault::Hang; 8]);
    let _journal = other.follow(Some(Seq::START)).unwrap();
    within(stage.faults().called(StoreVerb::Journal, 1)).await;
    let stands = stands(&stage, &other, 1).await;
    within(leadership.resign()).await.unwrap();
    let led = within(stands).await.unwrap();
    assert_eq!(led.term().number.get(), 2);
    drop(tenure);
}

/// N2: a stream that begins at an older place than the feed's reads what lies between by
/// itself, and goes on with the feed.
#[tokio::test]
async fn one_who_begins_earlier_catches_up_and_joins() {
    let (stage, tenure, _leadership) = leader().await;
    let mut early = tenure.follow(Some(Seq::START)).unwrap();
    read_up_to(&mut early, Seq::START, place(&tenure).await).await;
    let mut late = tenure.follow(Some(Seq::new(1))).unwrap();
    let mut ahead = tenure.follow(None).unwrap();
    let before = place(&tenure).await;
    read_up_to(&mut late, Seq::new(1), before).await;
    stage.settle().await;
    for _ in 0..3 {
        stage.pause("e").await.unwrap();
        stage.resume("e").await.unwrap();
    }
    let last = place(&tenure).await;
    for (journal, from) in [(&mut early, before), (&mut late, before), (&mut ahead, before)] {
        read_up_to(journal, from, last).await;
    }
    assert_eq!(stage.faults().counts().calls(StoreVerb::Follow), 1);
}

/// N2, C23: a subscriber that reads nothing for a long time delays no other, and misses nothing
/// that the store still has; an outage meanwhile is told.
#[tokio::test]
async fn a_slow_reader_misses_no_entry_and_delays_no_other() {
    let (stage, tenure, _leadership) = leader().await;
    let mut slow = tenure.follow(Some(Seq::START)).unwrap();
    let mut brisk = tenure.follow(Some(Seq::START)).unwrap();
    let mut at = Seq::START;
    for _ in 0..150 {
        stage.pause("e").await.unwrap();
        stage.resume("e").await.unwrap();
        let last = place(&tenure).await;
        read_up_to(&mut brisk, at, last).await;
        at = last;
    }
    read_up_to(&mut slow, Seq::START, at).await;
    stage.outage(true);
    let told = within(brisk.next()).await;
    assert!(matches!(told, Some(Journalled::Interrupted(_))), "{told:?}");
    stage.outage(false);
    stage.advance(common::secs(6)).await;
    assert_eq!(within(brisk.next()).await, Some(Journalled::Restored));
    stage.pause("e").await.unwrap();
    read_up_to(&mut brisk, at, at.next()).await;
}

/// A reader that goes on from a place that the journal does not have is told where it ends.
#[tokio::test]
async fn a_place_beyond_the_journal_is_told() {
    let (_stage, tenure, _leadership) = leader().await;
    let last = place(&tenure).await;
    for _ in 0..2 {
        let mut journal = tenure.follow(Some(Seq::new(last.get() + 9))).unwrap();
        assert_eq!(within(journal.next()).await, Some(Journalled::Trimmed(last)));
    }
}
