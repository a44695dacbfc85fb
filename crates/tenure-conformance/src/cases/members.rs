//! Members: who is in, who is out, and who may take whose place.

use tenure_core::{Happening, Joined, Profile, Query, Term};

use crate::Outcome;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// C30, H26.
pub(crate) async fn a_member_is_listed_with_what_it_published(world: &World<'_>) -> Outcome {
    let profile = Profile::new(["10.0.0.7:8080", "[::1]:9090"], b"zone=a")?;
    let a = world.member_with("a", profile.clone()).await?;
    world.member("b").await?;
    same!(world.ids().await?, ["a", "b"], "the live members");
    let seen = world.read(&Query::members()).await?;
    let found = seen.members.iter().find(|m| m.member == a.me);
    if let Some(view) = found {
        same!(view.profile, profile, "what the member published");
        same!(view.ttl, a.ttl, "the ttl the member wrote");
        let most = world.most_left(a.ttl).await;
        ensure!(view.remaining <= most, "no more is left than the ttl: {view:?}");
        same!(view.holds, 0, "terms held");
        return Ok(());
    }
    fail!("the life that joined is the one listed: {:?}", seen.members)
}

/// E2: the answer to the first join was lost.
pub(crate) async fn a_repeated_join_is_answered_like_the_first(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    a.enter().await?;
    a.alive().await?;
    same!(world.ids().await?, ["a"], "the live members");
    if world.capabilities().await.journal {
        let joined = world.happenings().await?;
        let joined = joined.iter().filter(|h| matches!(h, Happening::Joined { .. })).count();
        same!(joined, 1, "journal entries about one join made twice");
    }
    Ok(())
}

/// C30.
pub(crate) async fn a_member_that_leaves_is_gone_at_once(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let _b = world.member("b").await?;
    a.leave().await?;
    same!(world.ids().await?, ["b"], "the live members");
    same!(a.ended().await?, false, "superseded, without a successor");
    a.leave().await?;
    world.member("a").await?;
    Ok(())
}

/// C31.
pub(crate) async fn leaving_releases_everything_held_and_only_that(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let one = a.win("one").await?;
    let two = a.win("two").await?;
    let other = b.win("other").await?;
    b.lose("one").await?;
    a.leave().await?;
    for (name, term) in [("one", &one), ("two", &two)] {
        let view = world.view(name).await?;
        ensure!(view.holder.is_none(), "{name} is vacant: {view:?}");
        same!(view.number, term.number, "the number outlives its term");
    }
    let view = world.view("other").await?;
    ensure!(view.is_held_by(b.me.incarnation), "other is not touched: {view:?}");
    same!(view.number, other.number, "the number of another's term");
    ensure!(b.win("one").await?.number > one.number, "the next term has a higher number");
    Ok(())
}

/// C30.
pub(crate) async fn an_expired_member_is_not_listed(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&b]).await?;
    let seen = b.read(&Query::members()).await?;
    let ids: Vec<_> = seen.members.iter().map(|m| m.member.id.as_str()).collect();
    same!(ids, ["b"], "the live members");
    Ok(())
}

/// B3: two processes chose the same id.
pub(crate) async fn a_namesake_waits_while_the_first_holds_something(world: &World<'_>) -> Outcome {
    let first = world.member("a").await?;
    let term = first.win("e").await?;
    let second = world.life("a").await?;
    for supersede in [false, true] {
        match second.join(supersede).await? {
            Joined::Taken { by, remaining } => {
                same!(by, first.me.incarnation, "who has the id");
                let most = world.most_left(first.ttl).await;
                ensure!(remaining <= most, "what is left of its ttl: {remaining:?}");
            }
            joined => fail!("the id is taken: {joined:?}"),
        }
    }
    still_leads(world, "e", &term).await?;
    second.ended().await?;
    first.alive().await?;
    Ok(())
}

/// C32.
pub(crate) async fn a_newer_life_supersedes_one_that_holds_nothing(world: &World<'_>) -> Outcome {
    let first = world.member("a").await?;
    let second = world.life("a").await?;
    let joined = second.join(false).await?;
    ensure!(matches!(joined, Joined::Taken { .. }), "not without being asked to: {joined:?}");
    let joined = second.join(true).await?;
    ensure!(matches!(joined, Joined::In { .. }), "the newer life is in: {joined:?}");
    same!(first.ended().await?, true, "the older life is told it was superseded");
    same!(first.bid_ended("e").await?, true, "and so is its claim");
    second.alive().await?;
    Ok(())
}

/// C32, H23: a restart under the same id is a new life, and inherits nothing.
pub(crate) async fn an_expired_namesake_makes_room_and_loses_its_terms(
    world: &World<'_>,
) -> Outcome {
    let first = world.member("a").await?;
    let term = first.win("e").await?;
    let second = world.life("a").await?;
    first.fade(world.unit()).await?;
    world.lapse(&[&first, &second]).await?;
    second.enter().await?;
    let view = second.view("e").await?;
    ensure!(view.holder.is_none(), "the new life leads nothing by its name alone: {view:?}");
    same!(first.ended().await?, true, "the older life is told it was superseded");
    ensure!(second.win("e").await?.number > term.number, "the next term has a higher number");
    Ok(())
}

/// C32, H8.
pub(crate) async fn the_late_leave_of_an_older_life_changes_nothing(world: &World<'_>) -> Outcome {
    let first = world.member("a").await?;
    let second = world.life("a").await?;
    second.join(true).await?;
    let term = second.win("e").await?;
    first.leave().await?;
    second.alive().await?;
    still_leads(world, "e", &term).await
}

/// M1, C6: whatever a late join of a life that is over is answered, the term it
/// held does not come back.
pub(crate) async fn a_late_join_brings_no_term_back(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    a.join(true).await?;
    let view = b.view("e").await?;
    ensure!(view.holder.is_none(), "the expired term stays over: {view:?}");
    ensure!(b.win("e").await?.number > term.number, "the election is free");
    Ok(())
}

/// The term stands as it was.
pub(crate) async fn still_leads(world: &World<'_>, name: &str, term: &Term) -> Outcome {
    let view = world.view(name).await?;
    ensure!(view.is_held_by(term.member.incarnation), "{} leads {name}: {view:?}", term.member);
    same!(view.number, term.number, "the number of the term");
    Ok(())
}
