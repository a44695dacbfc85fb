//! Requests to the store itself, as short as the benchmark wants them.

use std::time::Duration;

use tenure::{ElectionName, Incarnation, MemberId, MemberRef, Namespace, Priority, Profile, Term};
use tenure_core::{
    Bid, Claim, Claimed, Claims, Heartbeat, Join, Nonce, Release, ReleaseCause, ReleaseItem, Seq,
};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::Store;

use crate::Outcome;

/// Long enough for nothing to run out.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) async fn open(url: &str) -> Outcome<PostgresStore> {
    let options = PostgresOptions::from_url(url)?.request_timeout(Duration::from_secs(60));
    Ok(PostgresStore::open(options).await?)
}

pub(crate) async fn join(store: &PostgresStore, ns: &Namespace, id: &str) -> Outcome<MemberRef> {
    let life = u128::from(getrandom::u64()?);
    let member = MemberRef::new(MemberId::new(id)?, Incarnation::from_u128(life));
    let (profile, supersede) = (Profile::default(), true);
    let join = Join {
        member: member.clone(),
        ttl: LONG,
        profile,
        supersede,
        takes_over: false,
        seen: Seq::START,
    };
    store.join(ns, &join).await?;
    Ok(member)
}

pub(crate) fn beat(member: &MemberRef) -> Heartbeat {
    Heartbeat { member: member.clone(), ttl: LONG, held: vec![] }
}

/// Claims elections that must all be won.
pub(crate) async fn claim(
    store: &PostgresStore,
    ns: &Namespace,
    member: &MemberRef,
    names: impl Iterator<Item = String>,
    nonce: u64,
) -> Outcome<Vec<Term>> {
    let bid = |name: String| -> Outcome<Bid> {
        let (priority, nonce) = (Priority::default(), Nonce::new(nonce));
        Ok(Bid { election: ElectionName::new(name)?, priority, nonce })
    };
    let bids = names.map(bid).collect::<Outcome<Vec<_>>>()?;
    let claim = Claim {
        member: member.clone(),
        ttl: LONG,
        bids,
        heir_grace: Duration::ZERO,
        seen: Seq::START,
    };
    let Claims::Answered(answers) = store.claim(ns, &claim).await? else {
        return Err("the member is over".into());
    };
    let won = |answer| match answer {
        Claimed::Won(term) => Ok(term),
        other => Err(format!("not won: {other:?}").into()),
    };
    answers.into_iter().map(won).collect()
}

pub(crate) async fn release(store: &PostgresStore, ns: &Namespace, term: &Term) -> Outcome {
    let (election, number) = (term.election.clone(), Some(term.number));
    let items =
        vec![ReleaseItem { election, number, cause: ReleaseCause::Resigned, successor: None }];
    let member = term.member.clone();
    Ok(store
        .release(
            ns,
            &Release { member, items, heir_grace: Duration::ZERO, hand_over: Duration::ZERO },
        )
        .await?)
}
