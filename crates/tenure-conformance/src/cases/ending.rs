//! Endings: a life ends in one step, whatever it held, and all it held is over
//! with it, also before that was written down (rule M5).

use tenure_core::{Amend, Amended, EndCause, Happening, Note, Query, ReleaseCause};

use crate::Outcome;
use crate::actor::How;
use crate::case::{ensure, same};
use crate::world::{World, election};

/// More than any store clears away in one step.
const MANY: usize = 100;

/// P2: one of very many terms is free like the only one of another, and so is
/// each of the rest.
pub(crate) async fn a_member_of_many_terms_is_taken_over_like_any_other(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let names: Vec<String> = (0..MANY).map(|i| format!("e{i:03}")).collect();
    let batch = world.capabilities().await.batch.max(1);
    for names in names.chunks(batch) {
        a.win_all(names).await?;
    }
    same!(a.holding().await?.len(), MANY, "terms held");
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    b.win("e007").await?;
    a.ended().await?;
    same!(a.holding().await?.len(), 0, "terms of the ended life");
    for name in ["e000", "e042", "e099"] {
        let before = b.view(name).await?;
        ensure!(before.holder.is_none(), "vacant before any bid: {before:?}");
        ensure!(before.candidates.is_empty(), "no member stands: {before:?}");
        let taken = b.win(name).await?;
        ensure!(taken.number > before.number, "{taken:?} follows {before:?}");
    }
    same!(b.holding().await?, ["e000", "e007", "e042", "e099"], "what was taken over");
    Ok(())
}

/// P2: nothing is left for an ended life to give back, nor for an operator to ask of it.
pub(crate) async fn the_terms_of_an_ended_life_are_over_before_the_next_bid(
    world: &World<'_>,
) -> Outcome {
    let a = world.taker("a").await?;
    let b = world.taker("b").await?;
    let one = a.win("one").await?;
    let two = a.win("two").await?;
    b.lose("two").await?;
    world.evict("a", true).await?;
    for name in ["one", "two"] {
        let view = world.view(name).await?;
        ensure!(view.holder.is_none(), "its terms are over: {view:?}");
    }
    let asked = Amend::StepDown {
        election: election("one")?,
        number: None,
        to: None,
        reason: Note::new("late"),
        by: Note::new("ops"),
    };
    same!(world.amend(asked).await?, Amended::Vacant, "a step-down of a vacant election");
    let before = world.read(&Query::everything()).await?.seq;
    a.resign(&one).await?;
    a.hand_over(&two, world.long()).await?;
    same!(world.read(&Query::everything()).await?.seq, before, "a late release in the journal");
    ensure!(world.view("two").await?.holder.is_none(), "and hands nothing over");
    ensure!(b.win("two").await?.number > two.number, "the successor's number is higher");
    Ok(())
}

/// P2: the journal tells of each term before the next one begins, with the cause of
/// the life's end.
pub(crate) async fn each_term_of_an_ended_life_is_written_off_before_the_next_begins(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let c = world.member("c").await?;
    let left = [a.win("one").await?, a.win("two").await?];
    let expired = b.win("three").await?;
    a.leave().await?;
    b.fade(world.unit()).await?;
    world.lapse(&[&b, &c]).await?;
    c.win("two").await?;
    c.win("three").await?;
    c.win("one").await?;
    if !world.capabilities().await.journal {
        return Ok(());
    }
    let story = world.happenings().await?;
    let ended = ReleaseCause::Ended(EndCause::Expired);
    for (term, expected) in
        [(&left[0], ReleaseCause::Left), (&left[1], ReleaseCause::Left), (&expired, ended)]
    {
        let of = |h: &&Happening| h.election() == Some(&term.election);
        let mut told = story.iter().filter(of).rev();
        let newest = told.next();
        let begun =
            matches!(newest, Some(Happening::Elected { term: next, .. }) if next.member == c.me);
        ensure!(begun, "the newest of {}: {newest:?}", term.election);
        let before = told.next();
        let over = matches!(before, Some(Happening::Released { number, member, cause, .. })
            if *number == term.number && *member == term.member && *cause == expected);
        ensure!(over, "{term:?} must be written off as {expected:?}: {before:?}");
    }
    let over = story.iter().filter(|h| matches!(h, Happening::Released { .. })).count();
    same!(over, 3, "terms written off");
    Ok(())
}

/// F4, C9: each vacancy is kept for the heir of that election.
pub(crate) async fn each_vacancy_of_an_ended_life_is_kept_for_its_own_heir(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    a.win("one").await?;
    a.win("two").await?;
    low.lose_by("two", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("two", How::priority(20)).await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &low, &high]).await?;
    // Ends the member; the other election is asked for later.
    low.win_by("one", How::priority(10).grace(world.long())).await?;
    let view = low.lose_by("two", How::priority(10).grace(world.long())).await?;
    same!(view.reserved.map(|r| r.member), Some(high.me.id.clone()), "the heir");
    high.win_by("two", How::priority(20)).await?;
    Ok(())
}

/// An ended life is not in the way of the next one under its id.
pub(crate) async fn a_new_life_inherits_what_its_older_one_held(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win_by("e", How::priority(20)).await?;
    b.lose_by("e", How::priority(10)).await?;
    world.evict("a", true).await?;
    let again = world.member("a").await?;
    let taken = again.win_by("e", How::priority(20).grace(world.long())).await?;
    ensure!(taken.number > term.number, "{taken:?} follows {term:?}");
    Ok(())
}

/// P2: one whose ttl has run out can be ended by hand, whatever it still holds.
pub(crate) async fn an_expired_member_can_be_evicted_at_once(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    let amended = world.evict("a", true).await?;
    let done = matches!(&amended, Amended::Done { member: Some(m), .. } if *m == a.me);
    ensure!(done, "the member is ended: {amended:?}");
    same!(world.evict("a", true).await?, Amended::NoSuchMember, "ended already");
    a.ended().await?;
    ensure!(b.win("e").await?.number > term.number, "what it held is free");
    Ok(())
}
