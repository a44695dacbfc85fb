//! Who leads, as far as a channel knows. Pure: it reads no clock and asks no store. Time is an
//! argument, and is this process's own, which counts suspended time.
//!
//! # What must stay true
//!
//! - **G1** No route is given whose leader's ttl has run out as counted here, nor one of an older
//!   term than the store has named. A ttl is counted from before the store was asked.
//! - A term that is over stays over: an answer that was under way while it ended does not bring
//!   it back.
//! - A hint gives a route only if its number is greater than every known one and its endpoint is
//!   one that a live member has published in the store. It never counts as the store's word: a
//!   number that only a hint has named is forgotten with the first look that began after it, so
//!   that a forged one cannot make the true leader look old.
//!
//! # The interleavings
//!
//! - **A look answers after a newer term was observed.** Its number is less than `seen`; its view
//!   is dropped, its members are kept.
//! - **A look was sent while the term stood, and answers after *vacant* was observed.** Its number
//!   is not greater than `over`, and it is dropped.
//! - **A hint from a deposed leader.** It names an older term or the same: it only causes a look.
//! - **Two servers that hint at each other**, each with a higher number. The first is taken if the
//!   other is a member; every look takes it back. A call follows three, and then only looks.
//! - **The observer is stale while the store is away.** The route ends with the ttl that the last
//!   look told, and no look succeeds: vacant (G4).
//! - **A term is observed before any look told its ttl.** It gets what is left of its member's own
//!   ttl, if that is known, and half a second if not. A look is made at once.
//! - **The leader renews between two looks.** The next look is made when half of what is left has
//!   passed, so that one failed look does not end the route.

use std::time::Duration;

use tenure::Mono;
use tenure::views::{ElectionView, MemberView, Profile};

use crate::header::Hint;

/// How long a term is believed of which nothing but its beginning is known.
pub(crate) const UNTOLD: Duration = Duration::from_millis(500);

/// A leader, and until when it may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leader {
    pub(crate) number: u64,
    pub(crate) id: String,
    pub(crate) profile: Profile,
    pub(crate) until: Mono,
}

/// A member, and until when it lives, as far as is known.
#[derive(Clone, Debug)]
struct Known {
    id: String,
    profile: Profile,
    until: Mono,
}

/// What became of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hinted {
    /// It gives the route until the store is asked.
    Taken,
    /// It only causes a look.
    Look,
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Routing {
    /// The highest number that the store has named.
    seen: u64,
    /// The newest term that is known to be over.
    over: u64,
    leader: Option<Leader>,
    /// When to look, while there is a leader.
    look_at: Option<Mono>,
    /// What a hint named, and when.
    hinted: Option<(Leader, Mono)>,
    members: Vec<Known>,
    /// Those that may lead next, the preferred first.
    next: Vec<String>,
}

impl Routing {
    /// The election is led: an observer says so. For how long it does not say.
    pub(crate) fn leads(&mut self, now: Mono, number: u64, id: &str, profile: Profile) {
        let known = self.leader.as_ref().is_some_and(|leader| leader.number == number);
        if number < self.seen || number <= self.over || known {
            return;
        }
        self.saw(number);
        let member = self.members.iter().find(|member| member.id == id);
        let until = member.map_or(now, |member| member.until).max(now + UNTOLD);
        self.leader = Some(Leader { number, id: id.to_owned(), profile, until });
        self.look_at = Some(now);
    }

    /// The term is over, and no newer one has begun: an observer says so.
    pub(crate) fn vacant(&mut self, number: u64) {
        self.saw(number);
        self.over = self.over.max(number);
        if self.leader.as_ref().is_some_and(|leader| leader.number <= self.over) {
            self.leader = None;
            self.look_at = None;
        }
    }

    /// The store has named a term: what a hint said of it, or of an older one, is of no use now.
    fn saw(&mut self, number: u64) {
        self.seen = self.seen.max(number);
        if self.hinted.as_ref().is_some_and(|(leader, _)| leader.number <= number) {
            self.hinted = None;
        }
    }

    /// The store has answered what it was asked at `asked`.
    pub(crate) fn looked(&mut self, asked: Mono, view: &ElectionView) {
        if self.hinted.as_ref().is_some_and(|(_, at)| *at <= asked) {
            self.hinted = None;
        }
        let number = view.number.get();
        if number < self.seen {
            return;
        }
        self.saw(number);
        let to = view.step_down.as_ref().and_then(|asked| asked.to.as_ref());
        let reserved = view.reserved.as_ref().map(|reserved| &reserved.member);
        let candidates = view.candidates.iter().map(|candidate| &candidate.member.id);
        let next = to.into_iter().chain(reserved).chain(candidates);
        self.next = next.map(|id| id.as_str().to_owned()).collect();
        let Some(holder) = &view.holder else { return self.vacant(number) };
        if number <= self.over {
            return;
        }
        let until = asked + holder.remaining;
        self.look_at = Some(asked + holder.remaining / 2);
        let id = holder.member.id.as_str().to_owned();
        self.next.retain(|next| *next != id);
        self.leader = Some(Leader { number, id, profile: holder.profile.clone(), until });
    }

    /// The live members, as the store has told them.
    pub(crate) fn members(&mut self, asked: Mono, members: &[MemberView]) {
        let known = |view: &MemberView| Known {
            id: view.member.id.as_str().to_owned(),
            profile: view.profile.clone(),
            until: asked + view.remaining,
        };
        self.members = members.iter().map(known).collect();
    }

    /// A call to this term was refused. If only a hint has named it, that was wrong, or early.
    pub(crate) fn refused(&mut self, to: u64) {
        if self.hinted.as_ref().is_some_and(|(leader, _)| leader.number == to) {
            self.hinted = None;
        }
    }

    /// A server that refused a call says who leads.
    pub(crate) fn hint(&mut self, now: Mono, hint: &Hint) -> Hinted {
        let hinted = self.hinted.as_ref().map_or(0, |(leader, _)| leader.number);
        if hint.number <= self.seen.max(hinted) {
            return Hinted::Look;
        }
        let publishes = |member: &&Known| member.profile.endpoints().contains(&hint.endpoint);
        let lives = |member: &&Known| now < member.until;
        let Some(member) = self.members.iter().filter(lives).find(publishes) else {
            return Hinted::Look;
        };
        let Known { id, profile, until } = member.clone();
        self.hinted = Some((Leader { number: hint.number, id, profile, until }, now));
        Hinted::Taken
    }

    /// Who may be called now, if that is known.
    pub(crate) fn route(&self, now: Mono) -> Option<&Leader> {
        let hinted = self.hinted.as_ref().map(|(leader, _)| leader);
        let lives = |leader: &&Leader| now < leader.until;
        hinted.filter(lives).or(self.leader.as_ref().filter(lives))
    }

    /// The newest number that the store has named.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// When the store should be asked again, if it is not asked before.
    pub(crate) fn look_at(&self) -> Option<Mono> {
        self.look_at
    }

    /// Whether a hint waits for the store's word.
    pub(crate) fn is_hinted(&self) -> bool {
        self.hinted.is_some()
    }

    /// Those that may lead next, the preferred first, with what they publish.
    pub(crate) fn next(&self) -> impl Iterator<Item = &Profile> {
        let of = |id: &String| self.members.iter().find(|member| member.id == *id);
        self.next.iter().filter_map(of).map(|member| &member.profile)
    }
}

#[cfg(test)]
mod tests;
