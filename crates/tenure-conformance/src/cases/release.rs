//! Releases: exactly the term named, or nothing.

use std::time::Duration;

use tenure_core::{Happening, ReleaseCause, ReleaseItem};

use super::members::still_leads;
use crate::Outcome;
use crate::actor::How;
use crate::case::{ensure, same};
use crate::world::{World, election};

/// Promise 4: after a resignation the election is free at once.
pub(crate) async fn a_released_election_is_free_at_once(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    b.lose("e").await?;
    a.resign(&term).await?;
    let view = world.view("e").await?;
    ensure!(view.holder.is_none(), "the election is vacant: {view:?}");
    same!(view.number, term.number, "the number outlives its term");
    same!(a.holding().await?, [""; 0], "what is left in hand");
    ensure!(b.win("e").await?.number > term.number, "the next number is higher");
    a.alive().await?;
    Ok(())
}

/// E1: another number of one's own is not the present term.
pub(crate) async fn a_release_of_an_older_term_changes_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let older = a.win("e").await?;
    let present = a.win("e").await?;
    a.resign(&older).await?;
    still_leads(world, "e", &present).await
}

/// E1, C4, H8: not even of the same id.
pub(crate) async fn a_release_by_another_life_changes_nothing(world: &World<'_>) -> Outcome {
    let first = world.member("a").await?;
    let older = first.win("e").await?;
    first.resign(&older).await?;
    let second = world.life("a").await?;
    second.join(true).await?;
    let term = second.win("e").await?;
    first.resign(&term).await?;
    first.withdraw("e").await?;
    still_leads(world, "e", &term).await?;
    same!(second.view("e").await?.candidates.len(), 1, "candidates standing");
    Ok(())
}

/// E1: nor does one touch what another member holds.
pub(crate) async fn a_release_by_another_member_changes_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    b.resign(&term).await?;
    b.withdraw("e").await?;
    still_leads(world, "e", &term).await
}

/// A withdrawal ends the candidacy, and no term.
pub(crate) async fn a_withdrawal_ends_the_candidacy_alone(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    b.lose("e").await?;
    same!(b.view("e").await?.candidates.len(), 2, "candidates standing");
    b.withdraw("e").await?;
    b.withdraw("e").await?;
    b.withdraw("never-stood-for").await?;
    let view = b.view("e").await?;
    let left: Vec<_> = view.candidates.iter().map(|c| &c.member).collect();
    same!(left, [&a.me], "candidates left standing");
    still_leads(world, "e", &term).await
}

/// A release ends the candidacy with the term, so that no vacancy is kept for
/// a member that gave up.
pub(crate) async fn a_release_ends_the_candidacy_too(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win_by("e", How::priority(1_000)).await?;
    a.resign(&term).await?;
    let next = b.win("e").await?;
    let view = b.view("e").await?;
    let standing: Vec<_> = view.candidates.iter().map(|c| &c.member).collect();
    same!(standing, [&b.me], "candidates standing");
    b.resign_with(&next, None, world.long()).await?;
    same!(world.view("e").await?.reserved, None, "a vacancy kept for a member that gave up");
    Ok(())
}

/// E1, E2: the copy of a release does not end a candidacy begun since.
pub(crate) async fn a_late_release_does_not_end_a_newer_candidacy(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.resign(&term).await?;
    let taken = b.win("e").await?;
    a.lose("e").await?;
    a.resign(&term).await?;
    let standing = b.view("e").await?.candidates.into_iter().any(|c| c.member == a.me);
    ensure!(standing, "the newer candidacy stands");
    still_leads(world, "e", &taken).await
}

/// Several at once, each on its own, with its cause in the journal.
pub(crate) async fn several_are_released_at_once_each_with_its_cause(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let terms = [a.win("one").await?, a.win("two").await?, a.win("three").await?];
    let causes = [ReleaseCause::Resigned, ReleaseCause::SteppedDown, ReleaseCause::Abandoned];
    let mut items = Vec::new();
    for (term, cause) in terms.iter().zip(causes) {
        let election = term.election.clone();
        let number = Some(term.number);
        items.push(ReleaseItem { election, number, cause, successor: None });
    }
    // One that is not there does not spoil the others.
    let number = Some(terms[0].number);
    let cause = ReleaseCause::Resigned;
    let stray = ReleaseItem { election: election("stray")?, number, cause, successor: None };
    items.insert(1, stray);
    a.release(items, Duration::ZERO).await?;
    same!(a.holding().await?, [""; 0], "what is left in hand");
    if world.capabilities().await.journal {
        let happenings = world.happenings().await?;
        let told: Vec<_> = happenings
            .iter()
            .filter_map(|h| match h {
                Happening::Released { election, cause, .. } => Some((election.as_str(), *cause)),
                _ => None,
            })
            .collect();
        let expected = [("one", causes[0]), ("two", causes[1]), ("three", causes[2])];
        same!(told, expected, "the releases in the journal");
    }
    Ok(())
}
