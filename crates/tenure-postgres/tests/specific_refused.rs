//! What can never be right is refused where names are bound and elections purged.

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, refused as checks};

#[tokio::test]
async fn a_name_that_cannot_be_bound_is_refused_by_the_rule_it_breaks() {
    alone(checks::a_name_that_cannot_be_bound_is_refused_by_the_rule_it_breaks).await;
}

#[tokio::test]
async fn a_value_that_cannot_be_is_refused_by_the_rule_it_breaks() {
    alone(checks::a_value_that_cannot_be_is_refused_by_the_rule_it_breaks).await;
}

#[tokio::test]
async fn a_bind_that_cannot_be_is_refused_by_the_rule_it_breaks() {
    alone(checks::a_bind_that_cannot_be_is_refused_by_the_rule_it_breaks).await;
}

#[tokio::test]
async fn a_purge_that_cannot_be_is_refused_by_the_rule_it_breaks() {
    alone(checks::a_purge_that_cannot_be_is_refused_by_the_rule_it_breaks).await;
}

/// A batch of bids that are told at once is looked at as closely as one of them.
#[tokio::test]
async fn no_bid_among_many_is_looked_at_less_closely() {
    alone(checks::no_bid_among_many_is_looked_at_less_closely).await;
}
