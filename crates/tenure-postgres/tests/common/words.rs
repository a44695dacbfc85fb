//! Requests, as short as tests want them.

use std::time::Duration;

use tenure_core::{
    Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Heartbeat, Incarnation, Join, Joined,
    MemberId, MemberRef, Namespace, Nonce, Priority, Profile, Query, Release, ReleaseCause,
    ReleaseItem, Seq, Term,
};
use tenure_postgres::Postgres;
use tenure_store::{FenceError, FenceIn, FencedTerm, Store};

pub const TTL: Duration = Duration::from_secs(60);

/// What a promoted copy finds: another server wrote last, on the timeline before.
pub const PROMOTED: &str = "UPDATE {s}.settings SET timeline = timeline - 1, started_at = NULL";

pub fn ns() -> Namespace {
    Namespace::default()
}

pub fn election(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

pub fn member(id: &str, life: u128) -> MemberRef {
    MemberRef::new(MemberId::new(id).unwrap(), Incarnation::from_u128(life))
}

pub fn join(member: &MemberRef, ttl: Duration) -> Join {
    Join {
        member: member.clone(),
        ttl,
        profile: Profile::default(),
        supersede: true,
        takes_over: false,
        seen: tenure_core::Seq::START,
    }
}

pub fn beat(member: &MemberRef, ttl: Duration) -> Heartbeat {
    Heartbeat { member: member.clone(), ttl, held: vec![] }
}

pub fn claim(member: &MemberRef, name: &str, nonce: u64) -> Claim {
    let (priority, nonce) = (Priority::default(), Nonce::new(nonce));
    let bids = vec![Bid { election: election(name), priority, nonce }];
    Claim { member: member.clone(), ttl: TTL, bids, heir_grace: Duration::ZERO, seen: Seq::START }
}

pub fn release(term: &Term) -> Release {
    let (election, number) = (term.election.clone(), Some(term.number));
    let items =
        vec![ReleaseItem { election, number, cause: ReleaseCause::Resigned, successor: None }];
    Release {
        member: term.member.clone(),
        items,
        heir_grace: Duration::ZERO,
        hand_over: Duration::ZERO,
    }
}

/// The answer to a claim of one election.
pub fn only(claims: Claims) -> Claimed {
    match claims {
        Claims::Answered(mut answers) if answers.len() == 1 => answers.remove(0),
        other => panic!("{other:?}"),
    }
}

pub fn won(claims: Claims) -> Term {
    match only(claims) {
        Claimed::Won(term) => term,
        held => panic!("not won: {held:?}"),
    }
}

pub fn held(claims: Claims) -> ElectionView {
    match only(claims) {
        Claimed::Held(view) => view,
        won => panic!("won: {won:?}"),
    }
}

pub async fn joined(store: &dyn Store, id: &str, life: u128) -> MemberRef {
    joined_for(store, id, life, TTL).await
}

pub async fn joined_for(store: &dyn Store, id: &str, life: u128, ttl: Duration) -> MemberRef {
    let member = member(id, life);
    let answer = store.join(&ns(), &join(&member, ttl)).await.unwrap();
    assert!(matches!(answer, Joined::In { .. }), "{answer:?}");
    member
}

/// Joins and wins, under a life of its own.
pub async fn leader(store: &dyn Store, id: &str, life: u128, name: &str) -> Term {
    let member = joined(store, id, life).await;
    won(store.claim(&ns(), &claim(&member, name, 1)).await.unwrap())
}

/// Fences a term that this store gave out.
pub async fn fence_in<T: FenceIn<Postgres>>(
    store: &dyn Store,
    tx: &mut T,
    term: &Term,
) -> Result<(), FenceError> {
    let identity = store.capabilities().identity;
    tx.fence_in(FencedTerm { store: &identity, ns: &ns(), term }).await
}

pub async fn view(store: &dyn Store, name: &str) -> ElectionView {
    let seen = store.read(&ns(), &Query::elections([election(name)])).await.unwrap();
    seen.elections.into_iter().next().unwrap()
}
