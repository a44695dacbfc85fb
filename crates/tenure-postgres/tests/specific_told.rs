//! Who is told of names, what is forgotten of them, and whose locks delay no other.

#![allow(clippy::unwrap_used)]

mod common;

use common::checks::{alone, names as checks};

/// Q11: a change is told at once, another one right behind it is not; who was answered so
/// tells it later, once; and nothing is told when the queue is half full.
#[tokio::test]
async fn names_are_told_of_if_they_changed_and_not_too_often() {
    alone(checks::names_are_told_of_if_they_changed_and_not_too_often).await;
}

/// What was dropped more than 16,384 revisions ago is forgotten, of this namespace alone, and
/// not at each change; what is younger is kept.
#[tokio::test]
async fn what_was_dropped_long_ago_is_forgotten() {
    alone(checks::what_was_dropped_long_ago_is_forgotten).await;
}

/// A row that another holds is left for later, and delays no caller that does not need it.
#[tokio::test]
async fn a_row_that_is_held_is_left_for_later() {
    alone(checks::a_row_that_is_held_is_left_for_later).await;
}
