//! What a verb does is of one namespace, one election and one member.

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, apart as checks};

/// H5, E1: whatever a verb does, it does to the election, the member and the namespace that
/// it names, and to no row beside them.
#[tokio::test]
async fn what_a_verb_does_is_done_to_nothing_else() {
    alone(checks::what_a_verb_does_is_done_to_nothing_else).await;
}

/// C40: a term that is fenced at this moment is given back at once and not handed over, also
/// beside others of the same number that are not fenced.
#[tokio::test]
async fn no_release_waits_for_a_fenced_term() {
    alone(checks::no_release_waits_for_a_fenced_term).await;
}
