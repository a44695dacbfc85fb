//! Succession: for whom a vacancy is kept, for how long, and in which order the
//! candidates stand.

use std::time::Duration;

use tenure_core::Candidate;

use crate::Outcome;
use crate::actor::How;
use crate::case::{ensure, same};
use crate::world::World;

/// C9, F4.
pub(crate) async fn a_vacancy_is_kept_for_the_highest_priority(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let never = world.member("never").await?;
    let term = a.win_by("e", How::priority(500)).await?;
    low.lose_by("e", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("e", How::priority(20)).await?;
    never.lose_by("e", How::priority(0)).await?;
    a.resign_with(&term, None, world.long()).await?;
    let view = low.lose_by("e", How::priority(10)).await?;
    ensure!(view.holder.is_none(), "the election is vacant: {view:?}");
    same!(view.reserved.as_ref().map(|r| &r.member), Some(&high.me.id), "the heir");
    if let Some(reserved) = &view.reserved {
        let left = reserved.remaining;
        ensure!(!left.is_zero() && left <= world.long(), "how much longer: {left:?}");
    }
    high.win_by("e", How::priority(20)).await?;
    same!(world.view("e").await?.reserved, None, "a reservation that was used");
    Ok(())
}

/// C9: among equals, the one that has waited longest; bidding again keeps its place.
pub(crate) async fn among_equals_the_longest_wait_counts(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let late = world.member("b-late").await?;
    let early = world.member("c-early").await?;
    let term = a.win("e").await?;
    early.lose("e").await?;
    world.pass(world.unit() / 10).await;
    late.lose("e").await?;
    world.pass(world.unit() / 10).await;
    early.lose("e").await?;
    a.resign_with(&term, None, world.long()).await?;
    let view = late.lose("e").await?;
    same!(view.reserved.map(|r| r.member), Some(early.me.id.clone()), "the heir");
    early.win("e").await?;
    Ok(())
}

/// F4: the vacancy that a crash leaves is kept like any other.
pub(crate) async fn the_vacancy_of_an_expired_holder_is_kept_too(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let term = a.win("e").await?;
    low.lose_by("e", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("e", How::priority(20)).await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &low, &high]).await?;
    let view = low.lose_by("e", How::priority(10).grace(world.long())).await?;
    same!(view.reserved.map(|r| r.member), Some(high.me.id.clone()), "the heir");
    a.ended().await?;
    ensure!(
        high.win_by("e", How::priority(20)).await?.number > term.number,
        "the heir's number is higher"
    );
    Ok(())
}

/// C10: after its time a reservation holds no bid up.
pub(crate) async fn a_reservation_lapses_with_its_time(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let term = a.win("e").await?;
    low.lose_by("e", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("e", How::priority(20)).await?;
    a.resign_with(&term, None, world.unit()).await?;
    world.lapse(&[&low, &high]).await?;
    low.win_by("e", How::priority(10)).await?;
    Ok(())
}

/// C10: nor does one whose heir has gone.
pub(crate) async fn a_reservation_lapses_with_its_heir(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let term = a.win("e").await?;
    low.lose_by("e", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("e", How::priority(20)).await?;
    a.resign_with(&term, None, world.long()).await?;
    low.lose_by("e", How::priority(10)).await?;
    high.leave().await?;
    low.win_by("e", How::priority(10)).await?;
    Ok(())
}

/// C10: nor does one whose heir has died without a word.
pub(crate) async fn a_reservation_lapses_with_an_expired_heir(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let term = a.win("e").await?;
    low.lose_by("e", How::priority(10)).await?;
    high.lose_by("e", How::priority(20)).await?;
    a.resign_with(&term, None, world.long()).await?;
    high.fade(world.unit()).await?;
    world.lapse(&[&low]).await?;
    low.win_by("e", How::priority(10)).await?;
    Ok(())
}

/// C10: the hand-over names its successor, which leads, and no other in between.
pub(crate) async fn a_vacancy_is_kept_for_the_successor_named(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let term = a.win("e").await?;
    low.lose_by("e", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("e", How::priority(20)).await?;
    let before = low.alive().await?;
    let successor = Some((low.me.id.clone(), world.long()));
    a.resign_with(&term, successor, Duration::ZERO).await?;
    let view = high.lose_by("e", How::priority(20)).await?;
    same!(view.reserved.map(|r| r.member), Some(low.me.id.clone()), "the successor named");
    a.lose_by("e", How::priority(1_000)).await?;
    ensure!(low.alive().await? > before, "the successor's attention is raised");
    low.win_by("e", How::priority(10)).await?;
    Ok(())
}

/// C10: a successor that is not there to take over blocks no other.
pub(crate) async fn a_successor_that_is_gone_blocks_no_other(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let gone = world.member("gone").await?;
    let term = a.win("e").await?;
    b.lose("e").await?;
    gone.lose("e").await?;
    gone.leave().await?;
    let successor = Some((gone.me.id.clone(), world.long()));
    a.resign_with(&term, successor, Duration::ZERO).await?;
    b.win("e").await?;
    Ok(())
}

/// H22: a member that gives a term up is not its own heir.
pub(crate) async fn no_member_inherits_from_itself(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win_by("e", How::priority(1_000)).await?;
    b.lose_by("e", How::priority(1)).await?;
    a.resign_with(&term, None, world.long()).await?;
    let view = a.lose_by("e", How::priority(1_000)).await?;
    same!(view.reserved.map(|r| r.member), Some(b.me.id.clone()), "the heir");
    b.win_by("e", How::priority(1)).await?;
    Ok(())
}

/// Without a grace the first to come wins.
pub(crate) async fn no_grace_keeps_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let low = world.member("low").await?;
    let high = world.member("high").await?;
    let term = a.win("e").await?;
    low.lose_by("e", How::priority(10)).await?;
    world.pass(world.unit() / 10).await;
    high.lose_by("e", How::priority(20)).await?;
    a.resign(&term).await?;
    same!(world.view("e").await?.reserved, None, "a reservation with no grace");
    low.win_by("e", How::priority(10)).await?;
    Ok(())
}

/// F4: each candidate learns its rank; the holder and those that never lead do
/// not count.
pub(crate) async fn candidates_learn_how_many_are_ahead(world: &World<'_>) -> Outcome {
    let holder = world.member("holder").await?;
    holder.win_by("e", How::priority(1_000)).await?;
    let never = world.member("never").await?;
    never.lose_by("e", How::priority(0)).await?;
    let first = world.member("first").await?;
    same!(first.lose_by("e", How::priority(50)).await?.ahead, 0, "ahead of the only one");
    world.pass(world.unit() / 10).await;
    let equal = world.member("equal").await?;
    same!(equal.lose_by("e", How::priority(50)).await?.ahead, 1, "ahead of its equal");
    let top = world.member("top").await?;
    same!(top.lose_by("e", How::priority(60)).await?.ahead, 0, "ahead of the highest");
    same!(equal.view("e").await?.ahead, 2, "ahead of the last, by a read");
    same!(world.view("e").await?.ahead, 0, "ahead of a reader that is no member");
    top.leave().await?;
    same!(equal.view("e").await?.ahead, 1, "ahead of the last, with one gone");
    let modest = world.member("modest").await?;
    modest.win_by("f", How::priority(1)).await?;
    first.lose_by("f", How::priority(50)).await?;
    same!(modest.view("f").await?.ahead, 0, "ahead of the holder, which waits for nothing");
    Ok(())
}

/// F4: the list of candidates is in the order of preference.
pub(crate) async fn candidates_are_listed_in_order_of_preference(world: &World<'_>) -> Outcome {
    let watcher = world.member("watcher").await?;
    world.pause("e").await?;
    let mut standing = Vec::new();
    for (id, priority) in [("z-low", 1), ("y-mid", 50), ("x-mid", 50), ("w-top", 60)] {
        let member = world.member(id).await?;
        member.lose_by("e", How::priority(priority)).await?;
        standing.push(member);
        world.pass(world.unit() / 10).await;
    }
    let view = watcher.view("e").await?;
    let ids = |c: &[Candidate]| c.iter().map(|c| c.member.id.to_string()).collect::<Vec<_>>();
    same!(ids(&view.candidates), ["w-top", "y-mid", "x-mid", "z-low"], "the candidates");
    same!(view.candidates[1].member, standing[1].me, "the life that stands");
    same!(view.candidates[1].priority.get(), 50, "its priority");
    ensure!(view.candidates[1].waiting >= view.candidates[2].waiting, "the longer wait first");
    standing[3].withdraw("e").await?;
    let view = watcher.view("e").await?;
    same!(ids(&view.candidates), ["y-mid", "x-mid", "z-low"], "the candidates that are left");
    Ok(())
}
