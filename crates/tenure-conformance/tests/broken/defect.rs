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
        "handover::a_dead_heir_is_ended_before_anything_is_taken",
        "contention::a_heartbeat_that_races_a_takeover_loses",
        "faults::late_messages_of_an_ended_life_change_nothing"
    ],
    /// A term of an ended life is shown as if it stood (M5).
    TermsOutliveTheirLife => [
        "ending::the_terms_of_an_ended_life_are_over_before_the_next_bid",
        "ending::a_member_of_many_terms_is_taken_over_like_any_other"
    ],
    /// A term that ended with a life is told as given up (M5).
    EndsAreResignations => [
        "ending::each_term_of_an_ended_life_is_written_off_before_the_next_begins",
        "follow::the_journal_tells_the_whole_story"
    ],
    /// A life whose ttl has run out cannot be evicted (M5).
    EvictsOnlyTheLiving => ["ending::an_expired_member_can_be_evicted_at_once"],
    /// Every term is number 1 (H5, H6).
    ReusesNumbers => ["claim::numbers_only_rise", "contention::fenced_increments_add_up"],
    /// The first number is 0, which means that there was none (C1).
    CountsFromZero => ["claim::the_first_candidate_leads_term_one"],
    /// A release ends whatever term stands (E1).
    ReleasesAnyTerm => [
        "release::a_release_of_an_older_term_changes_nothing",
        "handover::no_other_wins_before_its_time_is_over",
        "faults::a_late_release_does_not_touch_a_namesake"
    ],
    /// A release without effect.
    KeepsTerms => ["release::a_released_election_is_free_at_once"],
    /// Every bid is a new attempt (E2).
    IgnoresNonces => [
        "faults::a_repeated_claim_gets_the_same_term_back",
        "faults::a_late_copy_of_a_won_claim_wins_nothing",
        "handover::a_late_bid_of_the_heir_begins_no_new_term"
    ],
    /// A pause without effect (E6).
    IgnoresPauses => ["amend::no_member_is_newly_elected_during_a_pause"],
    /// A pause that cannot be lifted.
    NeverResumes => ["amend::a_resumed_election_elects_again"],
    /// One world for all namespaces (C5).
    SharesNamespaces => [
        "namespaces::namespaces_elect_independently",
        "names::each_namespace_has_names_of_its_own"
    ],
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
    /// No follower is told that the journal has grown.
    HidesGrowth => ["follow::one_who_follows_is_told_that_the_journal_has_grown"],
    /// A place beyond the journal's end is waited for.
    IgnoresTheEnd => ["follow::a_place_that_the_journal_does_not_have_is_told"],
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
        "capabilities::expiry_is_judged_by_whom_it_is_claimed",
        "handover::a_dead_heir_is_ended_before_anything_is_taken"
    ],
    /// A heartbeat is answered, but not written down.
    ForgetsHeartbeats => ["heartbeat::heartbeats_in_time_keep_a_term_standing"],
    /// A win does not renew (T1).
    WinIsNoHeartbeat => [
        "claim::a_win_counts_as_a_heartbeat",
        "faults::a_repeated_win_counts_as_a_heartbeat"
    ],
    /// A claim takes the term from its holder (E3).
    Preempts => [
        "claim::nothing_is_taken_from_a_live_holder",
        "claim::an_incumbent_is_never_preempted",
        "contention::of_many_who_race_exactly_one_wins",
        "capabilities::no_member_is_ended_without_proof"
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
    /// No vacancy is kept for an heir (F4).
    KeepsNoVacancy => [
        "succession::the_vacancy_of_an_expired_holder_is_kept_too",
        "succession::a_vacancy_is_kept_for_the_successor_named"
    ],
    /// Every vacancy is kept, for as long as can be (C10).
    KeepsVacancyForEver => [
        "succession::no_grace_keeps_nothing",
        "succession::a_reservation_lapses_with_its_time"
    ],
    /// Every candidate is told that one more is ahead (F4).
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
        "names::an_owner_of_a_name_is_not_superseded",
        "contention::of_many_namesakes_exactly_one_is_in"
    ],
    /// A newcomer never takes the id.
    NeverSupersedes => ["members::a_newer_life_supersedes_one_that_holds_nothing"],
    /// Leaving without effect (C30, C31).
    NeverLeaves => [
        "members::a_member_that_leaves_is_gone_at_once",
        "handover::the_heir_may_give_it_back_or_hand_it_on",
        "succession::a_reservation_lapses_with_its_heir",
        "succession::a_successor_that_is_gone_blocks_no_other"
    ],
    /// Any life of that id leaves (H8).
    LeavesById => ["members::the_late_leave_of_an_older_life_changes_nothing"],
    /// A step-down is meant for whatever term there is (E5).
    StepsDownAnyTerm => ["amend::a_step_down_of_another_term_is_superseded"],
    /// A successor need not stand (C10).
    TakesAnySuccessor => ["amend::a_successor_must_be_a_live_candidate_that_may_lead"],
    /// The first step-down stays (E5).
    KeepsFirstStepDown => ["amend::a_newer_step_down_replaces_the_older"],
    /// A step-down is shown for ever (E5).
    StepDownOutlivesTerm => ["amend::a_step_down_ends_with_its_term"],
    /// No member is told that something is asked of it (E5).
    NeverRaisesAttention => ["amend::a_step_down_is_kept_with_its_term_and_found"],
    /// A vacant election's step-down is done (E5).
    StepsDownVacancies => ["amend::a_step_down_without_a_leader_is_answered_vacant"],
    /// What was so already is said to be done.
    NeverUnchanged => ["amend::pausing_or_resuming_twice_changes_nothing"],
    /// An eviction frees everything at once (M2).
    EvictsAtOnce => [
        "amend::an_evicted_member_is_ended_but_its_terms_stand_for_its_ttl",
        "names::a_condemned_owner_keeps_its_names_for_its_ttl"
    ],
    /// An eviction without effect.
    NeverEvicts => [
        "amend::evicting_at_once_frees_everything_now",
        "amend::what_an_evicted_member_held_is_free_after_its_ttl"
    ],
    /// Evicting a member that is not there is done.
    EvictsStrangers => ["amend::evicting_an_unknown_member_is_an_answer"],
    /// What a bid has seen is not looked at (M6).
    ForgetsWhatBidsSaw => ["restored::a_bid_that_has_seen_more_makes_the_numbers_jump"],
    /// What a join has seen is not looked at (M6).
    ForgetsWhatJoinsSaw => ["restored::a_join_that_has_seen_more_makes_the_numbers_jump"],
    /// The number that a bid tells is not looked at (M6).
    ForgetsWhatBidsTell => ["restored::a_bid_that_tells_a_number_wins_above_it"],
    /// The number that a join tells is not looked at (M6).
    ForgetsWhatJoinsTell => ["restored::a_join_that_has_seen_more_makes_the_numbers_jump"],
    /// Whatever is told is believed, whether or not anything was forgotten (M6).
    BelievesAnyNumber => ["restored::a_bid_that_tells_a_number_wins_above_it"],
    /// A number that no clock can have reached is believed (M6).
    BelievesAbsurdNumbers => ["restored::a_bid_that_tells_an_absurd_number_lifts_nothing"],
    /// Each bid that has seen anything raises the era (M6).
    JumpsEachTime => ["restored::a_bid_that_has_seen_more_makes_the_numbers_jump"],
    /// An operator's word raises nothing (M6).
    KeepsItsEra => [
        "restored::an_operators_word_makes_the_numbers_jump",
        "restored::the_beginning_of_an_era_is_told_with_its_reason"
    ],
    /// Members are not told that an era began (U6).
    CallsNoMember => ["restored::an_era_raises_the_attention_of_every_member"],
    /// Members are told of each era as if it were the first (U6).
    CallsOnce => ["restored::an_era_raises_the_attention_of_every_member"],
    /// A purge keeps nothing of the numbers that it removes (H5).
    NumbersComeBack => ["purge::no_number_comes_back_after_a_purge"],
    /// A purge takes elections from those who hold them (E3).
    PurgesTheHeld => ["purge::a_held_election_is_not_purged"],
    /// A purge does not see candidates.
    PurgesTheStoodFor => ["purge::an_election_with_a_candidate_is_not_purged"],
    /// A purge does not see pauses (E6).
    PurgesThePaused => ["purge::a_paused_election_is_not_purged"],
    /// A purge forgets the attempts of a winner that lives (E2).
    PurgesAttempts => ["purge::a_late_bid_wins_nothing_after_a_purge"],
    /// A purge keeps what leaders left in elections that it removes.
    KeepsWhatWasLeft => ["names::what_a_leader_left_goes_with_its_election"],
    /// A dry run is none.
    DryRunsPurge => ["purge::a_dry_run_changes_nothing"],
    /// A purge is one step, however much there is.
    PurgesAtOnce => ["purge::a_purge_goes_in_steps"],
    /// A purge without effect.
    NeverPurges => [
        "purge::a_purge_ends_the_expired",
        "purge::an_abandoned_namespace_goes_on_where_it_was",
        "names::no_token_comes_back_after_a_purge"
    ],
    /// A purge is answered as done.
    PurgesWithoutAWord => ["purge::a_store_that_cannot_purge_says_so"],
    /// Elections without a candidate are left out.
    OmitsUnknown => ["read::an_unknown_election_is_vacant_with_number_zero"],
    /// The number of terms held is not counted.
    CountsNothing => [
        "read::everything_is_read_at_once",
        "handover::the_heir_can_find_what_it_was_handed",
        "heartbeat::a_heartbeat_answers_as_the_store_claims"
    ],
    /// What one member holds is what all hold (B8).
    HeldByAll => ["read::held_by_shows_exactly_what_one_life_holds"],
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
    /// Handing over is denied, and done all the same.
    DeniesHandingOver => [
        "handover::the_preferred_heir_leads_in_the_same_step",
        "heartbeat::a_heartbeat_answers_as_the_store_claims",
        "heartbeat::a_heartbeat_names_terms_in_vain_that_are_not_its_own"
    ],
    /// Handing over is claimed, and not done.
    NeverHandsOver => [
        "handover::the_preferred_heir_leads_in_the_same_step",
        "handover::the_heir_can_find_what_it_was_handed",
        "handover::of_many_who_race_only_the_heir_leads"
    ],
    /// A release first, and then the win of the heir: what came between came first.
    HandsOverInTwoSteps => ["handover::of_many_who_race_only_the_heir_leads"],
    /// Terms are handed to the preferred candidate, wanted or not (C9).
    HandsOverToAll => ["handover::no_candidate_is_handed_a_term_unasked"],
    /// Every vacancy that is kept is handed over (C10).
    HandsOverUnasked => ["handover::no_candidate_is_handed_a_term_unasked"],
    /// A release elects during a pause (E6).
    HandsOverPaused => ["handover::a_paused_election_is_not_handed_over"],
    /// Of several terms released at once only the first is handed over.
    HandsOverOne => ["handover::several_are_handed_over_at_once_each_to_its_heir"],
    /// Of several terms that a heartbeat names only the first is answered for.
    AnswersForOne => [
        "handover::several_are_handed_over_at_once_each_to_its_heir",
        "heartbeat::a_heartbeat_answers_as_the_store_claims"
    ],
    /// The first join says for ever whether a term may be handed over.
    KeepsFirstJoin => ["handover::no_candidate_is_handed_a_term_unasked"],
    /// A successor gets it for as long as any other heir (C10).
    OneTimeForAll => ["handover::a_successor_named_leads_for_a_time_of_its_own"],
    /// A successor gets it even where it is to get it for no time.
    HandsOverForNoTime => ["handover::a_successor_named_leads_for_a_time_of_its_own"],
    /// What is handed over is the heir's at once, dead or alive.
    HandsOverForGood => [
        "handover::the_preferred_heir_leads_in_the_same_step",
        "handover::what_is_not_taken_on_lapses"
    ],
    /// It is not told that a term was handed over and not yet taken on.
    HidesUnconfirmed => ["handover::the_preferred_heir_leads_in_the_same_step"],
    /// The holder's whole ttl is said to be left of what was handed over (T5).
    StretchesHanded => ["handover::the_preferred_heir_leads_in_the_same_step"],
    /// What was handed over and not yet taken on is free for all (E3).
    UnconfirmedIsFree => ["handover::no_other_wins_before_its_time_is_over"],
    /// The release tells of an heir as well as the election does (N2).
    JournalsTheHeirTwice => ["handover::the_journal_tells_of_a_release_and_an_election"],
    /// All candidates are called to an election that was handed over (N1).
    HintsAtVacancies => ["handover::a_follower_of_hints_is_told_of_no_vacancy"],
    /// A heartbeat is answered for what it takes on, and takes nothing on.
    BeatTakesNothingOn => [
        "handover::a_heartbeat_that_names_it_takes_it_on",
        "handover::what_was_taken_on_outlives_its_time"
    ],
    /// A bid is answered for what it takes on, and takes nothing on.
    BidTakesNothingOn => [
        "handover::a_bid_takes_it_on_under_the_number_it_has",
        "handover::what_was_taken_on_outlives_its_time"
    ],
    /// The heir's bid is a new term, although it has one (E2).
    BidsAreAllNews => ["handover::nothing_but_the_exact_term_is_taken_on"],
    /// A heartbeat takes on everything, named or not.
    AnyBeatTakesOn => [
        "handover::nothing_but_the_exact_term_is_taken_on",
        "handover::what_is_not_taken_on_lapses"
    ],
    /// A heartbeat takes on whatever term there is (E1).
    TakesOnAnyTerm => ["handover::nothing_but_the_exact_term_is_taken_on"],
    /// What has lapsed comes back with a heartbeat (M1).
    RevivesLapsed => ["handover::nothing_revives_what_has_lapsed"],
    /// A member that lost a term by saying nothing stands as before.
    KeepsLapsedCandidacies => ["handover::what_is_not_taken_on_lapses"],
    /// Only a term that was taken on can be given up (E1).
    NeverGivesBack => ["handover::the_heir_may_give_it_back_or_hand_it_on"],
    /// A heartbeat is answered without the step-down that was asked (E5).
    ForgetsStepDowns => ["handover::a_step_down_reaches_one_who_takes_it_on"],
    /// The observer is said to judge, and the store does.
    DeniesJudging => ["capabilities::expiry_is_judged_by_whom_it_is_claimed"],
    /// Each term that a heartbeat names is answered for as renewed (E1).
    AnswersForTerms => ["heartbeat::a_heartbeat_names_terms_in_vain_that_are_not_its_own"],
    /// A name is given to the last taker (U1).
    GivesNamesTwice => [
        "names::a_name_has_one_owner",
        "names::of_many_who_race_exactly_one_takes_a_name"
    ],
    /// A change begins a new binding (Q4).
    ResetsTokens => ["names::a_change_keeps_the_token"],
    /// Every binding has token 1 (U2).
    ReusesTokens => ["names::tokens_only_rise"],
    /// Every operation on a name is a new attempt (E2).
    IgnoresNameNonces => ["names::what_is_repeated_is_answered_alike"],
    /// An older attempt of the owner is answered as if it had succeeded (E2).
    AnswersOlderNonces => [
        "names::an_older_attempt_changes_nothing",
        "names::a_name_has_one_owner"
    ],
    /// A drop is meant for whatever binding there is (U4).
    DropsAnyToken => ["names::late_and_foreign_operations_change_nothing"],
    /// Names leave a trace in the journal.
    JournalsNames => ["names::names_are_not_in_the_journal"],
    /// The name of an expired owner is taken, and its heartbeat is answered as before (M1).
    SparesExpiredOwners => ["names::an_expired_owner_is_ended_before_its_name_is_taken"],
    /// To be bound does not renew (T1).
    BoundIsNoHeartbeat => ["names::being_bound_counts_as_a_heartbeat"],
    /// To be refused renews as well.
    TakenBeats => ["names::nothing_else_counts_as_a_heartbeat"],
    /// A name of an ended life is shown as if it stood (M5).
    NamesOutliveTheirLife => ["names::the_names_of_an_ended_life_are_free_at_once"],
    /// What a member binds without an owner is its own.
    OwnsWhatItPosts => ["names::a_name_without_an_owner_stays_until_it_is_dropped"],
    /// The last operation is answered first (Q1).
    AnswersBackwards => ["names::operations_are_answered_in_their_order"],
    /// The data of a value goes through text.
    TextValues => ["names::values_come_back_byte_for_byte"],
    /// A fence without effect (Q2).
    IgnoresFences => ["names::a_fence_passes_only_who_holds_the_newest_term"],
    /// What a bind has seen is not looked at (M6).
    ForgetsWhatBindsSaw => ["names::what_was_forgotten_makes_the_tokens_jump"],
    /// What one member owns is what all own.
    OwnedByAll => ["names::names_are_found_by_name_and_by_owner"],
    /// A prefix is a pattern.
    LikePrefixes => ["names::a_prefix_is_taken_literally"],
    /// It is not told what was dropped (Q8).
    ForgetsDrops => [
        "names::since_tells_only_what_changed",
        "names::what_changed_since_makes_up_a_full_read"
    ],
    /// It is not told who owns names (Q8).
    ForgetsOwners => [
        "names::since_tells_only_what_changed",
        "names::what_changed_since_makes_up_a_full_read"
    ],
    /// A reader that cannot be told what changed is not told that either (Q8).
    NeverWhole => ["names::who_cannot_be_told_what_changed_gets_all_names"],
    /// Every reader is told everything, each time (Q8).
    AlwaysWhole => ["names::since_tells_only_what_changed"],
    /// No follower is told that names changed (N1).
    HidesNames => ["names::a_follower_is_told_of_a_change_of_names"],
    /// That names changed is told once and never again (N1).
    TellsOfNamesOnce => ["names::a_follower_is_told_of_a_change_of_names"],
    /// Names are denied, and kept all the same.
    DeniesNames => ["names::a_store_that_keeps_no_names_says_so"],
    /// There is no limit to a request.
    UnlimitedBatch => [
        "limits::one_more_than_a_full_batch_is_refused",
        "names::one_operation_more_than_a_full_batch_is_refused"
    ],
    /// Only so many bids are answered.
    ShortAnswers => ["limits::a_full_batch_is_won_and_given_back"],
}
