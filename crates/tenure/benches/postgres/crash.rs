//! kill -9 of the leader at a random moment: from the end of its ttl, by the
//! server's clock, until the follower knows that it leads.

use std::time::Duration;

use tokio_postgres::Client;

use crate::Outcome;
use crate::actor::{Actor, Part, now};
use crate::peers::dice;
use crate::reigns::Reigns;
use crate::report::Report;
use crate::server::{Server, connect};

const TTL: Duration = Duration::from_secs(3);
const PAIRS: usize = 12;
const ROUNDS: usize = 3;

/// When the leader's ttl runs out, in seconds from now.
const TENURE: &str = "SELECT extract(epoch FROM m.expires_at - clock_timestamp())::float8 \
    FROM tenure.elections e JOIN tenure.members m ON m.ns = e.ns AND m.life = e.life \
    WHERE e.ns = $1 AND e.name = 'bench'";
const RIVER: &str = "SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 \
    FROM river WHERE name = $1";

struct Pair {
    part: Part,
    place: String,
    leader: Actor,
    led_from: u64,
    follower: Actor,
}

pub(crate) async fn run(
    report: &mut Report,
    reigns: &mut Reigns,
    run: usize,
    disk: &Server,
) -> Outcome {
    let trials = PAIRS * ROUNDS;
    println!("\ntake-over after kill -9, ttl {TTL:?}, {trials} trials of each, {PAIRS} at a time");
    let tenure = disk.url("tenure");
    let peers = disk.url("peers");
    let ours = connect(&tenure).await?;
    let theirs = connect(&peers).await?;
    let url = |part| if matches!(part, Part::Tenure) { &tenure } else { &peers };
    let mut pairs = Vec::new();
    for n in 0..PAIRS {
        for part in [Part::Tenure, Part::River] {
            let place = format!("crash-{run}-{n}");
            let mut leader = Actor::start(part, url(part), &place, TTL)?;
            let led_from = leader.hear("elected")?;
            let follower = Actor::start(part, url(part), &place, TTL)?;
            pairs.push(Pair { part, place, leader, led_from, follower });
        }
    }
    let mut lags = Vec::new();
    let mut river = Vec::new();
    for round in 0..ROUNDS {
        for pair in &mut pairs {
            pair.follower.hear("standing")?;
        }
        let ends = kill_all(&mut pairs, reigns, [&ours, &theirs]).await?;
        for (pair, end) in pairs.iter_mut().zip(ends) {
            let elected = pair.follower.hear("elected")?;
            let lag = (elected as f64 - end as f64) / 1e6;
            if matches!(pair.part, Part::Tenure) {
                lags.push(lag)
            } else {
                river.push(lag)
            }
            if round + 1 == ROUNDS {
                continue;
            }
            let next = Actor::start(pair.part, url(pair.part), &pair.place, TTL)?;
            pair.leader = std::mem::replace(&mut pair.follower, next);
            pair.led_from = elected;
        }
    }
    let first = lags.iter().copied().fold(f64::INFINITY, f64::min);
    let mid = report.spread("Tenure: lag behind the end of the ttl", &mut lags, "ms");
    let polled = report.spread("River's protocol at the same ttl", &mut river, "ms");
    report.at_least("earliest take-over, from the end of the ttl", first, 0.0, "ms");
    report.at_most("lag / lag of a follower that polls as River does", mid / polled, 0.05, "x");
    Ok(())
}

/// Kills every leader at a moment of its own within a third of the ttl, and
/// gives the moments at which their ttls run out.
async fn kill_all(
    pairs: &mut [Pair],
    reigns: &mut Reigns,
    [ours, theirs]: [&Client; 2],
) -> Outcome<Vec<u64>> {
    let mut plan = Vec::new();
    for at in 0..pairs.len() {
        plan.push(((TTL / 3).mul_f64(dice()?), at));
    }
    plan.sort();
    let begun = tokio::time::Instant::now();
    let mut ends = vec![0; pairs.len()];
    for (after, at) in plan {
        tokio::time::sleep_until(begun + after).await;
        let pair = &mut pairs[at];
        let killed = pair.leader.kill()?;
        if matches!(pair.part, Part::Tenure) {
            reigns.note(&pair.place, pair.led_from, killed);
        }
        let (client, asked) = match pair.part {
            Part::Tenure => (ours, TENURE),
            _ => (theirs, RIVER),
        };
        // The answer's clock lies between these two readings; the later of the
        // moments that follow is the one to be behind.
        let sent = now();
        let left: f64 = client.query_one(asked, &[&pair.place]).await?.get(0);
        ends[at] = sent + (left * 1e9) as u64;
    }
    Ok(ends)
}
