//! E1, E3, H8: a term ends by its holder's own hand, with exactly its number,
//! or with its holder's life. No other member's message touches it, and looking
//! never writes. Only what was handed over and never taken on may be ended by
//! another.

use std::collections::BTreeSet;

use tenure_core::{
    Beat, Claimed, Claims, Entry, Happening, MemberRef, ReleaseCause, Reply, Request, TermNumber,
    TermOutcome, TermRef,
};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct GivingUp {
    /// What was handed over and not taken on.
    handed: BTreeSet<TermRef>,
    /// All that ever was: a copy may have forgotten that it was taken on.
    ever: BTreeSet<TermRef>,
}

impl GivingUp {
    /// What an answer says was taken on.
    fn answered(&mut self, reply: &Reply) {
        match reply {
            Reply::Heartbeat(Beat::Alive { terms, .. }) => {
                for beat in terms {
                    if matches!(beat.outcome, TermOutcome::Renewed { .. }) {
                        self.handed.remove(&beat.term);
                    }
                }
            }
            Reply::Claim(Claims::Answered(answers)) => {
                for answer in answers {
                    if let Claimed::Won(term) = answer {
                        let election = term.election.clone();
                        let number = term.number;
                        self.handed.remove(&TermRef { election, number });
                    }
                }
            }
            _ => {}
        }
    }
}

impl Invariant for GivingUp {
    fn name(&self) -> &'static str {
        "only the holder gives up a term"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        if let Fact::Promoted { .. } = fact {
            self.handed.clone_from(&self.ever);
        }
        let Fact::Applied { request, entries, reply, .. } = fact else { return Ok(()) };
        for entry in *entries {
            allowed(request, entry, &self.handed)?;
            if let (Request::Release(_), Happening::Elected { term, .. }) = (request, &entry.what) {
                let election = term.election.clone();
                let number = term.number;
                self.ever.insert(TermRef { election: election.clone(), number });
                self.handed.insert(TermRef { election, number });
            }
        }
        if let Ok(reply) = reply {
            self.answered(reply);
        }
        Ok(())
    }
}

fn allowed(request: &Request, entry: &Entry, handed: &BTreeSet<TermRef>) -> Result<(), String> {
    if matches!(request, Request::Read(_) | Request::Heartbeat(_)) {
        return Err(format!("a look or a heartbeat wrote {:?}", entry.what));
    }
    let Happening::Released { election, number, member, cause, .. } = &entry.what else {
        return Ok(());
    };
    let own = |by: &MemberRef, named: Option<TermNumber>| {
        by == member && named.is_none_or(|named| named == *number)
    };
    let fine = match request {
        Request::Release(release) => release.items.iter().any(|item| {
            item.election == *election && item.number.is_some() && own(&release.member, item.number)
        }),
        // A term that ends with a life is written off by the next claim.
        Request::Leave(_) => false,
        Request::Claim(claim) if *cause == ReleaseCause::Abandoned => {
            let term = TermRef { election: election.clone(), number: *number };
            own(&claim.member, None) || handed.contains(&term)
        }
        Request::Claim(_) => matches!(cause, ReleaseCause::Ended(_) | ReleaseCause::Left),
        Request::Join(_) | Request::Bind(_) => false,
        Request::Read(_) | Request::Heartbeat(_) => false,
    };
    if fine { Ok(()) } else { Err(format!("{election}#{number} of {member} was ended by another")) }
}
