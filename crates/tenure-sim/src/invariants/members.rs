//! M1, M2, M3: a member lives by the ttl it wrote itself; once that has run out
//! nothing revives it, and no other takes what it holds without ending it.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{
    Amend, Amended, Beat, Bindings, Claimed, Claims, EndCause, Entry, Happening, Incarnation,
    Joined, MemberId, MemberRef, Mono, ReleaseCause, Reply, Request,
};

use super::{Invariant, binds, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct Members {
    lives: BTreeMap<MemberId, Life>,
    over: std::collections::BTreeSet<Incarnation>,
}

#[derive(Debug)]
struct Life {
    incarnation: Incarnation,
    until: Mono,
    condemned: bool,
}

impl Members {
    pub(super) fn is_live(&self, store: Mono, member: &MemberRef) -> bool {
        let life = self.lives.get(&member.id);
        life.is_some_and(|l| l.incarnation == member.incarnation && store < l.until && !l.condemned)
    }

    /// Whether a member lives under this id, condemned or not.
    pub(super) fn lives(&self, store: Mono, id: &MemberId) -> bool {
        self.lives.get(id).is_some_and(|life| store < life.until)
    }

    fn renew(&mut self, store: Mono, member: &MemberRef, ttl: Duration) -> Result<(), String> {
        if !self.is_live(store, member) {
            return Err(format!("{member} was renewed though its life was over"));
        }
        if let Some(life) = self.lives.get_mut(&member.id) {
            life.until = store + ttl;
        }
        Ok(())
    }

    fn applied(&mut self, store: Mono, request: &Request, reply: &Reply) -> Result<(), String> {
        match (request, reply) {
            (Request::Join(join), Reply::Join(Joined::In { .. })) => {
                let incarnation = join.member.incarnation;
                if self.over.contains(&incarnation) {
                    return Err(format!("{} came back by a join", join.member));
                }
                let life = Life { incarnation, until: store + join.ttl, condemned: false };
                self.lives.insert(join.member.id.clone(), life);
            }
            (Request::Heartbeat(beat), Reply::Heartbeat(Beat::Alive { .. })) => {
                self.renew(store, &beat.member, beat.ttl)?;
            }
            (Request::Heartbeat(beat), Reply::Heartbeat(Beat::Ended { .. }))
                if self.is_live(store, &beat.member) =>
            {
                return Err(format!("{} was told that it had ended, but lives", beat.member));
            }
            (Request::Claim(claim), Reply::Claim(Claims::Answered(answers))) => {
                if !self.is_live(store, &claim.member) {
                    return Err(format!("{} bid though its life was over", claim.member));
                }
                if answers.iter().any(|answer| matches!(answer, Claimed::Won(_))) {
                    self.renew(store, &claim.member, claim.ttl)?;
                }
            }
            (Request::Bind(bind), Reply::Bind(bindings)) => {
                let Some(member) = &bind.member else { return Ok(()) };
                if matches!(bindings, Bindings::Ended { .. }) == self.is_live(store, member) {
                    return Err(format!("{member} was told {bindings:?}"));
                }
                if binds(bindings, member) {
                    self.renew(store, member, bind.ttl)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn entry(&mut self, store: Mono, entry: &Entry) -> Result<(), String> {
        match &entry.what {
            Happening::Ended { member, cause, .. } => {
                let life = self.lives.get(&member.id);
                let live =
                    life.is_some_and(|l| l.incarnation == member.incarnation && store < l.until);
                if live && matches!(cause, EndCause::Expired) {
                    return Err(format!(
                        "{member} was ended as expired before its own ttl was over"
                    ));
                }
                self.end(member);
            }
            Happening::Left { member, .. } => self.end(member),
            Happening::Released {
                member,
                cause: ReleaseCause::Ended(_) | ReleaseCause::Left,
                election,
                number,
                ..
            } if !self.over.contains(&member.incarnation) => {
                return Err(format!("{election}#{number} was taken from {member}, not ended"));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, member: &MemberRef) {
        self.over.insert(member.incarnation);
        if self.lives.get(&member.id).is_some_and(|l| l.incarnation == member.incarnation) {
            self.lives.remove(&member.id);
        }
    }
}

impl Invariant for Members {
    fn name(&self) -> &'static str {
        "nothing revives a member, and only the ended lose their terms"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        if let Fact::Applied { store, .. } | Fact::Amended { store, .. } = fact {
            for entry in entries(fact) {
                self.entry(*store, entry)?;
            }
        }
        match fact {
            Fact::Applied { store, request, reply: Ok(reply), .. } => {
                self.applied(*store, request, reply)
            }
            Fact::Amended {
                amend: Amend::Evict { member, now: false, .. },
                answer: Amended::Done { .. },
                ..
            } => {
                if let Some(life) = self.lives.get_mut(member) {
                    life.condemned = true;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
