//! Names: each is bound to one life or without an owner, under a token that only rises. A store
//! that keeps none says so; every other case is then passed.

mod asking;
mod batches;
mod owners;
mod purged;
mod reads;

use std::sync::Arc;

pub(crate) use batches::*;
pub(crate) use owners::*;
pub(crate) use purged::*;
pub(crate) use reads::*;
use tenure_core::{Bind, BindAnswer, BindOp, Bindings, Nonce, Query, Token, WhichNames};
use tenure_store::ErrorKind;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::contention::all;
use crate::Outcome;
use crate::case::{ensure, fail, same};
use crate::world::World;
use asking::{bound, gone, name, plain, taken, value};

/// Ends a case about names where there are none.
macro_rules! with_names {
    ($world:expr) => {
        match $world.name_traits().await {
            Some(traits) => traits,
            None => return Ok(()),
        }
    };
}
use with_names;

/// A store that keeps no names answers both verbs with an error that says so; one that
/// keeps them answers both.
pub(crate) async fn a_store_that_keeps_no_names_says_so(world: &World<'_>) -> Outcome {
    let a = world.owner("a").await?;
    let bind = a.binds([a.taking("n")?]);
    let bindings = a.store.bind(&a.ns, &bind).await;
    let names = a.store.names(&a.ns, &WhichNames::Prefix(String::new())).await;
    if world.name_traits().await.is_some() {
        ensure!(matches!(bindings, Ok(Bindings::Answered(_))), "a bind: {bindings:?}");
        ensure!(names.is_ok(), "a look: {names:?}");
        return Ok(());
    }
    for error in [bindings.err(), names.err()] {
        let Some(error) = error else { fail!("names are denied, and kept all the same") };
        same!(error.kind(), ErrorKind::Invalid, "the kind of the refusal");
        ensure!(!error.may_have_applied(), "nothing was done: {error}");
        ensure!(error.to_string().contains("keeps no names"), "it says why: {error}");
    }
    Ok(())
}

/// U1, U7, Q3: two tasks of one process conflict like two processes, and the one that is refused
/// is told by whom.
pub(crate) async fn a_name_has_one_owner(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let first = a.take("n").await?;
    same!(first.owner, Some(a.me.clone()), "the owner");
    same!(first.token, first.rev.token(), "the token is the revision of the take");
    same!(first.value, value("n")?, "the value");
    for actor in [&b, &a] {
        let told = actor.refused("n").await?;
        same!(plain(&told), plain(&first), "what one is told who comes too late");
        ensure!(told.remaining > std::time::Duration::ZERO, "what is left: {told:?}");
    }
    same!(world.bound().await?, [plain(&first)], "what is bound");
    Ok(())
}

/// U1: of many who take one name at the same moment exactly one owns it.
pub(crate) async fn of_many_who_race_exactly_one_takes_a_name(world: &World<'_>) -> Outcome {
    const RACERS: usize = 8;
    with_names!(world);
    let mut actors = Vec::new();
    for i in 0..RACERS {
        actors.push(Arc::new(world.owner(&format!("racer-{i}")).await?));
    }
    for round in 0..3 {
        let text = format!("n{round}");
        let barrier = Arc::new(Barrier::new(RACERS));
        let mut racers = JoinSet::new();
        for actor in &actors {
            let actor = actor.clone();
            let text = text.clone();
            let barrier = barrier.clone();
            racers.spawn(async move {
                barrier.wait().await;
                let op = actor.taking(&text)?;
                actor.op(op).await
            });
        }
        let answers = all(racers).await?;
        let winners = answers.iter().filter(|a| matches!(a, BindAnswer::Bound(_))).count();
        same!(winners, 1, format!("owners of {text}"));
        let mut told: Vec<_> = answers.iter().filter_map(BindAnswer::binding).collect();
        same!(told.len(), RACERS, "all are told");
        told.dedup_by_key(|binding| (binding.token, binding.owner.clone()));
        same!(told.len(), 1, "all are told the same");
    }
    Ok(())
}

/// E2, Q3, Q4: whose answer was lost repeats its nonce, and nothing happens twice.
pub(crate) async fn what_is_repeated_is_answered_alike(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let take = a.taking("n")?;
    let first = bound(a.op(take.clone()).await?)?;
    same!(plain(&bound(a.op(take).await?)?), plain(&first), "the answer to a repeated take");
    let change = a.changing(&first, "other")?;
    let changed = bound(a.op(change.clone()).await?)?;
    same!(plain(&bound(a.op(change).await?)?), plain(&changed), "a repeated change");
    world.has_reached(changed.rev, "the revision: nothing happened twice").await?;
    let drop = a.dropping(&changed);
    for _ in 0..2 {
        same!(gone(a.op(drop.clone()).await?)?, None, "what a drop leaves");
    }
    Ok(())
}

/// E2, Q3, Q4: a copy of an older request is only a late copy.
pub(crate) async fn an_older_attempt_changes_nothing(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let take = |nonce| -> Outcome<BindOp> {
        Ok(BindOp::take(name("n")?, Nonce::new(nonce), value("old")?))
    };
    let first = bound(a.op(take(2)?).await?)?;
    let change = |nonce, text| -> Outcome<BindOp> {
        Ok(BindOp::change(name("n")?, Nonce::new(nonce), first.token, value(text)?))
    };
    let changed = bound(a.op(change(5, "new")?).await?)?;
    for late in [take(1)?, take(2)?] {
        same!(plain(&taken(a.op(late).await?)?), plain(&changed), "the answer to a late take");
    }
    let told = gone(a.op(change(4, "late")?).await?)?;
    same!(told.as_ref().map(plain), Some(plain(&changed)), "the answer to a late change");
    same!(world.bound().await?, [plain(&changed)], "what is bound");
    Ok(())
}

/// U4, E1: a change or a drop names the token, and is the owner's alone.
pub(crate) async fn late_and_foreign_operations_change_nothing(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let before = a.take("n").await?;
    a.let_go(&before).await?;
    let now = b.take("n").await?;
    ensure!(now.token > before.token, "{now:?} follows {before:?}");
    let late = [a.dropping(&before), a.changing(&before, "late")?];
    let foreign = [a.dropping(&now), a.changing(&now, "foreign")?];
    let unowned = BindOp::repost(name("n")?, a.next_nonce(), now.token, now.rev, value("x")?);
    let none_such = BindOp::drop(name("n")?, b.next_nonce(), before.token);
    for op in late.into_iter().chain(foreign).chain([unowned.clone()]) {
        let told = gone(a.op(op).await?)?;
        same!(told.as_ref().map(plain), Some(plain(&now)), "what is there instead");
    }
    for op in [a.dropping(&now), unowned] {
        let told = gone(a.unnamed(op).await?)?;
        same!(told.as_ref().map(plain), Some(plain(&now)), "what no member in particular is told");
    }
    same!(gone(b.op(none_such).await?)?.as_ref().map(plain), Some(plain(&now)), "an older token");
    same!(plain(&taken(a.unnamed(a.posting("n")?).await?)?), plain(&now), "a notice in its place");
    same!(world.bound().await?, [plain(&now)], "what is bound");
    Ok(())
}

/// Q4: the value changes, the token does not.
pub(crate) async fn a_change_keeps_the_token(world: &World<'_>) -> Outcome {
    with_names!(world);
    let a = world.owner("a").await?;
    let first = a.take("n").await?;
    let mut last = first.clone();
    for text in ["one", "two"] {
        let changed = bound(a.op(a.changing(&first, text)?).await?)?;
        same!(changed.token, first.token, "the token");
        same!(changed.bound_at, first.bound_at, "when it was taken");
        same!(changed.value, value(text)?, "the value");
        ensure!(changed.rev > last.rev, "{changed:?} follows {last:?}");
        last = changed;
    }
    same!(world.bound().await?, [plain(&last)], "what is bound");
    Ok(())
}

/// U2, Q7: whatever becomes of a name, the next token is higher; and so it is over all names,
/// where the namespace counts the revisions.
pub(crate) async fn tokens_only_rise(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    let b = world.owner("b").await?;
    let other = b.take("other").await?.token;
    let mut newest = if traits.since { other } else { Token::new(0) };
    let mut a = world.owner("a").await?;
    for round in 0..4 {
        let taken = a.take("n").await?;
        ensure!(taken.token > newest, "round {round}: {taken:?} after {newest}");
        newest = taken.token;
        // A handle of its own each time, as after a restart.
        let next = world.coming("a").await?;
        match round {
            0 => {
                a.let_go(&taken).await?;
                let again = a.take("n").await?;
                ensure!(again.token > newest, "after a drop: {again:?} after {newest}");
                newest = again.token;
                a.leave().await?;
            }
            1 => {
                world.evict("a", true).await?;
            }
            2 => {
                a.fade(world.unit()).await?;
                world.lapse(&[&a, &b, &next]).await?;
            }
            _ => a.leave().await?,
        }
        next.enter().await?;
        a = next;
        let other = b.take(&format!("n{round}")).await?;
        if traits.since {
            ensure!(other.token > newest, "another name: {other:?} after {newest}");
            newest = other.token;
        }
    }
    Ok(())
}

/// Names would push the history of terms out of the journal; and what changes nothing
/// writes nothing (Q9).
pub(crate) async fn names_are_not_in_the_journal(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    let a = world.owner("a").await?;
    let b = world.owner("b").await?;
    let before = world.read(&Query::nothing()).await?.seq;
    let first = a.take("n").await?;
    let changed = bound(a.op(a.changing(&first, "other")?).await?)?;
    b.refused("n").await?;
    gone(b.op(b.dropping(&changed)).await?)?;
    let nothing: Vec<BindOp> = Vec::new();
    same!(b.bind(&Bind::anonymous(nothing)).await?, Bindings::Answered(Vec::new()), "no operation");
    world.has_reached(changed.rev, "the revision after what changed nothing").await?;
    a.let_go(&changed).await?;
    ensure!(!traits.since || world.rev().await? > changed.rev, "a drop has a revision");
    same!(world.read(&Query::nothing()).await?.seq, before, "the journal's place");
    Ok(())
}

/// Q8 and the isolation of namespaces: the same names, the same lives even.
pub(crate) async fn each_namespace_has_names_of_its_own(world: &World<'_>) -> Outcome {
    with_names!(world);
    let red = world.namespace("red")?;
    let blue = world.namespace("blue")?;
    let in_red = red.owner("a").await?;
    let in_blue = blue.owner("a").await?;
    let first = in_red.take("n").await?;
    same!(blue.bound().await?, [], "names of another namespace");
    let other = in_blue.take("n").await?;
    in_red.take("m").await?;
    let dropped = in_red.op(in_red.dropping(&first)).await?;
    same!(gone(dropped)?, None, "what a drop leaves");
    same!(blue.bound().await?, [plain(&other)], "the names of the other namespace");
    blue.has_reached(other.rev, "its revision").await?;
    in_red.leave().await?;
    same!(red.bound().await?, [], "names of one that left");
    same!(blue.bound().await?, [plain(&other)], "the names of the other namespace");
    Ok(())
}
