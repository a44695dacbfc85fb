//! What a purge leaves of names.

use std::time::Duration;

use tenure_core::{BindOp, Name, Purge, TermRef, WhichNames};

use super::asking::{answered, bound, value};
use super::with_names;
use crate::Outcome;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// U2: the names of an owner that is gone are cleared away, and so are the drops once no member
/// lives there. No token comes back, and a reader that asks what changed gets all names.
pub(crate) async fn no_token_comes_back_after_a_purge(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    if !world.capabilities().await.journal {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let dropped = a.take("dropped").await?;
    a.let_go(&dropped).await?;
    for count in 0..70 {
        a.take(&format!("n{count}")).await?;
    }
    let last = a.take("last").await?;
    a.leave().await?;
    let purged = world.purge(Purge::older_than(Duration::ZERO)).await?;
    ensure!(purged.names <= 71 && purged.drops == 1, "what was left: {purged:?}");
    let b = world.owner("b").await?;
    if traits.since {
        let seen = b.names(&WhichNames::Since(dropped.rev)).await?;
        ensure!(seen.whole, "what changed is no longer known: {seen:?}");
    }
    same!(b.bound().await?.len(), 0, "names that are bound");
    for text in ["last", "dropped"] {
        let next = b.take(text).await?;
        ensure!(next.token > last.token, "{text} has a new token: {next:?} after {last:?}");
    }
    Ok(())
}

/// What a leader left to a successor that never came is dropped with its election, and those who
/// have a copy of the names are told. What an application bound without an owner stays.
pub(crate) async fn what_a_leader_left_goes_with_its_election(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    if !traits.fenced || !world.capabilities().await.journal {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let term = a.win("e").await?;
    let Some(left) = Name::left_in(&term.election) else { fail!("its name is short") };
    let post = BindOp::post(left.clone(), a.next_nonce(), value("next = 17")?);
    let fenced = a.binds([post]).with_fence(TermRef::from(&term));
    for answer in answered(a.bind(&fenced).await?)? {
        bound(answer)?;
    }
    bound(b.unnamed(b.posting("notice")?).await?)?;
    let before = world.rev().await?;
    same!(world.purge(Purge::older_than(Duration::ZERO)).await?.names, 0, "while it is held");
    a.leave().await?;
    let first = Purge::older_than(Duration::ZERO);
    let foretold = world.purge(Purge { dry_run: true, ..first.clone() }).await?;
    let purged = world.purge(first).await?;
    same!((foretold.elections, foretold.names), (1, 1), "what is foretold");
    same!((purged.elections, purged.names), (1, 1), "what is removed");
    if traits.since {
        same!(b.names(&WhichNames::Since(before)).await?.gone, vec![left], "what is gone");
    }
    let rest: Vec<_> = b.bound().await?.into_iter().map(|binding| binding.name).collect();
    same!(rest, vec![super::asking::name("notice")?], "what stays");
    Ok(())
}
