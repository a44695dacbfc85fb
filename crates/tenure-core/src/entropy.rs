//! The machine's randomness: seeded once, from outside, and then its own.

use core::time::Duration;

use crate::Incarnation;
use crate::time::nanos;

/// A small generator (SplitMix64 over a 128-bit state). It spreads retries and
/// makes incarnations; it guards no secret.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Entropy {
    high: u64,
    low: u64,
    /// Without jitter, for the model checker; see [`steady`](Self::steady).
    steady: bool,
}

impl Entropy {
    pub(crate) fn new(seed: u128) -> Self {
        Self { high: (seed >> 64) as u64, low: seed as u64, steady: false }
    }

    /// No jitter from here on: a model checker tries all orders anyway, and
    /// equal situations must be equal states.
    #[cfg(feature = "__lab")]
    pub(crate) fn steady(&mut self) {
        self.steady = true;
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.low = self.low.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.low ^ mix(self.high))
    }

    /// A fresh incarnation. All 128 bits of the seed enter it, so that two
    /// processes seeded by the operating system do not meet.
    pub(crate) fn incarnation(&mut self) -> Incarnation {
        let step = self.next();
        let high = mix(self.high.wrapping_add(step));
        let low = mix(self.low.wrapping_sub(step));
        Incarnation::from_u128(u128::from(high) << 64 | u128::from(low))
    }

    /// A duration between zero and `most`, evenly.
    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        if self.steady {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.next() % nanos(most).saturating_add(1).max(1))
    }

    /// `around`, made up to a quarter shorter.
    pub(crate) fn jittered(&mut self, around: Duration) -> Duration {
        around - self.up_to(around / 4)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_differ_within_and_between_seeds() {
        let mut seen = alloc::collections::BTreeSet::new();
        for seed in 0..50u128 {
            for seed in [seed, seed << 64] {
                let mut entropy = Entropy::new(seed);
                seen.extend((0..20).map(|_| entropy.incarnation()));
            }
        }
        assert_eq!(seen.len(), 99 * 20, "the seeds 0 and 0 << 64 are one and the same");
    }

    /// The generator is SplitMix64: with an empty upper half, these are its own figures.
    #[test]
    fn the_generator_is_the_one_it_is_said_to_be() {
        let mut plain = Entropy::new(0);
        let first = 0xe220_a839_7b1d_cdaf;
        assert_eq!([plain.next(), plain.next()], [first, 0x6e78_9e6a_a1b9_65f4]);
        let seed = 3 << 64 | 5;
        assert_eq!(Entropy::new(seed).next(), 0xb787_bd43_ffbe_532e);
        let incarnation = Entropy::new(seed).incarnation();
        assert_eq!(incarnation.as_u128(), 0x5b05_09e8_1b50_3096_54ba_1a43_eb95_e6bf);
    }

    #[test]
    #[cfg(feature = "__lab")]
    fn without_jitter_nothing_is_spread() {
        let mut entropy = Entropy::new(7);
        entropy.steady();
        assert_eq!(entropy.up_to(Duration::from_secs(1)), Duration::ZERO);
    }

    #[test]
    fn jitter_stays_within_its_quarter() {
        let mut entropy = Entropy::new(7);
        let around = Duration::from_millis(100);
        for _ in 0..1000 {
            let got = entropy.jittered(around);
            assert!(got <= around && got >= around * 3 / 4);
        }
        assert_eq!(entropy.up_to(Duration::ZERO), Duration::ZERO);
    }
}
