//! Limits: up to each stated bound everything comes back byte for byte, and
//! over it there is a clear refusal.

use std::time::Duration;

use tenure_core::{
    Amend, Bid, Claim, Claimed, Claims, MAX_ENDPOINT, MAX_ENDPOINTS, MAX_METADATA, MAX_NAME,
    MAX_NOTE, MAX_TTL, Nonce, Note, Profile, Query, ReleaseItem, TermRef,
};
use tenure_store::ErrorKind;

use crate::Outcome;
use crate::actor::{Actor, How, won};
use crate::case::{ensure, fail, same};
use crate::world::{World, election};

/// C22, H26: every byte there is, as many as are allowed.
pub(crate) async fn profiles_come_back_byte_for_byte(world: &World<'_>) -> Outcome {
    // Every value, in a run that repeats at no power of two; not UTF-8.
    let metadata: Vec<u8> = (0..MAX_METADATA).map(|i| (i * 89 + i / 251 % 256) as u8).collect();
    let endpoint = |i: usize| format!("{i:02}-{}:1", "ü".repeat((MAX_ENDPOINT - 5) / 2));
    let endpoints: Vec<_> = (0..MAX_ENDPOINTS).map(endpoint).collect();
    let full = Profile::new(&endpoints, &metadata)?;
    let profiles = [full, Profile::default(), Profile::new(["h:1"], b"\x00")?];
    for (round, profile) in profiles.into_iter().enumerate() {
        let id = format!("a{round}");
        let a = world.member_with(&id, profile.clone()).await?;
        a.win(&id).await?;
        let holder = world.view(&id).await?.holder.map(|h| h.profile);
        same!(holder, Some(profile.clone()), "what the leader published");
        let seen = world.read(&Query::members()).await?;
        let listed = seen.members.into_iter().find(|m| m.member == a.me).map(|m| m.profile);
        same!(listed, Some(profile), "what the member published");
    }
    Ok(())
}

/// Names in any script, and as long as they may be.
pub(crate) async fn names_come_back_byte_for_byte(world: &World<'_>) -> Outcome {
    let long = "x".repeat(MAX_NAME);
    let wide = "選".repeat(MAX_NAME / 3);
    let odd = "a/b\\c?d#e%20f'g\"h;i--j*k<l>m|n:o$p{q}r~s`t &u=v+w,x😀";
    for name in [long.as_str(), wide.as_str(), odd, ".", "..", "-", "%", "NULL"] {
        let space = world.namespace(name)?;
        let a = space.member(name).await?;
        let term = a.win(name).await?;
        same!(term.election.as_str(), name, "the election's name");
        same!(term.member.id.as_str(), name, "the member's id");
        let holder = space.view(name).await?.holder;
        same!(holder.map(|h| h.member), Some(a.me.clone()), "the holder on view");
        same!(a.holding().await?, [name], "what the member holds");
        a.resign(&term).await?;
    }
    Ok(())
}

/// What an operator said is what is shown.
pub(crate) async fn notes_come_back_whole(world: &World<'_>) -> Outcome {
    let reason = Note::new("é".repeat(MAX_NOTE / 2));
    let by = Note::new("O'Hara \"ops\" 😀");
    let for_pause = reason.clone();
    let by_whom = by.clone();
    let amend = Amend::Pause { election: election("e")?, reason: for_pause, by: by_whom };
    world.amend(amend).await?;
    let pause = world.view("e").await?.paused;
    same!(pause, Some(tenure_core::Pause { reason, by }), "the pause on view");
    Ok(())
}

fn bids(actor: &Actor, count: usize) -> Outcome<Claim> {
    let mut bids = Vec::new();
    for i in 0..count {
        bids.push(Bid::new(election(&format!("e{i:05}"))?, actor.next_nonce()));
    }
    Ok(Claim::new(actor.me.clone(), actor.ttl, bids))
}

fn releases(held: Vec<TermRef>) -> Vec<ReleaseItem> {
    held.into_iter().map(ReleaseItem::term).collect()
}

/// C12: a full batch is won, kept by heartbeats, and given back.
pub(crate) async fn a_full_batch_is_won_and_given_back(world: &World<'_>) -> Outcome {
    let batch = world.capabilities().await.batch.min(1_000);
    let a = world.member("a").await?;
    let b = world.member("b").await?;
    let claim = bids(&a, batch)?;
    let Claims::Answered(answers) = a.send(&claim).await? else {
        fail!("the claim of a live member is answered");
    };
    for (bid, answer) in claim.bids.iter().zip(answers) {
        same!(won(answer)?.election, bid.election, "the answer to each bid in its place");
    }
    a.alive().await?;
    same!(a.holding().await?.len(), batch, "terms held");
    let Claims::Answered(answers) = b.send(&bids(&b, batch)?).await? else {
        fail!("the claim of a live member is answered");
    };
    ensure!(answers.iter().all(|a| matches!(a, Claimed::Held(_))), "all of them are held");
    a.release(releases(a.held()), Duration::ZERO).await?;
    same!(a.holding().await?, [""; 0], "terms held after the release");
    Ok(())
}

/// A limit is refused in words, and nothing of the request is done.
pub(crate) async fn one_more_than_a_full_batch_is_refused(world: &World<'_>) -> Outcome {
    let batch = world.capabilities().await.batch;
    ensure!(batch >= 1, "a store takes at least one bid at a time");
    if batch > 100_000 {
        return Ok(());
    }
    let a = world.member("a").await?;
    let claim = bids(&a, batch + 1)?;
    let refused = a.store.claim(&a.ns, &claim).await;
    let refused = match refused {
        Err(error) => error,
        Ok(_) => {
            fail!("{} bids were taken where {batch} are the limit", batch + 1);
        }
    };
    same!(refused.kind(), ErrorKind::Invalid, "the kind of the refusal");
    ensure!(!refused.may_have_applied(), "nothing was done: {refused}");
    ensure!(refused.to_string().contains(&batch.to_string()), "it names the limit: {refused}");
    same!(a.holding().await?, [""; 0], "terms held");
    Ok(())
}

/// H17: the largest numbers a caller can come to are numbers like any other.
pub(crate) async fn the_largest_numbers_are_kept_as_they_are(world: &World<'_>) -> Outcome {
    let mut a = world.life("a").await?;
    a.ttl = MAX_TTL;
    a.enter().await?;
    let how = How::priority(u16::MAX);
    let claim = a.claim_for("e", Nonce::new(u64::MAX / 2 - 1), how)?;
    let term = won(a.send_one(&claim).await?)?;
    same!(won(a.send_one(&claim).await?)?, term, "the term of a repeated claim");
    let next = won(a.send_one(&a.claim_for("e", Nonce::new(u64::MAX / 2), how)?).await?)?;
    ensure!(next.number > term.number, "{next:?} follows {term:?}");
    let view = a.view("e").await?;
    same!(view.holder.map(|h| h.ttl), Some(MAX_TTL), "the ttl the holder wrote");
    same!(view.candidates.first().map(|c| c.priority.get()), Some(u16::MAX), "the priority");
    Ok(())
}
