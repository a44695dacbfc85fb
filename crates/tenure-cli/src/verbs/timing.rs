//! `tenure timing`: from what is needed to settings, or why it cannot be.

use std::time::Duration;

use tenure::{Settings, SettingsBuilder};
use tenure_api::{Timing, millis, span};

use crate::args::TimingArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Table, Tone};

/// For the bid itself and its way to the store and back.
const BID: Duration = Duration::from_millis(250);
/// The shortest heartbeat that is worth its load.
const SHORTEST_BEAT: Duration = Duration::from_millis(25);

pub(crate) fn run(context: &Context, args: &TimingArgs) -> Outcome {
    let plan = Plan::find(args.recover_in, args.tolerate).map_err(Failure::usage)?;
    let load = plan.load(args.members, args.elections);
    let out = context.output;
    let settings = &plan.settings;
    if out.json {
        out.value(&Timing {
            ttl_ms: millis(settings.ttl()),
            heartbeat_ms: millis(settings.heartbeat()),
            request_timeout_ms: millis(settings.request_timeout()),
            margin_ms: millis(settings.margin()),
            drift_ppm: settings.drift_ppm(),
            recover_in_ms: millis(plan.recovers_in()),
            tolerates_ms: millis(plan.tolerates()),
            writes_per_second: load,
        })?;
        return Ok(Exit::Ok);
    }
    let mut facts = Table::facts();
    facts.fact("ttl", Tone::Strong, span::show(settings.ttl()));
    facts.fact("heartbeat", Tone::Strong, span::show(settings.heartbeat()));
    facts.fact("request timeout", Tone::Strong, span::show(settings.request_timeout()));
    facts.fact("margin", Tone::Plain, span::show(settings.margin()));
    let drift = format!("{} ppm", settings.drift_ppm());
    facts.fact("drift bound", Tone::Plain, drift);
    let recovers = format!("{} at worst", span::show(plan.recovers_in()));
    facts.fact("crash to new leader", Tone::Plain, recovers);
    facts.fact("resignation", Tone::Plain, "milliseconds, where the store notifies");
    let tolerates = format!("{} at least without losing the term", span::show(plan.tolerates()));
    facts.fact("store outage", Tone::Plain, tolerates);
    let who = format!("{} members, {} elections", args.members, args.elections);
    facts.fact("load", Tone::Plain, format!("{load:.1} writes per second at most ({who})"));
    out.table(&facts)?;
    Ok(Exit::Ok)
}

/// Settings, and what follows from them.
#[derive(Debug)]
struct Plan {
    settings: Settings,
}

impl Plan {
    /// The longest ttl that still recovers in time, and the slowest heartbeat
    /// that still tolerates the outage.
    fn find(recover_in: Duration, tolerate: Duration) -> Result<Self, String> {
        let need = span::show(recover_in);
        let ttl = longest_ttl(recover_in).ok_or_else(|| {
            format!(
                "recovering in {need} cannot be promised: the bid of the successor alone may \
                 take {}; allow at least {}",
                span::show(BID),
                span::show(recovery(Duration::from_millis(100)))
            )
        })?;
        let plain = SettingsBuilder::ttl(ttl).build().map_err(|bad| bad.to_string())?;
        // An outage may begin just before a renewal, and the first try after
        // it must still be answered: trust ≥ outage + 2 × heartbeat.
        let spare = plain.trust().saturating_sub(tolerate);
        let beat = plain.heartbeat().min(spare / 2).min(plain.trust() / 3);
        if beat < SHORTEST_BEAT {
            return Err(format!(
                "tolerating {} and recovering in {need} contradict each other: to recover in \
                 time the ttl is at most {}, of which {} are trusted (less drift and margin), \
                 and an outage of {} would leave {} for the renewals around it; allow more time \
                 to recover, or tolerate less",
                span::show(tolerate),
                span::show(ttl),
                span::show(plain.trust()),
                span::show(tolerate),
                span::show(spare),
            ));
        }
        let beat = Duration::from_millis(millis(beat));
        let settings = SettingsBuilder::ttl(ttl).heartbeat(beat).request_timeout(beat);
        Ok(Self { settings: settings.build().map_err(|bad| bad.to_string())? })
    }

    fn recovers_in(&self) -> Duration {
        recovery(self.settings.ttl())
    }

    fn tolerates(&self) -> Duration {
        self.settings.trust().saturating_sub(self.settings.heartbeat() * 2)
    }

    /// Those who lead beat at the heartbeat's pace, whatever they hold; the
    /// others once in a ttl.
    fn load(&self, members: u32, elections: u32) -> f64 {
        let leading = members.min(elections);
        let idle = members - leading;
        let rate = |every: Duration| 1.0 / every.as_secs_f64();
        let settings = &self.settings;
        f64::from(leading) * rate(settings.heartbeat())
            + f64::from(idle) * rate(settings.idle_heartbeat())
    }
}

/// From the crash to a new leader at worst: the ttl as the slowest clock counts
/// it, the time kept for the preferred candidate, the stagger of the next two,
/// and the bid.
fn recovery(ttl: Duration) -> Duration {
    let Ok(settings) = SettingsBuilder::ttl(ttl).build() else { return Duration::MAX };
    settings.widened(ttl) + settings.heir_grace() + settings.stagger() * 2 + BID
}

/// In steps that people would write.
fn longest_ttl(recover_in: Duration) -> Option<Duration> {
    let step = match recover_in.as_secs() {
        0..2 => 10,
        2..20 => 100,
        _ => 1_000,
    };
    let mut ttl = millis(recover_in.min(Duration::from_secs(86_400))) / step * step;
    while ttl >= 100 {
        if recovery(Duration::from_millis(ttl)) <= recover_in {
            return Some(Duration::from_millis(ttl));
        }
        ttl -= step;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// What is promised holds for a wide range of needs.
    #[test]
    fn plans_keep_what_was_asked() {
        for recover in [1, 2, 5, 11, 30, 66, 600] {
            for part in [0, 10, 30, 50] {
                let tolerate = secs(recover) * part / 100;
                let plan = Plan::find(secs(recover), tolerate).unwrap();
                assert!(plan.recovers_in() <= secs(recover), "{plan:?}");
                assert!(plan.tolerates() >= tolerate, "{plan:?}");
            }
        }
    }

    #[test]
    fn the_example_of_the_guide_works() {
        let plan = Plan::find(secs(5), secs(3)).unwrap();
        assert!(plan.settings.ttl() > secs(4) && plan.settings.heartbeat() < secs(1), "{plan:?}");
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_arithmetic() {
        let refused = Plan::find(secs(5), secs(5)).unwrap_err();
        assert!(
            refused.contains("contradict") && refused.contains("ttl is at most 4."),
            "{refused}"
        );
        let refused = Plan::find(Duration::from_millis(200), secs(0)).unwrap_err();
        assert!(refused.contains("allow at least"), "{refused}");
    }

    /// C12: elections cost nothing, members do.
    #[test]
    fn the_load_is_that_of_the_members() {
        let plan = Plan::find(secs(11), secs(3)).unwrap();
        assert!((plan.load(1, 1) - plan.load(1, 10_000)).abs() < f64::EPSILON);
        assert!(plan.load(10, 1) > plan.load(2, 1));
    }
}
