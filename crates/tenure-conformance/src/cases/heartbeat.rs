//! Heartbeats: they keep the living alive, and never wake the dead.

use tenure_core::{Beat, Query, TermOutcome};
use tenure_store::Judge;

use super::members::still_leads;
use crate::Outcome;
use crate::actor::named;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// C2: renewed in time, a term stands far beyond its first ttl.
///
/// Where time is real, the machine may be too busy to beat in time; such a round
/// proves nothing and is played again.
pub(crate) async fn heartbeats_in_time_keep_a_term_standing(world: &World<'_>) -> Outcome {
    let clock = world.clock();
    let ttl = world.unit() * 2;
    for round in 0..10 {
        let mut a = world.member(&format!("a{round}")).await?;
        let b = world.member(&format!("b{round}")).await?;
        let name = format!("e{round}");
        a.ttl = ttl;
        let term = a.win(&name).await?;
        let mut sent = clock.now();
        let mut on_time = true;
        for _ in 0..4 {
            world.pass(world.unit()).await;
            let next = clock.now();
            let beat = a.beat().await?;
            on_time &= clock.now().since(sent) < ttl;
            sent = next;
            let alive = matches!(beat, Beat::Alive { .. });
            ensure!(alive || !on_time, "a heartbeat in time was refused: {beat:?}");
        }
        let lost = b.lose(&name).await;
        if clock.now().since(sent) < ttl && on_time {
            let view = lost?;
            same!(view.number, term.number, "the number of the term");
            return Ok(());
        }
    }
    fail!("the machine is too busy to beat every {ttl:?}: give the harness a longer unit")
}

/// M1, H7, C6, P15: an expired member without a successor cannot renew.
pub(crate) async fn an_expired_member_is_answered_ended(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    a.ended().await?;
    a.ended().await?;
    let view = b.view("e").await?;
    ensure!(view.holder.is_none(), "a refused heartbeat revives nothing: {view:?}");
    ensure!(b.win("e").await?.number > term.number, "the election is free");
    Ok(())
}

/// C4, C32, B16: the heartbeat was on its way while another took over.
pub(crate) async fn a_late_heartbeat_does_not_touch_the_successor(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.win("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    let term = b.win("e").await?;
    a.ended().await?;
    still_leads(world, "e", &term).await?;
    b.alive().await?;
    Ok(())
}

/// M3, H24: each heartbeat states the ttl that counts from then on.
pub(crate) async fn the_ttl_stated_last_counts(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    a.alive().await?;
    world.lapse(&[&a, &b]).await?;
    same!(b.lose("e").await?.number, term.number, "the longer ttl, stated last, has begun");
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    ensure!(b.win("e").await?.number > term.number, "the shorter ttl, stated last, has run out");
    Ok(())
}

/// M1: who never joined is not alive either.
pub(crate) async fn a_stranger_is_answered_ended(world: &World<'_>) -> Outcome {
    let stranger = world.life("x").await?;
    let _a = world.member("a").await?;
    same!(stranger.ended().await?, false, "superseded, although no member has its id");
    same!(world.ids().await?, ["a"], "the live members");
    Ok(())
}

/// C12: a heartbeat is no news, whatever is held.
pub(crate) async fn heartbeats_are_not_journalled(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    a.win("e").await?;
    let before = world.read(&Query::nothing()).await?.seq;
    for _ in 0..10 {
        a.alive().await?;
    }
    same!(world.read(&Query::nothing()).await?.seq, before, "the journal position");
    Ok(())
}

/// C12: one heartbeat is for everything held, and answers for the terms it names
/// exactly where it can take on what was handed over.
pub(crate) async fn a_heartbeat_answers_as_the_store_claims(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let one = a.win("one").await?;
    let _two = a.win("two").await?;
    let beat = a.beat_naming(a.held()).await?;
    let Beat::Alive { holds, terms, .. } = &beat else {
        fail!("the member is alive: {beat:?}");
    };
    if answers_for_terms(world).await {
        let mut answered: Vec<_> = terms.iter().map(|t| t.term.clone()).collect();
        let mut named = a.held();
        answered.sort();
        named.sort();
        same!(answered, named, "the terms answered for");
        let renewed = terms.iter().all(|t| matches!(t.outcome, TermOutcome::Renewed { .. }));
        ensure!(renewed, "each is renewed: {terms:?}");
    } else {
        same!(*terms, [], "answers for single terms from a store that does not hand over");
    }
    // A store that judges can count; one that swaps a single record cannot.
    if world.capabilities().await.judge == Judge::Store {
        same!(*holds, Some(2), "the number of terms held");
    }
    let left = holds.map(|_| 1);
    a.resign(&one).await?;
    let beat = a.beat().await?;
    let one_left = matches!(beat, Beat::Alive { holds, .. } if holds == left);
    ensure!(one_left, "one term is left: {beat:?}");
    Ok(())
}

/// Whether a heartbeat is answered for each term it names: only where it takes on
/// what was handed over.
pub(super) async fn answers_for_terms(world: &World<'_>) -> bool {
    world.capabilities().await.elects_heirs
}

/// E1, B2: a heartbeat that names another's term, or an older one of its own,
/// renews nothing and gains nothing.
pub(crate) async fn a_heartbeat_names_terms_in_vain_that_are_not_its_own(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let theirs = a.win("theirs").await?;
    let older = b.win("mine").await?;
    b.resign(&older).await?;
    let beat = b.beat_naming(vec![named(&theirs), named(&older)]).await?;
    let Beat::Alive { terms, .. } = &beat else {
        fail!("the member is alive: {beat:?}");
    };
    let expected = if answers_for_terms(world).await { 2 } else { 0 };
    same!(terms.len(), expected, "answers for single terms");
    ensure!(terms.iter().all(|t| t.outcome == TermOutcome::Lost), "neither is its own: {terms:?}");
    still_leads(world, "theirs", &theirs).await?;
    ensure!(world.view("mine").await?.holder.is_none(), "an older term stays over");
    Ok(())
}
