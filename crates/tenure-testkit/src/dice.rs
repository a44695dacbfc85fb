//! Random numbers for tests.

/// A generator (SplitMix64) whose numbers are a function of its seed alone: a test that
/// fails names the seed, and the seed runs the same case again.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The generator that begins with `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.any() % end).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.any() % most.saturating_sub(least).saturating_add(1).max(1)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// One of them.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The generator's own figures, so that a seed that was written down stays good.
    #[test]
    fn the_generator_is_the_one_it_is_said_to_be() {
        let mut dice = Dice::new(0);
        assert_eq!([dice.any(), dice.any()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn numbers_stay_within_their_bounds_and_reach_them() {
        let mut dice = Dice::new(7);
        let mut seen = [false; 3];
        for _ in 0..200 {
            seen[dice.below(3)] = true;
            assert!((5..=6).contains(&dice.between(5, 6)));
        }
        assert_eq!((seen, dice.below(0), dice.between(4, 4)), ([true; 3], 0, 4));
        assert!(dice.between(0, u64::MAX) > 0);
    }
}
