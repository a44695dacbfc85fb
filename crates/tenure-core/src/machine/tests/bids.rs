//! Standing for elections: when to bid, and with what (E2, T5, F4, H11, H21).

use alloc::vec::Vec;
use core::time::Duration;

use super::script::*;
use crate::*;

fn claim(script: &Script) -> Claim {
    match script.asked() {
        Request::Claim(claim) => claim.clone(),
        other => panic!("no claim: {other:?}"),
    }
}

/// A candidate of `nightly` that was told that another holds it for this
/// many milliseconds more, with `ahead` candidates before it.
fn waiting(left: u64, ahead: u32) -> Script {
    let mut script = Script::standing(WATCHED, "nightly");
    script.held([ElectionView { ahead, ..held_by("nightly", member("other", 1), 1, left) }]);
    script
}

fn vacant() -> ElectionView {
    ElectionView::vacant(name("nightly"))
}

/// A bid that was not answered may have won: until that is known, heartbeats
/// write the short ttl of a holder, so that a crash frees the term after one ttl
/// and not after the long one of an idle member.
#[test]
fn a_member_whose_bid_was_not_answered_beats_like_a_holder() {
    let mut script = Script::standing(WATCHED, "nightly");
    let mut ttls = Vec::new();
    script.play(8_000, |_, request| match request {
        Request::Heartbeat(beat) => {
            ttls.push(beat.ttl);
            Some(Ok(alive(1)))
        }
        Request::Claim(_) => Some(Err(UNKNOWN)),
        _ => None,
    });
    assert!(ttls.len() >= 2, "it beats as often as a holder: {ttls:?}");
    assert!(ttls.iter().all(|ttl| *ttl == Settings::default().ttl()), "{ttls:?}");
}

/// E2, H21: a bid whose answer was lost is repeated with its nonce, and the term
/// it won is adopted.
#[test]
fn a_bid_whose_answer_was_lost_is_repeated_and_adopts_its_own_term() {
    for failure in [Some(Err(UNKNOWN)), Some(Err(REFUSED)), None] {
        let mut script = Script::standing(WATCHED, "nightly");
        let first = claim(&script);
        match failure {
            Some(failure) => script.answer(failure),
            None => script.run_to(3_500),
        }
        script.sent.clear();
        script.run_for(100);
        assert_eq!(claim(&script).bids, first.bids);
        script.win(1);
        assert_eq!(script.elected(), [(name("nightly"), 1)]);
    }
}

/// E2: once a bid was answered, the next one is another attempt.
#[test]
fn an_answered_bid_is_not_repeated() {
    let mut script = Script::standing(WATCHED, "nightly");
    let first = claim(&script).bids[0].nonce;
    script.held([held_by("nightly", member("other", 1), 1, 500)]);
    script.run_to(1_600);
    assert!(claim(&script).bids[0].nonce > first);
}

/// E2, H9: losing is an answer: the view is passed on, and nothing is retried
/// before its time.
#[test]
fn losing_is_an_answer() {
    let mut script = waiting(9_000, 0);
    let last = script.events.last();
    assert!(matches!(last, Some(Event::Standby { view }) if view.number == TermNumber::new(1)));
    script.run_to(10_000);
    assert!(script.sent.is_empty());
}

/// T5, M3, H24: a standby bids when what it was told is left of the holder's own
/// ttl has passed on its own clock, and not before.
#[test]
fn a_standby_counts_what_is_left_on_its_own_clock() {
    let mut script = waiting(4_000, 0);
    script.run_to(5_000);
    assert!(script.sent.is_empty(), "not a hair early");
    script.run_to(5_001);
    assert!(script.has_asked(is_claim));
}

/// T5: what is left is counted from the arrival of the answer: an answer that
/// was long on its way does not make any member bid early.
#[test]
fn a_slow_answer_does_not_make_a_standby_bid_early() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.run_to(3_000);
    script.held([held_by("nightly", member("other", 1), 1, 4_000)]);
    script.run_to(7_000);
    assert!(script.sent.is_empty());
    script.run_to(7_001);
    assert!(script.has_asked(is_claim));
}

/// H16: an absurd ttl does not put a candidate to sleep for ever, nor does it
/// overflow.
#[test]
fn no_candidate_sleeps_for_ever_on_an_absurd_ttl() {
    let mut script = Script::standing(WATCHED, "nightly");
    let mut view = held_by("nightly", member("other", 1), 1, 0);
    view.holder.as_mut().unwrap().remaining = Duration::MAX;
    view.ahead = u32::MAX;
    script.held([view]);
    let day = 24 * 60 * 60 * 1_000;
    let mut claims = 0;
    script.play(1_000 + day, |_, request| {
        claims += u32::from(is_claim(request));
        is_beat(request).then(|| Ok(alive(0)))
    });
    assert_eq!(claims, 1);
}

/// F4: candidates bid one after the other, in order of preference, and the last
/// of a herd not too late to matter.
#[test]
fn candidates_bid_in_order_of_rank() {
    for (ahead, after) in [(0, 0), (1, 100), (7, 700), (50, 5_000), (1_000_000, 5_000)] {
        let mut script = waiting(4_000, ahead);
        script.run_to(5_000 + after);
        assert!(script.sent.is_empty(), "{ahead} ahead");
        script.run_to(5_001 + after);
        assert!(script.has_asked(is_claim), "{ahead} ahead");
    }
}

/// F4, C9: the one a vacancy is kept for bids at once; the others let it go
/// first, each in its turn.
#[test]
fn a_vacancy_is_bid_for_by_its_heir_first() {
    let cases = [(Some("me"), 3, 0), (Some("other"), 0, 200), (Some("other"), 2, 400)];
    for (heir, ahead, after) in cases.into_iter().chain([(None, 0, 0), (None, 3, 300)]) {
        let mut script = waiting(9_000, ahead);
        let heir = heir.map(|heir| MemberId::new(heir).unwrap());
        script.run_to(2_000);
        script.feed(Input::Hint(Hint::Vacant { election: name("nightly"), heir }));
        if after > 0 {
            script.run_to(1_999 + after);
            assert!(!script.has_asked(is_claim), "{ahead} ahead");
        }
        script.run_to(2_000 + after);
        assert!(script.has_asked(is_claim), "{ahead} ahead");
    }
}

/// A vacancy kept for another is waited for; one kept for us is not.
#[test]
fn a_reservation_is_respected() {
    let kept = |member: &str| {
        let member = MemberId::new(member).unwrap();
        let remaining = Duration::from_millis(200);
        ElectionView { reserved: Some(Reservation { member, remaining }), ..vacant() }
    };
    let mut script = waiting(9_000, 0);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    script.seen([kept("other")]);
    script.run_to(1_200);
    assert!(!script.has_asked(is_claim));
    script.run_to(1_201);
    assert!(script.has_asked(is_claim));

    let mut script = waiting(9_000, 5);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    script.seen([kept("me")]);
    script.run_to(1_000);
    assert!(script.has_asked(is_claim));
}

/// C24, B19: a burst of resignations makes one early claim, for all of them.
#[test]
fn a_burst_of_vacancies_makes_one_early_claim() {
    let mut script = waiting(9_000, 0);
    for election in ["weekly", "hourly"] {
        script.stand(election);
        script.held([held_by(election, member("other", 1), 1, 9_000)]);
    }
    script.run_to(2_000);
    for _ in 0..100 {
        for election in ["nightly", "weekly", "hourly"] {
            let election = name(election);
            script.feed(Input::Hint(Hint::Vacant { election, heir: None }));
        }
    }
    let mut sizes = alloc::vec::Vec::new();
    script.play(2_500, |_, request| match request {
        Request::Claim(claim) => {
            sizes.push(claim.bids.len());
            Some(Ok(all_won(claim, 2)))
        }
        _ => None,
    });
    assert_eq!(sizes, [1, 2], "the first at once, the rest together");
}

/// B23: a holder that is seen to be gone is not waited out.
#[test]
fn a_holder_that_is_gone_is_not_waited_out() {
    let mut script = waiting(9_000, 2);
    script.run_to(2_000);
    script.feed(Input::Hint(Hint::Gone(Incarnation::from_u128(1))));
    script.run_to(2_199);
    assert!(!script.has_asked(is_claim));
    script.run_to(2_200);
    assert!(script.has_asked(is_claim));
}

/// B23: that goes too for one that is told while a bid is on its way and
/// will be answered with the dead holder's name.
#[test]
fn a_holder_that_goes_while_a_bid_is_out_is_not_waited_out() {
    for busy in [false, true] {
        let mut script = waiting(500, 0);
        script.run_to(1_501);
        script.feed(Input::Hint(Hint::Gone(Incarnation::from_u128(1))));
        if busy {
            // A look goes out meanwhile, and comes back.
            script.feed(Input::Hint(Hint::Anything));
            script.seen([]);
        }
        script.run_to(1_600);
        script.first(is_claim).held([held_by("nightly", member("other", 1), 1, 9_000)]);
        script.run_to(1_700);
        assert!(script.has_asked(is_claim), "with a look meanwhile: {busy}");
    }
}

/// H13, B23: a vacancy that is told while an older answer is on its way is not
/// forgotten when that answer comes.
#[test]
fn a_vacancy_is_not_forgotten_over_an_older_answer() {
    let vacancy = || Input::Hint(Hint::Vacant { election: name("nightly"), heir: None });
    let held = || held_by("nightly", member("other", 1), 1, 9_000);
    // A bid on its way.
    let mut script = Script::standing(WATCHED, "nightly");
    script.feed(vacancy());
    script.held([held()]);
    script.seen([vacant()]);
    script.run_to(1_000);
    assert!(script.has_asked(is_claim));
    // A look on its way.
    let mut script = waiting(9_000, 1);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    script.feed(vacancy());
    script.seen([held()]);
    script.run_to(1_050);
    script.seen([vacant()]);
    script.run_to(1_050);
    assert!(script.has_asked(is_claim));
}

/// An old look does not undo what a newer bid was told.
#[test]
fn an_older_look_does_not_put_off_the_next_bid() {
    let mut script = waiting(200, 0);
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    script.run_to(1_201);
    script.first(is_claim).held([held_by("nightly", member("third", 3), 2, 1_000)]);
    script.seen([held_by("nightly", member("other", 1), 1, 9_000)]);
    script.run_to(2_202);
    assert!(script.has_asked(is_claim));
}

/// E6: while paused, it is looked again once a ttl, and no more.
#[test]
fn a_paused_election_is_bid_for_once_a_ttl() {
    let mut script = Script::standing(WATCHED, "nightly");
    let paused = ElectionView { paused: Some(Pause::default()), ..vacant() };
    let mut claims = 0;
    script.play(61_500, |_, request| match request {
        Request::Claim(claim) => {
            claims += 1;
            Some(Ok(all_held(claim, &paused)))
        }
        _ => is_beat(request).then(|| Ok(alive(0))),
    });
    assert_eq!(claims, 7);
}

/// C9, B19: a candidate that never leads does not keep bidding for a vacancy.
#[test]
fn one_that_never_leads_does_not_keep_bidding() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Stand { election: name("nightly"), priority: Priority::NEVER });
    script.answer(Ok(joined()));
    let mut claims = 0;
    script.play(60_500, |_, request| match request {
        Request::Claim(claim) => {
            claims += 1;
            Some(Ok(all_held(claim, &vacant())))
        }
        _ => is_beat(request).then(|| Ok(alive(0))),
    });
    assert_eq!(claims, 6);
    script.feed(Input::Hint(Hint::Vacant { election: name("nightly"), heir: None }));
    assert!(!script.has_asked(is_claim));
}

/// C9: a change of mind about the priority is told to the store at once.
#[test]
fn a_new_priority_is_told_to_the_store() {
    let mut script = waiting(9_000, 0);
    script.stand("nightly");
    assert!(script.sent.is_empty(), "nothing changed");
    let priority = Priority::new(7);
    script.feed(Input::Stand { election: name("nightly"), priority });
    assert_eq!(claim(&script).bids[0].priority, priority);
}

/// B24, H11: a store that says *vacant* and yet gives nothing, or *held* with
/// nothing left, is asked again at a bounded pace.
#[test]
fn a_contradictory_answer_is_not_hammered() {
    let spent = held_by("nightly", member("other", 1), 1, 0);
    for (view, most) in [(vacant(), 100), (spent, 200)] {
        let mut script = Script::standing(WATCHED, "nightly");
        let mut claims = 0;
        script.play(11_000, |_, request| match request {
            Request::Claim(claim) => {
                claims += 1;
                Some(Ok(all_held(claim, &view)))
            }
            _ => is_beat(request).then(|| Ok(alive(0))),
        });
        assert!((10..=most + 1).contains(&claims), "{claims} claims in 10 s");
    }
}

/// An answer that does not fit its bids says nothing: outcome unknown, and the
/// bids are repeated with their nonces, at the pace of failures.
#[test]
fn an_answer_that_does_not_fit_is_a_lost_answer() {
    let mut script = Script::standing(WATCHED, "nightly");
    let first = claim(&script);
    for answers in [alloc::vec![], alloc::vec![Claimed::Held(ElectionView::vacant(name("x")))]] {
        script.answer(Ok(Reply::Claim(Claims::Answered(answers))));
        assert!(script.sent.is_empty(), "not at once");
        script.run_for(200);
        assert_eq!(claim(&script).bids, first.bids);
    }
    script.answer(Ok(alive(0)));
    script.run_for(400);
    script.win(1);
    assert_eq!(script.elected(), [(name("nightly"), 1)]);
}

/// C2: a candidate bids as often as the holder's ttl says and no more, over a
/// thousand renewals of the holder.
#[test]
fn a_standby_of_a_renewing_holder_bids_once_a_ttl() {
    let mut script = Script::standing(WATCHED, "nightly");
    let other = member("other", 1);
    let mut claims = 0;
    script.play(2_500_000, |now, request| match request {
        Request::Claim(claim) => {
            claims += 1;
            // The holder renewed a while ago, somewhere in its interval.
            let left = 10_000 - now.as_nanos() / 1_000_000 % 2_500;
            Some(Ok(all_held(claim, &held_by("nightly", other.clone(), 1, left))))
        }
        _ => is_beat(request).then(|| Ok(alive(0))),
    });
    assert!((250..=334).contains(&claims), "{claims} claims in 250 ttls");
    assert_eq!(script.elected(), []);
}

/// B25: a batch of none would be a candidate that never bids.
#[test]
fn a_store_that_claims_a_batch_of_none_gets_one_at_a_time() {
    let mut script = Script::standing(StoreTraits { batch: 0, ..WATCHED }, "nightly");
    script.win(1);
    assert_eq!(script.elected().len(), 1);
}
