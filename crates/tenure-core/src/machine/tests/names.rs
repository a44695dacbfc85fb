//! Names: one request in flight, one operation of a name at a time, one trust (Q3–Q5, U4, U6).

use alloc::vec::Vec;
use core::time::Duration;

use super::script::*;
use crate::*;

pub(super) fn is_bind(request: &Request) -> bool {
    matches!(request, Request::Bind(_))
}

pub(super) fn named(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(super) fn take(ticket: u64, name: &str) -> NameOp {
    NameOp {
        ticket,
        name: named(name),
        wish: NameWish::Take { value: Value::empty() },
        fence: None,
    }
}

fn to_drop(ticket: u64, name: &str, token: u64) -> NameOp {
    let wish = NameWish::Drop { token: Token::new(token) };
    NameOp { ticket, name: named(name), wish, fence: None }
}

pub(super) fn binding(owner: &MemberRef, name: &Name, token: u64) -> Binding {
    Binding {
        name: name.clone(),
        token: Token::new(token),
        rev: Rev::new(token),
        owner: Some(owner.clone()),
        value: Value::empty(),
        remaining: Duration::from_secs(10),
        bound_at: Timestamp::default(),
    }
}

/// The bind that is out, put first in line.
pub(super) fn bind(script: &mut Script) -> Bind {
    script.first(is_bind);
    let Request::Bind(bind) = script.asked() else { unreachable!() };
    bind.clone()
}

/// Answers the bind that is out: takes are bound from `token` on, drops are gone.
pub(super) fn bound(script: &mut Script, token: u64) -> Bind {
    let bind = bind(script);
    let owner = bind.member.clone().unwrap();
    let answer = |(op, token): (&BindOp, u64)| match op.what {
        What::Drop { .. } => BindAnswer::Gone(None),
        _ => BindAnswer::Bound(binding(&owner, &op.name, token)),
    };
    let answers = bind.ops.iter().zip(token..).map(answer).collect();
    script.answer(Ok(Reply::Bind(Bindings::Answered(answers))));
    bind
}

fn asked(bind: &Bind) -> Vec<&str> {
    bind.ops.iter().map(|op| op.name.as_str()).collect()
}

fn answers(script: &Script) -> Vec<(u64, &NameAnswer)> {
    script
        .events
        .iter()
        .filter_map(|event| match event {
            Event::NameAnswered { ticket, answer } => Some((*ticket, answer)),
            _ => None,
        })
        .collect()
}

pub(super) fn lost(script: &Script) -> Vec<(&str, u64, LostReason)> {
    let of = |event| match event {
        &Event::NamesLost { ref names, reason } => Some((names, reason)),
        _ => None,
    };
    let mut all = Vec::new();
    for (names, reason) in script.events.iter().filter_map(of) {
        all.extend(names.iter().map(|(name, token)| (name.as_str(), token.get(), reason)));
    }
    all
}

/// A machine that owns these names, from token 1 on, bound by a request sent at 1,000 ms.
pub(super) fn owning(names: &[&str]) -> Script {
    let mut script = Script::new(WATCHED);
    let ops = names.iter().zip(1..).map(|(name, ticket)| take(ticket, name)).collect();
    script.feed(Input::Bind { ops });
    script.answer(Ok(joined()));
    bound(&mut script, 1);
    script.events.clear();
    script
}

/// Who wants a name becomes a member, and is told the binding and how far it may be trusted.
#[test]
fn a_name_is_taken_by_a_member_and_trusted_from_before_the_request() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Bind { ops: [take(7, "user/42")].into() });
    assert!(script.has_asked(is_join));
    script.answer(Ok(joined()));
    script.jump_to(1_500);
    bound(&mut script, 9);
    let [(7, NameAnswer::Bound { binding, trusted_until })] = answers(&script)[..] else {
        panic!("{script:?}")
    };
    assert_eq!(binding.token, Token::new(9));
    assert_eq!(*trusted_until, Mono::from_millis(1_000) + Settings::default().trust(), "T1");
}

/// What is asked for while a request is on its way goes together in the next one, within
/// the store's batch.
#[test]
fn one_request_is_in_flight_and_the_rest_goes_together() {
    let mut script = owning(&["a"]);
    script.feed(Input::Bind { ops: [take(2, "b")].into() });
    for (ticket, name) in [(3, "c"), (4, "d"), (5, "e"), (6, "f")] {
        script.feed(Input::Bind { ops: [take(ticket, name)].into() });
    }
    assert_eq!(script.sent.iter().filter(|out| is_bind(&out.request)).count(), 1);
    assert_eq!(asked(&bound(&mut script, 2)), ["b"]);
    assert_eq!(asked(&bound(&mut script, 3)), ["c", "d", "e"]);
    assert_eq!(asked(&bound(&mut script, 6)), ["f"]);
    assert_eq!(answers(&script).len(), 5);
}

/// U4: two operations of one name are never on their way together, so that a repeated drop
/// cannot come after the take that followed it.
#[test]
fn operations_of_one_name_go_one_after_the_other() {
    let mut script = owning(&["a"]);
    script.feed(Input::Bind { ops: [to_drop(2, "a", 1), take(3, "a"), take(4, "b")].into() });
    let first = bind(&mut script);
    assert_eq!(asked(&first), ["a", "b"]);
    script.answer(Err(UNKNOWN));
    script.run_for(1_000);
    let again = bound(&mut script, 5);
    assert_eq!(first.ops, again.ops, "the same nonces again (E2)");
    let last = bound(&mut script, 8);
    assert_eq!(asked(&last), ["a"]);
    assert!(matches!(last.ops[0].what, What::Take { .. }));
}

/// E2: a take that was not answered is sent again with its nonce, and is bound once.
#[test]
fn a_take_without_an_answer_is_repeated_with_its_nonce() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Bind { ops: [take(1, "a")].into() });
    script.answer(Ok(joined()));
    let first = bind(&mut script);
    script.answer(Err(UNKNOWN));
    assert!(answers(&script).is_empty(), "no caller is told what is not known");
    script.run_for(2_000);
    assert_eq!(bound(&mut script, 1).ops, first.ops);
    assert_eq!(answers(&script).len(), 1);
}

/// A name that an open transaction holds is asked for again; the others are answered.
#[test]
fn a_busy_name_is_repeated_and_keeps_no_other_waiting() {
    let mut script = Script::new(WATCHED);
    script.feed(Input::Bind { ops: [take(1, "a"), take(2, "b")].into() });
    script.answer(Ok(joined()));
    let me = bind(&mut script).member.unwrap();
    let answered = [BindAnswer::Busy(named("a")), BindAnswer::Bound(binding(&me, &named("b"), 1))];
    script.answer(Ok(Reply::Bind(Bindings::Answered(answered.into()))));
    assert_eq!(answers(&script).len(), 1);
    script.run_for(2_000);
    assert_eq!(asked(&bound(&mut script, 2)), ["a"]);
    assert_eq!(answers(&script).len(), 2);
}

/// U6, T3: names are lost where trust ends, without any I/O; they are dropped only after the
/// margin, or when the work says that it has stopped.
#[test]
fn names_are_lost_with_trust_and_dropped_after_the_margin() {
    let mut script = owning(&["a", "b"]);
    let end = Mono::from_millis(1_000) + Settings::default().trust();
    script.run_to(end.as_nanos() / 1_000_000 + 1);
    let why = LostReason::TrustEnded;
    assert_eq!(lost(&script), [("a", 1, why), ("b", 2, why)]);
    assert!(!script.has_asked(is_bind), "the work has the margin to stop in (E4)");
    script.feed(Input::LetGoOfName { name: named("b"), token: Token::new(2) });
    assert_eq!(asked(&bound(&mut script, 0)), ["b"], "its work has stopped");
    script.run_for(1_000);
    let rest = bound(&mut script, 0);
    assert_eq!(asked(&rest), ["a"]);
    assert!(matches!(rest.ops[0].what, What::Drop { token } if token == Token::new(1)));
    script.run_for(20_000);
    assert!(!script.has_asked(is_bind), "each is dropped once");
}

/// E4: a lost name that is taken again at once is still dropped after the margin alone. The
/// store has it under this life until then, so the take waits for the drop.
#[test]
fn a_lost_name_that_is_taken_again_is_not_dropped_before_the_margin() {
    let mut script = owning(&["a", "b"]);
    let end = Mono::from_millis(1_000) + Settings::default().trust();
    script.run_to(end.as_nanos() / 1_000_000 + 1);
    script.feed(Input::Bind { ops: [take(2, "a")].into() });
    script.feed(Input::Bind { ops: [take(3, "b")].into() });
    script.feed(Input::WithdrawName { name: named("b"), ticket: 3 });
    assert!(!script.has_asked(is_bind), "the work has the margin to stop in");
    script.run_for(1_000);
    let drops = bound(&mut script, 0);
    assert_eq!(asked(&drops), ["a", "b"]);
    assert!(drops.ops.iter().all(|op| matches!(op.what, What::Drop { .. })));
    assert_eq!(asked(&bound(&mut script, 9)), ["a"], "then it is taken");
    assert!(matches!(answers(&script)[..], [(2, NameAnswer::Bound { .. })]));
}

/// E4: the same, where the take was on its way when the name was lost. It is answered with the
/// binding that is there, which is not dropped for it.
#[test]
fn a_take_that_meets_a_lost_name_of_its_own_process_is_answered_taken() {
    let mut script = owning(&["a"]);
    script.feed(Input::Bind { ops: [take(2, "a")].into() });
    let end = Mono::from_millis(1_000) + Settings::default().trust();
    script.jump_to(end.as_nanos() / 1_000_000 + 1);
    script.feed(Input::Wake);
    assert_eq!(lost(&script).len(), 1);
    let owner = bind(&mut script).member.unwrap();
    let taken = BindAnswer::Taken(binding(&owner, &named("a"), 1));
    script.answer(Ok(Reply::Bind(Bindings::Answered([taken].into()))));
    assert!(!script.has_asked(is_bind), "the work has the margin to stop in");
    script.run_for(1_000);
    assert!(matches!(bound(&mut script, 0).ops[0].what, What::Drop { .. }));
}

/// E4: the same, where the take was waiting for its turn all the while, behind another request.
#[test]
fn a_take_that_waited_behind_another_request_waits_for_the_drop_of_what_was_lost() {
    let mut script = owning(&["a"]);
    script.run_to(9_000);
    script.feed(Input::Bind { ops: [take(2, "x")].into() });
    script.feed(Input::Bind { ops: [take(3, "a")].into() });
    script.run_to(11_200);
    assert_eq!(lost(&script), [("a", 1, LostReason::TrustEnded)]);
    assert_eq!(asked(&bound(&mut script, 2)), ["x"]);
    let first = bound(&mut script, 0);
    assert!(matches!(first.ops[0].what, What::Drop { token } if token == Token::new(1)));
    assert_eq!(asked(&bound(&mut script, 9)), ["a"], "then it is taken");
    assert!(matches!(answers(&script).last(), Some((3, NameAnswer::Bound { .. }))));
}

/// One heartbeat renews names as it does terms, with the short ttl of a holder.
#[test]
fn heartbeats_renew_names() {
    let mut script = owning(&["a"]);
    script.run_to(3_500);
    script.first(is_beat);
    let Request::Heartbeat(beat) = script.asked() else { unreachable!() };
    assert_eq!(beat.ttl, Settings::default().ttl());
    script.alive(0);
    let trusted = |event: &Event| matches!(event, Event::Trusted { .. });
    assert!(script.events.iter().any(trusted), "{:?}", script.events);
    script.play(60_000, |_, request| is_beat(request).then(|| Ok(alive(0))));
    assert!(lost(&script).is_empty());
}

/// U4: the end of a life takes all its names; takes that wait go on in the next life, changes
/// and drops of the old one do not.
#[test]
fn the_end_of_a_life_is_the_end_of_its_names() {
    let mut script = owning(&["a", "b"]);
    script.run_to(3_500);
    script.feed(Input::Bind { ops: [take(3, "c"), to_drop(4, "b", 2)].into() });
    script.first(is_beat).answer(Ok(ended(false)));
    let resigned = LostReason::Resigned;
    let ended = LostReason::Superseded;
    assert_eq!(lost(&script), [("b", 2, resigned), ("a", 1, ended)]);
    assert_eq!(answers(&script), [(4, &NameAnswer::Gone(None))]);
    script.sent.retain(|out| is_join(&out.request));
    script.answer(Ok(joined()));
    let next = bound(&mut script, 7);
    assert_eq!(asked(&next), ["c"]);
    assert_eq!(answers(&script).len(), 2);
}

/// B5: a binding whose grant is over when its answer comes is dropped and taken anew.
#[test]
fn a_binding_that_is_answered_too_late_is_not_believed() {
    let settings = Settings::default();
    let mut script = Script::with(WATCHED, settings, 1);
    script.feed(Input::Bind { ops: [take(1, "a")].into() });
    script.answer(Ok(joined()));
    script.first(is_bind);
    // As after a SIGSTOP: the answer lies there before the machine is woken.
    let out = script.take(is_bind);
    let Request::Bind(bind) = &out.request else { unreachable!() };
    let me = bind.member.clone().unwrap();
    let late = [BindAnswer::Bound(binding(&me, &named("a"), 1))];
    script.jump_to(1_000 + 9_000);
    script.reply(out.id, Ok(Reply::Bind(Bindings::Answered(late.into()))));
    assert!(answers(&script).is_empty());
    let first = bound(&mut script, 0);
    assert!(matches!(first.ops[0].what, What::Drop { token } if token == Token::new(1)));
    let second = bound(&mut script, 2);
    assert!(matches!(second.ops[0].what, What::Take { .. }));
    assert_eq!(answers(&script).len(), 1);
}

/// A caller that stops waiting leaves no name behind.
#[test]
fn a_take_for_which_no_caller_waits_is_dropped() {
    let mut script = owning(&["a"]);
    script.feed(Input::Bind { ops: [take(2, "b"), take(3, "c")].into() });
    script.feed(Input::Bind { ops: [take(4, "d")].into() });
    script.feed(Input::WithdrawName { name: named("b"), ticket: 2 });
    script.feed(Input::WithdrawName { name: named("d"), ticket: 4 });
    assert_eq!(asked(&bound(&mut script, 2)), ["b", "c"]);
    let last = bound(&mut script, 0);
    assert_eq!(asked(&last), ["b"], "what was not sent yet is never sent");
    assert!(matches!(last.ops[0].what, What::Drop { token } if token == Token::new(2)));
    assert_eq!(answers(&script).len(), 1);
}

/// Losing a race is an answer: by whom, and under which token (U7).
#[test]
fn a_taken_name_is_an_answer() {
    let mut script = owning(&["a"]);
    script.feed(Input::Bind { ops: [take(2, "b")].into() });
    let other = binding(&member("other", 9), &named("b"), 77);
    let taken = Bindings::Answered([BindAnswer::Taken(other.clone())].into());
    script.first(is_bind).answer(Ok(Reply::Bind(taken)));
    assert_eq!(answers(&script), [(2, &NameAnswer::Taken(other))]);
    assert!(lost(&script).is_empty());
}

/// Two callers of one process conflict too; but what this life owns without knowing it is
/// dropped, and taken anew.
#[test]
fn a_binding_of_this_life_that_no_caller_knows_of_is_dropped() {
    let mut script = owning(&["a"]);
    let me = script.me();
    script.feed(Input::Bind { ops: [take(2, "a"), take(3, "b")].into() });
    let answered = [
        BindAnswer::Taken(binding(&me, &named("a"), 1)),
        BindAnswer::Taken(binding(&me, &named("b"), 50)),
    ];
    script.first(is_bind).answer(Ok(Reply::Bind(Bindings::Answered(answered.into()))));
    let taken = NameAnswer::Taken(binding(&me, &named("a"), 1));
    assert_eq!(answers(&script), [(2, &taken)]);
    let unknown = bound(&mut script, 0);
    assert!(matches!(unknown.ops[0].what, What::Drop { token } if token == Token::new(50)));
    assert_eq!(asked(&bound(&mut script, 51)), ["b"]);
}

/// Q2: an operation under a fence goes in a request of its own, and is answered *fenced*.
#[test]
fn what_stands_under_a_fence_goes_by_itself() {
    let mut script = owning(&["a"]);
    let term = TermRef::new(name("nightly"), TermNumber::new(4));
    let fenced = NameOp { fence: Some(term.clone()), ..take(3, "c") };
    script.feed(Input::Bind { ops: [take(2, "b"), fenced, take(4, "d")].into() });
    assert_eq!(asked(&bound(&mut script, 2)), ["b"]);
    let under = bind(&mut script);
    assert_eq!(asked(&under), ["c"]);
    assert_eq!(under.fence, Some(term));
    let newest = TermNumber::new(5);
    script.answer(Ok(Reply::Bind(Bindings::Fenced { newest })));
    assert_eq!(answers(&script).last(), Some(&(3, &NameAnswer::Fenced { newest })));
    assert_eq!(asked(&bound(&mut script, 3)), ["d"]);
}

/// A change that finds another binding, or none, is the loss of the name (U4).
#[test]
fn a_change_that_finds_nothing_is_the_loss_of_the_name() {
    let mut script = owning(&["a"]);
    let wish = NameWish::Change { token: Token::new(1), expect: None, value: Value::empty() };
    script.feed(Input::Bind { ops: [NameOp { wish, ..take(2, "a") }].into() });
    let gone = Bindings::Answered([BindAnswer::Gone(None)].into());
    script.first(is_bind).answer(Ok(Reply::Bind(gone)));
    assert_eq!(lost(&script), [("a", 1, LostReason::Superseded)]);
    assert_eq!(answers(&script), [(2, &NameAnswer::Gone(None))]);
}

/// U4: a name that a late copy of a request bound is given back when a read shows it; what
/// is owned or asked for, and what belongs to another life, is left alone.
#[test]
fn a_name_that_was_not_asked_for_is_dropped_when_it_is_found() {
    let mut script = owning(&["a"]);
    let life = script.me().incarnation;
    script.feed(Input::Bind { ops: [take(2, "b")].into() });
    let found = |life| Input::NamesFound {
        life,
        names: [("a", 1), ("b", 7), ("c", 9)]
            .map(|(name, token)| (named(name), Token::new(token)))
            .into(),
    };
    script.feed(found(Incarnation::from_u128(99)));
    script.feed(found(life));
    assert_eq!(asked(&bound(&mut script, 2)), ["b"]);
    let last = bound(&mut script, 0);
    assert_eq!(asked(&last), ["c"]);
    assert!(matches!(last.ops[0].what, What::Drop { token } if token == Token::new(9)));
    assert!(lost(&script).is_empty() && answers(&script).len() == 1);
}

/// M6: what a read of the store does not show any more is not trusted; another binding of the
/// same name is left alone.
#[test]
fn forgotten_names_are_lost() {
    let mut script = owning(&["a", "b"]);
    let names = [(named("a"), Token::new(1)), (named("b"), Token::new(1))].into();
    script.feed(Input::NamesForgotten { names });
    assert_eq!(lost(&script), [("a", 1, LostReason::Superseded)]);
}

/// E4: a member that shuts down tells its names that they are lost, and leaves when their work
/// has stopped.
#[test]
fn a_shutdown_waits_for_the_work_of_names() {
    let mut script = owning(&["a"]);
    script.feed(Input::Bind { ops: [take(2, "b")].into() });
    script.feed(Input::Shutdown);
    assert_eq!(answers(&script), [(2, &NameAnswer::ShutDown)]);
    assert_eq!(lost(&script), [("a", 1, LostReason::Resigned)]);
    assert!(!script.has_asked(is_leave));
    script.feed(Input::LetGoOfName { name: named("a"), token: Token::new(1) });
    assert!(script.has_asked(is_leave));
}

/// M5: each step costs the same, whatever is owned: 20,000 names are taken in as many
/// requests as their batches, and lost in one event.
#[test]
fn many_names_are_taken_in_batches_and_lost_at_once() {
    let traits = StoreTraits { batch: 1_000, ..WATCHED };
    let mut script = Script::new(traits);
    let ops = (0..20_000).map(|n| take(n, &alloc::format!("user/{n}"))).collect();
    script.feed(Input::Bind { ops });
    script.answer(Ok(joined()));
    let mut requests = 0;
    while script.has_asked(is_bind) {
        bound(&mut script, 1 + requests * 1_000);
        requests += 1;
    }
    assert_eq!((requests, answers(&script).len()), (20, 20_000));
    script.events.clear();
    script.run_for(9_000);
    let events = script.events.iter().filter(|e| matches!(e, Event::NamesLost { .. })).count();
    assert_eq!((events, lost(&script).len()), (1, 20_000));
}
