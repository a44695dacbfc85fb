//! Forgetting what is no longer used: no number comes back, and nothing that is used goes.
//!
//! Every purge here is at an age of zero: what holds then holds at any age. A store that
//! cannot purge says so, and is asked nothing else.

use std::time::Duration;

use tenure_core::{Amend, Amended, Claimed, Note, Purge, Purged, Query};
use tenure_store::ErrorKind;

use super::members::still_leads;
use crate::Outcome;
use crate::actor::{How, held, won};
use crate::case::{ensure, fail, same};
use crate::world::World;

/// All that is unused at this moment.
pub(super) fn now() -> Purge {
    Purge { by: Note::new("ops"), ..Purge::older_than(Duration::ZERO) }
}

impl World<'_> {
    /// Whether the store forgets anything.
    async fn purges(&self) -> bool {
        self.capabilities().await.journal
    }

    async fn purge_step(&self, purge: &Purge) -> Outcome<Purged> {
        match self.amend(Amend::Purge(purge.clone())).await? {
            Amended::Purged(purged) => Ok(purged),
            other => fail!("a purge says what it removed: {other:?}"),
        }
    }

    /// Every step of a purge.
    pub(super) async fn purge(&self, first: Purge) -> Outcome<Purged> {
        let mut all = Purged::default();
        let mut next = Some(first);
        for _ in 0..100 {
            let Some(purge) = next else { return Ok(all) };
            let purged = self.purge_step(&purge).await?;
            next = purge.following(&purged);
            all = all.and(purged);
        }
        fail!("a purge comes to its end: {all:?}")
    }
}

/// A store either purges or says that it cannot.
pub(crate) async fn a_store_that_cannot_purge_says_so(world: &World<'_>) -> Outcome {
    let store = world.store().await;
    let amended = store.amend(&world.ns, &Amend::Purge(now())).await;
    match amended {
        Ok(Amended::Purged(purged)) if world.purges().await => {
            same!(purged, Purged::default(), "what is in an empty namespace");
        }
        Err(error) if !world.purges().await => {
            same!(error.kind(), ErrorKind::Invalid, "the kind of the refusal");
            ensure!(!error.may_have_applied(), "nothing was done: {error}");
        }
        other => fail!("a store purges, or says that it cannot: {other:?}"),
    }
    Ok(())
}

/// H5, P14: an election that is founded anew goes on above its own number, and above those of
/// all that were forgotten with it.
pub(crate) async fn no_number_comes_back_after_a_purge(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    a.win("f").await?;
    for _ in 0..4 {
        a.win("e").await?;
    }
    let last = a.win("e").await?;
    a.leave().await?;
    same!(world.purge(now()).await?.elections, 2, "unused elections");
    same!(world.view("e").await?.number.get(), 0, "the number on view");
    let b = world.member("b").await?;
    for name in ["f", "e", "g"] {
        let next = b.win(name).await?;
        ensure!(next.number > last.number, "{name} begins above {}: {next:?}", last.number);
    }
    // Nor after another purge, of lower numbers.
    b.leave().await?;
    world.purge(now()).await?;
    let c = world.member("c").await?;
    let next = c.win("e").await?;
    ensure!(next.number.get() > last.number.get() + 1, "{last:?} is followed by {next:?}");
    Ok(())
}

/// E3: a leader goes on leading.
pub(crate) async fn a_held_election_is_not_purged(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    same!(world.purge(now()).await?.elections, 0, "unused elections");
    still_leads(world, "e", &term).await
}

/// An election that has a candidate keeps its number and its candidates.
pub(crate) async fn an_election_with_a_candidate_is_not_purged(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    b.lose_by("e", How::priority(0)).await?;
    a.leave().await?;
    same!(world.purge(now()).await?.elections, 0, "unused elections");
    let query = Query { candidates: true, ..Query::everything() };
    let seen = world.read(&query).await?;
    let found = seen.elections.iter().find(|view| view.election.as_str() == "e");
    let Some(view) = found else { fail!("the election stays: {seen:?}") };
    same!(view.number, term.number, "the number");
    same!(view.candidates.len(), 1, "those who stand");
    Ok(())
}

/// E6: an operator's word stands until it is taken back.
pub(crate) async fn a_paused_election_is_not_purged(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    a.win("e").await?;
    a.leave().await?;
    world.pause("e").await?;
    same!(world.purge(now()).await?.elections, 0, "unused elections");
    let b = world.member("b").await?;
    let view = b.lose("e").await?;
    ensure!(view.paused.is_some(), "it is paused: {view:?}");
    Ok(())
}

/// E2: a late copy of a bid that had won begins no new term, although the election is not used
/// any more: its winner lives.
pub(crate) async fn a_late_bid_wins_nothing_after_a_purge(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    let claim = a.claim_for("e", a.next_nonce(), How::default())?;
    let term = won(a.send_one(&claim).await?)?;
    a.resign(&term).await?;
    world.purge(now()).await?;
    held(a.send_one(&claim).await?)?;
    ensure!(world.view("e").await?.holder.is_none(), "no member was elected");
    a.leave().await?;
    same!(world.purge(now()).await?.elections, 1, "unused elections");
    let b = world.member("b").await?;
    ensure!(b.win("e").await?.number > term.number, "the number rises");
    Ok(())
}

/// A member that expired is ended by a purge as by a member's bid, and what it held is void.
pub(crate) async fn a_purge_ends_the_expired(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    let b = world.member("b").await?;
    world.lapse(&[&b]).await?;
    let purged = world.purge(now()).await?;
    same!((purged.members, purged.elections), (1, 1), "members and elections");
    ensure!(!a.ended().await?, "its heartbeat is answered");
    ensure!(b.win("e").await?.number > term.number, "the number rises");
    Ok(())
}

/// A dry run counts, and changes nothing.
pub(crate) async fn a_dry_run_changes_nothing(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    for name in ["e", "f", "g"] {
        a.win(name).await?;
    }
    a.leave().await?;
    let before = world.read(&Query::everything()).await?;
    let foretold = world.purge(Purge { dry_run: true, most: 2, ..now() }).await?;
    same!(foretold.elections, 3, "elections that would be removed");
    let after = world.read(&Query::everything()).await?;
    same!((after.seq, after.elections.len()), (before.seq, 3), "what is there");
    same!(world.purge(now()).await?.elections, 3, "elections that are removed");
    Ok(())
}

/// Each step looks at so many elections and no more, and the next goes on after them.
pub(crate) async fn a_purge_goes_in_steps(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    for name in ["a", "b", "c", "d", "e"] {
        a.win(name).await?;
    }
    a.leave().await?;
    let first = Purge { most: 2, ..now() };
    let purged = world.purge_step(&first).await?;
    same!((purged.elections, purged.more), (2, true), "the first step");
    same!(purged.upto.as_ref().map(|name| name.as_str()), Some("b"), "where it ended");
    let Some(second) = first.following(&purged) else { fail!("there is a second") };
    let purged = world.purge_step(&second).await?;
    same!(purged.upto.as_ref().map(|name| name.as_str()), Some("d"), "where it ended");
    same!(world.purge(first).await?.elections, 1, "what is left");
    Ok(())
}

/// N2, M6: a namespace that all members left is emptied. A member that returns finds the journal at
/// its place, is told that entries are gone, and makes no era rise.
pub(crate) async fn an_abandoned_namespace_goes_on_where_it_was(world: &World<'_>) -> Outcome {
    if !world.purges().await {
        return Ok(());
    }
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    a.leave().await?;
    let place = world.read(&Query::nothing()).await?.seq;
    let purged = world.purge(now()).await?;
    ensure!(purged.journal && !purged.more, "nothing is left: {purged:?}");
    same!(world.read(&Query::nothing()).await?.seq, place, "the journal's place");
    let page = world.page(tenure_core::Seq::START).await?;
    same!(page, tenure_store::Page::Trimmed(place), "the entries from the first on");
    let b = world.member("b").await?;
    let claim = b.claim_for("e", b.next_nonce(), How::default())?;
    let Claimed::Won(next) = b.send_one(&claim.with_seen(place)).await? else {
        fail!("the election is free")
    };
    same!(next.number, term.number.next(), "the number, without a jump");
    Ok(())
}
