//! The log of who led when, by the machine's one clock.

use std::collections::BTreeMap;

/// Reigns by election.
#[derive(Default)]
pub(crate) struct Reigns(BTreeMap<String, Vec<(u64, u64)>>);

impl Reigns {
    /// A contender believed to lead from here to there.
    pub(crate) fn note(&mut self, election: &str, from: u64, until: u64) {
        self.0.entry(election.to_owned()).or_default().push((from, until));
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// How often one began before the one before it had ended.
    pub(crate) fn overlaps(&mut self) -> usize {
        let mut overlaps = 0;
        for reigns in self.0.values_mut() {
            reigns.sort_unstable();
            overlaps += reigns.windows(2).filter(|pair| pair[1].0 < pair[0].1).count();
        }
        overlaps
    }
}
