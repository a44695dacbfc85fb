//! Randomness: a seed, and streams that do not disturb each other.

/// A small generator (SplitMix64). Everything random in a run comes from one
/// seed through streams of these.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator that begins with `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A stream of its own for one purpose: what is drawn from it changes
    /// nothing in the others, so that a feature can be turned off without
    /// changing everything else in the run.
    #[must_use]
    pub fn stream(seed: u64, purpose: u64) -> Self {
        Self(mix(seed ^ mix(purpose.wrapping_add(0x51_7c_c1_b7_27_22_0a_95))))
    }

    /// Any number.
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.any() % bound.max(1)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least).saturating_add(1))
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(at)
    }

    /// A 128-bit seed for a machine.
    pub fn seed(&mut self) -> u128 {
        u128::from(self.any()) << 64 | u128::from(self.any())
    }
}

/// Stirs all bits of `z` together.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a run left behind, folded into one number: two runs of a seed must
/// leave the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TraceHash(u64);

impl TraceHash {
    /// Folds one more number in.
    pub fn fold(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(5) ^ number);
    }

    /// Folds a text in, byte for byte.
    pub fn fold_text(&mut self, text: &str) {
        for chunk in text.as_bytes().chunks(8) {
            let mut bytes = [0u8; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(bytes));
        }
        self.fold(text.len() as u64);
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}
