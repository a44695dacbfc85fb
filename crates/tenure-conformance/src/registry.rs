//! The one list of all cases. [`CASES`] and [`suite!`](crate::suite) are both made
//! from it, so a case that is written is run: one that is missing here is dead
//! code, which the compiler reports.

use std::future::Future;
use std::time::Duration;

use crate::{Case, CaseFailure, Harness, Outcome};

/// How long one case may take. Only a store that hangs takes as long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Hands the list of all cases to another macro, after that macro's arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! each_case {
    ($target:ident $arguments:tt) => {
        $crate::$target! {
            $arguments
            members {
                a_member_is_listed_with_what_it_published,
                a_repeated_join_is_answered_like_the_first,
                a_member_that_leaves_is_gone_at_once,
                leaving_releases_everything_held_and_only_that,
                an_expired_member_is_not_listed,
                a_namesake_waits_while_the_first_holds_something,
                a_newer_life_supersedes_one_that_holds_nothing,
                an_expired_namesake_makes_room_and_loses_its_terms,
                the_late_leave_of_an_older_life_changes_nothing,
                a_late_join_brings_no_term_back,
            }
            heartbeat {
                heartbeats_in_time_keep_a_term_standing,
                an_expired_member_is_answered_ended,
                a_late_heartbeat_does_not_touch_the_successor,
                the_ttl_stated_last_counts,
                a_stranger_is_answered_ended,
                heartbeats_are_not_journalled,
                a_heartbeat_answers_as_the_store_claims,
                a_heartbeat_names_terms_in_vain_that_are_not_its_own,
            }
            claim {
                the_first_candidate_leads_term_one,
                the_loser_is_told_who_leads,
                numbers_only_rise,
                the_last_of_two_bids_for_one_election_counts,
                a_new_attempt_of_the_holder_is_a_new_term,
                the_holders_ttl_decides,
                taking_over_ends_the_expired_holder,
                nothing_is_taken_from_a_live_holder,
                an_expired_caller_wins_nothing,
                a_stranger_wins_nothing,
                priority_zero_never_leads,
                an_incumbent_is_never_preempted,
                each_bid_is_answered_on_its_own_and_in_order,
                a_win_counts_as_a_heartbeat,
                an_older_attempt_of_the_last_winner_is_only_a_late_copy,
            }
            succession {
                a_vacancy_is_kept_for_the_highest_priority,
                among_equals_the_longest_wait_counts,
                the_vacancy_of_an_expired_holder_is_kept_too,
                a_reservation_lapses_with_its_time,
                a_reservation_lapses_with_its_heir,
                a_reservation_lapses_with_an_expired_heir,
                a_vacancy_is_kept_for_the_successor_named,
                a_successor_that_is_gone_blocks_no_other,
                no_member_inherits_from_itself,
                no_grace_keeps_nothing,
                candidates_learn_how_many_are_ahead,
                candidates_are_listed_in_order_of_preference,
            }
            release {
                a_released_election_is_free_at_once,
                a_release_of_an_older_term_changes_nothing,
                a_release_by_another_life_changes_nothing,
                a_release_by_another_member_changes_nothing,
                a_withdrawal_ends_the_candidacy_alone,
                a_release_ends_the_candidacy_too,
                a_late_release_does_not_end_a_newer_candidacy,
                several_are_released_at_once_each_with_its_cause,
            }
            ending {
                a_member_of_many_terms_is_taken_over_like_any_other,
                the_terms_of_an_ended_life_are_over_before_the_next_bid,
                each_term_of_an_ended_life_is_written_off_before_the_next_begins,
                each_vacancy_of_an_ended_life_is_kept_for_its_own_heir,
                a_new_life_inherits_what_its_older_one_held,
                an_expired_member_can_be_evicted_at_once,
            }
            handover {
                the_preferred_heir_leads_in_the_same_step,
                the_heir_can_find_what_it_was_handed,
                the_journal_tells_of_a_release_and_an_election,
                a_follower_of_hints_is_told_of_no_vacancy,
                a_heartbeat_that_names_it_takes_it_on,
                nothing_but_the_exact_term_is_taken_on,
                a_bid_takes_it_on_under_the_number_it_has,
                what_was_taken_on_outlives_its_time,
                a_late_bid_of_the_heir_begins_no_new_term,
                no_other_wins_before_its_time_is_over,
                what_is_not_taken_on_lapses,
                nothing_revives_what_has_lapsed,
                a_dead_heir_is_ended_before_anything_is_taken,
                a_successor_named_leads_for_a_time_of_its_own,
                no_candidate_is_handed_a_term_unasked,
                a_paused_election_is_not_handed_over,
                several_are_handed_over_at_once_each_to_its_heir,
                the_heir_may_give_it_back_or_hand_it_on,
                a_step_down_reaches_one_who_takes_it_on,
                of_many_who_race_only_the_heir_leads,
            }
            amend {
                a_step_down_is_kept_with_its_term_and_found,
                a_step_down_of_another_term_is_superseded,
                a_step_down_without_a_leader_is_answered_vacant,
                a_successor_must_be_a_live_candidate_that_may_lead,
                a_newer_step_down_replaces_the_older,
                a_step_down_ends_with_its_term,
                no_member_is_newly_elected_during_a_pause,
                the_incumbent_keeps_its_term_during_a_pause,
                a_resumed_election_elects_again,
                pausing_or_resuming_twice_changes_nothing,
                an_evicted_member_is_ended_but_its_terms_stand_for_its_ttl,
                what_an_evicted_member_held_is_free_after_its_ttl,
                evicting_at_once_frees_everything_now,
                evicting_an_unknown_member_is_an_answer,
            }
            restored {
                a_bid_that_has_seen_more_makes_the_numbers_jump,
                a_bid_that_tells_a_number_wins_above_it,
                a_bid_that_tells_an_absurd_number_lifts_nothing,
                a_join_that_has_seen_more_makes_the_numbers_jump,
                an_operators_word_makes_the_numbers_jump,
                an_era_raises_the_attention_of_every_member,
                the_beginning_of_an_era_is_told_with_its_reason,
            }
            purge {
                a_store_that_cannot_purge_says_so,
                no_number_comes_back_after_a_purge,
                a_held_election_is_not_purged,
                an_election_with_a_candidate_is_not_purged,
                a_paused_election_is_not_purged,
                a_late_bid_wins_nothing_after_a_purge,
                a_purge_ends_the_expired,
                a_dry_run_changes_nothing,
                a_purge_goes_in_steps,
                an_abandoned_namespace_goes_on_where_it_was,
            }
            read {
                an_unknown_election_is_vacant_with_number_zero,
                an_expired_holder_is_not_shown,
                looking_writes_nothing,
                everything_is_read_at_once,
                held_by_shows_exactly_what_one_life_holds,
                a_look_tells_what_a_full_read_tells,
                history_is_the_newest_entries_oldest_first,
                a_snapshot_knows_its_place_in_the_journal,
            }
            follow {
                entries_come_in_order_without_gaps,
                following_resumes_from_a_position,
                the_journal_tells_the_whole_story,
                an_interrupted_wait_loses_nothing,
                one_who_follows_is_told_that_the_journal_has_grown,
                one_who_stayed_away_too_long_is_told,
                a_place_that_the_journal_does_not_have_is_told,
                hints_begin_with_a_look_at_everything,
                a_release_is_hinted_and_the_look_finds_it,
            }
            names {
                a_store_that_keeps_no_names_says_so,
                a_name_has_one_owner,
                of_many_who_race_exactly_one_takes_a_name,
                what_is_repeated_is_answered_alike,
                an_older_attempt_changes_nothing,
                late_and_foreign_operations_change_nothing,
                a_change_keeps_the_token,
                tokens_only_rise,
                names_are_not_in_the_journal,
                each_namespace_has_names_of_its_own,
                an_expired_owner_is_ended_before_its_name_is_taken,
                being_bound_counts_as_a_heartbeat,
                nothing_else_counts_as_a_heartbeat,
                the_names_of_an_ended_life_are_free_at_once,
                an_owner_of_a_name_is_not_superseded,
                a_condemned_owner_keeps_its_names_for_its_ttl,
                a_name_without_an_owner_stays_until_it_is_dropped,
                operations_are_answered_in_their_order,
                one_operation_more_than_a_full_batch_is_refused,
                values_come_back_byte_for_byte,
                a_fence_passes_only_who_holds_the_newest_term,
                what_was_forgotten_makes_the_tokens_jump,
                names_are_found_by_name_and_by_owner,
                a_prefix_is_taken_literally,
                what_changed_since_makes_up_a_full_read,
                since_tells_only_what_changed,
                who_cannot_be_told_what_changed_gets_all_names,
                a_follower_is_told_of_a_change_of_names,
                no_token_comes_back_after_a_purge,
                what_a_leader_left_goes_with_its_election,
            }
            namespaces {
                namespaces_elect_independently,
                namespaces_do_not_see_each_other,
                a_heartbeat_is_for_one_namespace,
                operators_act_on_one_namespace,
                each_namespace_has_a_journal_of_its_own,
                names_that_are_alike_are_kept_apart,
            }
            capabilities {
                every_handle_claims_the_same,
                expiry_is_judged_by_whom_it_is_claimed,
                no_member_is_ended_without_proof,
                a_native_watch_is_heard_at_once,
                positions_rise_only_with_a_journal,
            }
            contention {
                of_many_who_race_exactly_one_wins,
                of_many_namesakes_exactly_one_is_in,
                fenced_increments_add_up,
                a_heartbeat_that_races_a_takeover_loses,
            }
            faults {
                a_repeated_claim_gets_the_same_term_back,
                a_repeated_win_counts_as_a_heartbeat,
                a_late_copy_of_a_won_claim_wins_nothing,
                a_doubled_losing_claim_changes_nothing,
                a_doubled_release_does_not_touch_the_successor,
                a_late_release_does_not_touch_a_namesake,
                late_messages_of_an_ended_life_change_nothing,
                a_late_step_down_does_not_touch_the_next_term,
            }
            limits {
                profiles_come_back_byte_for_byte,
                names_come_back_byte_for_byte,
                notes_come_back_whole,
                a_full_batch_is_won_and_given_back,
                one_more_than_a_full_batch_is_refused,
                the_largest_numbers_are_kept_as_they_are,
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! list_cases {
    (() $($topic:ident { $($name:ident,)* })*) => {
        &[$($(
            $crate::Case {
                topic: stringify!($topic),
                name: stringify!($name),
                start: |harness| {
                    Box::pin(async move {
                        let world = $crate::world::World::new(harness);
                        $crate::cases::$topic::$name(&world).await
                    })
                },
            },
        )*)*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! test_cases {
    (($harness:expr) $($topic:ident { $($name:ident,)* })*) => {
        $(
            mod $topic {
                #[allow(unused_imports)]
                use super::*;
                $(
                    #[test]
                    fn $name() {
                        let path = concat!(stringify!($topic), "::", stringify!($name));
                        $crate::run(path, async { $harness });
                    }
                )*
            }
        )*
    };
}

/// Runs the whole suite: one `#[test]` for each case, in a module for each topic.
///
/// The expression makes the [`Harness`] and is evaluated anew for each case,
/// inside an async block, so that it may await. In `tests/conformance.rs`:
///
/// ```
/// use std::sync::Arc;
/// use tenure_conformance::ManualHarness;
/// use tenure_store::{ManualClock, MemoryStore};
///
/// fn memory() -> ManualHarness {
///     let clock = Arc::new(ManualClock::new());
///     let store = MemoryStore::keeping(clock.clone(), 200);
///     ManualHarness::new(clock, move || store.clone().shared()).keeping(200)
/// }
///
/// tenure_conformance::suite!(memory());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! suite {
    ($harness:expr) => {
        $crate::each_case!(test_cases($harness));
    };
}

/// Every case there is.
pub static CASES: &[Case] = crate::each_case!(list_cases());

/// Runs one case, called `topic::name`, on the harness that `make` makes; panics
/// with the reason if the store fails it. This is what [`suite!`](crate::suite)
/// calls; use [`CASES`] and [`Case::run`] to get the failure as a value.
///
/// # Panics
///
/// If the case fails, does not come to an end, or does not exist.
pub fn run<H: Harness>(path: &str, make: impl Future<Output = H>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(run_here(path, make)),
        Err(error) => Err(CaseFailure::new(format!("no runtime to run it on: {error}"))),
    };
    if let Err(failure) = outcome {
        panic!("{path}: {failure}");
    }
}

async fn run_here<H: Harness>(path: &str, make: impl Future<Output = H>) -> Outcome {
    let found = CASES.iter().find(|case| case.path() == path);
    let case = found.ok_or_else(|| CaseFailure::new("there is no such case"))?;
    let harness = make.await;
    let in_time = tokio::time::timeout(PATIENCE, case.run(&harness)).await;
    in_time.unwrap_or_else(|_| {
        Err(CaseFailure::new(format!("did not come to an end within {PATIENCE:?}")))
    })
}
