//! What the suite cannot see from outside: that nothing only grows, and that
//! what changes nothing writes nothing.

use std::time::Duration;

use tenure_core::{
    Amend, Beat, Bid, Claim, Claimed, Claims, ElectionName, Happening, Heartbeat, Incarnation,
    Join, Joined, MemberId, MemberRef, Mono, Namespace, Nonce, Note, Priority, Profile, Query,
    Release, ReleaseCause, ReleaseItem, TermNumber, Timestamp,
};

use super::{MemoryState, MemoryStore};
use crate::{ErrorKind, Store};

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
    Join { member: member.clone(), ttl: TTL, profile: Profile::default(), supersede: true }
}

fn claim(member: &MemberRef, names: &[&str], nonce: u64) -> Claim {
    let bids = names.iter().map(|name| Bid {
        election: election(name),
        priority: Priority::default(),
        nonce: Nonce::new(nonce),
    });
    Claim { member: member.clone(), ttl: TTL, bids: bids.collect(), heir_grace: Duration::ZERO }
}

fn withdraw(member: &MemberRef, name: &str) -> Release {
    let (election, cause) = (election(name), ReleaseCause::Resigned);
    let items = vec![ReleaseItem { election, number: None, cause, successor: None }];
    Release { member: member.clone(), items, heir_grace: Duration::ZERO }
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
    // Each of these still holds its term, so its row stays until somebody wants
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
    let (idle, holder) = (member("idle", 1), member("holder", 2));
    state.join(at(0), WALL, &join(&idle));
    state.join(at(0), WALL, &join(&holder));
    won(state.claim(at(0), WALL, &claim(&holder, &["e"], 1)));
    state.join(at(60), WALL, &join(&member("new", 3)));
    let left: Vec<_> = state.members.keys().map(MemberId::as_str).collect();
    assert_eq!(left, ["holder", "new"], "a holder stays until somebody wants its term (M2)");
}

/// H27.
#[test]
fn an_election_nobody_won_is_forgotten_with_its_last_candidate() {
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
    let (holder, other) = (member("holder", 1), member("other", 2));
    state.join(at(0), WALL, &join(&holder));
    state.join(at(0), WALL, &join(&other));
    won(state.claim(at(0), WALL, &claim(&holder, &["e"], 1)));
    state.claim(at(0), WALL, &claim(&other, &["e"], 1));
    let pause = |by| Amend::Pause { election: election("e"), reason: Note::default(), by };
    state.amend(at(0), WALL, &pause(Note::new("me")));

    let before = state.clone();
    state.claim(at(1), WALL, &claim(&other, &["e"], 2));
    state.release(at(1), WALL, &withdraw(&member("other", 9), "e"));
    state.leave(at(1), WALL, &member("holder", 9));
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
    state.leave(at(12), WALL, &member("a", 2));
    assert!(over(state.join(at(12), WALL, &join(&a))), "known from the journal alone");
    let beat = Heartbeat { member: a.clone(), ttl: TTL, held: vec![] };
    assert_eq!(state.heartbeat(at(12), &beat), Beat::Ended { superseded: false });
}

/// An evicted member's end is told as such, even when it comes by expiry.
#[test]
fn a_condemned_member_is_ended_as_evicted() {
    let mut state = MemoryState::new();
    let (a, b) = (member("a", 1), member("b", 2));
    state.join(at(0), WALL, &join(&a));
    won(state.claim(at(0), WALL, &claim(&a, &["e"], 1)));
    let evict = Amend::Evict { member: a.id.clone(), now: false, by: Note::default() };
    state.amend(at(1), WALL, &evict);
    assert!(matches!(state.join(at(1), WALL, &join(&a)), Joined::Taken { .. }));
    state.join(at(11), WALL, &join(&b));
    assert_eq!(won(state.claim(at(11), WALL, &claim(&b, &["e"], 1))), TermNumber::new(2));
    let ended = state.journal.entries().find_map(|entry| match &entry.what {
        Happening::Ended { member, cause } => Some((member.clone(), *cause)),
        _ => None,
    });
    assert_eq!(ended, Some((a, tenure_core::EndCause::Evicted)));
}

#[tokio::test]
async fn a_request_over_the_batch_limit_is_refused_whole_with_the_remedy() {
    let store = MemoryStore::new();
    let (ns, a) = (Namespace::default(), member("a", 1));
    store.join(&ns, &join(&a)).await.unwrap();
    let names: Vec<_> = (0..=1_000).map(|i| format!("e{i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let error = store.claim(&ns, &claim(&a, &names, 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(!error.may_have_applied());
    let text = error.to_string();
    assert!(text.contains("1001 bids") && text.contains("split the request"), "{text}");
    let seen = store.read(&ns, &Query::everything()).await.unwrap();
    assert!(seen.elections.is_empty());
}

/// H5, B27: a copy that forgot the last terms does not give their numbers again,
/// not even for an election that it never heard of.
#[test]
fn a_promoted_copy_gives_no_number_that_it_may_have_forgotten() {
    let (web, api) = (member("web-1", 1), member("api-1", 2));
    let mut original = MemoryState::new();
    original.join(at(0), WALL, &join(&web));
    original.join(at(0), WALL, &join(&api));
    let known = won(original.claim(at(0), WALL, &claim(&web, &["known"], 1)));
    let mut copy = original.clone();
    // What the copy does not receive any more.
    let items = vec![ReleaseItem {
        election: election("known"),
        number: Some(known),
        cause: ReleaseCause::Resigned,
        successor: None,
    }];
    let release = Release { member: web.clone(), items, heir_grace: Duration::ZERO };
    original.release(at(1), WALL, &release);
    let lost = won(original.claim(at(1), WALL, &claim(&api, &["known"], 1)));
    let unheard = won(original.claim(at(1), WALL, &claim(&api, &["unheard"], 2)));

    copy.promote();
    copy.release(at(2), WALL, &release);
    let next = won(copy.claim(at(2), WALL, &claim(&web, &["known"], 2)));
    assert!(next > lost && next.get() - known.get() == (1 << 20) + 1, "{next} after {lost}");
    assert!(won(copy.claim(at(2), WALL, &claim(&web, &["unheard"], 3))) > unheard);
    // Once only: the numbers after it follow each other.
    let released = Release {
        items: vec![ReleaseItem { number: Some(next), ..release.items[0].clone() }],
        ..release
    };
    copy.release(at(3), WALL, &released);
    assert_eq!(won(copy.claim(at(3), WALL, &claim(&web, &["known"], 4))), next.next());
}
