//! The journal, page by page: ordered, gap-free, resumable; and following, which tells
//! that it has grown and gives hints that only cause a look.

use std::time::Duration;

use tenure_core::{EndCause, Happening, Hint, Query, ReleaseCause, Seq, Term};
use tenure_store::{Followed, Page};

use crate::Outcome;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// N2: each entry once, one place after the other, from the first on.
pub(crate) async fn entries_come_in_order_without_gaps(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let a = world.member("a").await?;
    for _ in 0..20 {
        let term = a.win("e").await?;
        a.resign(&term).await?;
    }
    let last = world.read(&Query::nothing()).await?.seq;
    let mut at = Seq::START;
    for entry in world.entries(Seq::START).await? {
        same!(entry.seq, at.next(), "the place of the next entry");
        at = entry.seq;
    }
    same!(at, last, "the last place");
    Ok(())
}

/// The other way: a store that claims no journal has positions of zero, no entries, and
/// hints for all that happens.
async fn hints_instead_of_entries(world: &World<'_>) -> Outcome {
    let mut following = world.follow().await?;
    world.member("a").await?.win("e").await?;
    same!(world.read(&Query::nothing()).await?.seq, Seq::START, "the journal position");
    same!(world.page(Seq::START).await?, Page::Entries(Vec::new()), "the journal");
    let followed = world.heard(&mut *following).await?;
    same!(followed, Followed::Hint(Hint::Anything), "what is followed");
    Ok(())
}

/// N3, C23: a reader that was away goes on where it was.
pub(crate) async fn following_resumes_from_a_position(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    let position = world.read(&Query::nothing()).await?.seq;
    a.resign(&term).await?;
    let again = a.win("e").await?;
    let told = world.entries(position).await?;
    same!(told.first().map(|e| e.seq), Some(position.next()), "the first place told");
    let told_of = |won: &Term| {
        told.iter().any(|e| matches!(&e.what, Happening::Elected { term, .. } if term == won))
    };
    ensure!(told_of(&again), "what happened meanwhile is told: {told:?}");
    ensure!(!told_of(&term), "what was known is not told again: {told:?}");
    Ok(())
}

/// The journal tells the whole story, and in the order in which it happened.
pub(crate) async fn the_journal_tells_the_whole_story(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let first = a.win("e").await?;
    b.lose("e").await?;
    a.resign_with(&first, None, world.long()).await?;
    let second = b.win("e").await?;
    world.pause("e").await?;
    world.resume("e").await?;
    world.evict("b", true).await?;
    let third = a.win("e").await?;
    a.leave().await?;
    let story: Vec<_> = world.happenings().await?.iter().map(told).collect();
    let expected = [
        "a joined".into(),
        "b joined".into(),
        "a stood for e".into(),
        format!("a elected to e {}", first.number),
        "b stood for e".into(),
        format!("a released e {} for b: {:?}", first.number, ReleaseCause::Resigned),
        format!("b elected to e {}", second.number),
        "e paused".into(),
        "e resumed".into(),
        "b ended: Evicted".into(),
        "a stood for e".into(),
        format!(
            "b released e {} for no heir: {:?}",
            second.number,
            ReleaseCause::Ended(EndCause::Evicted)
        ),
        format!("a elected to e {}", third.number),
        "a left".into(),
    ];
    same!(story, expected, "the story");
    Ok(())
}

fn told(happening: &Happening) -> String {
    match happening {
        Happening::Joined { member, .. } => format!("{} joined", member.id),
        Happening::Left { member, .. } => format!("{} left", member.id),
        Happening::Ended { member, cause, .. } => format!("{} ended: {cause:?}", member.id),
        Happening::Stood { election, member, .. } => format!("{} stood for {election}", member.id),
        Happening::Elected { term, .. } => {
            format!("{} elected to {} {}", term.member.id, term.election, term.number)
        }
        Happening::Released { election, number, member, cause, heir, .. } => {
            let heir = heir.as_ref().map_or("no heir", |h| h.as_str());
            format!("{} released {election} {number} for {heir}: {cause:?}", member.id)
        }
        Happening::StepDownAsked { election, .. } => format!("step-down of {election} asked"),
        Happening::Paused { election, .. } => format!("{election} paused"),
        Happening::Resumed { election, .. } => format!("{election} resumed"),
    }
}

/// N2: whatever is written while a namespace is followed, a follower that waits is told that the
/// journal has grown, also of what no hint tells.
pub(crate) async fn one_who_follows_is_told_that_the_journal_has_grown(
    world: &World<'_>,
) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let mut following = world.follow().await?;
    for round in 0..10 {
        // That a member joined is worth no hint, and is an entry all the same.
        world.member(&format!("m{round}")).await?;
        let last = world.read(&Query::nothing()).await?.seq;
        while grown(&world.heard(&mut *following).await?) < last {}
    }
    Ok(())
}

/// Up to where the journal has grown, as far as this says.
fn grown(followed: &Followed) -> Seq {
    match followed {
        Followed::Grown(seq) => *seq,
        _ => Seq::START,
    }
}

/// A caller that gives up waiting loses nothing.
pub(crate) async fn an_interrupted_wait_loses_nothing(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let mut following = world.follow().await?;
    let a = world.member("a").await?;
    for round in 0..5 {
        a.win(&format!("e{round}")).await?;
        let last = world.read(&Query::nothing()).await?.seq;
        let mut told = Seq::START;
        // Now and then the wait is over before anything can have come.
        for wait in 0..10 {
            let wait = Duration::from_micros(wait * 100);
            if let Ok(followed) = tokio::time::timeout(wait, following.next()).await {
                told = told.max(grown(&followed?));
            }
        }
        while told < last {
            told = told.max(grown(&world.heard(&mut *following).await?));
        }
    }
    Ok(())
}

/// H27, checked both ways: a reader that stayed away too long is told how far the
/// journal is gone, and goes on from there.
pub(crate) async fn one_who_stayed_away_too_long_is_told(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let a = world.member("a").await?;
    let bound = world.journal_bound();
    // Each round writes at least two entries.
    for _ in 0..bound.unwrap_or(100) {
        let term = a.win("e").await?;
        a.resign(&term).await?;
    }
    let last = world.read(&Query::nothing()).await?.seq;
    let first = world.page(Seq::START).await?;
    if bound.is_none() {
        let kept = matches!(&first, Page::Entries(e) if e[0].seq == Seq::START.next());
        ensure!(kept, "a store that drops nothing has it all: {first:?}");
        return Ok(());
    }
    let Page::Trimmed(gone) = first else {
        fail!("the oldest entries are gone: {first:?}");
    };
    ensure!(gone > Seq::START && gone < last, "gone up to {gone} of {last}");
    let next = world.page(gone).await?;
    let on = matches!(&next, Page::Entries(e) if e[0].seq == gone.next());
    ensure!(on, "it goes on after {gone}: {next:?}");
    Ok(())
}

/// One whose place the journal does not have, because the store was rolled back or is
/// another one, is told where the journal ends and goes on from there.
pub(crate) async fn a_place_that_the_journal_does_not_have_is_told(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let a = world.member("a").await?;
    let last = world.read(&Query::nothing()).await?.seq;
    let beyond = Seq::new(last.get() + 100);
    same!(world.page(beyond).await?, Page::Trimmed(last), "where to go on");
    a.win("e").await?;
    let next = world.page(last).await?;
    let on = matches!(&next, Page::Entries(e) if e[0].seq == last.next());
    ensure!(on, "it goes on after {last}: {next:?}");
    Ok(())
}

/// H13: the first hint is to look at everything.
pub(crate) async fn hints_begin_with_a_look_at_everything(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    a.win("e").await?;
    let mut following = world.follow().await?;
    let first = world.heard(&mut *following).await?;
    same!(first, Followed::Hint(Hint::Anything), "the first hint");
    Ok(())
}

/// N1: a hint comes after what it hints at, so that the look finds it.
pub(crate) async fn a_release_is_hinted_and_the_look_finds_it(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    b.lose("e").await?;
    let mut following = b.store.follow(&b.ns).await?;
    same!(world.heard(&mut *following).await?, Followed::Hint(Hint::Anything), "the first hint");
    a.resign(&term).await?;
    loop {
        let hint = world.heard(&mut *following).await?;
        let about = match &hint {
            Followed::Hint(Hint::Anything) => true,
            Followed::Hint(Hint::Election(name) | Hint::Vacant { election: name, .. }) => {
                *name == term.election
            }
            _ => false,
        };
        // A store may hint at the claims from before too; then it goes on.
        if about && world.view("e").await?.holder.is_none() {
            return Ok(());
        }
    }
}
