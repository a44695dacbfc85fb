//! The verbs of a member's life: join, heartbeat, leave.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{
    Beat, EndCause, Happening, Heartbeat, Join, Joined, MemberRef, Mono, TermBeat, TermOutcome,
    TermRef, Timestamp,
};

use super::state::{Member, MemoryState};

impl MemoryState {
    /// Makes a member; see [`Store::join`](crate::Store::join).
    pub fn join(&mut self, now: Mono, wall: Timestamp, join: &Join) -> Joined {
        self.catch_up(wall, join.seen);
        if self.acting(now, &join.member).is_some() {
            return self.join_again(now, join);
        }
        if let Some(taken) = self.taken(now, join) {
            return taken;
        }
        self.make_room(now, wall, &join.member);
        self.collect(now, wall);
        self.sweep();
        self.admit(now, wall, join)
    }

    /// A repeated request: as if it were the first, except that it is not news.
    fn join_again(&mut self, now: Mono, join: &Join) -> Joined {
        if let Some(member) = self.members.get_mut(&join.member.id) {
            member.beaten = now;
            member.ttl = join.ttl;
            member.profile = join.profile.clone();
            member.takes_over = join.takes_over;
        }
        self.joined(join)
    }

    /// Why a newcomer has to wait, or has to come back as somebody else.
    fn taken(&self, now: Mono, join: &Join) -> Option<Joined> {
        if self.is_over(&join.member) {
            let remaining =
                self.recorded(&join.member).map_or(Duration::ZERO, |m| m.remaining(now));
            return Some(Joined::Taken { by: join.member.incarnation, remaining });
        }
        let other = self.live(now, &join.member.id)?;
        let may_end = join.supersede && self.holds(&other.member) == 0;
        let (by, remaining) = (other.member.incarnation, other.remaining(now));
        (!may_end).then_some(Joined::Taken { by, remaining })
    }

    /// Whether this life has ended already, as far as can still be told: it is
    /// recorded but does not act any more, or the journal saw it go (rule M1).
    fn is_over(&self, member: &MemberRef) -> bool {
        self.recorded(member).is_some() || self.journal.end_of(member).is_some()
    }

    /// Ends the older life of an id that a newcomer may replace.
    fn make_room(&mut self, now: Mono, wall: Timestamp, newcomer: &MemberRef) {
        if let Some(older) = self.members.get(&newcomer.id) {
            let cause = if older.is_live(now) { EndCause::Superseded } else { older.fate() };
            let older = older.member.clone();
            self.end(wall, &older, cause);
        }
    }

    /// Ends the dead who hold nothing. Only a join adds members, so sweeping
    /// here keeps them from growing without bound (H27). Those who hold terms
    /// stay until somebody wants the terms (rule M2).
    fn collect(&mut self, now: Mono, wall: Timestamp) {
        let dead = self.members.values().filter(|m| !m.is_live(now));
        let idle = dead.filter(|m| m.holds == 0);
        let idle: Vec<_> = idle.map(|m| (m.member.clone(), m.fate())).collect();
        for (member, cause) in idle {
            self.end(wall, &member, cause);
        }
    }

    fn admit(&mut self, now: Mono, wall: Timestamp, join: &Join) -> Joined {
        let member = Member {
            member: join.member.clone(),
            profile: join.profile.clone(),
            ttl: join.ttl,
            beaten: now,
            joined_at: wall,
            attention: 0,
            condemned: false,
            takes_over: join.takes_over,
            holds: 0,
            stands: BTreeSet::new(),
        };
        self.members.insert(join.member.id.clone(), member);
        let (member, profile) = (join.member.clone(), join.profile.clone());
        self.journal.write(wall, Happening::Joined { member, profile });
        self.joined(join)
    }

    fn joined(&self, join: &Join) -> Joined {
        let attention = self.members.get(&join.member.id).map_or(0, |m| m.attention);
        Joined::In { attention, seq: self.seq() }
    }

    /// Renews a live member; see [`Store::heartbeat`](crate::Store::heartbeat).
    pub fn heartbeat(&mut self, now: Mono, beat: &Heartbeat) -> Beat {
        // M1: whoever is not live now stays as dead as it is.
        let Some(member) = self.acting(now, &beat.member) else {
            return Beat::Ended { superseded: self.superseded(&beat.member) };
        };
        member.beaten = now;
        member.ttl = beat.ttl;
        let attention = member.attention;
        let terms = beat.held.iter().map(|term| self.answer_for(now, &beat.member, term)).collect();
        let holds = Some(self.holds(&beat.member));
        Beat::Alive { attention, holds, seq: self.seq(), terms }
    }

    /// A term that was handed over is taken on by a heartbeat that names it.
    fn answer_for(&mut self, now: Mono, caller: &MemberRef, term: &TermRef) -> TermBeat {
        let election = self.elections.get_mut(&term.election);
        let held = election.filter(|e| e.number == term.number && e.is_held_by(caller));
        let held = held.filter(|e| !e.has_lapsed(now));
        let outcome = match held {
            Some(election) => {
                let step_down = election.step_down.clone();
                election.holder.as_mut().into_iter().for_each(|holder| holder.lapses = None);
                TermOutcome::Renewed { step_down }
            }
            None => TermOutcome::Lost,
        };
        TermBeat { term: term.clone(), outcome }
    }

    /// Ends the caller's own life; see [`Store::leave`](crate::Store::leave).
    ///
    /// One whose ttl has run out may still leave, as long as nobody ended it:
    /// that only frees what nobody has taken yet.
    pub fn leave(&mut self, wall: Timestamp, member: &MemberRef) {
        if self.recorded(member).is_some() {
            self.journal.write(wall, Happening::Left { member: member.clone() });
            self.remove(member);
        }
    }
}
