//! A copy of the store that lags behind, as asynchronous replication has it:
//! when it takes over, what was acknowledged last is forgotten.

use std::collections::VecDeque;

use tenure_core::Timestamp;
use tenure_store::MemoryState;

use crate::config::StoreKind;

/// How many entries the journal keeps in such worlds; the state is copied with
/// every write.
pub(super) const JOURNAL: usize = 60;

/// The most writes that a copy may lack.
const MOST: usize = 40;

/// What was written, by state, the newest last.
#[derive(Debug)]
pub(super) struct Replica {
    jumps: bool,
    states: VecDeque<MemoryState>,
}

impl Replica {
    pub(super) fn new(kind: StoreKind) -> Self {
        Self { jumps: kind == StoreKind::Jumping, states: VecDeque::new() }
    }

    /// A write, on its way to the copy. What changes nothing is none.
    pub(super) fn receive(&mut self, state: &MemoryState) {
        if self.states.back() == Some(state) {
            return;
        }
        self.states.push_back(state.clone());
        if self.states.len() > MOST {
            self.states.pop_front();
        }
    }

    /// The state that the copy goes on with, and how many writes it lacks. What it lacks
    /// may be an era: then the wall clock alone keeps its numbers above those that were
    /// forgotten.
    pub(super) fn promote(&mut self, wall: Timestamp, lag: usize) -> Option<(MemoryState, usize)> {
        let lost = lag.min(self.states.len().checked_sub(1)?);
        let mut state = self.states.get(self.states.len() - 1 - lost)?.clone();
        if self.jumps {
            // The next copy may lack this promotion too, as one backup that is restored
            // twice does.
            self.states.truncate(self.states.len() - lost);
            state.promote(wall);
        } else {
            self.states.clear();
        }
        self.states.push_back(state.clone());
        Some((state, lost))
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::{Amend, ElectionName, Mono, Note, Timestamp};

    use super::*;

    #[test]
    fn a_promoted_copy_lacks_the_last_writes_and_no_others() {
        let mut replica = Replica::new(StoreKind::Replicated);
        let mut state = MemoryState::keeping(JOURNAL);
        let mut written = Vec::new();
        for name in ["a", "b", "c"] {
            let election = ElectionName::new(name).expect("a name");
            let reason = Note::new("r");
            let by = Note::new("o");
            let amend = Amend::Pause { election, reason, by };
            state.amend(Mono::ZERO, Timestamp::default(), &amend);
            replica.receive(&state);
            // A look writes nothing.
            replica.receive(&state);
            written.push(state.clone());
        }
        assert_eq!(replica.promote(Timestamp::default(), 1), Some((written[1].clone(), 1)));
        // Nothing from before that is forgotten later.
        assert_eq!(replica.promote(Timestamp::default(), 9), Some((written[1].clone(), 0)));
    }
}
