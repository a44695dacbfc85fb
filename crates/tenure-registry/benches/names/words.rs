//! Requests to the store itself, as short as the benchmark wants them.

use std::time::Duration;

use tenure::naming::{Binding, Name, Value};
use tenure::views::{Incarnation, MemberRef};
use tenure::{ElectionName, MemberId, Namespace};
use tenure_core::{Bid, Bind, BindAnswer, BindOp, Bindings, Claim, Claimed, Claims, Join, Nonce};
use tenure_postgres::{PostgresOptions, PostgresStore};
use tenure_store::Store;

use crate::Outcome;

/// Long enough for nothing to run out.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);
pub(crate) const ENDPOINT: &str = "10.0.0.7:9000";

pub(crate) async fn open(url: &str) -> Outcome<PostgresStore> {
    let options = PostgresOptions::from_url(url)?.request_timeout(Duration::from_secs(60));
    Ok(PostgresStore::open(options).await?)
}

pub(crate) async fn join(store: &dyn Store, ns: &Namespace, id: &str) -> Outcome<MemberRef> {
    let life = u128::from(getrandom::u64()?);
    let member = MemberRef::new(MemberId::new(id)?, Incarnation::from_u128(life));
    store.join(ns, &Join::new(member.clone(), LONG)).await?;
    Ok(member)
}

/// Takes names that must all be free.
pub(crate) async fn take(
    store: &dyn Store,
    ns: &Namespace,
    member: &MemberRef,
    names: impl Iterator<Item = String>,
) -> Outcome<Vec<Binding>> {
    let value = Value::at(ENDPOINT)?;
    let op = |(name, nonce)| -> Outcome<BindOp> {
        Ok(BindOp::take(Name::new(name)?, Nonce::new(nonce), value.clone()))
    };
    let ops = names.zip(1..).map(op).collect::<Outcome<Vec<_>>>()?;
    let Bindings::Answered(answers) = store.bind(ns, &Bind::new(member.clone(), LONG, ops)).await?
    else {
        return Err("the member is over".into());
    };
    let bound = |answer| match answer {
        BindAnswer::Bound(binding) => Ok(binding),
        other => Err(format!("not bound: {other:?}").into()),
    };
    answers.into_iter().map(bound).collect()
}

/// Claims elections that must all be won.
pub(crate) async fn claim(
    store: &dyn Store,
    ns: &Namespace,
    member: &MemberRef,
    names: impl Iterator<Item = String>,
) -> Outcome<usize> {
    let bid =
        |name: String| -> Outcome<Bid> { Ok(Bid::new(ElectionName::new(name)?, Nonce::new(1))) };
    let bids = names.map(bid).collect::<Outcome<Vec<_>>>()?;
    let claim = Claim::new(member.clone(), LONG, bids);
    let Claims::Answered(answers) = store.claim(ns, &claim).await? else {
        return Err("the member is over".into());
    };
    let won = answers.iter().filter(|answer| matches!(answer, Claimed::Won(_))).count();
    if won < answers.len() { Err("not all were won".into()) } else { Ok(won) }
}

/// The first so many numbers, in any order.
pub(crate) fn shuffled(count: usize) -> Outcome<Vec<usize>> {
    let mut all: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let dice = getrandom::u64()? % u64::try_from(last + 1)?;
        all.swap(last, usize::try_from(dice)?);
    }
    Ok(all)
}

pub(crate) fn micros(from: std::time::Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1e6
}

/// The value below which so much of them lies.
pub(crate) fn quantile(values: &mut [f64], part: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}
