//! Claims: who wins, under which number, and what the others are told.

use tenure_core::{Bid, Claim, Claimed, Claims, Happening, Nonce, Profile, ReleaseCause};

use super::members::still_leads;
use crate::Outcome;
use crate::actor::{How, held, won};
use crate::case::{ensure, fail, same};
use crate::world::{World, election};

/// C1.
pub(crate) async fn the_first_candidate_leads_term_one(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let term = a.win("e").await?;
    same!(term.number.get(), 1, "the first number");
    same!(term.member, a.me, "who won");
    same!(term.election, election("e")?, "what was won");
    still_leads(world, "e", &term).await?;
    same!(a.holding().await?, ["e"], "what the member holds");
    Ok(())
}

/// C2, H9, H26: losing is an answer that names the leader.
pub(crate) async fn the_loser_is_told_who_leads(world: &World<'_>) -> Outcome {
    let profile = Profile::new(["10.0.0.7:8080"], b"\xff\x00leader")?;
    let a = world.member_with("a", profile.clone()).await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    let view = b.lose("e").await?;
    same!(view.number, term.number, "the number of the term");
    if let Some(holder) = &view.holder {
        same!(holder.member, a.me, "who leads");
        same!(holder.profile, profile, "what the leader published");
        same!(holder.ttl, a.ttl, "the ttl the holder wrote (M3)");
        same!(holder.elected_at, term.elected_at, "when it was elected");
        let left = holder.remaining;
        let most = world.most_left(a.ttl).await;
        ensure!(!left.is_zero() && left <= most, "what is left of its ttl: {left:?}");
        return Ok(());
    }
    fail!("the holder is named: {view:?}")
}

/// A claim that names an election twice is odd, and its last answer is true all the same.
pub(crate) async fn the_last_of_two_bids_for_one_election_counts(world: &World<'_>) -> Outcome {
    let [a, b] = [world.member("a").await?, world.member("b").await?];
    let twice = |actor: &crate::actor::Actor| -> Outcome<Claim> {
        let mut claim = actor.claim_for("e", actor.next_nonce(), How::default())?;
        claim.bids.push(Bid::new(election("e")?, actor.next_nonce()));
        Ok(claim)
    };
    let Claims::Answered(answers) = a.send(&twice(&a)?).await? else { fail!("a lives") };
    let Some(Claimed::Won(term)) = answers.last() else { fail!("the last bid: {answers:?}") };
    still_leads(world, "e", term).await?;
    let Claims::Answered(answers) = b.send(&twice(&b)?).await? else { fail!("b lives") };
    let Some(Claimed::Held(view)) = answers.last() else { fail!("the last bid: {answers:?}") };
    ensure!(view.is_held_by(a.me.incarnation), "b is told who leads: {view:?}");
    still_leads(world, "e", term).await
}

/// H5, H6: after every way for a term to end, and by the same member too.
pub(crate) async fn numbers_only_rise(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let mut last = a.win("e").await?;
    for _ in 0..3 {
        a.resign(&last).await?;
        let next = a.win("e").await?;
        ensure!(next.number > last.number, "{next:?} follows {last:?}");
        last = next;
    }
    a.leave().await?;
    let after_leave = b.win("e").await?;
    ensure!(after_leave.number > last.number, "{after_leave:?} follows {last:?}");
    world.evict("b", true).await?;
    let c = world.member("c").await?;
    let after_evict = c.win("e").await?;
    ensure!(after_evict.number > after_leave.number, "{after_evict:?} follows {after_leave:?}");
    Ok(())
}

/// H6, B17: the holder claims anew, so it gets a new number.
pub(crate) async fn a_new_attempt_of_the_holder_is_a_new_term(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let first = a.win("e").await?;
    let second = a.win("e").await?;
    ensure!(second.number > first.number, "{second:?} follows {first:?}");
    still_leads(world, "e", &second).await?;
    same!(a.holding().await?, ["e"], "what the member holds");
    if world.capabilities().await.journal {
        let told = world.happenings().await?.into_iter().any(|happening| {
            matches!(happening, Happening::Released { number, cause, .. }
                if number == first.number && cause == ReleaseCause::Abandoned)
        });
        ensure!(told, "the journal tells that the older term was abandoned");
    }
    Ok(())
}

/// M3, H24, B20: an impatient challenger does not shorten the holder's life.
pub(crate) async fn the_holders_ttl_decides(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let mut b = world.member("b").await?;
    let term = a.win("e").await?;
    b.ttl = world.unit() / 10;
    let hasty = b.claim_for("e", b.next_nonce(), How::default())?;
    held(b.send_one(&hasty).await?)?;
    world.lapse(&[&a, &b]).await?;
    held(b.send_one(&b.claim_for("e", b.next_nonce(), How::default())?).await?)?;
    still_leads(world, "e", &term).await
}

/// M2: what is taken from an expired member is taken from one that was ended;
/// all it held is free from then on, and none of it comes back.
pub(crate) async fn taking_over_ends_the_expired_holder(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let one = a.win("one").await?;
    let two = a.win("two").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    let taken = b.win("one").await?;
    ensure!(taken.number > one.number, "{taken:?} follows {one:?}");
    a.ended().await?;
    a.bid_ended("two").await?;
    a.resign(&two).await?;
    a.leave().await?;
    ensure!(b.view("two").await?.holder.is_none(), "its other term is over as well");
    ensure!(b.win("two").await?.number > two.number, "and free");
    still_leads(world, "one", &taken).await
}

/// B23, M2: nothing is taken before the ttl has run out.
pub(crate) async fn nothing_is_taken_from_a_live_holder(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    for _ in 0..5 {
        world.pass(world.unit()).await;
        same!(b.lose("e").await?.number, term.number, "the number of the term");
    }
    a.alive().await?;
    still_leads(world, "e", &term).await
}

/// M1, B5: one's own life may be over while one waits.
pub(crate) async fn an_expired_caller_wins_nothing(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&a, &b]).await?;
    same!(a.bid_ended("e").await?, false, "superseded, without a successor");
    let view = b.view("e").await?;
    ensure!(view.holder.is_none() && view.candidates.is_empty(), "nothing changed: {view:?}");
    Ok(())
}

/// M1: who never joined wins nothing.
pub(crate) async fn a_stranger_wins_nothing(world: &World<'_>) -> Outcome {
    let stranger = world.life("x").await?;
    stranger.bid_ended("e").await?;
    ensure!(world.view("e").await?.holder.is_none(), "the election stays vacant");
    Ok(())
}

/// C9.
pub(crate) async fn priority_zero_never_leads(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let view = a.lose_by("e", How::priority(0)).await?;
    ensure!(view.holder.is_none(), "no member leads: {view:?}");
    same!(a.view("e").await?.candidates.len(), 1, "candidates standing");
    a.win_by("e", How::priority(1)).await?;
    Ok(())
}

/// E3, C9: a higher priority waits like any other.
pub(crate) async fn an_incumbent_is_never_preempted(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win_by("e", How::priority(1)).await?;
    b.lose_by("e", How::priority(1_000)).await?;
    still_leads(world, "e", &term).await
}

/// E2: the bids of one claim do not hang together.
pub(crate) async fn each_bid_is_answered_on_its_own_and_in_order(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.win("taken").await?;
    world.pause("paused").await?;
    let names = ["free", "taken", "paused", "also-free"];
    let mut bids = Vec::new();
    for name in names {
        bids.push(Bid::new(election(name)?, b.next_nonce()));
    }
    let claim = Claim::new(b.me.clone(), b.ttl, bids);
    let Claims::Answered(answers) = b.send(&claim).await? else {
        fail!("the claim of a live member is answered");
    };
    let told: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Claimed::Won(term) => (term.election.as_str(), true),
            Claimed::Held(view) => (view.election.as_str(), false),
            Claimed::Unknown(_) => ("unknown", false),
        })
        .collect();
    let expected = [("free", true), ("taken", false), ("paused", false), ("also-free", true)];
    same!(told, expected, "the answers");
    Ok(())
}

/// T1: a win counts as a heartbeat with the ttl of the claim.
pub(crate) async fn a_win_counts_as_a_heartbeat(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.fade(world.unit()).await?;
    // Without a heartbeat after it.
    let term = won(a.bid("e", How::default()).await?)?;
    world.lapse(&[&a, &b]).await?;
    same!(b.lose("e").await?.number, term.number, "the number of the term");
    a.alive().await?;
    still_leads(world, "e", &term).await
}

/// E2, B16: of an incarnation's attempts only the newest counts.
pub(crate) async fn an_older_attempt_of_the_last_winner_is_only_a_late_copy(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let bid = |nonce| a.claim_for("e", Nonce::new(nonce), How::default());
    let term = won(a.send_one(&bid(5)?).await?)?;
    let view = held(a.send_one(&bid(3)?).await?)?;
    ensure!(view.is_held_by(a.me.incarnation), "its own term stands: {view:?}");
    still_leads(world, "e", &term).await?;
    a.resign(&term).await?;
    held(a.send_one(&bid(4)?).await?)?;
    let view = a.view("e").await?;
    ensure!(view.holder.is_none(), "a late copy wins nothing: {view:?}");
    ensure!(view.candidates.is_empty(), "and does not stand: {view:?}");
    let next = won(a.send_one(&bid(6)?).await?)?;
    ensure!(next.number > term.number, "{next:?} follows {term:?}");
    Ok(())
}
