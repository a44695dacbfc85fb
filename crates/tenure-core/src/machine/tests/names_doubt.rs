//! A store that begins another era may have forgotten names (U6, M6): the interleavings of
//! `names/doubt.rs`.

use alloc::vec;
use alloc::vec::Vec;

use super::names::{bind, binding, bound, is_bind, lost, named, owning, take};
use super::script::*;
use crate::*;

/// Of a member whose attention was 0 before.
fn called() -> u64 {
    Era::START.raised(Timestamp::default()).calls(0)
}

fn alive_with(attention: u64) -> Result<Reply, Failed> {
    let alive = Beat::Alive { attention, holds: None, seq: Seq::START, terms: Vec::new() };
    Ok(Reply::Heartbeat(alive))
}

/// Answers the heartbeat that is out, from a store that told this attention.
fn beaten(script: &mut Script, attention: u64) {
    script.first(is_beat).answer(alive_with(attention));
}

/// Answers the bind that is out, each operation by what `there` shows of its name.
fn shown(script: &mut Script, there: impl Fn(&Name) -> Option<Binding>) -> Bind {
    let bind = bind(script);
    let answers = bind.ops.iter().map(|op| BindAnswer::Gone(there(&op.name))).collect();
    script.answer(Ok(Reply::Bind(Bindings::Answered(answers))));
    bind
}

fn trusted(script: &Script) -> Option<Mono> {
    let until = |event: &Event| match event {
        Event::Trusted { until, .. } => Some(*until),
        _ => None,
    };
    script.events.iter().filter_map(until).max()
}

/// Owns these names, from token 1 on, in a store whose era has just changed. What it knows of
/// is trusted until 9,990 ms.
fn doubting(names: &[&str]) -> Script {
    let mut script = owning(names);
    for token in (4..=names.len() as u64).step_by(3) {
        bound(&mut script, token);
    }
    script.events.clear();
    script.run_to(3_500);
    beaten(&mut script, called());
    script
}

/// U6: the name that another took in the new era is lost, and the other one is not. Until the
/// store has shown it, trust reaches no further.
#[test]
fn a_store_of_another_era_is_asked_for_every_name_before_trust_is_stretched() {
    let mut script = doubting(&["a", "b"]);
    assert_eq!(trusted(&script), None, "nothing is confirmed yet");
    assert!(lost(&script).is_empty(), "nor is anything lost");
    let me = script.me();
    let other = member("other", 9);
    let asked = shown(&mut script, |name| match name.as_str() {
        "a" => Some(binding(&other, name, 70_000)),
        _ => Some(binding(&me, name, 2)),
    });
    let never = |op: &BindOp| matches!(&op.what, What::Change { expect: Some(Rev::START), .. });
    assert!(asked.ops.len() == 2 && asked.ops.iter().all(never), "nothing is written: {asked:?}");
    assert_eq!(lost(&script), [("a", 1, LostReason::Superseded)]);
    beaten(&mut script, called());
    let until = Mono::from_millis(3_500) + Settings::default().trust();
    assert_eq!(trusted(&script), Some(until), "a heartbeat follows at once");
    script.play(60_000, |_, request| {
        assert!(!is_bind(request), "it is asked once: {request:?}");
        is_beat(request).then(|| alive_with(called()))
    });
}

/// While the era stays, nothing is asked; nor when something is asked of the member.
#[test]
fn a_store_of_the_same_era_is_asked_for_no_name() {
    let mut script = owning(&["a"]);
    script.play(60_000, |now, request| {
        assert!(!is_bind(request), "{request:?}");
        is_beat(request).then(|| alive_with(now.as_nanos() / 10_000_000_000))
    });
    assert!(lost(&script).is_empty());
}

/// A store that went back to an older copy and has not noticed shows less attention.
#[test]
fn attention_that_went_back_is_doubted_too() {
    let mut script = doubting(&["a"]);
    let me = script.me();
    shown(&mut script, |name| Some(binding(&me, name, 1)));
    beaten(&mut script, called());
    script.run_for(2_500);
    beaten(&mut script, 5);
    shown(&mut script, |_| None);
    assert_eq!(lost(&script), [("a", 1, LostReason::Superseded)]);
}

/// The store bound a name, was replaced by a copy that lacks it, and only then its answer
/// arrives: it is doubted as if it had come before.
#[test]
fn a_take_that_was_on_its_way_across_the_promotion_is_doubted() {
    let mut script = owning(&["a"]);
    script.run_to(2_000);
    script.feed(Input::Bind { ops: [take(2, "b")].into() });
    let out = script.take(is_bind);
    let Request::Bind(sent) = &out.request else { unreachable!() };
    script.run_to(3_500);
    beaten(&mut script, called());
    let me = sent.member.clone().unwrap();
    shown(&mut script, |name| Some(binding(&me, name, 1)));
    let answered = vec![BindAnswer::Bound(binding(&me, &named("b"), 2))];
    script.reply(out.id, Ok(Reply::Bind(Bindings::Answered(answered))));
    let asked = shown(&mut script, |_| None);
    assert_eq!(asked.ops[0].name, named("b"));
    assert_eq!(lost(&script), [("b", 2, LostReason::Superseded)]);
}

/// Another era begins while the store is asked: the answer may be of the one before.
#[test]
fn an_answer_of_the_era_before_confirms_nothing() {
    let mut script = doubting(&["a", "b", "c", "d"]);
    let me = script.me();
    script.run_to(5_000);
    shown(&mut script, |name| Some(binding(&me, name, number(name))));
    let out = script.take(is_bind);
    script.run_to(6_000);
    beaten(&mut script, called() * 2);
    let old = BindAnswer::Gone(Some(binding(&me, &named("d"), 4)));
    script.reply(out.id, Ok(Reply::Bind(Bindings::Answered(vec![old]))));
    assert!(lost(&script).is_empty() && trusted(&script).is_none());
    let again = shown(&mut script, |_| None).ops.len() + shown(&mut script, |_| None).ops.len();
    assert_eq!((again, lost(&script).len()), (4, 4), "all is asked again");
}

/// A name that was dropped and taken again while the store was asked is another binding.
#[test]
fn an_answer_about_a_binding_that_is_over_says_nothing() {
    let mut script = doubting(&["a"]);
    let out = script.take(is_bind);
    let wish = NameWish::Drop { token: Token::new(1) };
    script.feed(Input::Bind { ops: [NameOp { wish, ..take(2, "a") }, take(3, "a")].into() });
    bound(&mut script, 0);
    bound(&mut script, 5);
    script.events.clear();
    script.reply(out.id, Ok(Reply::Bind(Bindings::Answered(vec![BindAnswer::Gone(None)]))));
    assert!(lost(&script).is_empty());
    beaten(&mut script, called());
    script.run_for(2_500);
    beaten(&mut script, called());
    assert!(trusted(&script).is_some(), "nothing is in doubt any more");
}

/// The life ends while the store is asked: names, doubt and question are gone with it.
#[test]
fn the_end_of_the_life_ends_the_doubt() {
    for by_heartbeat in [true, false] {
        let mut script = doubting(&["a"]);
        let out = script.take(is_bind);
        if by_heartbeat {
            script.run_for(3_000);
            script.first(is_beat).answer(Ok(ended(false)));
        }
        script.reply(out.id, Ok(Reply::Bind(Bindings::Ended { superseded: false })));
        assert_eq!(lost(&script), [("a", 1, LostReason::Superseded)]);
        script.sent.clear();
        script.run_for(20_000);
        assert!(!script.has_asked(is_bind));
    }
}

/// Binds and claims that are answered while heartbeats fail do not say in which era the store
/// is: names that are owned already are lost when the last heartbeat's trust ends.
#[test]
fn only_a_heartbeat_stretches_the_trust_in_names() {
    let mut script = owning(&["a"]);
    for (ticket, name) in [(2, "b"), (3, "c"), (4, "d")] {
        script.run_for(2_500);
        script.feed(Input::Bind { ops: [take(ticket, name)].into() });
        bound(&mut script, ticket);
        script.sent.retain(|out| is_beat(&out.request));
        while script.has_asked(is_beat) {
            script.first(is_beat).answer(Err(UNKNOWN));
        }
    }
    script.run_to(9_991);
    assert_eq!(lost(&script).len(), 4, "{:?}", script.events);
}

/// What the store does not answer for in time is given up, and not all that is owned and led.
#[test]
fn what_stays_in_doubt_is_given_up_before_trust_ends() {
    let mut script = doubting(&["a", "b", "c", "d"]);
    let me = script.me();
    assert_eq!(shown(&mut script, |name| Some(binding(&me, name, number(name)))).ops.len(), 3);
    let out = script.take(is_bind);
    assert!(lost(&script).is_empty());
    while lost(&script).is_empty() {
        let next = script.machine.next_wake().unwrap();
        script.run_to(next.as_nanos() / 1_000_000 + 1);
        if script.has_asked(is_beat) {
            beaten(&mut script, called());
        }
        script.sent.retain(|out| !is_bind(&out.request));
    }
    assert_eq!(lost(&script), [("d", 4, LostReason::RolledBack)]);
    assert!(trusted(&script).is_some(), "the others go on");
    drop(out);
    script.run_for(5_000);
    let drops = bound(&mut script, 0);
    assert!(matches!(drops.ops[0].what, What::Drop { token } if token == Token::new(4)));
}

fn number(name: &Name) -> u64 {
    u64::from(name.as_str().as_bytes()[0] - b'a') + 1
}

/// M5: each question has as many names as the store's batch allows.
#[test]
fn many_names_are_asked_for_in_batches() {
    let names: Vec<_> = (1..=20).map(|n| alloc::format!("{n:02}")).collect();
    let texts: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    let mut script = doubting(&texts);
    let me = script.me();
    let token = |name: &Name| name.as_str().parse().unwrap();
    for _ in 0..7 {
        let asked = shown(&mut script, |name| Some(binding(&me, name, token(name))));
        assert!(asked.ops.len() <= 3);
    }
    assert!(!script.has_asked(is_bind) && lost(&script).is_empty());
}
