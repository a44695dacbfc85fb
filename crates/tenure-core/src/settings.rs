//! Timings, and the relations between them that must hold (rule F3).
//!
//! ```text
//! 0          heartbeat      2×heartbeat + request_timeout    trust      ttl
//! |--------------|----------------------|----------------------|----------|
//!                1st renewal            a second try has had   lost is    another
//!                is sent                its full answer time   signalled  may lead
//!
//! trust = ttl × (1 − drift) − margin
//! ```
//!
//! The holder's clock may run slow by the drift bound, and the clock that judges
//! expiry fast by it. The formula takes off the one; the margin must cover the
//! other, and so is never less than `ttl × drift`.
//!
//! One renewal may fail completely, and the next still has its full time to be
//! answered before trust runs out. Settings that cannot give that are refused.

use core::fmt;
use core::time::Duration;

use crate::Grants;
use crate::time::nanos;

/// The shortest ttl.
pub const MIN_TTL: Duration = Duration::from_millis(100);
/// The longest ttl.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The shortest heartbeat interval and request timeout.
pub const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// The largest drift bound, in millionths: a clock that runs 10 % off.
pub const MAX_DRIFT_PPM: u32 = 100_000;
/// The longest time a leader may take to drain.
pub const MAX_DRAIN: Duration = Duration::from_secs(60 * 60);

/// A named set of timings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Preset {
    /// ttl 3 s, heartbeat 0.75 s: one data centre.
    Fast,
    /// ttl 10 s, heartbeat 2.5 s: most deployments.
    #[default]
    Normal,
    /// ttl 60 s, heartbeat 15 s: unreliable networks.
    Patient,
}

impl Preset {
    /// The ttl of the preset.
    pub const fn ttl(self) -> Duration {
        match self {
            Preset::Fast => Duration::from_secs(3),
            Preset::Normal => Duration::from_secs(10),
            Preset::Patient => Duration::from_secs(60),
        }
    }
}

/// What can be set, before it is checked. Unset timings follow from the ttl.
///
/// ```
/// use core::time::Duration;
/// use tenure_core::{Preset, SettingsBuilder};
///
/// let settings = SettingsBuilder::preset(Preset::Fast).build().unwrap();
/// assert_eq!(settings.heartbeat(), Duration::from_millis(750));
///
/// let refused = SettingsBuilder::ttl(Duration::from_secs(3)).heartbeat(Duration::from_secs(2));
/// assert!(refused.build().unwrap_err().to_string().contains("2 × heartbeat"));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SettingsBuilder {
    ttl: Duration,
    heartbeat: Option<Duration>,
    request_timeout: Option<Duration>,
    margin: Option<Duration>,
    drift_ppm: u32,
    drain: Option<Duration>,
    cooldown: Option<Duration>,
    trusted_elsewhere: bool,
}

impl SettingsBuilder {
    /// The timings of a preset.
    pub fn preset(preset: Preset) -> Self {
        Self::ttl(preset.ttl())
    }

    /// Timings that follow from this ttl: heartbeat ttl/4, margin ttl/10, drift
    /// 1,000 ppm, drain ttl, cooldown ttl.
    pub fn ttl(ttl: Duration) -> Self {
        Self {
            ttl,
            heartbeat: None,
            request_timeout: None,
            margin: None,
            drift_ppm: 1_000,
            drain: None,
            cooldown: None,
            trusted_elsewhere: false,
        }
    }

    /// How often a holder renews. Default: a quarter of the ttl.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = Some(every);
        self
    }

    /// How long a request may take before it is given up and repeated.
    /// Default: the heartbeat interval.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(timeout);
        self
    }

    /// How long before the grant's end a holder stops trusting it. It is the
    /// time the work has to stop in, and at least `ttl × drift`. Default: a
    /// tenth of the ttl.
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// By how many millionths any clock involved may run fast or slow.
    /// Default: 1,000 (0.1 %).
    pub fn drift_ppm(mut self, ppm: u32) -> Self {
        self.drift_ppm = ppm;
        self
    }

    /// How long a leader that is asked to step down may take to finish its
    /// work while it keeps renewing. Default: the ttl.
    pub fn drain(mut self, drain: Duration) -> Self {
        self.drain = Some(drain);
        self
    }

    /// How long a leader that stepped down does not bid again. Default: the ttl.
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = Some(cooldown);
        self
    }

    /// Says that the work under terms is in other processes, which were told for how long they
    /// may trust the term, and cannot be told within the margin that it is lost. So a lost term
    /// is kept for as long as any such word may count ([`Grants::waited`](crate::Grants) of the
    /// ttl), unless the work says sooner that it has stopped.
    pub fn trusted_elsewhere(mut self) -> Self {
        self.trusted_elsewhere = true;
        self
    }

    /// Checks every relation and gives the settings, or says which one does
    /// not hold.
    pub fn build(self) -> Result<Settings, BadSettings> {
        let ttl = self.ttl;
        between("ttl", ttl, MIN_TTL, MAX_TTL)?;
        let heartbeat = self.heartbeat.unwrap_or(ttl / 4);
        between("heartbeat", heartbeat, MIN_INTERVAL, MAX_TTL)?;
        let request_timeout = self.request_timeout.unwrap_or(heartbeat);
        between("request timeout", request_timeout, MIN_INTERVAL, MAX_TTL)?;
        let drain = self.drain.unwrap_or(ttl.min(MAX_DRAIN));
        between("drain", drain, Duration::ZERO, MAX_DRAIN)?;
        let cooldown = self.cooldown.unwrap_or(ttl);
        between("cooldown", cooldown, Duration::ZERO, MAX_TTL)?;
        if self.drift_ppm > MAX_DRIFT_PPM {
            return Err(BadSettings::Drift { ppm: self.drift_ppm });
        }
        let margin = self.margin.unwrap_or(ttl / 10);
        let drift = part(ttl, self.drift_ppm);
        let Some(trust) = ttl.checked_sub(drift).and_then(|t| t.checked_sub(margin)) else {
            return Err(BadSettings::NoTrust { ttl, drift, margin });
        };
        if margin < drift {
            return Err(BadSettings::ThinMargin { margin, drift });
        }
        let needed = heartbeat * 2 + request_timeout;
        if needed > trust {
            return Err(BadSettings::NoSecondTry { heartbeat, request_timeout, needed, trust });
        }
        let release_after = match self.trusted_elsewhere {
            true => Grants::waited(ttl, self.drift_ppm),
            false => margin,
        };
        let drift_ppm = self.drift_ppm;
        Ok(Settings {
            ttl,
            heartbeat,
            request_timeout,
            margin,
            drift_ppm,
            trust,
            drain,
            cooldown,
            release_after,
        })
    }
}

fn between(
    what: &'static str,
    value: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), BadSettings> {
    if value < least || value > most {
        return Err(BadSettings::Range { what, value, least, most });
    }
    Ok(())
}

/// `ppm` millionths of `whole`, rounded up: never too little slack.
fn part(whole: Duration, ppm: u32) -> Duration {
    let product = u128::from(nanos(whole)) * u128::from(ppm);
    Duration::from_nanos(u64::try_from(product.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// Timings whose relations have been checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    ttl: Duration,
    heartbeat: Duration,
    request_timeout: Duration,
    margin: Duration,
    drift_ppm: u32,
    trust: Duration,
    drain: Duration,
    cooldown: Duration,
    release_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        let preset = SettingsBuilder::preset(Preset::Normal).build();
        preset.unwrap_or_else(|_| unreachable!("a test builds every preset"))
    }
}

impl Settings {
    /// How long a holder lives in the store after each heartbeat.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// How often a holder renews.
    pub fn heartbeat(&self) -> Duration {
        self.heartbeat
    }

    /// How long a request may take.
    pub fn request_timeout(&self) -> Duration {
        self.request_timeout
    }

    /// The time between the end of trust and the end of the grant.
    pub fn margin(&self) -> Duration {
        self.margin
    }

    /// The drift bound in millionths.
    pub fn drift_ppm(&self) -> u32 {
        self.drift_ppm
    }

    /// How long a grant is trusted, from before the request for it was sent
    /// (rule T1): `ttl × (1 − drift) − margin`.
    pub fn trust(&self) -> Duration {
        self.trust
    }

    /// How long a leader may drain.
    pub fn drain(&self) -> Duration {
        self.drain
    }

    /// How long a member that stepped down does not bid.
    pub fn cooldown(&self) -> Duration {
        self.cooldown
    }

    /// How long after the word *lost* a term is kept whose work has not said that it stopped:
    /// the margin, or longer ([`SettingsBuilder::trusted_elsewhere`]).
    pub fn release_after(&self) -> Duration {
        self.release_after
    }

    /// How often a member that holds nothing beats.
    pub fn idle_heartbeat(&self) -> Duration {
        self.ttl
    }

    /// The ttl of a member that holds nothing.
    pub fn idle_ttl(&self) -> Duration {
        self.ttl * 4
    }

    /// `span` as the slowest clock within the drift bound must count it before
    /// it may say that `span` has passed on the fastest one.
    pub fn widened(&self, span: Duration) -> Duration {
        widened(span, self.drift_ppm)
    }

    /// How far apart candidates of neighbouring rank bid (rule F4).
    pub fn stagger(&self) -> Duration {
        (self.ttl / 100).clamp(Duration::from_millis(5), Duration::from_millis(100))
    }

    /// How long a vacancy is kept for its preferred candidate.
    pub fn heir_grace(&self) -> Duration {
        self.stagger() * 2
    }

    /// How long a vacancy is kept for a successor who was named.
    pub fn successor_grace(&self) -> Duration {
        self.ttl
    }

    /// How long an heir that was elected has to confirm its term: enough for the margin,
    /// and as much again.
    pub fn confirm_within(&self) -> Duration {
        (self.heir_grace() + self.margin * 2).min(self.ttl)
    }

    /// How long a grant that lasts for `span` is trusted, as [`trust`](Self::trust)
    /// does for the ttl. Nothing at all, if the margin takes all of it.
    pub fn trust_in(&self, span: Duration) -> Duration {
        span.saturating_sub(part(span, self.drift_ppm)).saturating_sub(self.margin)
    }

    /// The first pause after a request failed; doubled up to
    /// [`retry_most`](Self::retry_most), and shortened by jitter.
    pub fn retry_least(&self) -> Duration {
        (self.ttl / 100).clamp(Duration::from_millis(5), Duration::from_millis(250))
    }

    /// The longest pause after a request failed.
    pub fn retry_most(&self) -> Duration {
        self.heartbeat.min(Duration::from_secs(5)).max(self.retry_least())
    }

    /// The shortest time between two looks of one member caused by hints.
    pub fn look_gap(&self) -> Duration {
        (self.ttl / 200).clamp(Duration::from_millis(2), Duration::from_millis(50))
    }

    /// How far apart looks are once several went out in a row: what a flood of
    /// hints costs the store.
    pub fn look_pace(&self) -> Duration {
        (self.ttl / 32).max(self.look_gap())
    }
}

/// `span` lengthened by `ppm` millionths: see [`Settings::widened`].
///
/// ```
/// use core::time::Duration;
/// let wide = tenure_core::widened(Duration::from_secs(10), 1_000);
/// assert_eq!(wide, Duration::from_millis(10_010));
/// ```
pub fn widened(span: Duration, ppm: u32) -> Duration {
    span.saturating_add(part(span, ppm))
}

/// Why settings were refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadSettings {
    /// A value outside its range.
    Range {
        /// Which one.
        what: &'static str,
        /// What was given.
        value: Duration,
        /// The least allowed.
        least: Duration,
        /// The most allowed.
        most: Duration,
    },
    /// A drift bound above [`MAX_DRIFT_PPM`].
    Drift {
        /// What was given.
        ppm: u32,
    },
    /// Drift and margin leave no time to trust.
    NoTrust {
        /// The ttl.
        ttl: Duration,
        /// What drift takes of it.
        drift: Duration,
        /// What the margin takes of it.
        margin: Duration,
    },
    /// The margin does not cover a judge's clock that runs fast.
    ThinMargin {
        /// The margin.
        margin: Duration,
        /// What drift takes of the ttl, which it must cover.
        drift: Duration,
    },
    /// A failed renewal would leave no time for a second one.
    NoSecondTry {
        /// The heartbeat interval.
        heartbeat: Duration,
        /// The request timeout.
        request_timeout: Duration,
        /// `2 × heartbeat + request timeout`.
        needed: Duration,
        /// The trust that must cover it.
        trust: Duration,
    },
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { what, value, least, most } => {
                write!(f, "{what} is {value:?}: it must be between {least:?} and {most:?}")
            }
            Self::Drift { ppm } => write!(
                f,
                "the drift bound is {ppm} ppm: it must be at most {MAX_DRIFT_PPM} ppm (10 %); \
                 a clock that bad needs the fence, not a longer margin"
            ),
            Self::NoTrust { ttl, drift, margin } => write!(
                f,
                "nothing is left to trust: ttl {ttl:?} − drift {drift:?} − margin {margin:?} is \
                 below zero; shorten the margin or lengthen the ttl"
            ),
            Self::ThinMargin { margin, drift } => write!(
                f,
                "margin {margin:?} is less than ttl × drift {drift:?}: a holder's clock that runs \
                 slow and a store's that runs fast, both within the drift bound, would give two \
                 leaders; lengthen the margin or lower the drift bound"
            ),
            Self::NoSecondTry { heartbeat, request_timeout, needed, trust } => write!(
                f,
                "one failed renewal would cost the leadership: 2 × heartbeat {heartbeat:?} + \
                 request timeout {request_timeout:?} = {needed:?} must not exceed the trust of \
                 {trust:?} (ttl × (1 − drift) − margin); shorten the heartbeat or the request \
                 timeout, or lengthen the ttl"
            ),
        }
    }
}

impl core::error::Error for BadSettings {}

#[cfg(test)]
mod tests;
