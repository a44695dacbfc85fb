//! Whether the store's clock runs as fast as this host's. Durations only: the two
//! clocks' readings are not compared.

use std::time::Duration;

use tenure::store::{BootClock, Finding};
use tenure::{Mono, Tenure};
use tenure_api::span;

const CODE: &str = "clock";

/// Compares how fast the store counts this member's ttl down with how fast this host's
/// clock runs.
pub(crate) async fn look(tenure: &Tenure, long: Duration) -> Finding {
    let bound = f64::from(tenure.settings().drift_ppm());
    let (first, second) = match two_countdowns(tenure, long).await {
        Ok(Some(both)) => both,
        Ok(None) => {
            let found = "this member was not in the store, or beat meanwhile";
            return Finding::note(CODE, CODE, found, "run the doctor again");
        }
        Err(error) => return Finding::wrong(CODE, CODE, "a read failed", error.to_string()),
    };
    let ours = second.at.since(first.at).as_secs_f64();
    let theirs = first.left - second.left;
    // What lies between asking and being answered cannot be told apart from drift, nor
    // can the store's rounding to milliseconds.
    let slack = first.slack + second.slack + 0.002;
    let drift = ((theirs - ours).abs() - slack).max(0.0) / ours * 1e6;
    if drift <= bound {
        let found = format!("the store counted {} as this host did", span::show(long));
        return Finding::fine(CODE, CODE, found);
    }
    let found = format!("the store's clock runs {drift:.0} ppm off, or was set");
    let remedy = format!(
        "the bound is {bound:.0} ppm: look at time synchronisation on the store's host, and let \
         it slew rather than step"
    );
    Finding::wrong(CODE, CODE, found, remedy)
}

/// What was left of this member's ttl, in seconds, and when.
struct Countdown {
    at: Mono,
    left: f64,
    slack: f64,
}

/// Two looks at the countdown, `long` apart, with no heartbeat in between.
async fn two_countdowns(
    tenure: &Tenure,
    long: Duration,
) -> tenure::Result<Option<(Countdown, Countdown)>> {
    for _ in 0..4 {
        let first = countdown(tenure).await?;
        tokio::time::sleep(long).await;
        if let (Some(first), Some(second)) = (first, countdown(tenure).await?)
            && second.left < first.left
        {
            return Ok(Some((first, second)));
        }
    }
    Ok(None)
}

async fn countdown(tenure: &Tenure) -> tenure::Result<Option<Countdown>> {
    let asked = BootClock::read();
    let members = tenure.members().await?;
    let took = BootClock::read().since(asked);
    let Some(life) = tenure.status().member else { return Ok(None) };
    let Some(view) = members.iter().find(|view| view.member == life) else { return Ok(None) };
    let left = view.remaining.as_secs_f64();
    Ok(Some(Countdown { at: asked + took / 2, left, slack: took.as_secs_f64() / 2.0 }))
}
