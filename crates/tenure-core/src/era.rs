//! Numbers that survive what the store forgets (rule M6).

use crate::{TermNumber, Timestamp};

/// 2026-01-01, in milliseconds of Unix time: the clock of numbers starts there.
const EPOCH_MS: u64 = 1_767_225_600_000;

/// Where the numbers of a store stand after it may have forgotten some.
///
/// A store that was promoted, restored or rolled back begins a new era: every number
/// that it gives out from then on is above every number that it may have forgotten.
/// Two things make it so, on one scale:
///
/// - **the clock.** No number in the new era is below the microseconds since
///   2026-01-01 by the store's wall clock. A counter that is kept in the store goes
///   back with the store; the clock does not. An election has far fewer terms than one
///   in each microsecond, so its numbers stay behind the clock, and one backup may be
///   restored any number of times.
/// - **the jump.** The first number of each election in the new era is also
///   [`JUMP`](Self::JUMP) above its last one. This covers a clock that is behind, as on
///   a copy that was promoted on another machine.
///
/// A member that knows of a higher number tells it, and the era that begins because of it is
/// [above that number](Self::above), so that a clock that is far behind does not have to be
/// made up for by one jump after the other.
///
/// The jump is worth 65.5 milliseconds of the clock, so that raising the era does not
/// carry the numbers far past the clock: a number ahead of the clock could be given out
/// again after the next restore. A store that goes by the clock alone waits that long
/// when it raises its era, so that it never gives out a number that its clock has not
/// reached.
///
/// ```
/// use tenure_core::{Era, TermNumber, Timestamp};
///
/// let first = Era::START;
/// assert_eq!(first.number_after(TermNumber::new(3), first.count()).get(), 4);
///
/// // Restored on 2026-01-02, by the store's clock.
/// let second = first.raised(Timestamp::from_unix_millis(1_767_312_000_000));
/// let next = second.number_after(TermNumber::new(3), first.count());
/// assert_eq!(next.get(), 24 * 60 * 60 * 1_000_000);
/// assert_eq!(second.number_after(next, second.count()), next.next());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Era {
    count: u64,
    floor: u64,
}

impl Era {
    /// How far the next number of an election is above its last one, at least, for each
    /// era that has begun in between.
    pub const JUMP: u64 = 1 << 16;

    /// A number that a member tells is heeded if it is below this, which the clock reaches
    /// in 2168. Members are believed, since they alone know what a store has forgotten; but
    /// one that is mistaken, or means harm, must not use the numbers up. Whatever is told,
    /// and however often, no floor rises to this by it, and above it an era rises by the
    /// jump. So numbers stay below 2^53 for a hundred years of eras without a pause.
    pub const HEEDED: u64 = 1 << 52;

    /// The era of a store that was just installed.
    pub const START: Era = Era::new(0, 0);

    /// The era after `count` others, in which no number is below `floor`.
    pub const fn new(count: u64, floor: u64) -> Self {
        Self { count, floor }
    }

    /// How often an era has begun since the store was installed.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The least number that is given out.
    pub const fn floor(self) -> u64 {
        self.floor
    }

    /// Where a wall clock stands on the scale of numbers: the microseconds since
    /// 2026-01-01.
    #[must_use]
    pub fn clock(wall: Timestamp) -> u64 {
        wall.unix_millis().saturating_sub(EPOCH_MS).saturating_mul(1_000)
    }

    /// The era that begins now, by the store's wall clock.
    #[must_use]
    pub fn raised(self, wall: Timestamp) -> Self {
        let clock = Self::clock(wall);
        Self {
            count: self.count.saturating_add(1),
            floor: self.floor.saturating_add(Self::JUMP).max(clock),
        }
    }

    /// The same era, above a number that a member says was given out; unless no member can
    /// have been given that number, since it is not below [`HEEDED`](Self::HEEDED).
    #[must_use]
    pub fn above(self, told: u64) -> Self {
        if told < Self::HEEDED { self.at_least(told.saturating_add(1)) } else { self }
    }

    /// The same era, with no number below `floor`.
    #[must_use]
    pub fn at_least(self, floor: u64) -> Self {
        Self { floor: self.floor.max(floor), ..self }
    }

    /// The attention of a member when this era begins, where it was `before`: see
    /// [`Beat::Alive`](crate::Beat::Alive). It goes by the floor as numbers do, so that one
    /// backup which is restored twice calls twice.
    ///
    /// ```
    /// use tenure_core::{Era, Timestamp};
    ///
    /// let first = Era::START.raised(Timestamp::from_unix_millis(1_767_312_000_000));
    /// let again = Era::START.raised(Timestamp::from_unix_millis(1_767_312_000_066));
    /// assert!(Era::has_begun(7, first.calls(7)));
    /// assert!(Era::has_begun(first.calls(7) + 1, again.calls(7)));
    /// assert!(!Era::has_begun(7, 8), "something was asked of the member");
    /// ```
    #[must_use]
    pub fn calls(self, before: u64) -> u64 {
        before.saturating_add(1 << 20).max(self.floor)
    }

    /// Whether an era may have begun between two answers to one life that told this attention:
    /// it went back, or rose further than by what can be asked of a member in between.
    #[must_use]
    pub const fn has_begun(before: u64, after: u64) -> bool {
        after < before || after - before >= Self::JUMP / 2
    }

    /// The number that follows `last`, which was given out in era `given_in`.
    #[must_use]
    pub fn number_after(self, last: TermNumber, given_in: u64) -> TermNumber {
        TermNumber::new(self.after(last.get(), given_in))
    }

    pub(crate) fn after(self, last: u64, given_in: u64) -> u64 {
        let jump = self.count.saturating_sub(given_in).saturating_mul(Self::JUMP);
        last.saturating_add(1).saturating_add(jump).max(self.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(EPOCH_MS + millis)
    }

    /// P1, M6: one backup is restored twice. Each time a member raises the era once
    /// more, and wins. What counts goes back with the backup, so that the clock alone
    /// keeps the numbers apart.
    #[test]
    fn one_backup_restored_twice_repeats_no_number() {
        let backup = Era::START.raised(at(1_000));
        let last = TermNumber::new(backup.floor());
        let mut highest = last;
        for restored in [2_000, 2_200] {
            let mut era = backup.raised(at(restored));
            let mut number = era.number_after(last, backup.count());
            assert!(number > highest, "{number} after {highest}");
            for after in 1..=2 {
                let before = era.count();
                era = era.raised(at(restored + after));
                number = era.number_after(number, before);
            }
            highest = number;
        }
    }

    /// M6: raising the era carries the numbers past the clock by the jump at the most.
    #[test]
    fn a_raised_era_is_ahead_of_the_clock_by_the_jump_at_most() {
        let mut era = Era::START;
        let mut number = TermNumber::NONE;
        for millis in (0..1_000).map(|count| count * 66) {
            let before = era.count();
            era = era.raised(at(millis));
            number = era.number_after(number, before);
            assert!(number.get() <= millis * 1_000 + Era::JUMP + 1, "{number} at {millis} ms");
        }
    }

    /// The figures that are written down: the jump, and the clock's microseconds.
    #[test]
    fn the_floor_is_the_clock_in_microseconds() {
        assert_eq!(Era::JUMP, 65_536);
        let era = Era::START.raised(at(1_000));
        assert_eq!((era.count(), era.floor()), (1, 1_000_000));
    }

    /// M6: what is told lifts the numbers to just above it, in one era. What no clock can
    /// have reached lifts nothing, and leaves the jump.
    #[test]
    fn a_told_number_lifts_the_floor_unless_it_is_absurd() {
        let behind = Era::new(1, 5).raised(at(1));
        let told = 40_000_000_000_000;
        let above = behind.above(told);
        assert_eq!((above.count(), above.floor()), (behind.count(), told + 1));
        assert_eq!(above.number_after(TermNumber::new(7), 1).get(), told + 1);
        assert_eq!(behind.above(3), behind);
        assert_eq!(behind.above(Era::HEEDED - 1).floor(), Era::HEEDED);
        for absurd in [Era::HEEDED, 1 << 53, i64::MAX.cast_unsigned(), u64::MAX] {
            assert_eq!(behind.above(absurd), behind, "{absurd}");
        }
    }

    /// B27: a clock that is behind does not take the jump away, nor does an election
    /// that was forgotten altogether begin where it began before.
    #[test]
    fn a_clock_that_is_behind_leaves_the_jump() {
        let before = Era::new(2, 5_000_000);
        let after = before.raised(at(0));
        let last = TermNumber::new(5_000_007);
        assert_eq!(after.number_after(last, before.count()).get(), 5_000_008 + Era::JUMP);
        let founded = before.number_after(TermNumber::NONE, 0);
        assert!(after.number_after(TermNumber::NONE, 0).get() >= founded.get() + Era::JUMP);
        assert_eq!(after.at_least(1 << 40).number_after(last, after.count()).get(), 1 << 40);
    }
}
