//! Handing over: a release elects the heir in the same step, for a short time
//! until the heir has said that it is there. Checked both ways: a store that
//! denies it keeps the vacancy, as if nothing else had been asked.

mod heir;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use heir::*;
use tenure_core::{Beat, Happening, Hint, Query, ReleaseCause, Term, TermOutcome};
use tenure_store::Followed;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::contention::all;
use super::heartbeat::answers_for_terms;
use super::members::still_leads;
use crate::Outcome;
use crate::actor::{Actor, How, named};
use crate::case::{ensure, fail, same};
use crate::world::World;

const HEIR: u16 = 20;
const OTHER: u16 = 10;

/// Who is there before a term is handed over.
struct Cast {
    /// Leads `e`.
    a: Actor,
    term: Term,
    /// Is preferred, and takes over.
    heir: Actor,
    /// Waits as well, longer, and would take over too.
    other: Actor,
}

/// All members, for a store that hands over. Of another, what it does instead is
/// checked, and there are none.
async fn cast(world: &World<'_>) -> Outcome<Option<Cast>> {
    if !elects_heirs(world).await {
        return keeps_instead(world).await.map(|()| None);
    }
    gather(world).await.map(Some)
}

async fn gather(world: &World<'_>) -> Outcome<Cast> {
    let a = world.member("a").await?;
    let other = world.taker("other").await?;
    let heir = world.taker("heir").await?;
    let term = a.win("e").await?;
    other.lose_by("e", How::priority(OTHER)).await?;
    heir.lose_by("e", How::priority(HEIR)).await?;
    Ok(Cast { a, term, heir, other })
}

async fn elects_heirs(world: &World<'_>) -> bool {
    world.capabilities().await.elects_heirs
}

/// The other way: a store that denies it does what a release did before, and its
/// heartbeats say no more of the terms they name.
async fn keeps_instead(world: &World<'_>) -> Outcome {
    let Cast { a, term, heir, other } = gather(world).await?;
    a.hand_over(&term, world.long()).await?;
    kept_for(world, &heir, &term).await?;
    other.lose_by("e", How::priority(OTHER)).await?;
    let next = heir.win_by("e", How::priority(HEIR)).await?;
    ensure!(next.number > term.number, "{next:?} follows {term:?}");
    let beat = heir.beat_naming(vec![named(&next)]).await?;
    let Beat::Alive { terms, .. } = &beat else { fail!("the heir is alive: {beat:?}") };
    let expected = usize::from(answers_for_terms(world).await);
    same!(terms.len(), expected, "answers for single terms");
    Ok(())
}

/// The election is vacant and kept for the heir.
async fn kept_for(world: &World<'_>, heir: &Actor, last: &Term) -> Outcome {
    let view = world.view(last.election.as_str()).await?;
    ensure!(view.holder.is_none(), "no member was handed the term: {view:?}");
    same!(view.number, last.number, "the number of the last term");
    same!(view.reserved.map(|r| r.member), Some(heir.me.id.clone()), "for whom it is kept");
    Ok(())
}

/// The term that the heir was handed and has not taken on, as every reader sees it.
async fn handed(world: &World<'_>, name: &str, heir: &Actor) -> Outcome<Term> {
    let view = world.view(name).await?;
    let Some(holder) = view.holder.as_ref().filter(|h| h.member == heir.me) else {
        fail!("{} was handed {name}: {view:?}", heir.me);
    };
    ensure!(holder.unconfirmed, "it has not taken it on: {view:?}");
    let number = view.number;
    let elected_at = holder.elected_at;
    Ok(Term { election: view.election, number, member: heir.me.clone(), elected_at })
}

/// The term stands, and its holder has taken it on.
async fn taken_on(world: &World<'_>, term: &Term) -> Outcome {
    still_leads(world, term.election.as_str(), term).await?;
    let view = world.view(term.election.as_str()).await?;
    ensure!(view.holder.is_some_and(|h| !h.unconfirmed), "{} has taken it on", term.member);
    Ok(())
}

/// What a heartbeat that names the term is answered for it.
async fn asked_for(actor: &Actor, term: &Term) -> Outcome<TermOutcome> {
    let beat = actor.beat_naming(vec![named(term)]).await?;
    match &beat {
        Beat::Alive { terms, .. } if terms.len() == 1 && terms[0].term == named(term) => {
            Ok(terms[0].outcome.clone())
        }
        _ => fail!("one answer for the one term named: {beat:?}"),
    }
}

async fn take_on(heir: &Actor, term: &Term) -> Outcome {
    let renewed = TermOutcome::Renewed { step_down: None };
    same!(asked_for(heir, term).await?, renewed, "what the heir is answered");
    Ok(())
}

/// F4, H5, H6: the preferred candidate holds a new term, under the number that a
/// bid would have got, and for no longer than it was handed.
pub(crate) async fn the_preferred_heir_leads_in_the_same_step(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    let claimed = a.win("claimed").await?;
    a.resign(&claimed).await?;
    let by_bid = other.win("claimed").await?;
    let time = world.long() / 2;
    a.hand_over(&term, time).await?;
    let next = handed(world, "e", &heir).await?;
    same!(next.number, by_bid.number, "the number, as by a bid");
    let view = world.view("e").await?;
    same!(view.reserved, None, "a vacancy that is kept");
    if let Some(holder) = view.holder {
        same!(holder.ttl, heir.ttl, "the ttl the heir wrote (M3)");
        let left = holder.remaining;
        ensure!(!left.is_zero() && left <= time, "what is left of it: {left:?}");
    }
    same!(a.holding().await?, [""; 0], "what is left in the hand that gave");
    Ok(())
}

/// N1, B8: without any hint the heir finds the term among what it holds, and its
/// heartbeat tells it that there is something to find.
pub(crate) async fn the_heir_can_find_what_it_was_handed(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    a.hand_over(&term, world.long()).await?;
    same!(heir.holding().await?, ["e"], "what the heir holds");
    same!(other.holding().await?, [""; 0], "what another holds");
    let seen = world.read(&Query::members()).await?;
    for (one, count) in [(&heir, 1), (&other, 0), (&a, 0)] {
        let beat = one.beat().await?;
        let told = matches!(beat, Beat::Alive { holds, .. } if holds.is_none_or(|h| h == count));
        ensure!(told, "{} holds {count}: {beat:?}", one.me);
        let listed = seen.members.iter().find(|m| m.member == one.me).map(|m| m.holds);
        ensure!(listed == Some(count), "{} is listed with {listed:?}, not {count}", one.me);
    }
    // A member that hands over stands no longer, also if it was handed the term itself.
    let next = handed(world, "e", &heir).await?;
    heir.hand_over(&next, world.long()).await?;
    let view = a.view("e").await?;
    let standing: Vec<_> = view.candidates.iter().map(|c| &c.member).collect();
    same!(standing, [&other.me], "candidates left standing");
    Ok(())
}

/// N2: a release that keeps no vacancy, and right after it the election;
/// taking it on is no news.
pub(crate) async fn the_journal_tells_of_a_release_and_an_election(world: &World<'_>) -> Outcome {
    let capabilities = world.capabilities().await;
    if !capabilities.elects_heirs || !capabilities.journal {
        return keeps_instead(world).await;
    }
    let Cast { a, term, heir, .. } = gather(world).await?;
    let before = world.happenings().await?.len();
    a.hand_over(&term, world.long()).await?;
    let next = handed(world, "e", &heir).await?;
    take_on(&heir, &next).await?;
    let told = world.happenings().await?;
    let [released, Happening::Elected { term: elected, .. }] = &told[before..] else {
        fail!("a release and an election are told: {:?}", &told[before..]);
    };
    let given_up = matches!(released, Happening::Released {
        election, number, member, cause: ReleaseCause::Resigned, heir: None, ..
    } if *election == term.election && *number == term.number && *member == a.me);
    ensure!(given_up, "the release of {term:?} is told: {released:?}");
    same!(elected, &next, "who is told to be elected");
    Ok(())
}

/// N1: a follower of hints is told of the election, and not of a vacancy for
/// which all candidates would bid.
pub(crate) async fn a_follower_of_hints_is_told_of_no_vacancy(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    let mut following = heir.store.follow(&heir.ns).await?;
    same!(world.heard(&mut *following).await?, Followed::Hint(Hint::Anything), "the first hint");
    a.hand_over(&term, world.long()).await?;
    // Hints come in order: with this one all that came of it has been heard.
    let last = other.win("last").await?;
    let mut heard = false;
    loop {
        match world.heard(&mut *following).await? {
            Followed::Hint(Hint::Anything) => return Ok(()),
            Followed::Hint(Hint::Vacant { election, .. }) if election == term.election => {
                fail!("nothing is vacant that was handed over");
            }
            Followed::Hint(Hint::Election(name)) if name == term.election => heard = true,
            Followed::Hint(Hint::Election(name)) if name == last.election => break,
            _ => {}
        }
    }
    ensure!(heard, "the election is hinted at");
    Ok(())
}

/// C10: the hand-over that names its successor states for how long, be that longer
/// or shorter than for others, or not at all.
pub(crate) async fn a_successor_named_leads_for_a_time_of_its_own(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, other }) = cast(world).await? else { return Ok(()) };
    let brief = a.win("brief").await?;
    other.lose_by("brief", How::priority(OTHER)).await?;
    let never = a.win("never").await?;
    other.lose_by("never", How::priority(OTHER)).await?;
    let time = world.long() / 2;
    let to = |time| (other.me.id.clone(), time);
    a.hand_over_to(&never, to(Duration::ZERO), time).await?;
    let view = world.view("never").await?;
    ensure!(view.holder.is_none() && view.number == never.number, "it is vacant: {view:?}");
    a.hand_over_to(&term, to(time), world.unit()).await?;
    a.hand_over_to(&brief, to(world.unit()), time).await?;
    world.lapse(&[&heir, &other]).await?;
    let next = handed(world, "e", &other).await?;
    let view = heir.lose_by("e", How::priority(HEIR)).await?;
    let left = view.handed_to(other.me.incarnation);
    ensure!(left.is_some_and(|left| left > world.unit() && left <= time), "what is left: {left:?}");
    take_on(&other, &next).await?;
    let view = world.view("brief").await?;
    ensure!(view.holder.is_none() && view.number > brief.number, "its time is over: {view:?}");
    Ok(())
}

/// C9, C10: both sides must want it. Where the preferred candidate does not take
/// over, or the release does not ask for it, the vacancy is kept as ever; it does
/// not go to the next in line.
pub(crate) async fn no_candidate_is_handed_a_term_unasked(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, mut heir, other }) = cast(world).await? else { return Ok(()) };
    let plain = world.member("plain").await?;
    plain.lose_by("e", How::priority(HEIR + 1)).await?;
    a.hand_over(&term, world.long()).await?;
    kept_for(world, &plain, &term).await?;
    heir.lose_by("e", How::priority(HEIR)).await?;
    let term = plain.win_by("e", How::priority(HEIR + 1)).await?;
    a.lose("e").await?;
    plain.hand_over_to(&term, (a.me.id.clone(), world.long()), world.long()).await?;
    kept_for(world, &a, &term).await?;
    let term = a.win("e").await?;
    a.resign_with(&term, None, world.long()).await?;
    kept_for(world, &heir, &term).await?;
    let term = heir.win_by("e", How::priority(HEIR)).await?;
    heir.resign_with(&term, Some((other.me.id.clone(), world.long())), Duration::ZERO).await?;
    kept_for(world, &other, &term).await?;
    // Of two joins the later one counts.
    let term = other.win("again").await?;
    heir.lose("again").await?;
    heir.inherits = false;
    heir.enter().await?;
    other.hand_over(&term, world.long()).await?;
    kept_for(world, &heir, &term).await
}

/// E2, N2: several at once, each on its own: to its own heir, or kept where that is
/// not to be. One heartbeat takes on several.
pub(crate) async fn several_are_handed_over_at_once_each_to_its_heir(world: &World<'_>) -> Outcome {
    if !elects_heirs(world).await {
        return keeps_instead(world).await;
    }
    let a = world.member("a").await?;
    let plain = world.member("plain").await?;
    let b = world.taker("b").await?;
    let c = world.taker("c").await?;
    let mut terms = Vec::new();
    for (name, heir) in [("one", &b), ("paused", &b), ("two", &c), ("plain", &plain), ("three", &b)]
    {
        terms.push(a.win(name).await?);
        heir.lose(name).await?;
    }
    world.pause("paused").await?;
    a.hand_over_all(&terms, world.long()).await?;
    kept_for(world, &b, &terms[1]).await?;
    kept_for(world, &plain, &terms[3]).await?;
    let one = handed(world, "one", &b).await?;
    let two = handed(world, "two", &c).await?;
    let three = handed(world, "three", &b).await?;
    same!(b.holding().await?, ["one", "three"], "what one heir holds");
    for term in [&one, &two, &three] {
        elected_right_after_its_release(world, term).await?;
    }
    let beat = b.beat_naming([&one, &two, &three].map(named).to_vec()).await?;
    let Beat::Alive { terms, .. } = &beat else { fail!("the heir is alive: {beat:?}") };
    let lost: Vec<_> = terms.iter().filter(|t| t.outcome == TermOutcome::Lost).collect();
    same!((terms.len(), lost.len()), (3, 1), "answers, and those for what is lost");
    same!(lost[0].term, named(&two), "what is not its own");
    taken_on(world, &one).await?;
    taken_on(world, &three).await?;
    same!(handed(world, "two", &c).await?, two, "what another was handed");
    Ok(())
}

/// In the journal, where there is one.
async fn elected_right_after_its_release(world: &World<'_>, term: &Term) -> Outcome {
    if !world.capabilities().await.journal {
        return Ok(());
    }
    let happenings = world.happenings().await?;
    let elected = |h: &Happening| matches!(h, Happening::Elected { term: t, .. } if t == term);
    let mut pairs = happenings.windows(2).filter(|pair| elected(&pair[1]));
    let released = |pair: &[Happening]| {
        matches!(&pair[0],
        Happening::Released { election, heir: None, .. } if *election == term.election)
    };
    ensure!(pairs.any(released), "{term:?} follows a release at once: {happenings:?}");
    Ok(())
}

/// E6: no member is newly elected during a pause, by a release either.
pub(crate) async fn a_paused_election_is_not_handed_over(world: &World<'_>) -> Outcome {
    let Some(Cast { a, term, heir, .. }) = cast(world).await? else { return Ok(()) };
    world.pause("e").await?;
    a.hand_over(&term, world.long()).await?;
    kept_for(world, &heir, &term).await?;
    heir.lose_by("e", How::priority(HEIR)).await?;
    world.resume("e").await?;
    let next = heir.win_by("e", How::priority(HEIR)).await?;
    taken_on(world, &next).await
}

/// B4, C1: at no moment in between is the election free for a bidder that is quick.
pub(crate) async fn of_many_who_race_only_the_heir_leads(world: &World<'_>) -> Outcome {
    const RACERS: usize = 6;
    if !elects_heirs(world).await {
        return keeps_instead(world).await;
    }
    let a = Arc::new(world.member("a").await?);
    let heir = world.taker("heir").await?;
    let mut actors = Vec::new();
    for i in 0..RACERS {
        actors.push(Arc::new(world.member(&format!("racer-{i}")).await?));
    }
    for round in 0..5 {
        let name = format!("e{round}");
        let barrier = Arc::new(Barrier::new(RACERS + 1));
        let term = a.win(&name).await?;
        heir.lose_by(&name, How::priority(1_000)).await?;
        let mut racers = JoinSet::new();
        for actor in &actors {
            let actor = actor.clone();
            let name = name.clone();
            let barrier = barrier.clone();
            racers.spawn(async move {
                barrier.wait().await;
                for _ in 0..3 {
                    actor.lose(&name).await?;
                }
                Ok(())
            });
        }
        let giver = a.clone();
        let time = world.long();
        racers.spawn(async move {
            barrier.wait().await;
            giver.hand_over(&term, time).await
        });
        all(racers).await?;
        handed(world, &name, &heir).await?;
    }
    Ok(())
}
