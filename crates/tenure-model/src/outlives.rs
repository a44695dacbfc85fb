//! Rule M5: the terms of a life end with it, whether or not that was written down.
//!
//! **The rule.** Whenever the store shows who holds an election, that life is a member. This
//! is looked at in every answer, and not in what the store would answer if it was asked: a
//! term that is over in a look and stands in the answer to a bid would not be found there.
//!
//! **The rule broken.** The life is ended, one of its terms is not: no bid wins the election,
//! and every answer shows it as held. Only a term whose holder has ended, and that was not
//! written off since, is bent so. It shows wherever a life ends without the bid that ends it:
//! one that leaves, one that its next life replaces, and one that is ended for another election.

use tenure_core::{
    Claim, Claimed, Claims, ElectionName, ElectionView, Happening, Holder, MemberRef, Profile,
    Query, Reply, Request, Seq, Term,
};

use crate::config::STEP;
use crate::world::{Broken, JOURNAL, World};

/// Looks at an answer that the store has just given.
pub(crate) fn check(world: &mut World, reply: &Reply) {
    let is_void = holders(reply).any(|holder| !lives(world, holder));
    if is_void {
        world.breaks(Broken::OutlivedByTerm);
    }
}

/// The holders that an answer shows.
fn holders(reply: &Reply) -> impl Iterator<Item = &MemberRef> {
    let read = match reply {
        Reply::Read(snapshot) => &snapshot.elections[..],
        _ => &[],
    };
    let claimed = match reply {
        Reply::Claim(Claims::Answered(answers)) => &answers[..],
        _ => &[],
    };
    let held = claimed.iter().filter_map(|answer| match answer {
        Claimed::Held(view) => view.holder.as_ref(),
        _ => None,
    });
    let shown = read.iter().filter_map(|view| view.holder.as_ref());
    shown.chain(held).map(|holder| &holder.member)
}

fn lives(world: &World, member: &MemberRef) -> bool {
    let members = world.store.read(world.store_clock(), &Query::members()).members;
    members.iter().any(|view| view.member == *member)
}

/// The newest term of an election, if its holder's life was ended since and the term
/// was not written off.
fn void_term(world: &World, election: &ElectionName) -> Option<Term> {
    let kept = u64::try_from(JOURNAL).unwrap_or_default();
    let from = Seq::new(world.store.seq().get().saturating_sub(kept));
    let mut newest: Option<(Term, bool)> = None;
    for entry in world.store.entries_after(from).unwrap_or_default() {
        match entry.what {
            Happening::Elected { term, .. } if term.election == *election => {
                newest = Some((term, false));
            }
            Happening::Released { election: of, .. } if of == *election => newest = None,
            Happening::Ended { member, .. } | Happening::Left { member, .. } => {
                if let Some((term, is_void)) = &mut newest {
                    *is_void |= term.member == member;
                }
            }
            _ => {}
        }
    }
    newest.filter(|(_, is_void)| *is_void).map(|(term, _)| term)
}

/// What a store says of an election whose last term it has not ended.
fn outlived(world: &World, election: &ElectionName) -> Option<ElectionView> {
    let term = void_term(world, election)?;
    let query = Query::elections([election.clone()]);
    let mut view = world.store.read(world.store_clock(), &query).elections.into_iter().next()?;
    view.holder = Some(Holder {
        member: term.member,
        profile: Profile::default(),
        elected_at: term.elected_at,
        ttl: STEP,
        remaining: STEP,
        unconfirmed: false,
    });
    Some(view)
}

/// The answer of a store that breaks the rule; `None` where it answers as ever.
pub(crate) fn broken(world: &World, request: &Request) -> Option<Reply> {
    match request {
        Request::Claim(claim) => refused(world, claim).map(Reply::Claim),
        Request::Read(query) => {
            let mut snapshot = world.store.read(world.store_clock(), query);
            for view in &mut snapshot.elections {
                if let Some(bent) = outlived(world, &view.election) {
                    view.holder = bent.holder;
                }
            }
            Some(Reply::Read(snapshot))
        }
        _ => None,
    }
}

/// A bid for one election at least that is held for good: then none of the request wins.
fn refused(world: &World, claim: &Claim) -> Option<Claims> {
    let bids = || claim.bids.iter().map(|bid| &bid.election);
    if bids().all(|election| void_term(world, election).is_none()) {
        return None;
    }
    let views = bids().filter_map(|election| {
        let query = Query::elections([election.clone()]);
        let found = world.store.read(world.store_clock(), &query).elections.into_iter().next();
        outlived(world, election).or(found)
    });
    Some(Claims::Answered(views.map(Claimed::Held).collect()))
}
