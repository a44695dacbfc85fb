//! E1, E3, H8: a term ends by its holder's own hand, with exactly its number,
//! or with its holder's life. Nobody else's message touches it, and looking
//! never writes.

use tenure_core::{Entry, Happening, MemberRef, ReleaseCause, Request, TermNumber};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug)]
pub(super) struct GivingUp;

impl Invariant for GivingUp {
    fn name(&self) -> &'static str {
        "only the holder gives up a term"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Applied { request, entries, .. } = fact else { return Ok(()) };
        for entry in *entries {
            allowed(request, entry)?;
        }
        Ok(())
    }
}

fn allowed(request: &Request, entry: &Entry) -> Result<(), String> {
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
        Request::Leave(by) => own(by, None),
        Request::Claim(claim) if *cause == ReleaseCause::Abandoned => own(&claim.member, None),
        Request::Claim(_) | Request::Join(_) => matches!(cause, ReleaseCause::Ended(_)),
        Request::Read(_) | Request::Heartbeat(_) => false,
    };
    if fine { Ok(()) } else { Err(format!("{election}#{number} of {member} was ended by another")) }
}
