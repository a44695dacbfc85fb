//! The journal is gap-free and tells what happened: who it says holds an
//! election is who a look shows, and no member is elected over a term that stands
//! (E3, M2). A term of an ended life is over, also before that was written down
//! for it (M5).

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    ElectionName, Entry, Happening, Incarnation, MemberRef, Reply, Seq, Snapshot, TermNumber,
};

use super::{Invariant, entries};
use crate::clock::Nanos;
use crate::fact::Fact;

#[derive(Debug, Default)]
pub(super) struct Journal {
    last: Seq,
    told: BTreeMap<ElectionName, (TermNumber, Option<MemberRef>)>,
    over: BTreeSet<Incarnation>,
}

impl Journal {
    fn read(&mut self, entry: &Entry) -> Result<(), String> {
        if entry.seq != self.last.next() {
            return Err(format!("entry {} follows entry {}", entry.seq, self.last));
        }
        self.last = entry.seq;
        match &entry.what {
            Happening::Elected { term, .. } => {
                let next = (term.number, Some(term.member.clone()));
                let last = self.told.insert(term.election.clone(), next);
                if let Some((number, Some(holder))) = last {
                    return Err(format!(
                        "{} was elected to {} over #{number} of {holder}",
                        term.member, term.election
                    ));
                }
            }
            Happening::Released { election, number, member, .. } => {
                let released = (*number, Some(member.clone()));
                let last = self.told.insert(election.clone(), (*number, None));
                if last.as_ref() != Some(&released) {
                    return Err(format!("{election}#{number} of {member} ended, after {last:?}"));
                }
            }
            Happening::Left { member, .. } | Happening::Ended { member, .. } => {
                self.over.insert(member.incarnation);
            }
            _ => {}
        }
        Ok(())
    }

    fn compare(&self, snapshot: &Snapshot) -> Result<(), String> {
        if snapshot.seq != self.last {
            return Err(format!("a look is at {}, the journal at {}", snapshot.seq, self.last));
        }
        for view in &snapshot.elections {
            let (number, holder) = self.told.get(&view.election).cloned().unwrap_or_default();
            let shown = view.holder.as_ref().map(|h| &h.member);
            // One whose ttl has run out is not shown, and not ended either.
            if view.number != number || (shown.is_some() && shown != holder.as_ref()) {
                return Err(format!(
                    "{} is shown as #{} of {shown:?}; the journal says #{number} of {holder:?}",
                    view.election, view.number
                ));
            }
            if let Some(shown) = shown.filter(|shown| self.over.contains(&shown.incarnation)) {
                return Err(format!("{} is shown held by {shown}, who ended", view.election));
            }
        }
        Ok(())
    }
}

impl Invariant for Journal {
    fn name(&self) -> &'static str {
        "the journal is gap-free and tells what happened"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        for entry in entries(fact) {
            self.read(entry)?;
        }
        match fact {
            Fact::Applied { reply: Ok(Reply::Read(snapshot)), .. } => self.compare(snapshot),
            _ => Ok(()),
        }
    }
}
