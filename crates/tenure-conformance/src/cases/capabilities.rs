//! Capabilities: what is claimed holds, and what is denied is not done behind
//! one's back. One heartbeat for all is checked in `heartbeat`, the journal in
//! `follow`, limits in `limits`.

use std::time::Duration;

use tenure_core::{Hint, Query};
use tenure_store::{Followed, Judge, Watch};

use super::members::still_leads;
use crate::Outcome;
use crate::case::{ensure, same};
use crate::world::World;

/// A store says the same of itself to every caller.
pub(crate) async fn every_handle_claims_the_same(world: &World<'_>) -> Outcome {
    let first = world.capabilities().await;
    let second = world.capabilities().await;
    same!(first, second, "what two handles claim");
    ensure!(!first.name.is_empty(), "the store has a name");
    ensure!(first.batch >= 1, "a store takes at least one bid at a time");
    same!(first.identity.kind, first.name, "the kind of store");
    ensure!(
        first.identity.id.is_some() || !first.transactional_fence,
        "a store with a fence has a number of its own, so that no other's terms pass it (L1)"
    );
    if let Watch::Polled(interval) = first.watch {
        ensure!(!interval.is_zero(), "looking all the time is not a way to watch");
    }
    Ok(())
}

/// Judge: a store that judges lets a newcomer take what has expired at once;
/// where the observer judges, an observer that has seen nothing must not.
pub(crate) async fn expiry_is_judged_by_whom_it_is_claimed(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    world.pass(world.unit() * 3 / 2).await;
    let newcomer = world.member("newcomer").await?;
    match world.capabilities().await.judge {
        Judge::Store => {
            ensure!(newcomer.win("e").await?.number > term.number, "the election is free");
        }
        Judge::Observer => {
            same!(newcomer.lose("e").await?.number, term.number, "the number of the term");
            world.lapse(&[&newcomer]).await?;
            ensure!(newcomer.win("e").await?.number > term.number, "the election is free now");
        }
    }
    Ok(())
}

/// M4: a dropped connection proves nothing. Where the store claims to prove
/// deaths, the living are still not declared dead.
pub(crate) async fn no_member_is_ended_without_proof(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    if !world.capabilities().await.proof_of_death {
        drop(a);
    }
    for _ in 0..3 {
        world.pass(world.unit() / 2).await;
        same!(b.lose("e").await?.number, term.number, "the number of the term");
    }
    still_leads(world, "e", &term).await?;
    same!(world.ids().await?, ["a", "b"], "the live members");
    Ok(())
}

/// Watch: a native one is heard without any time passing for the store.
pub(crate) async fn a_native_watch_is_heard_at_once(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    let mut following = b.store.follow(&b.ns).await?;
    same!(world.heard(&mut *following).await?, Followed::Hint(Hint::Anything), "the first hint");
    a.resign(&term).await?;
    match world.capabilities().await.watch {
        Watch::Native => {
            let patience = Duration::from_secs(10);
            let heard = tokio::time::timeout(patience, following.next()).await;
            ensure!(matches!(heard, Ok(Ok(Followed::Hint(_)))), "a hint at once: {heard:?}");
        }
        Watch::Polled(_) => {
            let heard = world.heard(&mut *following).await?;
            ensure!(matches!(heard, Followed::Hint(_)), "a hint in the end: {heard:?}");
        }
    }
    Ok(())
}

/// Journal: positions rise with what happens, or stay at zero throughout.
pub(crate) async fn positions_rise_only_with_a_journal(world: &World<'_>) -> Outcome {
    let journal = world.capabilities().await.journal;
    let mut last = world.read(&Query::nothing()).await?.seq;
    same!(last.get(), 0, "the position in an empty namespace");
    let a = world.member("a").await?;
    for round in 0..3 {
        a.win(&format!("e{round}")).await?;
        let seq = world.read(&Query::nothing()).await?.seq;
        ensure!(if journal { seq > last } else { seq.get() == 0 }, "{last} was followed by {seq}");
        last = seq;
    }
    Ok(())
}
