//! Numbers that survive what the store forgets (M6). Cases cannot roll a store back:
//! they let a member have seen more than the store has, which is the same to it.

use tenure_core::{Amend, Amended, Era, Join, Joined, Note, Query, Seq, Term, TermNumber, Told};

use super::members::still_leads;
use crate::Outcome;
use crate::actor::{Actor, How, won};
use crate::case::{ensure, fail};
use crate::world::World;

/// A place that no journal of the suite gets to.
const SEEN: Seq = Seq::new(1_000_000);

async fn win_having_seen(actor: &Actor, seen: impl Into<Told>) -> Outcome<Term> {
    let claim = actor.claim_for("e", actor.next_nonce(), How::default())?;
    won(actor.send_one(&claim.with_seen(seen)).await?)
}

/// A number far ahead of every clock, that was never given out.
fn far_ahead(of: &Term) -> u64 {
    of.number.get().max(Era::HEEDED / 2) + (1 << 20)
}

/// Whether the era has risen between two terms, as it must where there is a journal.
fn jumped(actor: &Actor, before: &Term, after: &Term) -> Outcome {
    let expected = actor.store.capabilities().journal;
    let before = before.number.get();
    let after = after.number.get();
    ensure!((after > before + Era::JUMP) == expected, "{before} is followed by {after}");
    Ok(())
}

/// M6: the very bid that tells of it has a number above what was forgotten; and only
/// that one, since the journal goes on after what was seen.
pub(crate) async fn a_bid_that_has_seen_more_makes_the_numbers_jump(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let first = a.win("e").await?;
    let second = win_having_seen(&a, SEEN).await?;
    jumped(&a, &first, &second)?;
    let third = win_having_seen(&a, SEEN).await?;
    ensure!(third.number == second.number.next(), "it is known: {second:?}, {third:?}");
    if a.store.capabilities().journal {
        let place = world.read(&Query::everything()).await?.seq;
        ensure!(place > SEEN, "the journal goes on after what was seen: {place:?}");
    }
    Ok(())
}

/// M6: a store that has forgotten something gives out numbers just above the one that is
/// told, in one step, however far its clock is behind. Where nothing was forgotten the
/// number counts for nothing.
pub(crate) async fn a_bid_that_tells_a_number_wins_above_it(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let first = a.win("e").await?;
    let told = far_ahead(&first);
    let second = win_having_seen(&a, Told::new(Seq::START, TermNumber::new(told))).await?;
    ensure!(second.number == first.number.next(), "nothing was forgotten: {first:?}, {second:?}");
    let third = win_having_seen(&a, Told::new(SEEN, TermNumber::new(told))).await?;
    if a.store.capabilities().journal {
        ensure!(third.number.get() == told + 1, "{told} was told: {third:?}");
    }
    Ok(())
}

/// M6: no member can use the numbers up. What no clock can have reached lifts them by an era.
pub(crate) async fn a_bid_that_tells_an_absurd_number_lifts_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let mut last = a.win("e").await?;
    for (turn, absurd) in (1..).zip([Era::HEEDED, 1 << 53, u64::MAX]) {
        let seen = Told::new(Seq::new(SEEN.get() * turn), TermNumber::new(absurd));
        let next = win_having_seen(&a, seen).await?;
        ensure!(next.number.get() < Era::HEEDED, "{absurd} was told: {next:?} after {last:?}");
        jumped(&a, &last, &next)?;
        last = next;
    }
    Ok(())
}

/// M6: a member tells it when it joins, before any member is elected.
pub(crate) async fn a_join_that_has_seen_more_makes_the_numbers_jump(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let first = a.win("e").await?;
    let b = world.life("b").await?;
    let told = far_ahead(&first);
    let join = Join::new(b.me.clone(), b.ttl)
        .with_profile(b.profile.clone())
        .with_supersede(false)
        .with_seen(Told::new(SEEN, TermNumber::new(told)));
    let joined = b.store.join(&b.ns, &join).await?;
    ensure!(matches!(joined, Joined::In { .. }), "{joined:?}");
    let next = a.win("e").await?;
    let is_above = next.number.get() > told;
    ensure!(is_above == a.store.capabilities().journal, "{told} was told: {next:?}");
    jumped(&a, &first, &next)
}

/// M6: an operator's word does the same, and the leader goes on leading.
pub(crate) async fn an_operators_word_makes_the_numbers_jump(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let first = a.win("e").await?;
    let amended = a.store.amend(&a.ns, &Amend::Restored { by: Note::new("ops") }).await?;
    let Amended::Restored { before, after } = amended else { fail!("an era rises: {amended:?}") };
    ensure!(after > before, "the era rises: {amended:?}");
    still_leads(world, "e", &first).await?;
    let second = a.win("e").await?;
    ensure!(second.number.get() > first.number.get() + Era::JUMP, "{first:?}, {second:?}");
    // Of an election that the store may have forgotten altogether.
    let other = a.win("other").await?;
    ensure!(other.number.get() > Era::JUMP, "{first:?}, {other:?}");
    let third = a.win("e").await?;
    ensure!(third.number == second.number.next(), "once only: {second:?}, {third:?}");
    Ok(())
}

/// U6: a new era is in every member's next heartbeat, and in no other: what a member owns may
/// be among what was forgotten. A second era is told as well as the first.
pub(crate) async fn an_era_raises_the_attention_of_every_member(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    // Who holds nothing may be told later, where the observer judges.
    a.win("e").await?;
    b.win("f").await?;
    // Said twice each, the second time by the store's shorter way, if it has one.
    let mut last = [a.alive().await?, b.alive().await?];
    let same = [a.alive().await?, b.alive().await?];
    let mut told = last.iter().zip(same);
    ensure!(!told.any(|(x, y)| Era::has_begun(*x, y)), "no era began: {last:?}, {same:?}");
    for turn in 1..=2 {
        a.store.amend(&a.ns, &Amend::Restored { by: Note::new("ops") }).await?;
        let after = [a.alive().await?, b.alive().await?];
        let called = last.iter().zip(after).all(|(x, y)| Era::has_begun(*x, y));
        ensure!(called, "era {turn} began: {last:?}, {after:?}");
        last = after;
    }
    Ok(())
}

/// M6: a store that tells of its era tells when and why it began. One that keeps none, or
/// does not keep when it began, says so.
pub(crate) async fn the_beginning_of_an_era_is_told_with_its_reason(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    a.win("e").await?;
    let Some(examined) = world.read(&Query::examination()).await?.examined else {
        fail!("a query that examines is answered");
    };
    let Some(before) = examined.era else { return Ok(()) };
    a.store.amend(&a.ns, &Amend::Restored { by: Note::new("ops") }).await?;
    let term = a.win("e").await?;
    let examined = world.read(&Query::examination()).await?.examined;
    let Some(after) = examined.and_then(|examined| examined.era) else { fail!("an era stays") };
    ensure!(after.era.count() > before.era.count(), "{before:?}, {after:?}");
    ensure!(after.raised.is_some(), "an era began: {after:?}");
    ensure!(after.raised != before.raised, "{before:?}, {after:?}");
    ensure!(after.raised.as_ref().is_some_and(|r| r.why.contains("restored")), "{after:?}");
    ensure!(after.highest >= term.number, "{term:?}: {after:?}");
    let silent = world.read(&Query::nothing()).await?.examined;
    ensure!(silent.is_none(), "what was not asked for is not told: {silent:?}");
    Ok(())
}
