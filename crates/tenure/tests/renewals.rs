//! The renewals of a leadership, as a component with a deadline of its own sees them.
#![allow(clippy::unwrap_used)]

mod common;

use common::{leader, secs, within};
use tenure::LostReason;

/// L23: the stream begins with the present state, tells each extension of trust, and ends with
/// the term, without any answer from the store.
#[tokio::test]
async fn renewals_tell_each_extension_and_end_with_the_term() {
    let (stage, _tenure, leadership) = leader().await;
    let mut renewals = leadership.renewed();
    let first = within(renewals.next()).await.unwrap();
    assert_eq!(first, leadership.remaining());

    for _ in 0..3 {
        stage.advance(secs(3)).await;
        let told = within(renewals.next()).await.unwrap();
        assert_eq!(told, leadership.remaining(), "as long as the leadership itself says");
        assert!(told > secs(5), "{told:?}");
    }

    stage.outage(true);
    let waiting = tokio::spawn(async move { renewals.next().await });
    stage.advance(secs(20)).await;
    assert_eq!(within(waiting).await.unwrap(), None, "nothing renews it any more");
    assert_eq!(within(leadership.lost()).await, LostReason::TrustEnded);
    assert_eq!(within(leadership.renewed().next()).await, None, "it is over from the start");
}

/// A stream of renewals keeps no term: the last leadership that is dropped gives it up.
#[tokio::test]
async fn renewals_keep_no_term() {
    let (_stage, tenure, leadership) = leader().await;
    let mut renewals = leadership.renewed();
    within(renewals.next()).await.unwrap();
    drop(leadership);
    assert_eq!(within(renewals.next()).await, None);
    assert!(!tenure.election("e").is_led_here());
}
