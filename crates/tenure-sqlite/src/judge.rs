//! Who is live, at one moment.
//!
//! A row of this boot is judged by its own instants: this clock wrote them. A
//! row of another boot is judged by the observer's rule: it is live until it
//! has stayed unchanged for its span, widened by drift, on **this** process's
//! clock, counted from when this process first saw it so. After a reboot that
//! frees everything; on a file shared between two hosts by mistake it still
//! keeps the second from leading beside the first.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{Incarnation, Mono, widened};

use crate::lives::{Lives, Probe};

/// What is being watched for change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sighted {
    /// A life, by its heartbeats.
    Life(Incarnation),
    /// A reservation, by its namespace and election and the number it follows.
    Vacancy((String, String)),
    /// A term that was handed over, by its namespace and election and its number.
    Handed((String, String)),
}

/// When this process first saw rows of other boots as they are now.
#[derive(Debug, Default)]
pub(crate) struct Sightings(Mutex<HashMap<Sighted, (u64, Mono)>>);

/// More than this many sightings and the oldest half is forgotten, which only
/// makes this process wait longer for those.
const MOST_SIGHTINGS: usize = 20_000;

impl Sightings {
    /// Since when `what` has stood at `count`, as far as this process has seen.
    fn unchanged_since(&self, what: Sighted, count: u64, now: Mono) -> Mono {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() > MOST_SIGHTINGS {
            let mut times: Vec<Mono> = seen.values().map(|(_, at)| *at).collect();
            times.sort_unstable();
            let middle = times[times.len() / 2];
            seen.retain(|_, (_, at)| *at > middle);
        }
        let entry = seen.entry(what).or_insert((count, now));
        if entry.0 != count {
            *entry = (count, now);
        }
        entry.1
    }

    /// Forgets a life that is over.
    pub(crate) fn forget(&self, life: Incarnation) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(&Sighted::Life(life));
    }
}

/// An instant and a span that were written to a row, and the boot they were
/// written in.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) what: Sighted,
    /// Changes whenever the stamp is renewed.
    pub(crate) count: u64,
    pub(crate) boot: String,
    pub(crate) at: Mono,
    pub(crate) span: Duration,
}

/// Judges rows at one moment.
#[derive(Debug)]
pub(crate) struct Judge<'a> {
    pub(crate) now: Mono,
    pub(crate) boot: &'a str,
    pub(crate) drift_ppm: u32,
    pub(crate) sightings: &'a Sightings,
    /// The locks of lives.
    pub(crate) lives: &'a Lives,
    /// Whether a lock that is free proves a death. Not to those who only look: they go by
    /// the ttl alone.
    pub(crate) by_proof: bool,
    /// What was found out about locks at this moment: of lives, and of their work.
    pub(crate) probed: RefCell<HashMap<Incarnation, bool>>,
    pub(crate) worked: RefCell<HashMap<Incarnation, bool>>,
}

impl Judge<'_> {
    /// What is left of the stamp's span; `None` if it is over.
    pub(crate) fn remaining(&self, stamp: &Stamp) -> Option<Duration> {
        let (span, from) = if stamp.boot == self.boot && stamp.at <= self.now {
            (stamp.span, stamp.at)
        } else {
            // An instant of this boot that lies ahead of the clock was not read
            // from it: the machine was set back to an older state. It is no
            // more to be believed than that of another boot.
            let what = stamp.what.clone();
            let first = self.sightings.unchanged_since(what, stamp.count, self.now);
            (widened(stamp.span, self.drift_ppm), first)
        };
        span.checked_sub(self.now.since(from)).filter(|left| !left.is_zero())
    }

    /// When the stamp's span is over, on this judge's clock; now, if it is over.
    pub(crate) fn until(&self, stamp: &Stamp) -> Mono {
        self.now + self.remaining(stamp).unwrap_or_default()
    }

    /// Whether the process of a life written in `boot` is dead for certain: the
    /// file with the inode `lock` is free.
    pub(crate) fn proven_dead(&self, life: Incarnation, boot: &str, lock: u64) -> bool {
        if !self.by_proof || boot != self.boot {
            return false;
        }
        let mut probed = self.probed.borrow_mut();
        *probed.entry(life).or_insert_with(|| self.lives.probe_lock(life, lock) == Probe::Free)
    }

    /// Whether a process works under a life written in `boot`, dead or alive.
    pub(crate) fn at_work(&self, life: Incarnation, boot: &str) -> bool {
        let mut worked = self.worked.borrow_mut();
        boot == self.boot && *worked.entry(life).or_insert_with(|| self.lives.at_work(life))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::LazyLock;

    use super::*;

    const LIFE: Incarnation = Incarnation::from_u128(7);
    const TTL: Duration = Duration::from_secs(10);

    /// Beside no file.
    static NO_LIVES: LazyLock<Lives> = LazyLock::new(|| Lives::look(Path::new("")));

    fn judge(sightings: &Sightings, seconds: u64) -> Judge<'_> {
        Judge {
            now: Mono::from_millis(seconds * 1_000),
            boot: "here",
            drift_ppm: 100_000,
            sightings,
            lives: &NO_LIVES,
            by_proof: false,
            probed: RefCell::default(),
            worked: RefCell::default(),
        }
    }

    fn stamp(boot: &str, count: u64, at: u64) -> Stamp {
        let at = Mono::from_millis(at * 1_000);
        Stamp { what: Sighted::Life(LIFE), count, boot: boot.into(), at, span: TTL }
    }

    #[test]
    fn a_row_of_this_boot_lives_for_exactly_its_ttl() {
        let seen = Sightings::default();
        let row = stamp("here", 1, 100);
        assert_eq!(judge(&seen, 100).remaining(&row), Some(TTL));
        assert_eq!(judge(&seen, 109).remaining(&row), Some(Duration::from_secs(1)));
        assert_eq!(judge(&seen, 110).remaining(&row), None);
    }

    #[test]
    fn a_row_of_another_boot_lives_for_its_widened_ttl_after_it_was_first_seen() {
        let seen = Sightings::default();
        let row = stamp("elsewhere", 1, 5);
        assert_eq!(judge(&seen, 100).remaining(&row), Some(Duration::from_secs(11)));
        assert_eq!(judge(&seen, 110).remaining(&row), Some(Duration::from_secs(1)));
        let beaten = stamp("elsewhere", 2, 5);
        assert_eq!(judge(&seen, 110).remaining(&beaten), Some(Duration::from_secs(11)));
        assert_eq!(judge(&seen, 120).remaining(&beaten), Some(Duration::from_secs(1)));
        assert_eq!(judge(&seen, 121).remaining(&beaten), None);
    }

    /// A machine restored from an older state: its rows lie in the future.
    #[test]
    fn an_instant_ahead_of_the_clock_does_not_live_for_ever() {
        let seen = Sightings::default();
        let row = stamp("here", 1, 1_000_000);
        assert!(judge(&seen, 100).remaining(&row).is_some());
        assert!(judge(&seen, 111).remaining(&row).is_none());
    }

    #[test]
    fn sightings_are_bounded() {
        let seen = Sightings::default();
        for n in 0..(MOST_SIGHTINGS as u64 + 10) {
            let what = Sighted::Life(Incarnation::from_u128(n.into()));
            seen.unchanged_since(what, 1, Mono::from_nanos(n));
        }
        let kept = seen.0.lock().unwrap().len();
        assert!(kept <= MOST_SIGHTINGS, "{kept}");
    }
}
