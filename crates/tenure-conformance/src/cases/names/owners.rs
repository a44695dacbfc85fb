//! Names and the lives that own them: what keeps a life, and what its end does.

use std::time::Duration;

use tenure_core::{BindOp, Bindings, EndCause, Happening, Joined, WhichNames};

use super::asking::{Owner, bound, plain, taken};
use super::with_names;
use crate::Outcome;
use crate::case::{ensure, same};
use crate::world::World;

/// More names than a store clears away in one step.
const MANY: usize = 150;

/// U3, M1, M2, Q3: nothing is taken from a life whose ttl has run out before it is ended in
/// the same step, so that its late heartbeat revives nothing.
pub(crate) async fn an_expired_owner_is_ended_before_its_name_is_taken(
    world: &World<'_>,
) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let first = a.take("n").await?;
    let other = a.take("other").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    same!(b.bound().await?, [], "what observers see of an expired owner");
    let next = b.take("n").await?;
    ensure!(next.token > first.token, "{next:?} follows {first:?}");
    a.ended().await?;
    for op in [a.taking("late")?, a.dropping(&other), a.changing(&other, "late")?] {
        let late = a.bind(&a.binds([op])).await?;
        ensure!(matches!(late, Bindings::Ended { .. }), "a late request is told: {late:?}");
    }
    same!(world.bound().await?, [plain(&next)], "what is bound");
    b.take("other").await?;
    if world.capabilities().await.journal {
        let story = world.happenings().await?;
        let ended = |h: &&Happening| {
            matches!(h,
            Happening::Ended { member, cause: EndCause::Expired, .. } if *member == a.me)
        };
        same!(story.iter().filter(ended).count(), 1, "ends in the journal");
    }
    Ok(())
}

/// Q5, T1: a binding counts as a heartbeat with the ttl of its request, also when it repeats
/// an earlier one.
pub(crate) async fn being_bound_counts_as_a_heartbeat(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let take = a.taking("n")?;
    for round in ["the first time", "repeated"] {
        a.fade(world.unit()).await?;
        let binding = bound(a.op(take.clone()).await?)?;
        let most = world.most_left(a.ttl).await;
        ensure!(binding.remaining <= most, "{round}, what is left: {binding:?}");
        ensure!(binding.remaining > a.ttl / 2, "{round}, what is left: {binding:?}");
        world.lapse(&[&a, &b]).await?;
        same!(plain(&b.refused("n").await?), plain(&binding), round);
        a.alive().await?;
    }
    Ok(())
}

/// Q5: to lose a name, to drop one or to bind one without an owner renews nothing.
pub(crate) async fn nothing_else_counts_as_a_heartbeat(world: &World<'_>) -> Outcome {
    with_names!(world);
    let b = world.owner("b").await?;
    b.take("taken").await?;
    for round in 0..3 {
        let a = world.owner(&format!("a{round}")).await?;
        let own = a.take("own").await?;
        a.fade(world.unit()).await?;
        let long = a.binds([match round {
            0 => a.taking("taken")?,
            1 => a.posting("notice")?,
            _ => a.dropping(&own),
        }]);
        a.bind(&long).await?;
        world.lapse(&[&a, &b]).await?;
        a.ended().await?;
        a.leave().await?;
    }
    Ok(())
}

async fn take_many(actor: &Owner, world: &World<'_>) -> Outcome {
    let texts: Vec<String> = (0..MANY).map(|i| format!("n{i:03}")).collect();
    for part in texts.chunks(world.capabilities().await.batch) {
        let ops: Vec<BindOp> =
            part.iter().map(|text| actor.taking(text)).collect::<Outcome<_>>()?;
        for answer in actor.ops(ops).await? {
            bound(answer)?;
        }
    }
    Ok(())
}

/// Q6, M5: whichever way a life ends, everything it owned is free in that moment.
pub(crate) async fn the_names_of_an_ended_life_are_free_at_once(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    let b = world.owner("b").await?;
    for round in 0..3 {
        let a = world.owner("a").await?;
        let again = world.coming("a").await?;
        take_many(&a, world).await?;
        let owned = world.names(&WhichNames::OwnedBy(a.me.clone())).await?;
        same!(owned.bindings.len(), MANY, "names of the life");
        match round {
            0 => a.leave().await?,
            1 => drop(world.evict("a", true).await?),
            _ => {
                a.fade(world.unit()).await?;
                world.lapse(&[&a, &b, &again]).await?;
            }
        }
        same!(b.bound().await?, [], "names of a life that is over");
        let owned = b.names(&WhichNames::OwnedBy(a.me.clone())).await?;
        same!(owned.bindings, [], "what it owns");
        if traits.since {
            let told = world.since(owned.rev).await?;
            same!(told.owners, [], "the lives that own names");
        }
        again.enter().await?;
        ensure!(again.me != a.me, "another life of the same id");
        let owned = world.names(&WhichNames::OwnedBy(again.me.clone())).await?;
        same!(owned.bindings, [], "what its next life owns");
        let last = b.take(&format!("n{:03}", MANY - 1)).await?;
        let next = again.take("n001").await?;
        same!(world.bound().await?, [plain(&next), plain(&last)], "what is taken anew");
        b.let_go(&last).await?;
        again.leave().await?;
    }
    Ok(())
}

/// B3: a newcomer takes the id of one that holds nothing; one that owns a name holds
/// something.
pub(crate) async fn an_owner_of_a_name_is_not_superseded(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let own = a.take("n").await?;
    let newcomer = world.life("a").await?;
    let joined = newcomer.join(true).await?;
    let refused = matches!(joined, Joined::Taken { by, .. } if by == a.me.incarnation);
    ensure!(refused, "its id is in use: {joined:?}");
    a.alive().await?;
    same!(world.bound().await?, [plain(&own)], "what is bound");
    a.let_go(&own).await?;
    let joined = newcomer.join(true).await?;
    ensure!(matches!(joined, Joined::In { .. }), "it holds nothing any more: {joined:?}");
    ensure!(a.ended().await?, "another took its place");
    Ok(())
}

/// Q2: one that was evicted owns what it owns for the rest of its ttl, and binds nothing.
pub(crate) async fn a_condemned_owner_keeps_its_names_for_its_ttl(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let own = a.take("n").await?;
    a.fade(world.unit()).await?;
    world.evict("a", false).await?;
    same!(plain(&b.refused("n").await?), plain(&own), "the binding");
    let late = a.bind(&a.binds([a.taking("more")?])).await?;
    ensure!(matches!(late, Bindings::Ended { .. }), "it binds nothing: {late:?}");
    world.lapse(&[&a, &b]).await?;
    ensure!(b.take("n").await?.token > own.token, "it is free after the ttl");
    Ok(())
}

/// A name that has no owner stays until it is dropped; any caller may change and
/// drop it.
pub(crate) async fn a_name_without_an_owner_stays_until_it_is_dropped(
    world: &World<'_>,
) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let posted = bound(a.op(a.posting("notice")?).await?)?;
    same!(posted.owner, None, "the owner");
    same!(posted.remaining, Duration::ZERO, "what is left of an owner's ttl");
    let repeated = b.posting("by no member")?;
    let unnamed = bound(b.unnamed(repeated.clone()).await?)?;
    same!(bound(b.unnamed(repeated).await?)?, unnamed, "the answer to a repeated request");
    a.leave().await?;
    same!(world.bound().await?, [plain(&unnamed), plain(&posted)], "what is bound");
    same!(taken(b.op(b.taking("notice")?).await?)?, posted, "it is not free");
    let repost = |rev| -> Outcome<BindOp> {
        let name = posted.name.clone();
        let token = posted.token;
        Ok(BindOp::repost(name, b.next_nonce(), token, rev, super::asking::value("new")?))
    };
    let wrong = super::gone(b.unnamed(repost(posted.rev.next())?).await?)?;
    same!(wrong, Some(posted.clone()), "the answer to a change of another revision");
    let changed = bound(b.unnamed(repost(posted.rev)?).await?)?;
    same!((changed.token, changed.owner.clone()), (posted.token, None), "token and owner");
    same!(super::gone(b.unnamed(b.dropping(&changed)).await?)?, None, "what a drop leaves");
    b.let_go(&unnamed).await?;
    let own = b.take("notice").await?;
    ensure!(own.token > changed.token, "{own:?} follows {changed:?}");
    Ok(())
}
