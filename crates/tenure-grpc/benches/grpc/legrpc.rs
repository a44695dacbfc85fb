//! When legrpc's watch looks again, written afresh from what it does: about twice in a renewal,
//! a little before the record is expected to change, and every second once that time is past.

/// The holder renews when half of its term is over: every five seconds of ten.
const TERM: f64 = 10.0;
const RENEWAL: f64 = TERM / 2.0;
/// The least pause of its back-off. It grows; that is left out, in its favour.
const BACKOFF: f64 = 1.0;

/// How long after a hand-over at `when`, in seconds from a renewal, the watch looks: it began
/// `offset` after that renewal.
fn until_seen(when: f64, offset: f64) -> f64 {
    // What it estimates of the time between renewals, twice the extension that it saw.
    let estimate = 2.0 * RENEWAL;
    let mut now = offset;
    while now < when {
        let renewed = (now / RENEWAL).floor() * RENEWAL;
        let left = renewed + TERM - now;
        let next = left - estimate * 0.75;
        now += if next > 0.0 { next } else { BACKOFF };
    }
    now - when
}

/// The median over many moments and beginnings, in milliseconds.
pub(crate) fn median_ms() -> f64 {
    let mut seen = Vec::new();
    for offset in 0..50 {
        for when in 0..200 {
            let offset = f64::from(offset) * RENEWAL / 50.0;
            let when = 100.0 + f64::from(when) * RENEWAL / 200.0;
            seen.push(until_seen(when, offset) * 1e3);
        }
    }
    crate::common::median(&mut seen).0
}
