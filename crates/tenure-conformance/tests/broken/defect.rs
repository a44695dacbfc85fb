//! The defects, and the case that must catch each of them, whatever others do.

macro_rules! defects {
    ($($(#[$doc:meta])* $name:ident => [$($case:literal),+],)*) => {
        /// What is wrong with a store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Defect {
            /// Nothing.
            None,
            $($(#[$doc])* $name,)*
        }

        impl Defect {
            pub(crate) const ALL: &[Defect] = &[$(Defect::$name,)*];

            pub(crate) fn caught_by(self) -> &'static [&'static str] {
                match self {
                    Defect::None => &[],
                    $(Defect::$name => &[$($case),+],)*
                }
            }
        }
    };
}

defects! {
    /// A heartbeat is always answered as alive (M1).
    HeartbeatRevives => [
        "heartbeat::an_expired_member_is_answered_ended",
        "claim::taking_over_ends_the_expired_holder",
        "contention::a_heartbeat_that_races_a_takeover_loses",
        "faults::late_messages_of_an_ended_life_change_nothing"
    ],
    /// Every term is number 1 (H5, H6).
    ReusesNumbers => ["claim::numbers_only_rise", "contention::fenced_increments_add_up"],
    /// The first number is 0, which means that there was none (C1).
    CountsFromZero => ["claim::the_first_candidate_leads_term_one"],
    /// A release ends whatever term stands (E1).
    ReleasesAnyTerm => [
        "release::a_release_of_an_older_term_changes_nothing",
        "faults::a_late_release_does_not_touch_a_namesake"
    ],
    /// A release without effect.
    KeepsTerms => ["release::a_released_election_is_free_at_once"],
    /// Every bid is a new attempt (E2).
    IgnoresNonces => [
        "faults::a_repeated_claim_gets_the_same_term_back",
        "faults::a_late_copy_of_a_won_claim_wins_nothing"
    ],
    /// A pause without effect (E6).
    IgnoresPauses => ["amend::nobody_is_newly_elected_during_a_pause"],
    /// A pause that cannot be lifted.
    NeverResumes => ["amend::a_resumed_election_elects_again"],
    /// One world for all namespaces (C5).
    SharesNamespaces => ["namespaces::namespaces_elect_independently"],
    /// Metadata goes through text (C22).
    TextMetadata => ["limits::profiles_come_back_byte_for_byte"],
    /// Names are folded to lower case.
    FoldsCase => ["namespaces::names_that_are_alike_are_kept_apart"],
    /// Names are cut at 64 bytes.
    CutsNames => ["limits::names_come_back_byte_for_byte"],
    /// Notes are cut at ten characters.
    CutsNotes => ["limits::notes_come_back_whole"],
    /// The ttl is at most an hour, whatever was stated.
    CutsTtl => ["limits::the_largest_numbers_are_kept_as_they_are"],
    /// Some entries never reach those who follow.
    SkipsEntries => ["follow::entries_come_in_order_without_gaps"],
    /// Following begins at the first entry, whatever position was asked for.
    FollowsFromTheStart => ["follow::following_resumes_from_a_position"],
    /// What was trimmed is passed over in silence.
    HidesTrimming => ["follow::one_who_stayed_away_too_long_is_told"],
    /// A wait that is given up loses what it was about to tell.
    LosesWhenDropped => ["follow::an_interrupted_wait_loses_nothing"],
    /// Hints start with whatever comes next (H13).
    NoFirstHint => ["follow::hints_begin_with_a_look_at_everything"],
    /// After the first hint there is none.
    FallsSilent => [
        "follow::a_release_is_hinted_and_the_look_finds_it",
        "capabilities::a_native_watch_is_heard_at_once"
    ],
    /// A read leaves a trace in the journal.
    WritesOnRead => ["read::looking_writes_nothing"],
    /// A heartbeat leaves a trace in the journal.
    WritesOnHeartbeat => ["heartbeat::heartbeats_are_not_journalled"],
    /// Only the ttl of the join counts (M3).
    IgnoresStatedTtl => [
        "heartbeat::the_ttl_stated_last_counts",
        "members::an_expired_member_is_not_listed",
        "read::an_expired_holder_is_not_shown",
        "capabilities::expiry_is_judged_by_whom_it_is_claimed"
    ],
    /// A heartbeat is answered, but not written down.
    ForgetsHeartbeats => ["heartbeat::heartbeats_in_time_keep_a_term_standing"],
    /// A win does not renew (T1).
    WinIsNoHeartbeat => [
        "claim::a_win_counts_as_a_heartbeat",
        "faults::a_repeated_win_counts_as_a_heartbeat"
    ],
    /// Whoever claims takes the term from its holder (E3).
    Preempts => [
        "claim::nothing_is_taken_from_a_live_holder",
        "claim::an_incumbent_is_never_preempted",
        "contention::of_many_who_race_exactly_one_wins",
        "capabilities::nobody_is_ended_without_proof"
    ],
    /// The challenger's ttl decides (M3, B20).
    ChallengersTtl => ["claim::the_holders_ttl_decides"],
    /// Strangers are let in when they claim.
    AdmitsStrangers => ["claim::a_stranger_wins_nothing"],
    /// All bids of a claim are lost if one is.
    AllOrNothing => ["claim::each_bid_is_answered_on_its_own_and_in_order"],
    /// Losers are not told who holds the election (H9).
    HidesHolder => ["claim::the_loser_is_told_who_leads"],
    /// Every candidate is as good as any other (C9).
    IgnoresPriorities => [
        "claim::priority_zero_never_leads",
        "succession::a_vacancy_is_kept_for_the_highest_priority"
    ],
    /// No vacancy is kept for anybody (F4).
    KeepsNoVacancy => [
        "succession::the_vacancy_of_an_expired_holder_is_kept_too",
        "succession::a_vacancy_is_kept_for_the_successor_named"
    ],
    /// Every vacancy is kept, for as long as can be (C10).
    KeepsVacancyForEver => [
        "succession::no_grace_keeps_nothing",
        "succession::a_reservation_lapses_with_its_time"
    ],
    /// Everybody is told that one more is ahead (F4).
    MiscountsAhead => ["succession::candidates_learn_how_many_are_ahead"],
    /// Candidates are listed by name.
    SortsCandidatesByName => ["succession::candidates_are_listed_in_order_of_preference"],
    /// The beginning of a candidacy moves with every bid.
    ForgetsWaiting => ["succession::among_equals_the_longest_wait_counts"],
    /// A release leaves the candidacy standing.
    KeepsCandidacies => ["release::a_release_ends_the_candidacy_too"],
    /// A late release ends the candidacy all the same (E1).
    LateReleaseWithdraws => ["release::a_late_release_does_not_end_a_newer_candidacy"],
    /// One cause for every release.
    OneCause => ["release::several_are_released_at_once_each_with_its_cause"],
    /// The join of a live member is refused (E2).
    RefusesRepeatedJoins => ["members::a_repeated_join_is_answered_like_the_first"],
    /// A newcomer always takes the id (B3).
    AlwaysSupersedes => [
        "members::a_namesake_waits_while_the_first_holds_something",
        "contention::of_many_namesakes_exactly_one_is_in"
    ],
    /// A newcomer never takes the id.
    NeverSupersedes => ["members::a_newer_life_supersedes_one_that_holds_nothing"],
    /// Leaving without effect (C30, C31).
    NeverLeaves => [
        "members::a_member_that_leaves_is_gone_at_once",
        "succession::a_reservation_lapses_with_its_heir",
        "succession::a_successor_that_is_gone_blocks_nobody"
    ],
    /// Whoever bears the id leaves (H8).
    LeavesById => ["members::the_late_leave_of_an_older_life_changes_nothing"],
    /// A step-down is meant for whatever term there is (E5).
    StepsDownAnyTerm => ["amend::a_step_down_of_another_term_is_superseded"],
    /// A successor need not stand (C10).
    TakesAnySuccessor => ["amend::a_successor_must_be_a_live_candidate_that_may_lead"],
    /// The first step-down stays (E5).
    KeepsFirstStepDown => ["amend::a_newer_step_down_replaces_the_older"],
    /// A step-down is shown for ever (E5).
    StepDownOutlivesTerm => ["amend::a_step_down_ends_with_its_term"],
    /// Nobody hears that something is asked of it (E5).
    NeverRaisesAttention => ["amend::a_step_down_is_kept_with_its_term_and_heard_of"],
    /// A vacant election's step-down is done (E5).
    StepsDownNobody => ["amend::a_step_down_of_nobody_is_answered_vacant"],
    /// What was so already is said to be done.
    NeverUnchanged => ["amend::pausing_or_resuming_twice_changes_nothing"],
    /// An eviction frees everything at once (M2).
    EvictsAtOnce => ["amend::an_evicted_member_is_ended_but_its_terms_stand_for_its_ttl"],
    /// An eviction without effect.
    NeverEvicts => [
        "amend::evicting_at_once_frees_everything_now",
        "amend::what_an_evicted_member_held_is_free_after_its_ttl"
    ],
    /// Evicting nobody is done.
    EvictsNobody => ["amend::evicting_nobody_is_an_answer"],
    /// Elections nobody stood for are left out.
    OmitsUnknown => ["read::an_unknown_election_is_vacant_with_number_zero"],
    /// The number of terms held is not counted.
    CountsNothing => [
        "read::everything_is_read_at_once",
        "heartbeat::a_heartbeat_answers_as_the_store_claims"
    ],
    /// What somebody holds is what everybody holds (B8).
    HeldByAnybody => ["read::held_by_shows_exactly_what_one_life_holds"],
    /// The newest entry first.
    HistoryBackwards => ["read::history_is_the_newest_entries_oldest_first"],
    /// A snapshot is one place behind.
    PositionBehind => ["read::a_snapshot_knows_its_place_in_the_journal"],
    /// Positions do not rise, though there is a journal.
    PositionZero => ["capabilities::positions_rise_only_with_a_journal"],
    /// Each handle says something else of itself.
    ClaimsVary => ["capabilities::every_handle_claims_the_same"],
    /// A journal is denied, and kept all the same.
    DeniesJournal => [
        "capabilities::positions_rise_only_with_a_journal",
        "follow::entries_come_in_order_without_gaps"
    ],
    /// One heartbeat for all is denied, and no term is answered for.
    DeniesSharedHeartbeat => ["heartbeat::a_heartbeat_answers_as_the_store_claims"],
    /// The observer is said to judge, and the store does.
    DeniesJudging => ["capabilities::expiry_is_judged_by_whom_it_is_claimed"],
    /// One heartbeat for all is claimed, and answers for each term given.
    AnswersForTerms => ["heartbeat::a_heartbeat_names_terms_in_vain_that_are_not_its_own"],
    /// There is no limit to a request.
    UnlimitedBatch => ["limits::one_more_than_a_full_batch_is_refused"],
    /// Only so many bids are answered.
    ShortAnswers => ["limits::a_full_batch_is_won_and_given_back"],
}
