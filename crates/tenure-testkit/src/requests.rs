//! Requests as short as tests want them, and what their answers must be.
//!
//! Everything is for the namespace [`ns`] and lasts for [`TTL`]. A test that needs
//! another value sets that field, or calls the request's own constructor.

use std::time::Duration;

use tenure_core::{
    Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Heartbeat, Incarnation, Join, Joined,
    MemberId, MemberRef, Namespace, Nonce, Query, Release, ReleaseItem, Term, TermNumber, TermRef,
};
use tenure_store::Store;

/// Longer than any test takes, unless its clock is moved by hand.
pub const TTL: Duration = Duration::from_secs(60);

/// The namespace of all requests.
#[must_use]
pub fn ns() -> Namespace {
    Namespace::default()
}

/// An election's name.
#[must_use]
pub fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("the name of an election")
}

/// A life of a member.
#[must_use]
pub fn member(id: &str, life: u128) -> MemberRef {
    let id = MemberId::new(id).expect("the id of a member");
    MemberRef::new(id, Incarnation::from_u128(life))
}

/// A join that may supersede, and takes over nothing.
#[must_use]
pub fn join(member: &MemberRef) -> Join {
    Join::new(member.clone(), TTL)
}

/// A heartbeat that names no term.
#[must_use]
pub fn beat(member: &MemberRef) -> Heartbeat {
    Heartbeat::new(member.clone(), TTL)
}

/// A bid for one election, with the usual priority.
#[must_use]
pub fn claim(member: &MemberRef, name: &str, nonce: u64) -> Claim {
    claim_all(member, [name], nonce)
}

/// A bid for each election, all under one nonce.
pub fn claim_all<S: AsRef<str>>(
    member: &MemberRef,
    names: impl IntoIterator<Item = S>,
    nonce: u64,
) -> Claim {
    let bid = |name: S| Bid::new(election(name.as_ref()), Nonce::new(nonce));
    Claim::new(member.clone(), TTL, names.into_iter().map(bid))
}

/// Gives a term back that was won.
#[must_use]
pub fn release(term: &Term) -> Release {
    give_back(&term.member, term.election.as_str(), term.number)
}

/// Gives a term back as its holder.
#[must_use]
pub fn give_back(member: &MemberRef, name: &str, number: TermNumber) -> Release {
    let term = TermRef::new(election(name), number);
    Release::new(member.clone(), [ReleaseItem::term(term)])
}

/// The answer to a claim of one election.
#[must_use]
pub fn only(claims: Claims) -> Claimed {
    match claims {
        Claims::Answered(mut answers) if answers.len() == 1 => answers.remove(0),
        other => panic!("not one answer: {other:?}"),
    }
}

/// The term of a claim that won.
pub fn won(claims: Claims) -> Term {
    match only(claims) {
        Claimed::Won(term) => term,
        other => panic!("not won: {other:?}"),
    }
}

/// The view of a claim that did not win.
pub fn held(claims: Claims) -> ElectionView {
    match only(claims) {
        Claimed::Held(view) => view,
        other => panic!("not held: {other:?}"),
    }
}

/// Joins, and is let in.
pub async fn joins(store: &dyn Store, member: &MemberRef) {
    let answer = store.join(&ns(), &join(member)).await.expect("an answer to a join");
    assert!(matches!(answer, Joined::In { .. }), "{answer:?}");
}

/// A member that has joined.
pub async fn joined(store: &dyn Store, id: &str, life: u128) -> MemberRef {
    let member = member(id, life);
    joins(store, &member).await;
    member
}

/// The term of a member that has joined and won.
pub async fn leader(store: &dyn Store, id: &str, life: u128, name: &str) -> Term {
    let member = joined(store, id, life).await;
    won(store.claim(&ns(), &claim(&member, name, 1)).await.expect("an answer to a claim"))
}

/// What the store shows of one election.
pub async fn view(store: &dyn Store, name: &str) -> ElectionView {
    let seen = store.read(&ns(), &Query::elections([election(name)])).await;
    let seen = seen.expect("an answer to a look");
    seen.elections.into_iter().next().expect("the election that was asked for")
}
