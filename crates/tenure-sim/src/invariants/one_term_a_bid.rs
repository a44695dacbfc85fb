//! E2, H21: a bid that arrives twice wins one term, not two; and its winner
//! may lead (C9).
//!
//! A store remembers the last winner's bid and no other. So a copy that comes
//! after another member's term may win a second term, which the member then
//! finds and gives back; that is allowed.

use std::collections::BTreeMap;

use tenure_core::{ElectionName, Happening, Incarnation, Nonce, Request};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct OneTermABid {
    /// The last winner of each election, and the bid it won with.
    won: BTreeMap<ElectionName, (Incarnation, Nonce)>,
}

impl Invariant for OneTermABid {
    fn name(&self) -> &'static str {
        "one bid wins one term"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Applied { request, entries, .. } = fact else { return Ok(()) };
        let Request::Claim(claim) = request else {
            // A term that is handed over is another member's term, by no bid.
            for entry in *entries {
                if let Happening::Elected { term, .. } = &entry.what {
                    self.won.remove(&term.election);
                }
            }
            return Ok(());
        };
        for entry in *entries {
            let Happening::Elected { term, .. } = &entry.what else { continue };
            let bid = claim.bids.iter().find(|bid| bid.election == term.election);
            let Some(bid) = bid.filter(|_| term.member == claim.member) else {
                return Err(format!("{} won {} without a bid", term.member, term.election));
            };
            if !bid.priority.may_lead() {
                return Err(format!("{} won {} though it never leads", term.member, term.election));
            }
            let next = (claim.member.incarnation, bid.nonce);
            let last = self.won.insert(term.election.clone(), next);
            if last.is_some_and(|(life, nonce)| life == next.0 && next.1 <= nonce) {
                let member = &term.member;
                let nonce = bid.nonce.get();
                return Err(format!("the bid {nonce} of {member} won {} twice", term.election));
            }
        }
        Ok(())
    }
}
