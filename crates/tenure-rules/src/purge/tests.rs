use core::time::Duration;
use std::vec::Vec;

use tenure_core::{
    Amend, Amended, Bid, Bind, BindAnswer, BindOp, Bindings, Claim, Claimed, Claims, ElectionName,
    Era, Incarnation, Join, Joined, MemberId, MemberRef, Mono, Name, Nonce, Note, Purge, Purged,
    Query, Release, ReleaseItem, Rev, Seq, Term, TermRef, Timestamp, Value, WhichNames,
};

use crate::{MemoryState, ReadRows};

const TTL: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A namespace on a clock that both members and the wall go by.
struct World {
    state: MemoryState,
    now: Mono,
    nonce: u64,
}

impl World {
    fn new() -> Self {
        Self { state: MemoryState::new(), now: Mono::from_millis(1), nonce: 0 }
    }

    fn wall(&self) -> Timestamp {
        let passed = self.now.since(Mono::ZERO);
        Timestamp::from_unix_millis(u64::try_from(passed.as_millis()).unwrap())
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn join(&mut self, id: &str, life: u128) -> MemberRef {
        let member = MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life));
        let joined = self.state.join(self.now, self.wall(), &Join::new(member.clone(), TTL));
        assert!(matches!(joined, Joined::In { .. }), "{joined:?}");
        member
    }

    fn nonce(&mut self) -> Nonce {
        self.nonce += 1;
        Nonce::new(self.nonce)
    }

    fn claim(&mut self, member: &MemberRef, name: &str, nonce: Nonce) -> Claimed {
        let bid = Bid::new(election(name), nonce);
        let claim = Claim::new(member.clone(), TTL, [bid]);
        match self.state.claim(self.now, self.wall(), &claim) {
            Claims::Answered(mut answers) => answers.remove(0),
            ended => panic!("{ended:?}"),
        }
    }

    fn win(&mut self, member: &MemberRef, name: &str) -> Term {
        let nonce = self.nonce();
        match self.claim(member, name, nonce) {
            Claimed::Won(term) => term,
            other => panic!("{other:?}"),
        }
    }

    fn give_back(&mut self, term: &Term) {
        let item = ReleaseItem::term(TermRef::from(term));
        let release = Release::new(term.member.clone(), [item]);
        self.state.release(self.now, self.wall(), &release);
    }

    fn step(&mut self, purge: &Purge) -> Purged {
        let now = self.now;
        let wall = self.wall();
        match self.state.amend(now, wall, &Amend::Purge(purge.clone())) {
            Amended::Purged(purged) => purged,
            other => panic!("{other:?}"),
        }
    }

    /// All steps of a purge.
    fn purge(&mut self, first: Purge) -> Purged {
        let mut next = Some(first);
        let mut all = Purged::default();
        while let Some(purge) = next {
            let purged = self.step(&purge);
            next = purge.following(&purged);
            all = all.and(purged);
        }
        all
    }

    fn bind(&mut self, member: &MemberRef, op: BindOp) -> BindAnswer {
        let bind = Bind::new(member.clone(), TTL, [op]);
        match self.state.bind(self.now, self.wall(), &bind) {
            Bindings::Answered(mut answers) => answers.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn take(&mut self, member: &MemberRef, name: &str) -> tenure_core::Binding {
        let nonce = self.nonce();
        match self.bind(member, BindOp::take(Name::new(name).unwrap(), nonce, Value::empty())) {
            BindAnswer::Bound(binding) => binding,
            other => panic!("{other:?}"),
        }
    }

    fn elections(&self) -> Vec<ElectionName> {
        let Ok(found) = self.state.elections();
        found.into_iter().map(|row| row.name).collect()
    }
}

fn election(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

fn now() -> Purge {
    Purge::older_than(Duration::ZERO)
}

/// H5: an election that is founded anew goes on above what was forgotten.
#[test]
fn a_number_never_comes_back_after_a_purge() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let last = (0..5).map(|_| world.win(&a, "e")).last().unwrap();
    world.state.leave(world.wall(), &a);
    let purged = world.purge(now());
    assert_eq!(purged.elections, 1);
    assert_eq!(world.elections(), []);
    let b = world.join("b", 2);
    assert_eq!(world.win(&b, "e").number, last.number.next());
    // Nor one of another election of the same namespace.
    assert_eq!(world.win(&b, "f").number, last.number.next());
}

/// H5: what was forgotten earlier is not lowered by what is forgotten later.
#[test]
fn the_highest_number_that_was_forgotten_counts() {
    let mut world = World::new();
    for (life, terms) in [(1, 9), (2, 2)] {
        let a = world.join("a", life);
        for _ in 0..terms {
            world.win(&a, "e");
        }
        world.state.leave(world.wall(), &a);
        world.purge(now());
    }
    let b = world.join("b", 3);
    assert_eq!(world.win(&b, "e").number.get(), 12);
}

/// M6: in a later era the first number jumps, as any other does.
#[test]
fn what_was_forgotten_jumps_with_the_era() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let last = world.win(&a, "e");
    world.state.leave(world.wall(), &a);
    world.purge(now());
    world.state.amend(world.now, Timestamp::default(), &Amend::restored(Note::default()));
    let b = world.join("b", 2);
    assert!(world.win(&b, "e").number.get() > last.number.get() + Era::JUMP);
}

/// An election that is led, stood for or paused is used.
#[test]
fn nothing_that_is_used_is_purged() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    world.win(&a, "led");
    let term = world.win(&a, "stood for");
    let nonce = world.nonce();
    assert!(matches!(world.claim(&b, "stood for", nonce), Claimed::Held(_)));
    world.state.leave(world.wall(), &a);
    let c = world.join("c", 3);
    world.win(&c, "led");
    let paused = world.win(&c, "paused");
    world.give_back(&paused);
    let pause = Amend::pause(election("paused"), Note::default(), Note::default());
    world.state.amend(world.now, world.wall(), &pause);
    let purged = world.purge(now());
    assert_eq!((purged.elections, purged.members), (0, 0));
    let all = ["led", "paused", "stood for"].map(election);
    assert_eq!(world.elections(), all);
    assert_eq!(term.member, a);
}

/// E2: the row knows which attempts are old. Without it a late copy would win.
#[test]
fn an_election_stays_while_its_last_winner_lives() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let nonce = world.nonce();
    let Claimed::Won(term) = world.claim(&a, "e", nonce) else { panic!("it is free") };
    world.give_back(&term);
    assert_eq!(world.purge(now()).elections, 0);
    let late = world.claim(&a, "e", nonce);
    assert!(matches!(&late, Claimed::Held(view) if view.number == term.number), "{late:?}");
    world.state.leave(world.wall(), &a);
    assert_eq!(world.purge(now()).elections, 1);
}

#[test]
fn an_election_is_purged_when_it_is_old_enough() {
    let mut world = World::new();
    let a = world.join("a", 1);
    world.win(&a, "e");
    world.state.leave(world.wall(), &a);
    world.pass(DAY);
    let b = world.join("b", 2);
    let term = world.win(&b, "given back");
    world.give_back(&term);
    world.state.leave(world.wall(), &b);
    assert_eq!(world.purge(Purge::older_than(2 * DAY)).elections, 0);
    assert_eq!(world.purge(Purge::older_than(DAY)).elections, 1);
    assert_eq!(world.elections(), [election("given back")]);
    world.pass(DAY);
    assert_eq!(world.purge(Purge::older_than(DAY)).elections, 1);
}

/// The term began long ago and ended just now: that was use.
#[test]
fn a_long_reign_that_ended_just_now_is_not_old() {
    let mut world = World::new();
    let a = world.join("a", 1);
    world.win(&a, "e");
    world.pass(DAY);
    // It was not ended before: the purge does, and the age counts from then on.
    let purged = world.purge(Purge::older_than(DAY));
    assert_eq!((purged.members, purged.elections), (1, 0));
    world.pass(DAY);
    assert_eq!(world.purge(Purge::older_than(DAY)).elections, 1);
}

/// The journal no longer has the end of the holder's life.
#[test]
fn what_the_journal_forgot_ages_from_the_purge_that_finds_it() {
    let mut world = World::new();
    world.state = MemoryState::keeping(2);
    let a = world.join("a", 1);
    world.win(&a, "e");
    world.pass(DAY);
    let b = world.join("b", 2);
    world.state.amend(world.now, world.wall(), &Amend::evict_now(a.id, Note::default()));
    for count in 0..3 {
        world.win(&b, std::format!("other-{count}").as_str());
    }
    world.state.leave(world.wall(), &b);
    assert_eq!(world.purge(Purge::older_than(DAY)).elections, 0);
    world.pass(DAY);
    assert_eq!(world.purge(Purge::older_than(DAY)).elections, 4);
}

/// U2: revisions are the namespace's, and stay.
#[test]
fn a_namespace_that_is_left_alone_ends_empty_and_goes_on_where_it_was() {
    let mut world = World::new();
    let a = world.join("a", 1);
    world.win(&a, "e");
    let mut last = None;
    for count in 0..2_000 {
        let bound = world.take(&a, &std::format!("n/{count}"));
        if count % 2 == 0 {
            let nonce = world.nonce();
            world.bind(&a, BindOp::drop(bound.name.clone(), nonce, bound.token));
        }
        last = Some(bound);
    }
    let place = world.state.seq();
    world.pass(2 * TTL);
    let purged = world.purge(now());
    assert_eq!((purged.members, purged.elections), (1, 1));
    assert_eq!((purged.names, purged.drops), (1_000, 1_000));
    assert!(purged.journal && !purged.more, "{purged:?}");
    let Ok(rows) = world.state.names_asked(&WhichNames::Prefix("".into()));
    let Ok(gone) = world.state.names_gone(Rev::START);
    let Ok(remains) = world.state.remains();
    assert!(rows.is_empty() && gone.is_empty() && remains.is_none());
    let ended = place.next();
    assert_eq!(world.state.seq(), ended, "the place stays");
    assert_eq!(world.state.entries_after(Seq::START), Err(ended), "and says what is gone");
    assert_eq!(world.purge(now()), Purged::default(), "there is nothing left to do");

    let b = world.join("b", 2);
    assert!(world.take(&b, "n/1999").token > last.unwrap().token);
    let since = world.state.names(world.now, &WhichNames::Since(Rev::new(1)));
    assert!(since.whole, "what changed since then is no longer known");
}

/// The drops are for copies, and who lives may have one.
#[test]
fn drops_are_told_for_as_long_as_a_member_lives() {
    let mut world = World::new();
    let a = world.join("a", 1);
    let bound = world.take(&a, "n");
    let nonce = world.nonce();
    world.bind(&a, BindOp::drop(bound.name.clone(), nonce, bound.token));
    assert_eq!(world.purge(now()), Purged::default());
    let since = world.state.names(world.now, &WhichNames::Since(bound.rev));
    assert_eq!((since.whole, since.gone), (false, [bound.name].to_vec()));
}

#[test]
fn a_name_without_an_owner_is_not_void() {
    let mut world = World::new();
    let op = BindOp::post(Name::new("notice").unwrap(), Nonce::new(1), Value::empty());
    world.state.bind(world.now, world.wall(), &Bind::anonymous([op]));
    assert_eq!(world.purge(now()), Purged::default());
}

/// What a leader left to a successor that never came goes with the election, and is told to
/// those who have a copy of the names; what an application bound without an owner stays.
#[test]
fn what_a_leader_left_goes_with_its_election() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    for name in ["e", "kept"] {
        let term = world.win(&a, name);
        let left = Name::left_in(&election(name)).unwrap();
        let nonce = world.nonce();
        let post = BindOp::post(left, nonce, Value::empty());
        let fenced = Bind::new(a.clone(), TTL, [post]).with_fence(TermRef::from(&term));
        assert!(matches!(
            world.state.bind(world.now, world.wall(), &fenced),
            Bindings::Answered(answers) if matches!(answers[..], [BindAnswer::Bound(_)])
        ));
        world.give_back(&term);
    }
    let notice = BindOp::post(Name::new("notice").unwrap(), Nonce::new(1), Value::empty());
    world.state.bind(world.now, world.wall(), &Bind::anonymous([notice]));
    world.win(&b, "kept");
    world.state.leave(world.wall(), &a);
    let rev = world.state.rev();

    let foretold = world.purge(Purge { dry_run: true, ..now() });
    let purged = world.purge(now());
    assert_eq!((purged.elections, purged.names), (1, 1));
    assert_eq!((foretold.elections, foretold.names), (1, 1));
    let since = world.state.names(world.now, &WhichNames::Since(rev));
    assert_eq!(since.gone, [Name::left_in(&election("e")).unwrap()]);
    let Ok(rest) = world.state.names_asked(&WhichNames::Prefix("".into()));
    let rest: Vec<_> = rest.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(rest, ["notice", "tenure-left:kept"]);

    // One that is left alone ends empty, but for what the application bound without an owner.
    let drop = BindOp::drop(
        Name::new("notice").unwrap(),
        Nonce::new(2),
        world.state.names(world.now, &WhichNames::Prefix("notice".into())).bindings[0].token,
    );
    world.state.bind(world.now, world.wall(), &Bind::anonymous([drop]));
    world.state.leave(world.wall(), &b);
    let foretold = world.purge(Purge { dry_run: true, ..now() });
    let purged = world.purge(now());
    assert_eq!((purged.names, purged.drops), (1, 3));
    assert_eq!((foretold.names, foretold.drops), (1, 3));
    assert!(purged.journal, "nothing else is left: {purged:?}");
}

/// Every step looks at so many rows and no more.
#[test]
fn a_purge_goes_on_where_its_last_step_ended() {
    let mut world = World::new();
    let a = world.join("a", 1);
    for count in 0..25 {
        world.win(&a, std::format!("e{count:02}").as_str());
    }
    world.state.leave(world.wall(), &a);
    let first = Purge { most: 10, ..now() };
    let purged = world.step(&first);
    assert_eq!((purged.elections, purged.more), (10, true));
    assert_eq!(purged.upto, Some(election("e09")));
    let second = first.following(&purged).unwrap();
    assert_eq!(world.step(&second).upto, Some(election("e19")));
    assert_eq!(world.purge(second).elections, 5);
}

#[test]
fn a_dry_run_counts_the_same_and_changes_nothing() {
    let mut world = World::new();
    let [a, b] = [world.join("a", 1), world.join("b", 2)];
    for count in 0..7 {
        world.win(&a, std::format!("e{count}").as_str());
        world.take(&a, &std::format!("n{count}"));
    }
    world.take(&b, "other");
    world.state.leave(world.wall(), &b);
    world.pass(2 * TTL);
    let before = world.state.clone();
    let foretold = world.purge(Purge { dry_run: true, most: 3, ..now() });
    assert_eq!(world.state, before);
    let purged = world.purge(now());
    let counts = |purged: &Purged| (purged.elections, purged.members, purged.names, purged.drops);
    assert_eq!(counts(&foretold), counts(&purged));
    assert_eq!(counts(&purged), (7, 1, 7, 0));
}

/// An unknown election is vacant with number 0, also one that was forgotten.
#[test]
fn what_was_forgotten_is_shown_as_if_it_never_was() {
    let mut world = World::new();
    let a = world.join("a", 1);
    world.win(&a, "e");
    world.state.leave(world.wall(), &a);
    world.purge(now());
    let seen = world.state.read(world.now, &Query::elections([election("e")]));
    assert_eq!(seen.elections[0].number.get(), 0);
    assert_eq!(world.state.examine(world.wall()).era.unwrap().highest.get(), 1);
}
