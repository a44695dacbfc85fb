//! Randomness from a seed.

/// A small generator (SplitMix64): the same seed gives the same numbers for ever.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The generator that begins with `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `least` to `most`, both included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.any() % most.saturating_sub(least).saturating_add(1)
    }

    /// A position below `length`; 0 if there is none.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        let most = u64::try_from(length.saturating_sub(1)).unwrap_or(0);
        usize::try_from(self.between(0, most)).unwrap_or(0)
    }
}
