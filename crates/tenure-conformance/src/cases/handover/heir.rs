//! What the heir makes of a term that was handed to it: it takes it on, gives it
//! back, or says nothing.

use tenure_core::{Amended, Beat, Happening, Nonce, ReleaseCause, Term, TermOutcome};

use super::{
    Cast, HEIR, OTHER, asked_for, cast, elects_heirs, handed, keeps_instead, take_on, taken_on,
};
use crate::Outcome;
use crate::actor::{Actor, How, held, named, won};
use crate::case::{ensure, fail, same};
use crate::cases::amend::step_down;
use crate::cases::members::still_leads;
use crate::world::World;

/// Hands over for one unit. It may be over already before any member looks.
async fn hand_briefly(world: &World<'_>, a: &Actor, heir: &Actor, name: &str) -> Outcome<Term> {
    let term = a.win(name).await?;
    heir.lose(name).await?;
    a.hand_over(&term, world.unit()).await?;
    let number = world.view(name).await?.number;
    ensure!(number > term.number, "a new term has begun: {number} after {}", term.number);
    Ok(Term { number, member: heir.me.clone(), ..term })
}

/// The journal, where there is one, tells that the term was given up unused.
async fn abandoned(world: &World<'_>, term: &Term) -> Outcome {
    if !world.capabilities().await.journal {
        return Ok(());
    }
    let told = world.happenings().await?.into_iter().any(|happening| {
        matches!(happening, Happening::Released { number, member, cause, .. }
            if number == term.number && member == term.member && cause == ReleaseCause::Abandoned)
    });
    ensure!(told, "the journal tells that {term:?} was abandoned");
    Ok(())
}

/// T1: named in a heartbeat in time, it is a term like any other, which stands as
/// long as its holder lives.
pub(crate) async fn a_heartbeat_that_names_it_takes_it_on(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    let time = world.long() / 2;
    a.hand_over(&term, time).await?;
    let next = handed(world, "e", &heir).await?;
    take_on(&heir, &next).await?;
    taken_on(world, &next).await?;
    let left = world.view("e").await?.holder.map(|h| h.remaining);
    ensure!(left.is_some_and(|left| left > time), "what is left of the heir's own ttl: {left:?}");
    take_on(&heir, &next).await?;
    same!(other.lose_by("e", How::priority(OTHER)).await?.number, next.number, "the number");
    Ok(())
}

/// T1, E3: whichever way it was taken on, it stands beyond the time it was handed
/// for.
///
/// Where time is real, the machine may be too busy to do that in time; such a
/// round proves nothing and is played again.
pub(crate) async fn what_was_taken_on_outlives_its_time(world: &World<'_>) -> Outcome {
    if !elects_heirs(world).await {
        return keeps_instead(world).await;
    }
    let a = world.member("a").await?;
    let heir = world.taker("heir").await?;
    let clock = world.clock();
    for round in 0..10 {
        let beat = format!("by-beat-{round}");
        let bid = format!("by-bid-{round}");
        let sent = clock.now();
        let by_beat = hand_briefly(world, &a, &heir, &beat).await?;
        let by_bid = hand_briefly(world, &a, &heir, &bid).await?;
        let answer = asked_for(&heir, &by_beat).await?;
        let claimed = heir.bid(&bid, How::default()).await?;
        if clock.now().since(sent) >= world.unit() {
            continue;
        }
        same!(answer, TermOutcome::Renewed { step_down: None }, "what the heir is answered");
        same!(won(claimed)?.number, by_bid.number, "the number won");
        world.lapse(&[&a, &heir]).await?;
        for term in [&by_beat, &by_bid] {
            same!(a.lose(term.election.as_str()).await?.number, term.number, "the number");
            taken_on(world, term).await?;
        }
        return Ok(());
    }
    fail!("the machine is too busy: give the harness a longer unit")
}

/// E1: only its holder takes it on, under its own number, by its name.
pub(crate) async fn nothing_but_the_exact_term_is_taken_on(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    heir.alive().await?;
    handed(world, "e", &heir).await?;
    for (actor, named) in [(&a, &term), (&a, &next), (&other, &next), (&heir, &term)] {
        same!(asked_for(actor, named).await?, TermOutcome::Lost, "what another is answered");
        handed(world, "e", &heir).await?;
    }
    // An heir that would not lead any more has not taken it on either.
    heir.lose_by("e", How::priority(0)).await?;
    same!(handed(world, "e", &heir).await?, next, "the term that was handed over");
    Ok(())
}

/// E2, T1: the heir's bid wins what it has already; so does the same bid again,
/// and a new attempt is a new term as ever.
pub(crate) async fn a_bid_takes_it_on_under_the_number_it_has(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    // A win counts as a heartbeat: one that is about to expire lives on.
    heir.fade(world.unit()).await?;
    let bid = heir.claim_for("e", heir.next_nonce(), How::priority(HEIR))?;
    same!(won(heir.send_one(&bid).await?)?, next, "the term won");
    taken_on(world, &next).await?;
    same!(won(heir.send_one(&bid).await?)?, next, "the term won by the bid repeated");
    world.lapse(&[&heir, &other]).await?;
    same!(other.lose_by("e", How::priority(OTHER)).await?.number, next.number, "the number");
    taken_on(world, &next).await?;
    same!(heir.win_by("e", How::priority(HEIR)).await?, next, "the term won by a bid of its own");
    Ok(())
}

/// E2, B16: a copy of an older bid of the heir, whenever it comes, is not taken
/// for a new attempt.
pub(crate) async fn a_late_bid_of_the_heir_begins_no_new_term(world: &World<'_>) -> Outcome {
    if !elects_heirs(world).await {
        return keeps_instead(world).await;
    }
    let a = world.member("a").await?;
    let heir = world.taker("heir").await?;
    let bid = |nonce| heir.claim_for("e", Nonce::new(nonce), How::default());
    let term = a.win("e").await?;
    held(heir.send_one(&bid(5)?).await?)?;
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    for nonce in [3, 5, 7, 3, 6] {
        let term = won(heir.send_one(&bid(nonce)?).await?)?;
        same!(term.number, next.number, "the number of what was handed over");
        still_leads(world, "e", &next).await?;
    }
    heir.resign(&next).await?;
    held(heir.send_one(&bid(6)?).await?)?;
    let view = heir.view("e").await?;
    ensure!(view.holder.is_none() && view.candidates.is_empty(), "a late copy: {view:?}");
    Ok(())
}

/// E3: until then it belongs to the heir alone; nor does the release change
/// anything that comes once more.
pub(crate) async fn no_other_wins_before_its_time_is_over(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    for _ in 0..3 {
        world.pass(world.unit() / 2).await;
        let view = other.lose_by("e", How::priority(1_000)).await?;
        ensure!(view.handed_to(heir.me.incarnation).is_some(), "it is the heir's: {view:?}");
        a.lose_by("e", How::priority(1_000)).await?;
        a.hand_over(&term, world.long()).await?;
        same!(handed(world, "e", &heir).await?, next, "the term that was handed over");
    }
    take_on(&heir, &next).await
}

/// H8, M2, N3, C10: not taken on, it is seen as a vacancy although the heir lives and
/// beats; the first bidder takes it, and the heir is told.
pub(crate) async fn what_is_not_taken_on_lapses(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.unit()).await?;
    heir.alive().await?;
    world.lapse(&[&heir, &other]).await?;
    heir.alive().await?;
    let view = other.view("e").await?;
    ensure!(view.holder.is_none() && view.reserved.is_none(), "no member leads: {view:?}");
    ensure!(view.number > term.number, "its number is used up: {view:?}");
    same!(heir.holding().await?, [""; 0], "what the heir holds");
    same!(world.amend(step_down("e", None, None)?).await?, Amended::Vacant, "who can step down");
    let lapsed = Term { number: view.number, member: heir.me.clone(), ..term };
    let taken = other.win_by("e", How::priority(OTHER)).await?;
    ensure!(taken.number > lapsed.number, "{taken:?} follows {lapsed:?}");
    let standing = other.view("e").await?.candidates.into_iter().any(|c| c.member == heir.me);
    ensure!(!standing, "the candidacy of an heir that did not take it on is over");
    same!(asked_for(&heir, &lapsed).await?, TermOutcome::Lost, "what the heir is answered");
    heir.lose_by("e", How::priority(HEIR)).await?;
    heir.resign(&lapsed).await?;
    let standing = other.view("e").await?.candidates.into_iter().any(|c| c.member == heir.me);
    ensure!(standing, "a late release does not end a newer candidacy");
    taken_on(world, &taken).await?;
    abandoned(world, &lapsed).await
}

/// M1, T1: nor can the heir bring it back, whose trust in it is over by then. Its
/// bid is one like any other.
pub(crate) async fn nothing_revives_what_has_lapsed(world: &World<'_>) -> Outcome {
    if !elects_heirs(world).await {
        return keeps_instead(world).await;
    }
    let a = world.member("a").await?;
    let heir = world.taker("heir").await?;
    let lapsed = hand_briefly(world, &a, &heir, "e").await?;
    world.lapse(&[&a, &heir]).await?;
    same!(asked_for(&heir, &lapsed).await?, TermOutcome::Lost, "what the heir is answered");
    let view = world.view("e").await?;
    ensure!(view.holder.is_none(), "its time is over: {view:?}");
    let next = heir.win("e").await?;
    ensure!(next.number > lapsed.number, "{next:?} follows {lapsed:?}");
    taken_on(world, &next).await?;
    same!(asked_for(&heir, &lapsed).await?, TermOutcome::Lost, "what the heir is answered");
    abandoned(world, &lapsed).await
}

/// M1, M2: the heir's own life may be over first; then it is ended like any other
/// holder, and answers for nothing any more.
pub(crate) async fn a_dead_heir_is_ended_before_anything_is_taken(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    heir.fade(world.unit()).await?;
    world.lapse(&[&a, &other]).await?;
    ensure!(other.view("e").await?.holder.is_none(), "no member leads");
    let taken = other.win_by("e", How::priority(OTHER)).await?;
    ensure!(taken.number > next.number, "{taken:?} follows {next:?}");
    let beat = heir.beat_naming(vec![named(&next)]).await?;
    ensure!(matches!(beat, Beat::Ended { .. }), "the heir is ended: {beat:?}");
    heir.bid_ended("e").await?;
    heir.resign(&next).await?;
    same!(world.ids().await?, ["a", "other"], "the live members");
    taken_on(world, &taken).await
}

/// E1: what was handed over is the heir's to give, by its number or by leaving.
pub(crate) async fn the_heir_may_give_it_back_or_hand_it_on(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.long()).await?;
    let first = handed(world, "e", &heir).await?;
    heir.hand_over(&first, world.long()).await?;
    let second = handed(world, "e", &other).await?;
    ensure!(second.number > first.number, "{second:?} follows {first:?}");
    heir.lose_by("e", How::priority(HEIR)).await?;
    other.resign(&second).await?;
    let view = world.view("e").await?;
    ensure!(view.holder.is_none(), "it was given back: {view:?}");
    let third = a.win("e").await?;
    ensure!(third.number > second.number, "{third:?} follows {second:?}");
    a.hand_over(&third, world.long()).await?;
    let fourth = handed(world, "e", &heir).await?;
    heir.leave().await?;
    let view = world.view("e").await?;
    ensure!(view.holder.is_none() && view.number == fourth.number, "the heir left: {view:?}");
    ensure!(a.win("e").await?.number > fourth.number, "the election is free");
    Ok(())
}

/// E5: a step-down asked meanwhile is told to the heir as it takes the term on.
pub(crate) async fn a_step_down_reaches_one_who_takes_it_on(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    world.amend(step_down("e", Some(term.number), None)?).await?;
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    same!(world.view("e").await?.step_down, None, "a request that was meant for the last term");
    let before = heir.alive().await?;
    let to = Some(other.me.id.as_str());
    let amended = world.amend(step_down("e", Some(next.number), to)?).await?;
    let asked = matches!(&amended, Amended::Done { number, member, .. }
        if *number == Some(next.number) && member.as_ref() == Some(&heir.me));
    ensure!(asked, "the heir is asked: {amended:?}");
    ensure!(heir.alive().await? > before, "the heir's attention is raised");
    let step_down = world.view("e").await?.step_down;
    ensure!(step_down.is_some(), "the request is on view");
    let renewed = TermOutcome::Renewed { step_down };
    same!(asked_for(&heir, &next).await?, renewed, "what the heir is answered");
    taken_on(world, &next).await
}
