//! Lost answers, doubled requests, late messages: each changes what it should
//! have changed once, and nothing more.

use tenure_core::{Claim, Happening, Query, Term};

use super::members::still_leads;
use crate::Outcome;
use crate::actor::{Actor, How, held, won};
use crate::case::{ensure, same};
use crate::world::World;

/// A win whose request is kept, to be sent again.
async fn win(actor: &Actor, name: &str) -> Outcome<(Claim, Term)> {
    let claim = actor.claim_for(name, actor.next_nonce(), How::default())?;
    let term = won(actor.send_one(&claim).await?)?;
    Ok((claim, term))
}

/// E2, H21: the answer to a win was lost; the retry adopts its own term.
pub(crate) async fn a_repeated_claim_gets_the_same_term_back(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let (claim, term) = win(&a, "e").await?;
    b.lose("e").await?;
    for _ in 0..3 {
        same!(won(a.send_one(&claim).await?)?, term, "the term of a repeated claim");
    }
    still_leads(world, "e", &term).await?;
    if world.capabilities().await.journal {
        let told = world.happenings().await?;
        let elected = told.iter().filter(|h| matches!(h, Happening::Elected { .. })).count();
        same!(elected, 1, "journal entries about one win");
    }
    Ok(())
}

/// E2, T1: trust is counted from the repeated request, so the store must too.
pub(crate) async fn a_repeated_win_counts_as_a_heartbeat(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let (claim, term) = win(&a, "e").await?;
    a.fade(world.unit()).await?;
    same!(won(a.send_one(&claim).await?)?, term, "the term of a repeated claim");
    world.lapse(&[&a, &b]).await?;
    same!(b.lose("e").await?.number, term.number, "the number of the term");
    a.alive().await?;
    Ok(())
}

/// E2: the copy of a winning claim arrives after the term was given up.
pub(crate) async fn a_late_copy_of_a_won_claim_wins_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let (claim, term) = win(&a, "e").await?;
    a.resign(&term).await?;
    let before = world.read(&Query::nothing()).await?.seq;
    let view = held(a.send_one(&claim).await?)?;
    ensure!(view.holder.is_none(), "no member leads: {view:?}");
    let view = a.view("e").await?;
    ensure!(view.holder.is_none(), "no member leads: {view:?}");
    ensure!(view.candidates.is_empty(), "and no member stands: {view:?}");
    same!(world.read(&Query::nothing()).await?.seq, before, "the journal position");
    Ok(())
}

/// E2: a losing claim sent twice is one candidacy.
pub(crate) async fn a_doubled_losing_claim_changes_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let (_, term) = win(&a, "e").await?;
    let claim = b.claim_for("e", b.next_nonce(), How::default())?;
    held(b.send_one(&claim).await?)?;
    let before = world.read(&Query::nothing()).await?.seq;
    held(b.send_one(&claim).await?)?;
    same!(world.read(&Query::nothing()).await?.seq, before, "the journal position");
    same!(b.view("e").await?.candidates.len(), 2, "candidates standing");
    still_leads(world, "e", &term).await
}

/// E1, H8: the copy of a release arrives when another leads.
pub(crate) async fn a_doubled_release_does_not_touch_the_successor(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let (_, term) = win(&a, "e").await?;
    a.resign(&term).await?;
    a.resign(&term).await?;
    let (_, next) = win(&b, "e").await?;
    a.resign(&term).await?;
    still_leads(world, "e", &next).await?;
    let again = { (b.resign(&next).await?, win(&a, "e").await?.1).1 };
    a.resign(&term).await?;
    still_leads(world, "e", &again).await
}

/// E1, C4, B2: nor a successor of the same id.
pub(crate) async fn a_late_release_does_not_touch_a_namesake(world: &World<'_>) -> Outcome {
    let first = world.member("a").await?;
    let (_, older) = win(&first, "e").await?;
    first.leave().await?;
    let second = world.member("a").await?;
    let (_, term) = win(&second, "e").await?;
    first.resign(&older).await?;
    // Not even if it guesses the number.
    first.resign(&term).await?;
    still_leads(world, "e", &term).await
}

/// C32, B16, B18: everything a dead process may still have had on its way.
pub(crate) async fn late_messages_of_an_ended_life_change_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let (claim, older) = win(&a, "e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    let (_, term) = win(&b, "e").await?;
    let before = world.read(&Query::nothing()).await?.seq;
    a.ended().await?;
    let late = a.send(&claim).await?;
    let ended = matches!(late, tenure_core::Claims::Ended { superseded: false });
    ensure!(ended, "a claim of a life that is over: {late:?}");
    a.resign(&older).await?;
    a.withdraw("e").await?;
    a.leave().await?;
    same!(world.read(&Query::nothing()).await?.seq, before, "the journal position");
    same!(world.ids().await?, ["b"], "the live members");
    still_leads(world, "e", &term).await
}

/// E5: the copy of a step-down meant for an older term.
pub(crate) async fn a_late_step_down_does_not_touch_the_next_term(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let (_, older) = win(&a, "e").await?;
    a.resign(&older).await?;
    let (_, term) = win(&b, "e").await?;
    let before = b.alive().await?;
    let amend = tenure_core::Amend::StepDown {
        election: older.election.clone(),
        number: Some(older.number),
        to: None,
        reason: Default::default(),
        by: Default::default(),
    };
    let answer = world.amend(amend).await?;
    same!(answer, tenure_core::Amended::Superseded { number: term.number }, "the answer");
    same!(world.view("e").await?.step_down, None, "the request on view");
    same!(b.alive().await?, before, "the holder's attention");
    Ok(())
}
