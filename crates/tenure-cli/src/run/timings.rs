//! When the command is told to stop and when it is killed, and whether the
//! timings leave room for that.
//!
//! ```text
//! a renewal is sent            TERM                 KILL       another member may lead
//! |------------------------------|--------------------|------------------|
//! 0                        trust − grace            trust               ttl
//!                                |------ grace -------|----- margin -----|
//! ```
//!
//! `trust` is `ttl × (1 − drift) − margin`, counted from before the renewal was
//! sent. The margin is what the kernel has for taking the killed processes
//! away. One renewal may fail completely and the next still has its full time
//! before TERM: `3 × heartbeat ≤ trust − grace`.

use std::time::Duration;

use tenure::{Mono, Settings, SettingsBuilder};
use tenure_guard::Deadlines;

use tenure_api::span;

use crate::failure::{Failure, Outcome};

/// The least time from KILL to the moment when another member may lead.
const LEAST_MARGIN: Duration = Duration::from_millis(100);
/// The longest grace that is taken without being asked for.
const DEFAULT_GRACE_MOST: Duration = Duration::from_secs(10);
const DRIFT_PPM: u32 = 1_000;
/// What a ttl may be at most.
const LONGEST_TTL: Duration = Duration::from_secs(86_400);

/// Timings that honour the grace.
#[derive(Clone, Debug)]
pub(crate) struct Timings {
    builder: SettingsBuilder,
    settings: Settings,
    grace: Duration,
}

impl Timings {
    /// Works the timings out, or says why they cannot be.
    pub(crate) fn new(ttl: Duration, grace: Option<Duration>) -> Outcome<Self> {
        let grace = grace.unwrap_or_else(|| (ttl * 3 / 10).min(DEFAULT_GRACE_MOST));
        let margin = (ttl / 10).max(LEAST_MARGIN);
        let builder = SettingsBuilder::ttl(ttl).drift_ppm(DRIFT_PPM).margin(margin);
        let drift = ttl.mul_f64(f64::from(DRIFT_PPM) / 1e6);
        let trust = ttl.saturating_sub(drift).saturating_sub(margin);
        let slowest = ttl / 4;
        let fastest = (ttl / 20).max(Duration::from_millis(10));
        let heartbeat = (trust.saturating_sub(grace) / 3).min(slowest);
        if heartbeat < fastest {
            return Err(refuse(ttl, grace, drift, margin, fastest));
        }
        let heartbeat = Duration::from_micros(u64::try_from(heartbeat.as_micros()).unwrap_or(0));
        // The work may drain for its grace; a command that takes longer was killed.
        let drain = (grace + margin + Duration::from_secs(1)).min(Duration::from_secs(3600));
        let builder = builder.heartbeat(heartbeat).request_timeout(heartbeat).drain(drain);
        let settings = builder.clone().build()?;
        Ok(Self { builder, settings, grace })
    }

    pub(crate) fn builder(&self) -> SettingsBuilder {
        self.builder.clone()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// When to send TERM, and when KILL, if nothing is renewed.
    pub(crate) fn deadlines(&self, trusted_until: Mono) -> Deadlines {
        Deadlines::new(trusted_until, self.grace)
    }
}

fn refuse(
    ttl: Duration,
    grace: Duration,
    drift: Duration,
    margin: Duration,
    beat: Duration,
) -> Failure {
    let show = span::show;
    let trust = ttl.saturating_sub(drift).saturating_sub(margin);
    let most = trust.saturating_sub(beat * 3);
    let renewals = beat * 3;
    // Of the ttl, three quarters less the drift are left for the grace.
    let enough = Duration::from_millis(
        u64::try_from(grace.as_millis() * 1000 / 749 + 1).unwrap_or(u64::MAX),
    );
    let enough = enough.max(grace.saturating_add(LEAST_MARGIN * 2));
    let shorten = (!most.is_zero()).then(|| format!("shorten --grace to {} or less", show(most)));
    let lengthen =
        (enough <= LONGEST_TTL).then(|| format!("lengthen --ttl to {} or more", show(enough)));
    let remedies: Vec<_> = shorten.into_iter().chain(lengthen).collect();
    let remedies = remedies.join(", or ");
    Failure::usage(format!(
        "a grace of {} does not fit into a ttl of {}: the command must be gone before the term \
         can be given to anyone else.\n  \
         ttl {} − drift {} − margin {} = {} of trust\n  \
         {} of it are for renewals (3 × {} at least), which leaves {} for the grace\n\
         To mend it, {remedies}.",
        show(grace),
        show(ttl),
        show(ttl),
        show(drift),
        show(margin),
        show(trust),
        show(renewals),
        show(beat),
        show(most),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// TERM comes a grace before KILL, KILL at the end of trust, and no
    /// other member has the term before ttl × (1 − drift).
    #[test]
    fn the_command_is_killed_a_margin_before_the_term_can_go_elsewhere() {
        for ttl in [300, 500, 1_000, 3_000, 10_000, 60_000] {
            let ttl = Duration::from_millis(ttl);
            let timings = Timings::new(ttl, None).unwrap();
            let settings = timings.settings();
            let sent = Mono::from_millis(3_600_000);
            let deadlines = timings.deadlines(sent + settings.trust());
            assert_eq!(deadlines.kill_at.since(deadlines.term_at), timings.grace());
            let given = sent + ttl - ttl / 1_000;
            assert!(given.since(deadlines.kill_at) >= LEAST_MARGIN, "{ttl:?}");
            // One renewal may fail before TERM.
            let tries = settings.heartbeat() * 2 + settings.request_timeout();
            assert!(sent + tries <= deadlines.term_at, "{ttl:?}");
            assert!(settings.drain() > timings.grace());
        }
    }

    /// At, below and above the bound.
    #[test]
    fn a_grace_that_cannot_be_honoured_is_refused_with_the_arithmetic() {
        let most = Duration::from_millis(7_490);
        assert!(Timings::new(secs(10), Some(most)).is_ok());
        let refused = Timings::new(secs(10), Some(most + Duration::from_millis(1))).unwrap_err();
        let text = refused.to_string();
        for said in ["ttl 10s − drift 10ms − margin 1s = 8.99s of trust", "leaves 7.49s"] {
            assert!(text.contains(said), "{text}");
        }
        assert!(text.lines().count() <= 5, "one screen: {text}");
        let long = Timings::new(secs(3), Some(secs(60))).unwrap_err().to_string();
        let ttl = long.split("--ttl to ").nth(1).unwrap().split(" or more").next().unwrap();
        let ttl = span::parse(ttl).unwrap() + secs(1);
        assert!(Timings::new(ttl, Some(secs(60))).is_ok(), "what is advised must work: {long}");
    }

    #[test]
    fn a_ttl_too_short_to_kill_in_is_refused() {
        assert!(Timings::new(Duration::from_millis(120), None).is_err());
        assert!(Timings::new(Duration::ZERO, None).is_err());
        assert!(Timings::new(secs(10), Some(Duration::ZERO)).is_ok());
    }
}
