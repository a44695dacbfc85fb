//! What a fence lets pass, of a term and of a name, what it says, and who may call it.

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, fences as checks};

/// F1, L1: a fence passes for exactly the newest term, of this store, of a life that was not
/// ended; and says which number there is instead.
#[tokio::test]
async fn a_fence_passes_for_exactly_one_term() {
    alone(checks::a_fence_passes_for_exactly_one_term).await;
}

/// The same of names; and one that is fenced is busy for all others.
#[tokio::test]
async fn a_fence_passes_for_exactly_one_binding() {
    alone(checks::a_fence_passes_for_exactly_one_binding).await;
}

/// A role that is let in may call the verbs of this schema, and nothing else.
#[tokio::test]
async fn a_role_is_let_in_to_the_verbs_alone() {
    alone(checks::a_role_is_let_in_to_the_verbs_alone).await;
}
