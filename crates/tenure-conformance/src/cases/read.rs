//! Reads: one moment, nothing written, no member shown that is gone.

use tenure_core::{ElectionView, Happening, Query, Seq, Which};

use super::amend::step_down;
use crate::Outcome;
use crate::actor::{Actor, How};
use crate::case::{ensure, same};
use crate::world::{World, election};

/// H16, C21: an observer may come before any member.
pub(crate) async fn an_unknown_election_is_vacant_with_number_zero(world: &World<'_>) -> Outcome {
    let seen = world.read(&Query::elections([election("one")?, election("two")?])).await?;
    let expected = [election("one")?, election("two")?].map(ElectionView::vacant);
    same!(seen.elections, expected, "the views of elections without a candidate");
    same!(seen.members, [], "members, which were not asked for");
    same!(seen.history, [], "history, which was not asked for");
    Ok(())
}

/// N3, B6: observers see vacancy, and the number that was.
pub(crate) async fn an_expired_holder_is_not_shown(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&b]).await?;
    let view = b.view("e").await?;
    ensure!(view.holder.is_none(), "no member leads: {view:?}");
    same!(view.number, term.number, "the newest number given out");
    let standing: Vec<_> = view.candidates.iter().map(|c| &c.member).collect();
    ensure!(!standing.contains(&&a.me), "nor does the dead one stand: {standing:?}");
    let held = Query { which: Which::HeldBy(a.me.incarnation), ..Query::nothing() };
    same!(b.read(&held).await?.elections, [], "what the dead one holds");
    Ok(())
}

/// Looking never writes, not even at what has expired.
pub(crate) async fn looking_writes_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.win("e").await?;
    b.lose("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&b]).await?;
    let everything = Query { history: 100, ..Query::everything() };
    let first = b.read(&everything).await?;
    for _ in 0..3 {
        let again = b.read(&everything).await?;
        same!(again.seq, first.seq, "the journal position");
        same!(again.history, first.history, "the history");
    }
    Ok(())
}

/// One query for everything.
pub(crate) async fn everything_is_read_at_once(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.win("one").await?;
    a.win("two").await?;
    b.win("three").await?;
    b.lose_by("one", How::priority(7)).await?;
    world.pause("four").await?;
    let seen = world.read(&Query::everything()).await?;
    let mut names: Vec<_> = seen.elections.iter().map(|e| e.election.as_str()).collect();
    names.sort_unstable();
    same!(names, ["four", "one", "three", "two"], "the elections");
    let one = seen.elections.iter().find(|e| e.election.as_str() == "one");
    same!(one.map(|e| e.candidates.len()), Some(2), "the candidates of one of them");
    let mut held: Vec<_> = seen.members.iter().map(|m| (m.member.id.as_str(), m.holds)).collect();
    held.sort_unstable();
    same!(held, [("a", 2), ("b", 1)], "members, and how many terms each holds");
    Ok(())
}

/// B8, H21: a member in doubt asks what it holds; nothing of another life's.
pub(crate) async fn held_by_shows_exactly_what_one_life_holds(world: &World<'_>) -> Outcome {
    let first = world.member("a").await?;
    let one = first.win("one").await?;
    let _two = first.win("two").await?;
    let other = world.member("b").await?;
    other.win("three").await?;
    other.lose("one").await?;
    same!(first.holding().await?, ["one", "two"], "what the member holds");
    first.resign(&one).await?;
    same!(first.holding().await?, ["two"], "what the member holds after a release");
    let stranger = world.life("a").await?;
    same!(stranger.holding().await?, [""; 0], "what a namesake holds");
    Ok(())
}

/// P15: a candidate looks at one election and asks for nothing besides, for which a
/// store may have a shorter way. It is told what a full read tells, whatever happened.
pub(crate) async fn a_look_tells_what_a_full_read_tells(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.taker("b").await?;
    let all = [&a, &b];
    alike(&all, "no member stood").await?;
    let term = a.win("e").await?;
    alike(&all, "one leads").await?;
    b.lose("e").await?;
    alike(&all, "another waits").await?;
    world.pause("e").await?;
    alike(&all, "it is paused").await?;
    world.resume("e").await?;
    world.amend(step_down("e", Some(term.number), Some("b"))?).await?;
    alike(&all, "a step-down is asked").await?;
    a.hand_over(&term, world.long()).await?;
    alike(&all, "it is handed over, or kept").await?;
    let next = b.win("e").await?;
    alike(&all, "the heir leads").await?;
    let namesake = world.life("b").await?;
    alike(&[&a, &b, &namesake], "another life asks under the holder's id").await?;
    b.fade(world.unit()).await?;
    world.lapse(&all).await?;
    alike(&all, "the holder has expired").await?;
    same!(a.look("e").await?.number, next.number, "the number that was");
    Ok(())
}

/// Whether each of them is told the same by a look as by a full read.
async fn alike(all: &[&Actor], when: &str) -> Outcome {
    let told = |view: ElectionView| {
        let holder = view.holder.map(|h| (h.member, h.unconfirmed, h.ttl, h.elected_at));
        let reserved = view.reserved.map(|r| r.member);
        (view.number, holder, view.paused, view.step_down, reserved, view.ahead)
    };
    for asker in all {
        let look = asker.look("e").await?;
        let full = asker.view("e").await?;
        same!(told(look), told(full), format!("{when}: what {} is told", asker.me));
    }
    Ok(())
}

/// The newest entries, oldest first, about what was asked for.
pub(crate) async fn history_is_the_newest_entries_oldest_first(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    for _ in 0..3 {
        let term = a.win("e").await?;
        a.resign(&term).await?;
    }
    a.win("other").await?;
    let ask = |history| async move {
        let query = Query { history, ..Query::elections([election("e")?]) };
        world.read(&query).await
    };
    let seen = ask(3).await?;
    if !world.capabilities().await.journal {
        // It need not remember anything; what it does remember has no position.
        let told = seen.history.iter().all(|entry| {
            entry.seq == Seq::START && entry.what.election().is_some_and(|n| n.as_str() == "e")
        });
        ensure!(told && seen.history.len() <= 3, "without a journal: {:?}", seen.history);
        return Ok(());
    }
    let number = world.view("e").await?.number;
    same!(seen.history.len(), 3, "entries asked for");
    let ordered = seen.history.windows(2).all(|pair| pair[0].seq < pair[1].seq);
    ensure!(ordered, "oldest first: {:?}", seen.history);
    let about = seen.history.iter().all(|e| e.what.election().is_some_and(|n| n.as_str() == "e"));
    ensure!(about, "about the election asked for: {:?}", seen.history);
    let last = seen.history.last().map(|e| &e.what);
    let newest = matches!(last, Some(Happening::Released { number: n, .. }) if *n == number);
    ensure!(newest, "up to the newest: {:?}", seen.history);
    ensure!(ask(1_000).await?.history.len() > 6, "all of them, where there is room");
    let all = Query { which: Which::All, history: 1_000, ..Query::nothing() };
    let all = world.read(&all).await?.history;
    let joined = matches!(all.first().map(|e| &e.what), Some(Happening::Joined { .. }));
    ensure!(joined, "with the members' own entries where all is asked for: {all:?}");
    Ok(())
}

/// A snapshot says how far in the journal it is: nothing is missed or seen
/// twice by a reader that goes on from there.
pub(crate) async fn a_snapshot_knows_its_place_in_the_journal(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    a.win("e").await?;
    let query = Query { which: Which::All, history: 1_000, ..Query::nothing() };
    let seen = world.read(&query).await?;
    if !world.capabilities().await.journal {
        same!(seen.seq.get(), 0, "the position in a store without a journal");
        return Ok(());
    }
    same!(seen.history.last().map(|e| e.seq), Some(seen.seq), "the newest entry's place");
    let next = a.win("next").await?;
    let entries = world.entries(seen.seq).await?;
    same!(entries.first().map(|e| e.seq), Some(seen.seq.next()), "the place after the snapshot");
    let about = entries.iter().all(|e| e.what.election() == Some(&next.election));
    ensure!(about, "only what happened since: {entries:?}");
    Ok(())
}
