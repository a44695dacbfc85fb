use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use tenure_core::{
    Bid, Bind, BindAnswer, BindOp, Binding, Bindings, Claim, Claimed, Claims, ElectionName,
    Incarnation, Join, Joined, MemberId, MemberRef, Mono, Name, NamesView, Nonce, Rev, Seq, Term,
    TermRef, Timestamp, Token, Value, WhichNames,
};

use super::GONE_KEPT;
use crate::MemoryState;

const TTL: Duration = Duration::from_secs(10);
const WALL: Timestamp = Timestamp::from_unix_millis(1_790_000_000_000);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn value(text: &str) -> Value {
    Value::empty().with_data(text).unwrap()
}

/// A namespace, its time, and nonces that rise.
struct World {
    state: MemoryState,
    now: Mono,
    nonce: u64,
}

impl World {
    fn new() -> Self {
        Self { state: MemoryState::new(), now: Mono::from_millis(1_000), nonce: 0 }
    }

    fn nonce(&mut self) -> Nonce {
        self.nonce += 1;
        Nonce::new(self.nonce)
    }

    fn join(&mut self, id: &str, life: u128) -> MemberRef {
        let member = MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life));
        let joined = self.state.join(self.now, WALL, &Join::new(member.clone(), TTL));
        assert!(matches!(joined, Joined::In { .. }), "{joined:?}");
        member
    }

    fn lead(&mut self, member: &MemberRef, election: &str) -> Term {
        let bid = Bid::new(ElectionName::new(election).unwrap(), self.nonce());
        let claim = Claim::new(member.clone(), TTL, [bid]);
        match self.state.claim(self.now, WALL, &claim) {
            Claims::Answered(answers) => match &answers[..] {
                [Claimed::Won(term)] => term.clone(),
                other => panic!("{other:?}"),
            },
            ended => panic!("{ended:?}"),
        }
    }

    fn ask(&mut self, bind: &Bind) -> Bindings {
        assert_eq!(bind.check(), Ok(()));
        self.state.bind(self.now, WALL, bind)
    }

    fn bind(&mut self, member: &MemberRef, op: BindOp) -> BindAnswer {
        match self.ask(&Bind::new(member.clone(), TTL, [op])) {
            Bindings::Answered(mut answers) => answers.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, member: &MemberRef, text: &str) -> BindAnswer {
        let op = BindOp::take(name(text), self.nonce(), value(text));
        self.bind(member, op)
    }

    fn taken(&mut self, member: &MemberRef, text: &str) -> Binding {
        match self.take(member, text) {
            BindAnswer::Bound(binding) => binding,
            other => panic!("{other:?}"),
        }
    }

    fn read(&self, which: &WhichNames) -> NamesView {
        self.state.names(self.now, which)
    }

    fn since(&self, rev: Rev) -> NamesView {
        self.read(&WhichNames::Since(rev))
    }

    fn bound(&self) -> Vec<(Name, Option<MemberRef>)> {
        let all = self.read(&WhichNames::Prefix(alloc::string::String::new()));
        all.bindings.into_iter().map(|binding| (binding.name, binding.owner)).collect()
    }
}

/// U1, Q3: two tasks of one process conflict like two processes.
#[test]
fn a_name_has_one_owner() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    let first = world.taken(&a, "n");
    let of_another = world.take(&b, "n");
    assert_eq!(of_another, BindAnswer::Taken(first.clone()));
    assert_eq!(world.take(&a, "n"), BindAnswer::Taken(first));
}

/// E2, Q3: a take whose answer was lost is repeated with its nonce.
#[test]
fn a_repeated_take_gets_the_same_binding_and_an_older_one_nothing() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let [older, newer] = [world.nonce(), world.nonce()];
    let op = BindOp::take(name("n"), newer, value("v"));
    let first = world.bind(&a, op.clone());
    assert!(matches!(first, BindAnswer::Bound(_)));
    assert_eq!(world.bind(&a, op), first);
    let late = world.bind(&a, BindOp::take(name("n"), older, value("old")));
    assert!(matches!(late, BindAnswer::Taken(found) if found.value == value("v")));
}

/// U2, Q7: a dropped name leaves no row, and its next owner has a higher token.
#[test]
fn tokens_rise_over_a_drop() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let first = world.taken(&a, "n");
    let nonce = world.nonce();
    let dropped = world.bind(&a, BindOp::drop(name("n"), nonce, first.token));
    assert_eq!(dropped, BindAnswer::Gone(None));
    assert!(world.bound().is_empty());
    let second = world.taken(&a, "n");
    assert!(second.token > first.token);
    // U4: the drop once more does not touch the new binding.
    let late = world.bind(&a, BindOp::drop(name("n"), nonce, first.token));
    assert_eq!(late, BindAnswer::Gone(Some(second)));
}

/// U3, M2: what an expired life owned is taken after it was ended, in the same step.
#[test]
fn the_taker_of_an_expired_life_ends_it() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let first = world.taken(&a, "n");
    world.now = world.now + TTL;
    let b = world.join("b", 2);
    let second = world.taken(&b, "n");
    assert!(second.token > first.token);
    let beat = tenure_core::Heartbeat::new(a.clone(), TTL);
    assert!(matches!(world.state.heartbeat(world.now, &beat), tenure_core::Beat::Ended { .. }));
    let late = world.ask(&Bind::new(a, TTL, [BindOp::drop(name("n"), Nonce::new(9), first.token)]));
    assert_eq!(late, Bindings::Ended { superseded: false });
}

/// Q5: being bound is a heartbeat; losing is none.
#[test]
fn only_a_name_of_its_own_keeps_a_member_alive() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    world.taken(&a, "n");
    world.now = world.now + TTL / 2;
    assert_eq!(world.taken(&a, "m").remaining, TTL);
    assert!(matches!(world.take(&b, "n"), BindAnswer::Taken(_)));
    world.now = world.now + TTL / 2;
    assert_eq!(world.bound().len(), 2, "a lives");
    let ended = world.ask(&Bind::new(b, TTL, []));
    assert_eq!(ended, Bindings::Ended { superseded: false });
}

/// Q4: a change keeps the token, names the revision it expects, and an older one is late.
#[test]
fn changes_apply_once_and_in_order() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let first = world.taken(&a, "n");
    let [one, two] = [world.nonce(), world.nonce()];
    let change = |nonce, text| BindOp::change(name("n"), nonce, first.token, value(text));
    let newest = world.bind(&a, change(two, "two"));
    let BindAnswer::Bound(newest) = newest else { panic!("{newest:?}") };
    assert!(newest.token == first.token && newest.rev > first.rev);
    assert_eq!(world.bind(&a, change(two, "two")), BindAnswer::Bound(newest.clone()));
    assert_eq!(world.bind(&a, change(one, "one")), BindAnswer::Gone(Some(newest)));
}

/// U4: another life changes and drops nothing, nor does a wrong token.
#[test]
fn strangers_change_nothing() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    let first = world.taken(&a, "n");
    for (member, token) in [(&b, first.token), (&a, Token::new(99))] {
        let nonce = world.nonce();
        let change = BindOp::change(name("n"), nonce, token, value("x"));
        assert_eq!(world.bind(member, change), BindAnswer::Gone(Some(first.clone())));
        let drop = BindOp::drop(name("n"), nonce, token);
        assert_eq!(world.bind(member, drop), BindAnswer::Gone(Some(first.clone())));
    }
    let repost = BindOp::repost(name("n"), Nonce::new(7), first.token, first.rev, value("x"));
    assert_eq!(world.bind(&a, repost), BindAnswer::Gone(Some(first)));
}

/// A name without an owner outlives the life that posted it, and is changed by its revision.
#[test]
fn a_name_without_an_owner_stays_until_it_is_dropped() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let posted = world.bind(&a, BindOp::post(name("n"), Nonce::new(1), value("v")));
    let BindAnswer::Bound(posted) = posted else { panic!("{posted:?}") };
    world.state.leave(WALL, &a);
    assert_eq!(world.bound(), [(name("n"), None)]);
    let unnamed = |nonce, rev, text| {
        let op = BindOp::repost(name("n"), Nonce::new(nonce), posted.token, rev, value(text));
        Bind::anonymous([op])
    };
    let first = world.ask(&unnamed(70, posted.rev, "w"));
    assert!(matches!(&first, Bindings::Answered(all) if matches!(all[..], [BindAnswer::Bound(_)])));
    assert_eq!(world.ask(&unnamed(70, posted.rev, "w")), first, "a repeat is harmless");
    let late = world.ask(&unnamed(71, posted.rev, "x"));
    assert!(
        matches!(late, Bindings::Answered(all) if matches!(all[..], [BindAnswer::Gone(Some(_))]))
    );
    let dropped =
        world.ask(&Bind::anonymous([BindOp::drop(name("n"), Nonce::new(72), posted.token)]));
    assert_eq!(dropped, Bindings::Answered(vec![BindAnswer::Gone(None)]));
}

/// Q2: without the newest term nothing changes.
#[test]
fn a_fence_that_is_not_held_changes_nothing() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    let term = world.lead(&a, "e");
    let op = |nonce| BindOp::post(name("n"), Nonce::new(nonce), value("v"));
    let by = |member: &MemberRef, term: &TermRef, nonce| {
        Bind::new(member.clone(), TTL, [op(nonce)]).with_fence(term.clone())
    };
    let held = TermRef::from(&term);
    let newest = term.number;
    assert_eq!(world.ask(&by(&b, &held, 1)), Bindings::Fenced { newest });
    let other = TermRef::new(term.election.clone(), term.number.next());
    assert_eq!(world.ask(&by(&a, &other, 2)), Bindings::Fenced { newest });
    assert!(world.bound().is_empty());
    assert!(matches!(world.ask(&by(&a, &held, 3)), Bindings::Answered(_)));
    assert_eq!(world.bound().len(), 1);
}

/// Q6, M5: a life's end is not written down name by name; void names are cleared away in
/// bounded steps, and the revision stays.
#[test]
fn the_end_of_a_life_voids_its_names_and_they_are_cleared_away() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    for number in 0..200 {
        world.taken(&a, &alloc::format!("n{number:03}"));
    }
    let rev = world.since(Rev::START).rev;
    world.state.leave(WALL, &a);
    let after = world.since(rev);
    assert_eq!((after.rev, after.gone.len(), after.owners.len()), (rev, 0, 0));
    assert!(world.bound().is_empty());
    world.taken(&b, "n150");
    for _ in 0..4 {
        world.taken(&b, &alloc::format!("m{}", world.nonce));
    }
    let Ok(left) = crate::ReadRows::names_of(&world.state, &a, 1_000);
    assert_eq!(left, []);
}

/// A life that owns names is not superseded by a newcomer of its id (as one that leads).
#[test]
fn an_owner_of_names_is_not_superseded() {
    let mut world = World::new();
    let a = world.join("a", 1);
    world.taken(&a, "n");
    let namesake = MemberRef::new(a.id.clone(), Incarnation::from_u128(2));
    let joined = world.state.join(world.now, WALL, &Join::new(namesake, TTL));
    assert!(matches!(joined, Joined::Taken { by, .. } if by == a.incarnation), "{joined:?}");
}

/// Q8, R1: what changed since any revision, applied to what stood then, is what stands now.
#[test]
fn what_changed_since_a_revision_leads_to_the_present() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    let n = world.taken(&a, "n");
    let start = world.since(Rev::START);
    assert!(!start.whole);
    let nonce = world.nonce();
    world.bind(&a, BindOp::drop(name("n"), nonce, n.token));
    world.taken(&b, "n");
    world.taken(&a, "m");
    // b's ttl runs out, a's does not: n is gone from a, although the row says b.
    world.now = world.now + TTL / 2;
    world.taken(&a, "o");
    world.now = world.now + TTL / 2;
    let now = world.since(start.rev);
    assert!(!now.whole);
    let names: Vec<_> = now.bindings.iter().map(|binding| binding.name.as_str()).collect();
    assert_eq!(names, ["m", "o"]);
    assert_eq!(now.gone, [name("n")]);
    assert_eq!(now.owners.len(), 1);
    let quiet = world.since(now.rev);
    assert!(quiet.bindings.is_empty() && quiet.gone.is_empty() && !quiet.whole);
    assert!(world.since(Rev::new(now.rev.get() + 1)).whole, "ahead of the store");
}

/// Q8: drops are told for so many revisions; before that, everything is.
#[test]
fn a_revision_that_is_too_old_gets_all_names() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let kept = world.taken(&a, "kept");
    for _ in 0..=GONE_KEPT / 2 {
        let binding = world.taken(&a, "n");
        let nonce = world.nonce();
        world.bind(&a, BindOp::drop(name("n"), nonce, binding.token));
    }
    assert!(world.since(kept.rev).whole);
    let near = world.since(Rev::new(world.since(Rev::START).rev.get() - 10));
    assert!(!near.whole);
    assert_eq!(near.gone, [name("n")]);
}

/// M6: a store that was rolled back gives out no token twice, and tells all readers to read
/// all names anew. Names are not in the journal: only the revision tells.
#[test]
fn a_rolled_back_store_gives_out_no_token_twice() {
    let mut world = World::new();
    let a = world.join("a", 1);
    world.taken(&a, "n");
    let copy = world.state.clone();
    let forgotten = world.taken(&a, "m");
    world.state = copy;
    let op = BindOp::take(name("o"), world.nonce(), value("v"));
    let bind = Bind::new(a.clone(), TTL, [op]).with_seen(Seq::START, forgotten.rev);
    let Bindings::Answered(answers) = world.ask(&bind) else { panic!() };
    let BindAnswer::Bound(bound) = &answers[0] else { panic!("{answers:?}") };
    assert!(bound.token > forgotten.token);
    assert!(world.since(forgotten.rev).whole);
    assert!(!world.since(bound.rev).whole);
}

/// M6: a promoted copy jumps before anything is bound in it.
#[test]
fn a_new_era_makes_all_members_read_anew() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let bound = world.taken(&a, "n");
    world.state.promote(WALL);
    let first = world.since(bound.rev);
    assert!(first.whole && first.rev > bound.rev);
    assert!(!world.since(first.rev).whole, "and only once");
    assert!(world.taken(&a, "m").rev > first.rev);
    assert!(!world.since(first.rev).whole);
}
