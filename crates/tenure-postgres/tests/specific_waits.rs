//! What each verb of SQL waits for, how long, and what it sets for its transaction.

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, waits as checks};

/// C41: whatever changes an election waits for a step in the namespace, as long as it
/// may; all else does not, and everything goes on afterwards.
#[tokio::test]
async fn what_changes_a_namespace_waits_for_the_step_that_is_in_it() {
    alone(checks::what_changes_a_namespace_waits_for_the_step_that_is_in_it).await;
}

/// A row that another holds is waited for as long as the caller may wait.
#[tokio::test]
async fn a_heartbeat_waits_for_its_row_as_long_as_it_may() {
    alone(checks::a_heartbeat_waits_for_its_row_as_long_as_it_may).await;
}

/// What a verb sets for its transaction: only what has to be.
#[tokio::test]
async fn a_verb_sets_only_what_has_to_be_set() {
    alone(checks::a_verb_sets_only_what_has_to_be_set).await;
}
