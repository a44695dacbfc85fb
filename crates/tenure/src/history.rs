//! Terms that are over, put together from the journal.

use tenure_core::{Entry, Happening, ReleaseCause, Seq, Term, TermNumber, Timestamp};

/// A term, with its end if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastTerm {
    /// The term.
    pub term: Term,
    /// Where its beginning stands in the journal.
    pub seq: Seq,
    /// When it ended, by the store's wall clock, and why; `None` while it
    /// stands.
    pub ended: Option<(Timestamp, ReleaseCause)>,
}

/// Puts together the terms of one election, oldest first. A term whose
/// beginning is no longer in the journal is left out.
pub(crate) fn terms(entries: &[Entry]) -> Vec<PastTerm> {
    let mut terms: Vec<PastTerm> = Vec::new();
    for entry in entries {
        match &entry.what {
            Happening::Elected { term } => {
                terms.push(PastTerm { term: term.clone(), seq: entry.seq, ended: None });
            }
            Happening::Released { number, cause, .. } => {
                end(&mut terms, *number, entry.at, *cause);
            }
            _ => {}
        }
    }
    terms
}

fn end(terms: &mut [PastTerm], number: TermNumber, at: Timestamp, cause: ReleaseCause) {
    if let Some(past) = terms.iter_mut().rev().find(|past| past.term.number == number) {
        past.ended = Some((at, cause));
    }
}
