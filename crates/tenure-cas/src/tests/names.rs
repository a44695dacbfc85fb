//! Every interleaving that the module of names tells of.

use super::*;
use crate::record::name::FloorRecord;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

impl Process {
    fn try_bind(&self, ops: impl IntoIterator<Item = BindOp>) -> Result<Bindings> {
        ready(self.store.bind(&ns(), &Bind::new(self.me.clone(), TTL, ops)))
    }

    fn op(&self, op: BindOp) -> BindAnswer {
        match self.try_bind([op]).unwrap() {
            Bindings::Answered(mut answers) => answers.pop().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// The token of a name that is free.
    fn takes(&self, text: &str, nonce: u64) -> u64 {
        match self.op(take(text, nonce)) {
            BindAnswer::Bound(binding) => {
                assert_eq!(binding.owner.as_ref(), Some(&self.me));
                binding.token.get()
            }
            other => panic!("not bound: {other:?}"),
        }
    }

    /// Who owns a name, as one is told who takes it in vain, and what is left.
    fn refused(&self, text: &str, nonce: u64) -> (MemberRef, Duration) {
        match self.op(take(text, nonce)) {
            BindAnswer::Taken(binding) => (binding.owner.unwrap(), binding.remaining),
            other => panic!("not taken: {other:?}"),
        }
    }

    fn drops(&self, text: &str, token: u64, nonce: u64) -> Option<Binding> {
        match self.op(BindOp::drop(name(text), Nonce::new(nonce), Token::new(token))) {
            BindAnswer::Gone(binding) => binding,
            other => panic!("not gone: {other:?}"),
        }
    }

    /// Drops as many names of its own as make a bind remove what is left over.
    fn drops_many(&self, nonce: u64) {
        let texts: Vec<_> = (0..64).map(|n| format!("passing-{n}")).collect();
        let takes = texts.iter().map(|text| take(text, nonce));
        let Bindings::Answered(answers) = self.try_bind(takes).unwrap() else { panic!() };
        let drops = answers.iter().filter_map(BindAnswer::binding);
        let drops = drops.map(|b| BindOp::drop(b.name.clone(), Nonce::new(nonce + 1), b.token));
        self.try_bind(drops.collect::<Vec<_>>()).unwrap();
    }

    fn sees(&self, which: &WhichNames) -> Vec<String> {
        let view = ready(self.store.names(&ns(), which)).unwrap();
        view.bindings.into_iter().map(|binding| binding.name.to_string()).collect()
    }

    fn sees_all(&self) -> Vec<String> {
        self.sees(&WhichNames::Prefix(String::new()))
    }
}

fn take(text: &str, nonce: u64) -> BindOp {
    BindOp::take(name(text), Nonce::new(nonce), Value::empty())
}

fn pair() -> (Wire, Process, Process) {
    let wire = Wire::default();
    let a = Process::joined(&wire, "a", 1);
    let b = Process::joined(&wire, "b", 2);
    (wire, a, b)
}

/// A owns `n`, and B has waited its ttl out.
fn expired() -> (Wire, Process, Process) {
    let (wire, a, b) = pair();
    a.takes("n", 1);
    b.refused("n", 1);
    b.clock.advance(TTL / 2);
    b.beat();
    b.clock.advance(WIDE - TTL / 2);
    b.beat();
    // It may still beat, by its own clock.
    a.clock.advance(TTL - NS);
    (wire, a, b)
}

/// U1: the first-insert race.
#[test]
fn of_two_first_takes_one_owns_the_name_and_the_other_is_told_who() {
    let (wire, a, b) = pair();
    let rival = b.clone();
    wire.swap_meets("names/n", Fault::First(Box::new(move || assert_eq!(rival.takes("n", 1), 1))));
    assert_eq!(a.refused("n", 1), (b.me.clone(), WIDE));
}

/// U3, M2: the heartbeat was in flight when the name was taken.
#[test]
fn a_heartbeat_that_arrives_after_a_name_was_taken_changes_nothing() {
    let (wire, a, b) = expired();
    wire.swap_meets("members/a", Fault::HoldBack);
    assert!(a.try_beat().unwrap_err().may_have_applied());
    assert_eq!(b.takes("n", 2), 2);
    assert_eq!(wire.deliver(), [Swapped::Conflict]);
    assert_eq!(a.beat(), Beat::Ended { superseded: false });
    assert_eq!(a.try_bind([take("m", 2)]).unwrap(), Bindings::Ended { superseded: false });
    assert_eq!(b.sees_all(), ["n"]);
}

/// U3, M2, the other way round.
#[test]
fn a_heartbeat_that_arrives_before_a_name_is_taken_keeps_it() {
    let (wire, a, b) = expired();
    let owner = a.clone();
    let beats = move || assert!(matches!(owner.beat(), Beat::Alive { .. }));
    wire.swap_meets("members/a", Fault::First(Box::new(beats)));
    let (owner, left) = b.refused("n", 2);
    assert!(owner == a.me && left > TTL, "{left:?}");
}

/// U3, broken on purpose: the owner lives on and owns what another has taken.
#[cfg(feature = "__lab")]
#[test]
fn a_name_that_is_taken_from_one_who_was_not_ended_has_two_owners() {
    let (_wire, a, b) = expired();
    b.store.mutate(crate::CasRule::NameTakenNotEnded);
    assert_eq!(b.takes("n", 2), 2);
    assert!(matches!(a.beat(), Beat::Alive { .. }), "it was never told");
}

/// U4: a swap of an owner that was ended meanwhile. Its version is not there any more.
#[test]
fn a_late_swap_of_an_ended_owner_does_not_touch_its_successor() {
    let (wire, a, b) = pair();
    let token = a.takes("n", 1);
    wire.swap_meets("names/n", Fault::HoldBack);
    let change = BindOp::change(name("n"), Nonce::new(2), Token::new(token), Value::empty());
    assert!(a.try_bind([change]).unwrap_err().may_have_applied());
    assert!(matches!(b.amend(evict("a", true)), Amended::Done { .. }));
    assert_eq!(b.takes("n", 1), token + 1);
    assert_eq!(wire.deliver(), [Swapped::Conflict]);
    assert_eq!(b.op(take("n", 1)).binding().unwrap().rev, Rev::new(token + 1));
}

/// M2 for binds: without the heartbeat after the swap, A would be told that it owns the name.
#[test]
fn a_name_of_one_who_is_ended_meanwhile_is_not_its_own() {
    let (wire, a, b) = pair();
    a.takes("other", 1);
    let operator = b.clone();
    let end = move || drop(operator.amend(evict("a", true)));
    wire.swap_meets("names/n", Fault::First(Box::new(end)));
    assert_eq!(a.try_bind([take("n", 2)]).unwrap(), Bindings::Ended { superseded: false });
    assert_eq!(b.takes("n", 1), 3, "its member record proves that it is void");
}

/// E2: the take was applied and its answer lost.
#[test]
fn a_repeated_take_gets_its_binding_back_and_a_new_sign_of_life() {
    let (wire, a, b) = pair();
    wire.swap_meets("names/n", Fault::LoseAnswer);
    assert!(a.try_bind([take("n", 5)]).unwrap_err().may_have_applied());
    assert_eq!(b.refused("n", 1).0, a.me);
    b.clock.advance(TTL / 2);
    b.beat();
    a.clock.advance(TTL / 2);
    assert_eq!(a.takes("n", 5), 1);
    assert_eq!(b.refused("n", 2), (a.me.clone(), WIDE));
    assert_eq!(a.refused("n", 6).0, a.me, "another attempt of the same life");
    // The heartbeat failed: nothing is its own until the request is repeated.
    wire.swap_meets("members/a", Fault::Fail);
    assert!(a.try_bind([take("m", 7)]).unwrap_err().may_have_applied());
    assert_eq!(a.takes("m", 7), 2);
}

/// E2, U4: the drop was applied and its answer lost; another has the name by now.
#[test]
fn a_repeated_drop_does_not_touch_a_successor() {
    let (wire, a, b) = pair();
    let token = a.takes("n", 1);
    wire.swap_meets("names/n", Fault::LoseAnswer);
    let drop = BindOp::drop(name("n"), Nonce::new(2), Token::new(token));
    assert!(a.try_bind([drop]).unwrap_err().may_have_applied());
    assert_eq!(b.takes("n", 1), token + 1);
    assert_eq!(a.drops("n", token, 2).and_then(|binding| binding.owner), Some(b.me.clone()));
    assert_eq!(b.sees_all(), ["n"]);
}

/// One operation that fails leaves itself and what follows on its name open, and no other.
#[test]
fn an_operation_that_fails_leaves_only_its_own_name_open() {
    let (wire, a, _b) = pair();
    wire.swap_meets("names/m", Fault::LoseAnswer);
    let ops = [take("m", 1), take("n", 2), take("m", 3)];
    let Bindings::Answered(answers) = a.try_bind(ops).unwrap() else { panic!() };
    assert!(matches!(&answers[0], BindAnswer::Unknown(open) if open.as_str() == "m"));
    assert!(matches!(&answers[1], BindAnswer::Bound(_)), "{answers:?}");
    assert!(matches!(&answers[2], BindAnswer::Unknown(_)), "{answers:?}");
    assert_eq!(a.takes("m", 1), 1);
}

/// T finds no record; C takes the name, changes and drops it, and the record is collected;
/// then T's creation lands. Gives C's number and T's.
fn recreated(prepare: impl Fn(&Process)) -> (u64, u64) {
    let (wire, t, c) = pair();
    prepare(&t);
    let number = Arc::new(Mutex::new(0));
    let other = c.clone();
    let noted = number.clone();
    let meanwhile = move || {
        let token = other.takes("n", 1);
        let value = Value::empty();
        let change = BindOp::change(name("n"), Nonce::new(2), Token::new(token), value);
        *noted.lock().unwrap() = other.op(change).binding().unwrap().rev.get();
        assert_eq!(other.drops("n", token, 3), None);
        other.drops_many(10);
        let key = "tenure/default/names/n";
        assert!(!wire_keys(&other).contains(&key.to_owned()), "it is collected");
    };
    wire.swap_meets("names/n", Fault::First(Box::new(meanwhile)));
    let taken = t.takes("n", 1);
    (*number.lock().unwrap(), taken)
}

fn wire_keys(of: &Process) -> Vec<String> {
    let register = &of.store.cells().register;
    let listed = ready(register.list("")).unwrap();
    listed.into_iter().map(|listed| listed.key).collect()
}

/// U2, in nine steps: without the second look at the floor the token comes back.
#[test]
fn a_token_does_not_come_back_when_the_record_was_collected_meanwhile() {
    let (before, now) = recreated(|_| ());
    assert!(now > before, "{now} after {before}");
}

/// U2, broken on purpose.
#[cfg(feature = "__lab")]
#[test]
fn a_token_comes_back_without_the_second_look_at_the_floor() {
    let (before, now) = recreated(|t| t.store.mutate(crate::CasRule::NoSecondLook));
    assert!(now <= before, "{now} after {before}");
}

/// U2: the floor could not be looked at; the repeated request looks at it.
#[test]
fn a_take_whose_second_look_failed_is_open_and_is_numbered_when_it_is_repeated() {
    let (wire, a, b) = pair();
    a.takes("first", 1);
    let failing = wire.clone();
    let fail = move || failing.load_meets("floor", Fault::Fail);
    wire.swap_meets("names/n", Fault::Then(Box::new(fail)));
    let open = a.try_bind([take("n", 2)]);
    assert!(open.unwrap_err().may_have_applied());
    b.drops_many(20);
    let key = "tenure/default/floor/names";
    let floor = ready(b.store.cells().load::<FloorRecord>(key)).unwrap().unwrap().record.floor;
    assert!(a.takes("n", 2) > floor, "above {floor}");
    // What was looked at once keeps its number, whatever the floor is by then.
    let token = a.takes("n", 2);
    b.drops_many(30);
    assert_eq!(a.takes("n", 2), token);
}

/// B3: a newcomer that looked before the first name is confirmed undoes it, or conflicts.
#[test]
fn a_newcomer_before_the_heartbeat_of_a_bind_undoes_it() {
    let wire = Wire::default();
    let old = Process::joined(&wire, "a", 1);
    let new = Process::new(&wire, "a", 2);
    let newcomer = new.clone();
    let joins = move || assert!(matches!(newcomer.join(true), Joined::In { .. }));
    wire.swap_meets("members/a", Fault::First(Box::new(joins)));
    assert_eq!(old.try_bind([take("n", 1)]).unwrap(), Bindings::Ended { superseded: true });
    assert_eq!(new.sees_all(), [""; 0]);
    assert_eq!(new.takes("n", 1), 2, "the older life is proven over");
}

/// B3, the other way round, and where listings lag (C1).
#[test]
fn a_newcomer_after_the_heartbeat_of_a_bind_waits_though_a_listing_shows_nothing() {
    let wire = Wire::default();
    let old = Process::joined(&wire, "a", 1);
    let new = Process::new(&wire, "a", 2);
    wire.let_listings_lag();
    let owner = old.clone();
    let takes = move || assert_eq!(owner.takes("n", 1), 1);
    wire.swap_meets("members/a", Fault::First(Box::new(takes)));
    assert!(matches!(new.join(true), Joined::Taken { by, .. } if by == old.me.incarnation));
    assert_eq!(old.sees_all(), ["n"], "its own name, which no listing shows");
    assert_eq!(new.sees(&WhichNames::Named(vec![name("n")])), ["n"]);
    assert_eq!(old.drops("n", 1, 2), None);
    assert!(matches!(new.join(true), Joined::In { .. }), "it holds nothing any more");
}

/// Q9: what was dropped leaves nothing behind but the floor.
#[test]
fn dropped_names_are_collected_and_one_who_leaves_leaves_nothing() {
    let (wire, a, b) = pair();
    for round in 0..4 {
        a.drops_many(10 * round);
    }
    let names = |wire: &Wire| wire.keys().iter().filter(|key| key.contains("/names/")).count();
    assert!(names(&wire) <= 64, "{:?}", wire.keys());
    a.takes("mine", 100);
    let token = a.takes("dropped", 101);
    a.drops("dropped", token, 102);
    ready(a.store.leave(&ns(), &a.me)).unwrap();
    let left = ["tenure/default/floor/names", "tenure/default/members/b"];
    assert_eq!(wire.keys(), left);
    assert!(b.takes("mine", 1) > token, "the floor keeps the numbers");
}

/// Q6, Q9: the names of a dead owner are collected by those who saw them.
#[test]
fn names_of_a_life_that_is_over_are_collected_in_passing() {
    let (wire, a, b) = pair();
    let texts: Vec<_> = (0..90).map(|n| format!("n{n}")).collect();
    a.try_bind(texts.iter().map(|text| take(text, 1))).unwrap();
    let post = BindOp::post(name("notice"), Nonce::new(2), Value::empty());
    assert!(matches!(a.op(post), BindAnswer::Bound(_)));
    assert!(matches!(b.amend(evict("a", true)), Amended::Done { .. }));
    assert!(wire.keys().contains(&"tenure/default/members/a".to_owned()), "the proof stays");
    assert_eq!(b.sees_all(), ["notice"]);
    let token = b.takes("n89", 1);
    assert!(token > 1, "{token}");
    let left = wire.keys().iter().filter(|key| key.contains("/names/")).count();
    assert_eq!(left, 92 - 64 - 1);
    assert_eq!(b.sees_all(), ["n89", "notice"]);
}

/// B24: a name whose record is damaged is an error where it is asked for by name, and left
/// out where all are.
#[test]
fn a_damaged_name_stops_only_itself() {
    let (wire, a, _b) = pair();
    a.takes("good", 1);
    let key = "tenure/default/names/bad";
    ready(wire.inner.swap(key, Expect::Absent, b"{}".to_vec())).unwrap();
    let error = a.try_bind([take("other", 2), take("bad", 3)]).unwrap_err();
    assert!(error.kind() == ErrorKind::Foreign && !error.may_have_applied(), "{error}");
    assert_eq!(a.sees_all(), ["good"], "nothing was written");
}
