//! Hints only cause a look, and no storm of them delays a heartbeat (N1, H12).

use super::script::*;
use crate::*;

fn elect(election: &str, heir: Option<&str>) -> Hint {
    let heir = heir.map(|heir| MemberId::new(heir).unwrap());
    Hint::Vacant { election: name(election), heir }
}

/// Leads `nightly`, waits for `weekly`.
fn leading_and_waiting() -> Script {
    let mut script = Script::leading(WATCHED, "nightly");
    script.stand("weekly");
    script.held([held_by("weekly", member("other", 7), 1, 10_000)]);
    script.events.clear();
    script
}

/// A store in which nothing ever changes: we hold `nightly`, another `weekly`.
fn steady(me: MemberRef) -> impl FnMut(&Request) -> Reply {
    let nightly = held_by("nightly", me, 1, 10_000);
    let weekly = held_by("weekly", member("other", 7), 1, 10_000);
    move |request| match request {
        Request::Heartbeat(_) => alive(1),
        Request::Claim(claim) => all_held(claim, &weekly),
        Request::Read(query) => {
            let elections = match &query.which {
                Which::Named(names) => {
                    let views = [&nightly, &weekly].into_iter();
                    views.filter(|v| names.contains(&v.election)).cloned().collect()
                }
                _ => alloc::vec![nightly.clone()],
            };
            Reply::Read(Snapshot { elections, ..Snapshot::default() })
        }
        other => panic!("nothing changed, and yet: {other:?}"),
    }
}

/// N1, H12, P12: under ten thousand hints a second, of every kind and forged to the
/// worst effect, heartbeats go out on time to the millisecond, the number of
/// looks and bids is bounded, and nothing changes.
#[test]
fn a_storm_of_hints_changes_nothing_and_delays_no_heartbeat() {
    let mut script = leading_and_waiting();
    let me = script.me();
    let hints = [
        Hint::Anything,
        Hint::Election(name("nightly")),
        Hint::Election(name("weekly")),
        Hint::Election(name("unknown")),
        elect("nightly", Some("me")),
        elect("weekly", Some("me")),
        elect("weekly", None),
        elect("unknown", Some("me")),
        Hint::Handed { election: name("weekly"), to: MemberId::new("me").unwrap() },
        Hint::Handed { election: name("unknown"), to: MemberId::new("me").unwrap() },
        Hint::Gone(Incarnation::from_u128(7)),
        Hint::Gone(Incarnation::from_u128(8)),
    ];
    let mut store = steady(me);
    let mut beats = alloc::vec::Vec::new();
    let mut looks = 0;
    let mut claims = 0;
    let seconds = 10;
    for hint in 0..seconds * 10_000u64 {
        script.feed(Input::Hint(hints[usize::try_from(hint).unwrap() % hints.len()].clone()));
        script.play(1_000 + hint / 10, |now, request| {
            match request {
                Request::Heartbeat(_) => beats.push(now.as_nanos() / 1_000_000),
                Request::Claim(_) => claims += 1,
                _ => looks += 1,
            }
            // A ttl has 32 intervals, and a few go out in a row at first; once over for
            // hints in general, and once for those that name this member.
            assert!(looks <= 2 * 41, "{looks} looks in {seconds} s");
            assert!(claims <= 2 * 41, "{claims} claims in {seconds} s");
            Some(Ok(store(request)))
        });
    }
    assert_eq!(beats, [3_500, 6_000, 8_500]);
    assert_eq!(script.lost(), []);
    let quiet = |e: &Event| matches!(e, Event::Standby { .. } | Event::Trusted { .. });
    assert!(script.events.iter().all(quiet));
}

/// P12: in a flood of forged hints about everything, and of vacancies that are none, a
/// term that was really handed over is looked at as fast as ever.
#[test]
fn a_flood_does_not_delay_what_is_handed_over() {
    let mut script = leading_and_waiting();
    let mut store = steady(script.me());
    for hint in 0..50_000u64 {
        let hints = [Hint::Anything, Hint::Election(name("weekly"))];
        script.feed(Input::Hint(hints[usize::try_from(hint % 2).unwrap()].clone()));
        script.play(1_000 + hint / 10, |_, request| Some(Ok(store(request))));
    }
    script.feed(Input::Hint(Hint::Anything));
    assert!(!script.has_asked(is_read), "hints are paced by now");
    let to = MemberId::new("me").unwrap();
    script.feed(Input::Hint(Hint::Handed { election: name("weekly"), to }));
    assert!(script.has_asked(is_read), "at once");
}

/// P12: a candidate that gets few hints looks and bids at once, each time.
#[test]
fn hints_that_come_now_and_then_are_not_paced() {
    let mut script = leading_and_waiting();
    for round in 1..=30 {
        script.run_to(1_000 + round * 320);
        let mut store = steady(script.me());
        let now = script.now.as_nanos() / 1_000_000;
        script.play(now, |_, request| Some(Ok(store(request))));
        script.feed(Input::Hint(Hint::Election(name("weekly"))));
        assert!(script.has_asked(is_read), "round {round}");
        script.play(now, |_, request| Some(Ok(store(request))));
    }
}

/// H12: a look that is never answered does not hold the heartbeat up.
#[test]
fn a_look_that_hangs_delays_no_heartbeat() {
    let mut script = leading_and_waiting();
    script.run_to(3_000);
    script.feed(Input::Hint(Hint::Anything));
    script.run_to(3_500);
    assert!(script.has_asked(is_read) && script.has_asked(is_beat));
}

/// N1, B19: a storm of deaths of the holder, forged, makes a bounded number of
/// bids.
#[test]
fn a_storm_of_deaths_makes_a_bounded_number_of_bids() {
    let mut script = leading_and_waiting();
    let mut store = steady(script.me());
    let mut claims = 0;
    for hint in 0..10_000u64 {
        script.feed(Input::Hint(Hint::Gone(Incarnation::from_u128(7))));
        script.play(1_000 + hint / 10, |_, request| {
            claims += u32::from(is_claim(request));
            assert!(claims <= 21, "{claims} claims within a second");
            Some(Ok(store(request)))
        });
    }
    assert!(claims > 10);
}

/// N1: what is not stood for here is not looked at.
#[test]
fn hints_about_other_elections_ask_nothing() {
    let mut script = Script::leading(WATCHED, "nightly");
    script.feed(Input::Hint(Hint::Election(name("unknown"))));
    script.feed(Input::Hint(elect("unknown", Some("me"))));
    script.feed(Input::Hint(Hint::Gone(Incarnation::from_u128(7))));
    script.run_to(3_000);
    assert!(script.sent.is_empty());
}

/// N1: a forged hint that we are gone costs a heartbeat, and nothing else.
#[test]
fn a_forged_hint_of_our_own_end_only_makes_us_beat() {
    let mut script = Script::leading(WATCHED, "nightly");
    let me = script.me();
    script.run_to(2_000);
    script.feed(Input::Hint(Hint::Gone(me.incarnation)));
    script.run_to(2_000);
    script.alive(1);
    assert_eq!(script.lost(), []);
    assert!(script.sent.is_empty());
}

/// N1: hints that come while a look is out make one more look, not many.
#[test]
fn hints_coalesce() {
    let mut script = leading_and_waiting();
    for _ in 0..100 {
        script.feed(Input::Hint(Hint::Election(name("weekly"))));
    }
    assert_eq!(script.sent.len(), 1);
    script.seen([held_by("weekly", member("other", 7), 1, 10_000)]);
    assert!(script.sent.is_empty(), "not before the gap");
    script.run_for(50);
    assert_eq!(script.sent.len(), 1);
    script.seen([held_by("weekly", member("other", 7), 1, 10_000)]);
    script.run_for(1_000);
    assert!(script.sent.is_empty(), "and no more after that");
}

/// H13: after a reconnect everything is looked at again: what is held and what
/// is waited for.
#[test]
fn a_reconnect_looks_at_everything() {
    let mut script = leading_and_waiting();
    script.feed(Input::Hint(Hint::Anything));
    let me = script.me();
    let which = |script: &Script| match script.asked() {
        Request::Read(query) => query.which.clone(),
        other => panic!("no look: {other:?}"),
    };
    assert_eq!(which(&script), Which::HeldBy(me.incarnation));
    script.seen([held_by("nightly", me, 1, 10_000)]);
    script.run_for(50);
    assert_eq!(which(&script), Which::Named(alloc::vec![name("weekly")]));
    script.seen([ElectionView::vacant(name("weekly"))]);
    script.run_for(0);
    assert!(script.has_asked(is_claim), "the vacancy that was missed is found");
}

/// H13: what is being bid for is looked at once the bid is answered, since the
/// answer may be older than the hint.
#[test]
fn a_reconnect_during_a_bid_looks_after_its_answer() {
    let mut script = Script::standing(WATCHED, "nightly");
    script.feed(Input::Hint(Hint::Anything));
    script.seen([]);
    script.run_for(100);
    assert!(!script.has_asked(is_read), "not before the answer");
    script.held([held_by("nightly", member("other", 7), 1, 9_000)]);
    script.seen([ElectionView::vacant(name("nightly"))]);
    script.run_for(0);
    assert!(script.has_asked(is_claim));
}

/// N1: the answer to a bid is a look: a hint that came before the bid was sent
/// asks for no other.
#[test]
fn a_bid_answers_the_hints_before_it() {
    let mut script = leading_and_waiting();
    let weekly = held_by("weekly", member("other", 7), 1, 10_000);
    for _ in 0..2 {
        script.feed(Input::Hint(Hint::Election(name("weekly"))));
    }
    script.seen([weekly.clone()]);
    assert!(script.sent.is_empty(), "not before the gap");
    let priority = Priority::new(7);
    script.feed(Input::Stand { election: name("weekly"), priority });
    script.held([weekly]);
    script.run_for(500);
    assert!(script.sent.is_empty(), "{:?}", script.sent);
}

/// N1: a look at all that is held takes at most half of the time, however often
/// a hint asks for it and however long it takes.
#[test]
fn looks_at_all_that_is_held_leave_time_for_the_rest() {
    let mut script = Script::leading(WATCHED, "nightly");
    let me = script.me();
    script.feed(Input::Hint(Hint::Anything));
    let look = script.take(is_read);
    script.run_for(400);
    script.feed(Input::Hint(Hint::Anything));
    let elections = alloc::vec![held_by("nightly", me, 1, 10_000)];
    script.reply(look.id, Ok(Reply::Read(Snapshot { elections, ..Snapshot::default() })));
    script.run_for(399);
    assert!(!script.has_asked(is_read), "it took 400 ms");
    script.run_for(1);
    assert!(script.has_asked(is_read));
}

/// N1: a storm of hints about everything does not keep a candidate from looking
/// at what it waits for.
#[test]
fn a_storm_does_not_starve_the_looks_of_those_who_wait() {
    let mut script = leading_and_waiting();
    let mut store = steady(script.me());
    let mut own = 0;
    let mut named = 0;
    for millis in 1_000..2_000 {
        script.feed(Input::Hint(Hint::Anything));
        script.play(millis, |_, request| {
            match request {
                Request::Read(Query { which: Which::Named(_), .. }) => named += 1,
                _ => own += 1,
            }
            Some(Ok(store(request)))
        });
    }
    assert_eq!((own, named), (6, 5));
}

/// H13: what was missed is noticed without any hint, by the journal position in
/// the heartbeat.
#[test]
fn lost_hints_are_made_up_for_by_the_heartbeat() {
    let mut script = leading_and_waiting();
    script.run_to(3_500);
    let attention = 0;
    let holds = Some(1);
    let seq = Seq::new(5);
    let beat = Beat::Alive { attention, holds, seq, terms: alloc::vec![] };
    script.answer(Ok(Reply::Heartbeat(beat)));
    script.seen([ElectionView::vacant(name("weekly"))]);
    script.run_for(0);
    assert!(script.has_asked(is_claim));
}

/// H15: a look that failed is repeated until it is answered.
#[test]
fn a_failed_look_is_repeated() {
    for hint in [Hint::Anything, Hint::Election(name("weekly"))] {
        let mut script = leading_and_waiting();
        script.feed(Input::Hint(hint));
        let first = script.take(is_read);
        script.reply(first.id, Err(REFUSED));
        // In turns with the look at what is waited for, if that is wanted too.
        let mut failures = [Err(UNKNOWN), Ok(joined())].into_iter();
        let mut again = 0;
        script.play(3_000, |_, request| {
            again += usize::from(*request == first.request);
            failures.next()
        });
        assert!(again >= 1, "never asked again: {:?}", first.request);
    }
}

/// H27: a storm of hints about unknown lives does not fill the memory,
/// even while the store is silent; and what was forgotten is looked for.
#[test]
fn hints_about_strangers_do_not_pile_up() {
    let mut script = leading_and_waiting();
    // A look that is not answered yet: the hints have to be kept.
    script.feed(Input::Hint(Hint::Election(name("nightly"))));
    for stranger in 0..100_000 {
        script.feed(Input::Hint(Hint::Gone(Incarnation::from_u128(1 << 64 | stranger))));
    }
    assert!(script.machine.looks.gone.len() <= 1_000);
    let nightly = held_by("nightly", script.me(), 1, 10_000);
    script.seen([nightly.clone()]);
    let mut claimed = false;
    script.play(1_200, |_, request| match request {
        Request::Read(Query { which, .. }) => {
            let named = matches!(which, Which::Named(_));
            let vacant = ElectionView::vacant(name("weekly"));
            let elections = alloc::vec![if named { vacant } else { nightly.clone() }];
            Some(Ok(Reply::Read(Snapshot { elections, ..Snapshot::default() })))
        }
        other => {
            claimed |= is_claim(other);
            None
        }
    });
    assert!(claimed, "the vacancy is found all the same");
}

/// Hints that come before there is a member are kept until there is.
#[test]
fn hints_before_the_join_are_kept() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Join);
    script.feed(Input::Hint(Hint::Anything));
    assert_eq!(script.sent.len(), 1);
    script.answer(Ok(joined()));
    assert!(script.has_asked(is_read));
}
