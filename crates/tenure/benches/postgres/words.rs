//! Requests to the store itself, as short as the benchmark wants them.

use std::time::Duration;

use tenure::views::{Incarnation, MemberRef};
use tenure::{ElectionName, MemberId, Namespace, Term};
use tenure_core::{Bid, Claim, Claimed, Claims, Heartbeat, Join, Nonce, Release, ReleaseItem};
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
    store.join(ns, &Join::new(member.clone(), LONG)).await?;
    Ok(member)
}

pub(crate) fn beat(member: &MemberRef) -> Heartbeat {
    Heartbeat::new(member.clone(), LONG)
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
        Ok(Bid::new(ElectionName::new(name)?, Nonce::new(nonce)))
    };
    let bids = names.map(bid).collect::<Outcome<Vec<_>>>()?;
    let claim = Claim::new(member.clone(), LONG, bids);
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
    let release = Release::new(term.member.clone(), [ReleaseItem::term(term.into())]);
    Ok(store.release(ns, &release).await?)
}
