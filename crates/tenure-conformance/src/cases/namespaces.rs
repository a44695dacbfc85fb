//! Namespaces: nothing of one is seen in, or changed by, another.

use tenure_core::{Amended, Query, Seq};

use super::members::still_leads;
use crate::Outcome;
use crate::case::{ensure, same};
use crate::world::World;

/// C5: the same ids, the same elections, the same incarnations even.
pub(crate) async fn namespaces_elect_independently(world: &World<'_>) -> Outcome {
    let red = world.namespace("red")?;
    let blue = world.namespace("blue")?;
    let in_red = red.member("a").await?;
    let in_blue = blue.member("a").await?;
    let first = in_red.win("e").await?;
    let other = in_blue.win("e").await?;
    same!(first.number, other.number, "the first number of each");
    let again = in_red.win("e").await?;
    still_leads(&red, "e", &again).await?;
    still_leads(&blue, "e", &other).await?;
    in_red.leave().await?;
    still_leads(&blue, "e", &other).await?;
    in_blue.alive().await?;
    ensure!(red.view("e").await?.holder.is_none(), "only the one that left has left");
    Ok(())
}

/// C5: neither members nor elections are seen from another namespace.
pub(crate) async fn namespaces_do_not_see_each_other(world: &World<'_>) -> Outcome {
    let red = world.namespace("red")?;
    let blue = world.namespace("blue")?;
    let a = red.member("a").await?;
    a.win("e").await?;
    red.pause("paused").await?;
    let seen = blue.read(&Query { history: 100, ..Query::everything() }).await?;
    same!(seen.elections, [], "elections of another namespace");
    same!(seen.members, [], "members of another namespace");
    same!(seen.history, [], "history of another namespace");
    same!(seen.seq, Seq::START, "the position in an empty journal");
    let member = blue.member("b").await?;
    member.win("paused").await?;
    Ok(())
}

/// C5: the operator's verbs stay where they are said.
pub(crate) async fn operators_act_on_one_namespace(world: &World<'_>) -> Outcome {
    let red = world.namespace("red")?;
    let blue = world.namespace("blue")?;
    let in_red = red.member("a").await?;
    let in_blue = blue.member("a").await?;
    let _ = in_red.win("e").await?;
    let term = in_blue.win("e").await?;
    red.pause("e").await?;
    red.evict("a", true).await?;
    same!(blue.view("e").await?.paused, None, "a pause of another namespace");
    still_leads(&blue, "e", &term).await?;
    in_blue.alive().await?;
    same!(blue.resume("e").await?, Amended::Unchanged, "there is nothing to resume");
    Ok(())
}

/// C5: each journal is its own, from its first place on.
pub(crate) async fn each_namespace_has_a_journal_of_its_own(world: &World<'_>) -> Outcome {
    let red = world.namespace("red")?;
    let blue = world.namespace("blue")?;
    for round in 0..5 {
        red.member(&format!("a{round}")).await?;
    }
    blue.member("b").await?;
    if !world.capabilities().await.journal {
        same!(blue.read(&Query::nothing()).await?.seq, Seq::START, "the position");
        return Ok(());
    }
    let told = blue.entries(Seq::START).await?;
    same!(told.len(), 1, "entries of this namespace");
    same!(told[0].seq.get(), 1, "the first place");
    Ok(())
}

/// C5: names that are alike are not the same.
pub(crate) async fn names_that_are_alike_are_kept_apart(world: &World<'_>) -> Outcome {
    let alike = ["e", "E", "e ".trim_end(), "é", "e\u{301}", "e/1", "e:1", "e%", "e_", "e'", "e\""];
    let mut distinct: Vec<_> = alike.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for ns in ["n", "N", "n/e", "n:e", "n%", "n_"] {
        let space = world.namespace(ns)?;
        let a = space.member("a").await?;
        let capital = space.member("A").await?;
        for name in &distinct {
            same!(a.win(name).await?.number.get(), 1, format!("the first term of {name:?}"));
        }
        same!(a.holding().await?.len(), distinct.len(), "elections held");
        capital.lose("e").await?;
        same!(space.ids().await?, ["A", "a"], "the live members");
    }
    Ok(())
}

/// C5, M1, P15: a life that is a member here and there beats for each by itself.
pub(crate) async fn a_heartbeat_is_for_one_namespace(world: &World<'_>) -> Outcome {
    let other = world.namespace("other")?;
    let here = world.member("a").await?;
    let there = other.member("a").await?;
    same!(here.me, there.me, "the life that is a member of both");
    here.fade(world.unit()).await?;
    there.alive().await?;
    world.lapse(&[&here]).await?;
    there.alive().await?;
    here.ended().await?;
    there.alive().await?;
    Ok(())
}
