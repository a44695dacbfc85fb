//! Following: ordered, gap-free, resumable; and hints that only cause a look.

use std::time::Duration;

use tenure_core::{EndCause, Happening, Hint, Query, ReleaseCause, Seq};
use tenure_store::{Followed, Following, From};

use crate::Outcome;
use crate::case::{ensure, fail, same};
use crate::world::World;

/// N2: each entry once, one place after the other, from the first on.
pub(crate) async fn entries_come_in_order_without_gaps(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let mut following = world.follow(From::After(Seq::START)).await?;
    let a = world.member("a").await?;
    for _ in 0..20 {
        let term = a.win("e").await?;
        a.resign(&term).await?;
    }
    let last = world.read(&Query::nothing()).await?.seq;
    let mut at = Seq::START;
    while at < last {
        let followed = world.heard(&mut *following).await?;
        let Followed::Entries(entries) = followed else {
            ensure!(matches!(followed, Followed::Hint(_)), "nothing is trimmed yet: {followed:?}");
            continue;
        };
        ensure!(!entries.is_empty(), "something is told");
        for entry in entries {
            same!(entry.seq, at.next(), "the place of the next entry");
            at = entry.seq;
        }
    }
    Ok(())
}

/// The other way: a store that claims no journal has positions of zero and gives
/// hints whatever it is asked for.
async fn hints_instead_of_entries(world: &World<'_>) -> Outcome {
    let mut following = world.follow(From::After(Seq::START)).await?;
    world.member("a").await?.win("e").await?;
    same!(world.read(&Query::nothing()).await?.seq, Seq::START, "the journal position");
    let followed = world.heard(&mut *following).await?;
    same!(followed, Followed::Hint(Hint::Anything), "what is followed");
    Ok(())
}

/// N3, C23: one who was away goes on where it was.
pub(crate) async fn following_resumes_from_a_position(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    let position = world.read(&Query::nothing()).await?.seq;
    a.resign(&term).await?;
    let again = a.win("e").await?;
    let told = world.entries(position, 3).await?;
    same!(told.first().map(|e| e.seq), Some(position.next()), "the first place told");
    let elected = told.iter().any(|e| e.what == Happening::Elected { term: again.clone() });
    ensure!(elected, "what happened meanwhile is told: {told:?}");
    let earlier = told.iter().any(|e| e.what == Happening::Elected { term: term.clone() });
    ensure!(!earlier, "what was known is not told again: {told:?}");
    Ok(())
}

/// The journal tells the whole story, and in the order in which it happened.
pub(crate) async fn the_journal_tells_the_whole_story(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let (a, b) = (world.member("a").await?, world.member("b").await?);
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
            "b released e {} for nobody: {:?}",
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
        Happening::Left { member } => format!("{} left", member.id),
        Happening::Ended { member, cause } => format!("{} ended: {cause:?}", member.id),
        Happening::Stood { election, member, .. } => format!("{} stood for {election}", member.id),
        Happening::Elected { term } => {
            format!("{} elected to {} {}", term.member.id, term.election, term.number)
        }
        Happening::Released { election, number, member, cause, heir } => {
            let heir = heir.as_ref().map_or("nobody", |h| h.as_str());
            format!("{} released {election} {number} for {heir}: {cause:?}", member.id)
        }
        Happening::StepDownAsked { election, .. } => format!("step-down of {election} asked"),
        Happening::Paused { election, .. } => format!("{election} paused"),
        Happening::Resumed { election, .. } => format!("{election} resumed"),
    }
}

/// A caller that gives up waiting loses nothing.
pub(crate) async fn an_interrupted_wait_loses_nothing(world: &World<'_>) -> Outcome {
    if !world.capabilities().await.journal {
        return hints_instead_of_entries(world).await;
    }
    let mut following = world.follow(From::After(Seq::START)).await?;
    let a = world.member("a").await?;
    let mut next = Seq::START;
    for round in 0..20 {
        let term = a.win(&format!("e{round}")).await?;
        // Now and then the wait is over before anything can have come.
        let wait = Duration::from_micros(round * 50);
        let told = tokio::time::timeout(wait, following.next()).await;
        if let Ok(Followed::Entries(entries)) = told.unwrap_or(Ok(Followed::Hint(Hint::Anything))) {
            for entry in entries {
                same!(entry.seq, next.next(), "the place of the next entry");
                next = entry.seq;
            }
        }
        a.resign(&term).await?;
    }
    let last = world.read(&Query::nothing()).await?.seq;
    while next < last {
        if let Followed::Entries(entries) = world.heard(&mut *following).await? {
            for entry in entries {
                same!(entry.seq, next.next(), "the place of the next entry");
                next = entry.seq;
            }
        }
    }
    Ok(())
}

/// H27, checked both ways: one who stayed away too long is told how far the
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
    let mut following = world.follow(From::After(Seq::START)).await?;
    let mut first = entries_or_trimmed(world, &mut *following).await?;
    if bound.is_none() {
        let kept = matches!(&first, Followed::Entries(e) if e[0].seq == Seq::START.next());
        ensure!(kept, "a store that drops nothing has it all: {first:?}");
        return Ok(());
    }
    let Followed::Trimmed(gone) = first else {
        fail!("the oldest entries are gone: {first:?}");
    };
    ensure!(gone > Seq::START && gone < last, "gone up to {gone} of {last}");
    first = entries_or_trimmed(world, &mut *following).await?;
    let on = matches!(&first, Followed::Entries(e) if e[0].seq == gone.next());
    ensure!(on, "it goes on after {gone}: {first:?}");
    Ok(())
}

async fn entries_or_trimmed(world: &World<'_>, following: &mut dyn Following) -> Outcome<Followed> {
    loop {
        let followed = world.heard(following).await?;
        if !matches!(followed, Followed::Hint(_)) {
            return Ok(followed);
        }
    }
}

/// H13: the first hint is to look at everything.
pub(crate) async fn hints_begin_with_a_look_at_everything(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    a.win("e").await?;
    let mut following = world.follow(From::Hints).await?;
    let first = world.heard(&mut *following).await?;
    same!(first, Followed::Hint(Hint::Anything), "the first hint");
    Ok(())
}

/// N1: a hint comes after what it hints at, so that the look finds it.
pub(crate) async fn a_release_is_hinted_and_the_look_finds_it(world: &World<'_>) -> Outcome {
    let (a, b) = (world.member("a").await?, world.member("b").await?);
    let term = a.win("e").await?;
    b.lose("e").await?;
    let mut following = b.store.follow(&b.ns, From::Hints).await?;
    same!(world.heard(&mut *following).await?, Followed::Hint(Hint::Anything), "the first hint");
    a.resign(&term).await?;
    loop {
        let hint = world.heard(&mut *following).await?;
        let about = match &hint {
            Followed::Hint(Hint::Anything) => true,
            Followed::Hint(Hint::Election(name) | Hint::Vacant { election: name, .. }) => {
                *name == term.election
            }
            Followed::Hint(Hint::Gone(_)) => false,
            other => fail!("one who asked for hints gets hints: {other:?}"),
        };
        // A store may hint at the claims from before too; then it goes on.
        if about && world.view("e").await?.holder.is_none() {
            return Ok(());
        }
    }
}
