//! The operator's verbs: step down, pause, resume, evict.

use tenure_core::{Amend, Amended, MemberId, Note, StepDown, TermNumber};

use super::members::still_leads;
use crate::Outcome;
use crate::actor::How;
use crate::case::{ensure, fail, same};
use crate::world::{World, election};

/// A step-down of whatever term is the present one.
pub(super) fn step_down(
    name: &str,
    number: Option<TermNumber>,
    to: Option<&str>,
) -> Outcome<Amend> {
    let to = to.map(MemberId::new).transpose()?;
    let reason = Note::new("node drain");
    let by = Note::new("ops");
    Ok(Amend::StepDown { election: election(name)?, number, to, reason, by })
}

/// E5: stored with its term, and found without any notification.
pub(crate) async fn a_step_down_is_kept_with_its_term_and_found(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    b.lose("e").await?;
    let before = a.alive().await?;
    let amended = world.amend(step_down("e", Some(term.number), Some("b"))?).await?;
    match &amended {
        Amended::Done { number, member, remaining } => {
            same!(*number, Some(term.number), "the term it went to");
            same!(member.as_ref(), Some(&a.me), "the member it went to");
            let most = world.most_left(a.ttl).await;
            ensure!(*remaining <= most, "what is left of its ttl: {remaining:?}");
        }
        other => fail!("the request is taken: {other:?}"),
    }
    let expected = StepDown {
        number: term.number,
        reason: Note::new("node drain"),
        by: Note::new("ops"),
        to: Some(b.me.id.clone()),
    };
    same!(world.view("e").await?.step_down, Some(expected), "the request on view");
    ensure!(a.alive().await? > before, "the holder's attention is raised");
    still_leads(world, "e", &term).await
}

/// E5: meant for one term, it does not touch the next.
pub(crate) async fn a_step_down_of_another_term_is_superseded(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let older = a.win("e").await?;
    let present = a.win("e").await?;
    let amended = world.amend(step_down("e", Some(older.number), None)?).await?;
    same!(amended, Amended::Superseded { number: present.number }, "the answer");
    same!(world.view("e").await?.step_down, None, "the request on view");
    Ok(())
}

/// E5: no member leads, so that none is asked.
pub(crate) async fn a_step_down_without_a_leader_is_answered_vacant(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    same!(world.amend(step_down("e", None, None)?).await?, Amended::Vacant, "never won");
    let term = a.win("e").await?;
    a.resign(&term).await?;
    let late = step_down("e", Some(term.number), None)?;
    same!(world.amend(late).await?, Amended::Vacant, "released");
    a.win("e").await?;
    a.fade(world.unit()).await?;
    world.lapse(&[&b]).await?;
    let amended = b.store.amend(&b.ns, &step_down("e", None, None)?).await?;
    same!(amended, Amended::Vacant, "expired");
    Ok(())
}

/// C10: a successor must be there to take over.
pub(crate) async fn a_successor_must_be_a_live_candidate_that_may_lead(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let bystander = world.member("bystander").await?;
    let never = world.member("never").await?;
    let gone = world.member("gone").await?;
    a.win("e").await?;
    never.lose_by("e", How::priority(0)).await?;
    gone.lose("e").await?;
    gone.leave().await?;
    for to in ["bystander", "never", "gone", "unknown"] {
        let amended = world.amend(step_down("e", None, Some(to))?).await?;
        same!(amended, Amended::NoSuchCandidate, to);
    }
    same!(world.view("e").await?.step_down, None, "the request on view");
    bystander.lose("e").await?;
    let amended = world.amend(step_down("e", None, Some("bystander"))?).await?;
    ensure!(matches!(amended, Amended::Done { .. }), "it stands now: {amended:?}");
    Ok(())
}

/// E5: the newest request is the one that counts.
pub(crate) async fn a_newer_step_down_replaces_the_older(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    a.win("e").await?;
    b.lose("e").await?;
    world.amend(step_down("e", None, None)?).await?;
    world.amend(step_down("e", None, Some("b"))?).await?;
    let to = world.view("e").await?.step_down.and_then(|s| s.to);
    same!(to, Some(b.me.id.clone()), "the successor of the newest request");
    Ok(())
}

/// E5: the request ends with its term.
pub(crate) async fn a_step_down_ends_with_its_term(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    world.amend(step_down("e", None, None)?).await?;
    a.resign(&term).await?;
    same!(world.view("e").await?.step_down, None, "the request after the release");
    b.win("e").await?;
    same!(world.view("e").await?.step_down, None, "the request after the next election");
    world.amend(step_down("e", None, None)?).await?;
    b.win("e").await?;
    same!(world.view("e").await?.step_down, None, "the request after the holder won anew");
    Ok(())
}

/// E6.
pub(crate) async fn no_member_is_newly_elected_during_a_pause(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    world.pause("e").await?;
    world.pause("fresh").await?;
    still_leads(world, "e", &term).await?;
    a.alive().await?;
    a.resign(&term).await?;
    for name in ["e", "fresh"] {
        let view = b.lose(name).await?;
        ensure!(view.holder.is_none(), "{name} has no leader: {view:?}");
        let pause = view.paused;
        same!(pause.as_ref().map(|p| p.reason.as_str()), Some("maintenance"), "the reason");
        same!(pause.as_ref().map(|p| p.by.as_str()), Some("ops"), "who asked");
    }
    Ok(())
}

/// E6: nor does the incumbent begin a new term.
pub(crate) async fn the_incumbent_keeps_its_term_during_a_pause(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    world.pause("e").await?;
    a.lose("e").await?;
    b.lose("e").await?;
    a.alive().await?;
    still_leads(world, "e", &term).await
}

/// E6.
pub(crate) async fn a_resumed_election_elects_again(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    world.pause("e").await?;
    a.lose("e").await?;
    let amended = world.resume("e").await?;
    ensure!(matches!(amended, Amended::Done { .. }), "the pause is lifted: {amended:?}");
    same!(world.view("e").await?.paused, None, "the pause on view");
    a.win("e").await?;
    Ok(())
}

/// E6: asking twice is asking once.
pub(crate) async fn pausing_or_resuming_twice_changes_nothing(world: &World<'_>) -> Outcome {
    same!(world.resume("e").await?, Amended::Unchanged, "resuming what runs");
    let amended = world.pause("e").await?;
    ensure!(matches!(amended, Amended::Done { .. }), "the first pause: {amended:?}");
    same!(world.pause("e").await?, Amended::Unchanged, "pausing what is paused");
    world.resume("e").await?;
    same!(world.resume("e").await?, Amended::Unchanged, "resuming once more");
    Ok(())
}

/// M1, M2: an evicted member is told at once; what it holds is free when it
/// cannot believe in it any more.
pub(crate) async fn an_evicted_member_is_ended_but_its_terms_stand_for_its_ttl(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    let amended = world.evict("a", false).await?;
    let to_a = matches!(&amended, Amended::Done { member: Some(m), .. } if *m == a.me);
    ensure!(to_a, "the member is condemned: {amended:?}");
    a.ended().await?;
    a.bid_ended("other").await?;
    same!(b.lose("e").await?.number, term.number, "the number of the term");
    still_leads(world, "e", &term).await?;
    same!(world.evict("a", false).await?, Amended::Unchanged, "evicting it again");
    Ok(())
}

/// M2: and then it is free.
pub(crate) async fn what_an_evicted_member_held_is_free_after_its_ttl(
    world: &World<'_>,
) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    a.fade(world.unit()).await?;
    world.evict("a", false).await?;
    a.ended().await?;
    world.lapse(&[&a, &b]).await?;
    ensure!(b.win("e").await?.number > term.number, "the election is free");
    Ok(())
}

/// An operator who knows better does not wait.
pub(crate) async fn evicting_at_once_frees_everything_now(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let term = a.win("e").await?;
    let amended = world.evict("a", true).await?;
    let to_a = matches!(&amended, Amended::Done { member: Some(m), .. } if *m == a.me);
    ensure!(to_a, "the member is ended: {amended:?}");
    same!(world.ids().await?, ["b"], "the live members");
    a.ended().await?;
    ensure!(b.win("e").await?.number > term.number, "the election is free");
    a.resign(&term).await?;
    same!(b.holding().await?, ["e"], "what the successor holds");
    Ok(())
}

/// There is no such member.
pub(crate) async fn evicting_an_unknown_member_is_an_answer(world: &World<'_>) -> Outcome {
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    same!(world.evict("unknown", true).await?, Amended::NoSuchMember, "never joined");
    b.leave().await?;
    same!(world.evict("b", false).await?, Amended::NoSuchMember, "gone");
    a.alive().await?;
    Ok(())
}
