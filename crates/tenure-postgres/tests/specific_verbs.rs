//! Verbs in the states that are rare.

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, verbs as checks};

/// M6: where the server was started anew no number is below the clock, whichever verb gives
/// it out; where it was not, numbers go on by one. Each looks whether it was.
#[tokio::test]
async fn no_number_is_below_the_clock_of_another_start() {
    alone(checks::no_number_is_below_the_clock_of_another_start).await;
}

/// M6: a member that has seen more than there is raises the era before a number is given out;
/// no other request does, nor one that only gives something back.
#[tokio::test]
async fn who_has_seen_more_raises_the_era() {
    alone(checks::who_has_seen_more_raises_the_era).await;
}

/// M1: a life that is over binds nothing and is told so, also where the name is taken anyhow; and
/// a fence is looked at first.
#[tokio::test]
async fn a_caller_that_is_over_is_told_so() {
    alone(checks::a_caller_that_is_over_is_told_so).await;
}

/// A bid waits for a step in the namespace, unless it stands already and another leads.
#[tokio::test]
async fn a_bid_waits_unless_it_can_change_nothing() {
    alone(checks::a_bid_waits_unless_it_can_change_nothing).await;
}

/// What changes nothing waits for the disk and the standbys as what does: it leaves something
/// in the log. What only looks does not.
#[tokio::test]
async fn an_answer_that_changes_nothing_waits_as_a_write() {
    alone(checks::an_answer_that_changes_nothing_waits_as_a_write).await;
}

/// What a claim answers in SQL, bid by bid.
#[tokio::test]
async fn a_claim_answers_each_bid() {
    alone(checks::a_claim_answers_each_bid).await;
}
