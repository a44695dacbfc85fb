//! What the suite cannot see from outside: that nothing only grows, and that
//! what changes nothing writes nothing.

use core::time::Duration;
use std::vec::Vec;
use std::{format, vec};

use tenure_core::{
    Amend, Beat, Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Era, Happening,
    Heartbeat, Incarnation, Join, Joined, MemberId, MemberRef, Mono, Nonce, Note, Priority, Query,
    Release, ReleaseCause, ReleaseItem, Seq, TermNumber, TermRef, Timestamp,
};

use super::MemoryState;

const TTL: Duration = Duration::from_secs(10);
const WALL: Timestamp = Timestamp::from_unix_millis(1_700_000_000_000);

fn at(seconds: u64) -> Mono {
    Mono::from_millis(1_000_000 + seconds * 1_000)
}

fn member(id: &str, life: u128) -> MemberRef {
    MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life))
}

fn election(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

fn join(member: &MemberRef) -> Join {
    Join::new(member.clone(), TTL).with_inherits(true)
}

fn claim(member: &MemberRef, names: &[&str], nonce: u64) -> Claim {
    let bids = names.iter().map(|name| Bid::new(election(name), Nonce::new(nonce)));
    Claim::new(member.clone(), TTL, bids)
}

fn withdraw(member: &MemberRef, name: &str) -> Release {
    release(member, name, None, Duration::ZERO)
}

fn release(
    member: &MemberRef,
    name: &str,
    number: Option<TermNumber>,
    confirm_within: Duration,
) -> Release {
    let item = ReleaseItem { number, ..ReleaseItem::candidacy(election(name)) };
    Release::new(member.clone(), [item]).with_confirm_within(confirm_within)
}

fn view(state: &MemoryState, now: Mono, name: &str) -> ElectionView {
    state.read(now, &Query::elections([election(name)])).elections.remove(0)
}

/// The holder of `e` hands it over at second 1, for three seconds; the heir is
/// another candidate.
fn handed_over(state: &mut MemoryState) -> (MemberRef, MemberRef, TermNumber) {
    let holder = member("holder", 1);
    let heir = member("heir", 2);
    state.join(at(0), WALL, &join(&holder));
    state.join(at(0), WALL, &join(&heir));
    let number = won(state.claim(at(0), WALL, &claim(&holder, &["e"], 1)));
    state.claim(at(0), WALL, &claim(&heir, &["e"], 1));
    let hand_over = release(&holder, "e", Some(number), Duration::from_secs(3));
    state.release(at(1), WALL, &hand_over);
    (holder, heir, number)
}

fn won(claims: Claims) -> TermNumber {
    match claims {
        Claims::Answered(mut answers) => match answers.remove(0) {
            Claimed::Won(term) => term.number,
            held => panic!("{held:?}"),
        },
        ended => panic!("{ended:?}"),
    }
}

/// H27.
#[test]
fn a_thousand_short_lives_leave_no_members_behind() {
    let mut state = MemoryState::keeping(50);
    for life in 0..1_000u64 {
        let born = member(&format!("web-{life}"), u128::from(life));
        state.join(at(life * 20), WALL, &join(&born));
        state.claim(at(life * 20), WALL, &claim(&born, &[&format!("try-{life}")], 1));
        state.release(at(life * 20), WALL, &withdraw(&born, &format!("try-{life}")));
    }
    // Each of these still holds its term, so its row stays until another wants
    // the term; here one heir wants them all.
    assert_eq!(state.elections.len(), 1_000, "numbers are kept for ever (H5)");
    assert_eq!(state.journal.entries().count(), 50);
    let heir = member("heir", 5_000);
    state.join(at(30_000), WALL, &join(&heir));
    for life in 0..1_000u64 {
        state.claim(at(30_000), WALL, &claim(&heir, &[&format!("try-{life}")], 1));
    }
    assert_eq!(state.members.keys().map(MemberId::as_str).collect::<Vec<_>>(), ["heir"]);
}

/// H27.
#[test]
fn the_next_join_sweeps_away_the_dead_who_hold_nothing() {
    let mut state = MemoryState::new();
    let idle = member("idle", 1);
    let holder = member("holder", 2);
    state.join(at(0), WALL, &join(&idle));
    state.join(at(0), WALL, &join(&holder));
    won(state.claim(at(0), WALL, &claim(&holder, &["e"], 1)));
    state.join(at(60), WALL, &join(&member("new", 3)));
    let left: Vec<_> = state.members.keys().map(MemberId::as_str).collect();
    assert_eq!(left, ["holder", "new"], "a holder stays until another wants its term (M2)");
}

/// H27.
#[test]
fn an_election_that_was_never_won_is_forgotten_with_its_last_candidate() {
    let mut state = MemoryState::new();
    let bystander = member("a", 1);
    state.join(at(0), WALL, &join(&bystander));
    let mut stand_by = claim(&bystander, &["e"], 1);
    stand_by.bids[0].priority = Priority::NEVER;
    state.claim(at(0), WALL, &stand_by);
    assert_eq!(state.elections.len(), 1);
    state.release(at(1), WALL, &withdraw(&bystander, "e"));
    assert!(state.elections.is_empty());
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let mut state = MemoryState::new();
    let holder = member("holder", 1);
    let other = member("other", 2);
    state.join(at(0), WALL, &join(&holder));
    state.join(at(0), WALL, &join(&other));
    won(state.claim(at(0), WALL, &claim(&holder, &["e"], 1)));
    state.claim(at(0), WALL, &claim(&other, &["e"], 1));
    let pause = |by| Amend::Pause { election: election("e"), reason: Note::default(), by };
    state.amend(at(0), WALL, &pause(Note::new("me")));

    let before = state.clone();
    state.claim(at(1), WALL, &claim(&other, &["e"], 2));
    state.release(at(1), WALL, &withdraw(&member("other", 9), "e"));
    state.leave(WALL, &member("holder", 9));
    state.amend(at(1), WALL, &pause(Note::new("again")));
    let resume = Amend::Resume { election: election("unknown"), by: Note::default() };
    state.amend(at(1), WALL, &resume);
    let evict =
        Amend::Evict { member: MemberId::new("x").unwrap(), now: true, by: Note::default() };
    state.amend(at(1), WALL, &evict);
    assert_eq!(state, before);
}

/// M1: the join of a life that is over brings nothing back, by the record while
/// there is one, by the journal afterwards.
#[test]
fn a_life_that_is_over_is_not_begun_again() {
    let mut state = MemoryState::new();
    let a = member("a", 1);
    state.join(at(0), WALL, &join(&a));
    won(state.claim(at(0), WALL, &claim(&a, &["e"], 1)));
    let over = |joined| matches!(joined, Joined::Taken { by, .. } if by == a.incarnation);
    assert!(over(state.join(at(11), WALL, &join(&a))), "expired, still recorded");
    state.join(at(11), WALL, &join(&member("a", 2)));
    state.leave(WALL, &member("a", 2));
    assert!(over(state.join(at(12), WALL, &join(&a))), "known from the journal alone");
    let beat = Heartbeat::new(a.clone(), TTL);
    assert_eq!(state.heartbeat(at(12), &beat), Beat::Ended { superseded: false });
}

/// An evicted member's end is told as such, even when it comes by expiry.
#[test]
fn a_condemned_member_is_ended_as_evicted() {
    let mut state = MemoryState::new();
    let a = member("a", 1);
    let b = member("b", 2);
    state.join(at(0), WALL, &join(&a));
    won(state.claim(at(0), WALL, &claim(&a, &["e"], 1)));
    let evict = Amend::Evict { member: a.id.clone(), now: false, by: Note::default() };
    state.amend(at(1), WALL, &evict);
    assert!(matches!(state.join(at(1), WALL, &join(&a)), Joined::Taken { .. }));
    state.join(at(11), WALL, &join(&b));
    assert_eq!(won(state.claim(at(11), WALL, &claim(&b, &["e"], 1))), TermNumber::new(2));
    let ended = state.journal.entries().find_map(|entry| match &entry.what {
        Happening::Ended { member, cause, .. } => Some((member.clone(), *cause)),
        _ => None,
    });
    assert_eq!(ended, Some((a, tenure_core::EndCause::Evicted)));
}

/// H5, B27: a copy that forgot the last terms does not give their numbers again,
/// not even for an election that is new to it.
#[test]
fn a_promoted_copy_gives_no_number_that_it_may_have_forgotten() {
    let web = member("web-1", 1);
    let api = member("api-1", 2);
    let mut original = MemoryState::new();
    original.join(at(0), WALL, &join(&web));
    original.join(at(0), WALL, &join(&api));
    let known = won(original.claim(at(0), WALL, &claim(&web, &["known"], 1)));
    let mut copy = original.clone();
    // What the copy does not receive any more.
    let release = release(&web, "known", Some(known), Duration::ZERO);
    original.release(at(1), WALL, &release);
    let lost = won(original.claim(at(1), WALL, &claim(&api, &["known"], 1)));
    let unheard = won(original.claim(at(1), WALL, &claim(&api, &["unheard"], 2)));

    copy.promote(WALL);
    copy.release(at(2), WALL, &release);
    let next = won(copy.claim(at(2), WALL, &claim(&web, &["known"], 2)));
    assert!(next > lost && next.get() - known.get() == Era::JUMP + 1, "{next} after {lost}");
    assert!(won(copy.claim(at(2), WALL, &claim(&web, &["unheard"], 3))) > unheard);
    // Once only: the numbers after it follow each other.
    let released = Release {
        items: vec![ReleaseItem { number: Some(next), ..release.items[0].clone() }],
        ..release
    };
    copy.release(at(3), WALL, &released);
    assert_eq!(won(copy.claim(at(3), WALL, &claim(&web, &["known"], 4))), next.next());
}

/// P1, M6: a store that was rolled back hands over. The member that gives the term up has seen
/// more than the store has, and says so before the heir gets a number.
#[test]
fn a_rolled_back_store_hands_over_above_what_it_forgot() {
    let mut state = MemoryState::new();
    let [web, heir] = [member("web", 1), member("heir", 2)];
    for who in [&web, &heir] {
        state.join(at(0), WALL, &join(who));
    }
    won(state.claim(at(0), WALL, &claim(&web, &["e"], 1)));
    state.claim(at(0), WALL, &claim(&heir, &["e"], 1));
    let copy = state.clone();
    let give_up = |state: &mut MemoryState, who: &MemberRef, number: u64, seen: Seq| {
        let term = TermRef::new(election("e"), TermNumber::new(number));
        let release = Release::new(who.clone(), [ReleaseItem::term(term)]);
        state.release(at(1), WALL, &release.with_confirm_within(TTL).with_seen(seen));
        state.read(at(1), &Query::elections([election("e")])).elections.remove(0)
    };
    let seen = state.seq();
    let forgotten = give_up(&mut state, &web, 1, seen).number;
    assert_eq!(forgotten, TermNumber::new(2));
    let seen = state.seq();
    let mut state = copy;
    let view = give_up(&mut state, &web, 1, seen);
    assert!(view.is_held_by(heir.incarnation), "{view:?}");
    assert!(view.number > forgotten, "{view:?}");
}

/// H5, B27: nor does a copy that hands over.
#[test]
fn a_promoted_copy_hands_over_with_a_number_it_cannot_have_forgotten() {
    let mut original = MemoryState::new();
    let (_, heir, number) = handed_over(&mut original);
    let forgotten = view(&original, at(1), "e").number;
    assert_eq!(forgotten, number.next());
    let mut copy = original.clone();
    copy.promote(WALL);
    assert_eq!(view(&copy, at(1), "e").number, forgotten, "what was handed over stands");
    let on = release(&heir, "e", Some(forgotten), Duration::from_secs(3));
    copy.claim(at(1), WALL, &claim(&member("holder", 1), &["e"], 2));
    copy.release(at(2), WALL, &on);
    let handed_on = view(&copy, at(2), "e");
    assert!(handed_on.is_held_by(Incarnation::from_u128(1)), "{handed_on:?}");
    assert_eq!(handed_on.number.get() - forgotten.get(), Era::JUMP + 1);
}

/// To the moment: the term is over when nothing is left of it, and not before.
#[test]
fn what_was_handed_over_stands_for_exactly_its_time() {
    let mut state = MemoryState::new();
    let (holder, heir, number) = handed_over(&mut state);
    let last = at(4) - Duration::from_millis(1);
    assert_eq!(view(&state, last, "e").handed_to(heir.incarnation), Some(Duration::from_millis(1)));
    assert_eq!(view(&state, at(4), "e").holder, None);
    let rival = claim(&holder, &["e"], 2);
    assert!(matches!(state.clone().claim(last, WALL, &rival), Claims::Answered(a)
        if matches!(&a[0], Claimed::Held(view) if view.is_held_by(heir.incarnation))));
    assert_eq!(won(state.clone().claim(at(4), WALL, &rival)), number.next().next());
    // Named at the last moment, it is the heir's as long as it lives.
    let held = vec![TermRef { election: election("e"), number: number.next() }];
    state.heartbeat(last, &Heartbeat::new(heir.clone(), TTL).with_held(held));
    let taken_on = view(&state, at(13), "e").holder.expect("a holder");
    assert!(!taken_on.unconfirmed);
    assert_eq!(taken_on.remaining, (last + TTL).since(at(13)));
}

/// C10: a vacancy that comes of silence is kept like any other, and never for the
/// one that said nothing.
#[test]
fn what_lapsed_is_kept_for_the_preferred_of_the_others() {
    let mut state = MemoryState::new();
    let (holder, heir, number) = handed_over(&mut state);
    let high = member("high", 3);
    state.join(at(2), WALL, &join(&high));
    let mut bid = claim(&high, &["e"], 1);
    bid.bids[0].priority = Priority::new(1_000);
    state.claim(at(2), WALL, &bid);
    let patient = Claim { heir_grace: TTL, ..claim(&holder, &["e"], 2) };
    state.claim(at(5), WALL, &patient);
    let kept = view(&state, at(5), "e");
    assert_eq!(kept.reserved.map(|r| r.member), Some(high.id));
    let released = state.journal.entries().rev().find_map(|entry| match &entry.what {
        Happening::Released { member, number, cause, .. } => {
            Some((member.clone(), *number, *cause))
        }
        _ => None,
    });
    assert_eq!(released, Some((heir, number.next(), ReleaseCause::Abandoned)));
}

/// M1: nothing is handed to a condemned member.
#[test]
fn a_condemned_candidate_is_handed_nothing() {
    let mut state = MemoryState::new();
    let (_, heir, _) = handed_over(&mut state);
    let term = won(state.claim(at(2), WALL, &claim(&heir, &["e"], 2)));
    state.claim(at(2), WALL, &claim(&member("holder", 1), &["e"], 2));
    let id = MemberId::new("holder").unwrap();
    state.amend(at(2), WALL, &Amend::Evict { member: id, now: false, by: Note::default() });
    state.release(at(3), WALL, &release(&heir, "e", Some(term), TTL));
    let vacant = view(&state, at(3), "e");
    assert_eq!((vacant.holder, vacant.number), (None, term));
}

/// The join that was heard last says whether a term may be handed over.
#[test]
fn one_who_joins_again_may_have_changed_its_mind() {
    let mut state = MemoryState::new();
    let (_, heir, number) = handed_over(&mut state);
    let holder = member("holder", 1);
    state.claim(at(2), WALL, &claim(&holder, &["e"], 2));
    state.join(at(2), WALL, &Join { inherits: false, ..join(&holder) });
    state.release(at(2), WALL, &release(&heir, "e", Some(number.next()), TTL));
    let vacant = view(&state, at(2), "e");
    assert_eq!((vacant.holder, vacant.number), (None, number.next()));
}

#[test]
fn late_and_doubled_messages_about_what_was_handed_over_write_nothing() {
    let mut state = MemoryState::new();
    let (holder, heir, number) = handed_over(&mut state);
    let before = state.clone();
    state.release(at(1), WALL, &release(&holder, "e", Some(number), TTL));
    state.release(at(1), WALL, &release(&heir, "e", Some(number), TTL));
    state.release(at(1), WALL, &release(&member("heir", 9), "e", Some(number.next()), TTL));
    assert_eq!(state, before);
    let held = vec![TermRef { election: election("e"), number: number.next() }];
    for member in [holder, member("heir", 9)] {
        state.heartbeat(at(0), &Heartbeat::new(member, TTL).with_held(held.clone()));
    }
    assert_eq!(state.elections, before.elections);
}
