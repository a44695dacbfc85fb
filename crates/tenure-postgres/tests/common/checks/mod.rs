//! Tests that need nothing but a schema: each has a `specific_…` program that runs it, and
//! `histories` has them all look at functions that were broken where they are.

pub mod apart;
pub mod fences;
pub mod names;
pub mod one_call;
pub mod refused;
pub mod verbs;
pub mod waits;

use std::future::Future;
use std::pin::Pin;

use tokio_postgres::Client;

/// A schema that is there, with nothing in it.
#[derive(Clone, Debug)]
pub struct Spot {
    pub schema: String,
    pub url: String,
}

impl Spot {
    pub async fn client(&self) -> Client {
        super::connect(&self.url).await
    }
}

/// Runs one of them in a schema of its own.
pub async fn alone<F: Future<Output = ()>>(check: impl FnOnce(Spot) -> F) {
    let place = super::Place::new();
    drop(place.open().await);
    check(Spot { schema: place.schema.clone(), url: super::url() }).await;
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

pub type Check = fn(Spot) -> Running;

/// All of them, by the names of the tests that run them.
pub fn all() -> Vec<(&'static str, Check)> {
    vec![
        ("specific_fences a_fence_passes_for_exactly_one_term", |at| {
            Box::pin(fences::a_fence_passes_for_exactly_one_term(at))
        }),
        ("specific_fences a_fence_passes_for_exactly_one_binding", |at| {
            Box::pin(fences::a_fence_passes_for_exactly_one_binding(at))
        }),
        ("specific_fences a_role_is_let_in_to_the_verbs_alone", |at| {
            Box::pin(fences::a_role_is_let_in_to_the_verbs_alone(at))
        }),
        ("specific_verbs no_number_is_below_the_clock_of_another_start", |at| {
            Box::pin(verbs::no_number_is_below_the_clock_of_another_start(at))
        }),
        ("specific_verbs who_has_seen_more_raises_the_era", |at| {
            Box::pin(verbs::who_has_seen_more_raises_the_era(at))
        }),
        ("specific_verbs a_caller_that_is_over_is_told_so", |at| {
            Box::pin(verbs::a_caller_that_is_over_is_told_so(at))
        }),
        ("specific_verbs a_bid_waits_unless_it_can_change_nothing", |at| {
            Box::pin(verbs::a_bid_waits_unless_it_can_change_nothing(at))
        }),
        ("specific_verbs an_answer_that_changes_nothing_waits_as_a_write", |at| {
            Box::pin(verbs::an_answer_that_changes_nothing_waits_as_a_write(at))
        }),
        ("specific_verbs a_claim_answers_each_bid", |at| {
            Box::pin(verbs::a_claim_answers_each_bid(at))
        }),
        ("specific_apart what_a_verb_does_is_done_to_nothing_else", |at| {
            Box::pin(apart::what_a_verb_does_is_done_to_nothing_else(at))
        }),
        ("specific_apart no_release_waits_for_a_fenced_term", |at| {
            Box::pin(apart::no_release_waits_for_a_fenced_term(at))
        }),
        ("specific_told names_are_told_of_if_they_changed_and_not_too_often", |at| {
            Box::pin(names::names_are_told_of_if_they_changed_and_not_too_often(at))
        }),
        ("specific_told what_was_dropped_long_ago_is_forgotten", |at| {
            Box::pin(names::what_was_dropped_long_ago_is_forgotten(at))
        }),
        ("specific_told a_row_that_is_held_is_left_for_later", |at| {
            Box::pin(names::a_row_that_is_held_is_left_for_later(at))
        }),
        ("specific_waits what_changes_a_namespace_waits_for_the_step_that_is_in_it", |at| {
            Box::pin(waits::what_changes_a_namespace_waits_for_the_step_that_is_in_it(at))
        }),
        ("specific_waits a_heartbeat_waits_for_its_row_as_long_as_it_may", |at| {
            Box::pin(waits::a_heartbeat_waits_for_its_row_as_long_as_it_may(at))
        }),
        ("specific_waits a_verb_sets_only_what_has_to_be_set", |at| {
            Box::pin(waits::a_verb_sets_only_what_has_to_be_set(at))
        }),
        ("specific_refused a_name_that_cannot_be_bound_is_refused_by_the_rule_it_breaks", |at| {
            Box::pin(refused::a_name_that_cannot_be_bound_is_refused_by_the_rule_it_breaks(at))
        }),
        ("specific_refused a_value_that_cannot_be_is_refused_by_the_rule_it_breaks", |at| {
            Box::pin(refused::a_value_that_cannot_be_is_refused_by_the_rule_it_breaks(at))
        }),
        ("specific_refused a_bind_that_cannot_be_is_refused_by_the_rule_it_breaks", |at| {
            Box::pin(refused::a_bind_that_cannot_be_is_refused_by_the_rule_it_breaks(at))
        }),
        ("specific_refused a_purge_that_cannot_be_is_refused_by_the_rule_it_breaks", |at| {
            Box::pin(refused::a_purge_that_cannot_be_is_refused_by_the_rule_it_breaks(at))
        }),
        ("specific_refused no_bid_among_many_is_looked_at_less_closely", |at| {
            Box::pin(refused::no_bid_among_many_is_looked_at_less_closely(at))
        }),
        ("specific_one_call one_call_is_of_one_namespace_one_election_and_one_id", |at| {
            Box::pin(one_call::one_call_is_of_one_namespace_one_election_and_one_id(at))
        }),
        ("specific_one_call an_evicted_caller_does_not_lead", |at| {
            Box::pin(one_call::an_evicted_caller_does_not_lead(at))
        }),
    ]
}
