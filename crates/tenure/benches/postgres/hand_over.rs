//! A resignation, until the follower knows that it leads: two processes on one
//! server, beside River's protocol and bare notifications.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::actor::{Actor, Part};
use crate::peers::{FLOOR, listen};
use crate::reigns::Reigns;
use crate::report::Report;
use crate::server::{Server, connect};

const ROUNDS: usize = 60;
const TTL: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(500);
const POLLED: usize = 12;
/// Nobody is busy before a hand-over, nor before what it is measured by.
const SETTLES: Duration = Duration::from_millis(60);

/// Two candidates who hand over to each other.
struct Couple {
    part: Part,
    place: String,
    leader: Actor,
    led_from: u64,
    follower: Actor,
}

impl Couple {
    fn start(part: Part, url: &str, place: &str) -> Outcome<Self> {
        let mut leader = Actor::start(part, url, place, TTL)?;
        let led_from = leader.hear("elected")?;
        let mut follower = Actor::start(part, url, place, TTL)?;
        follower.hear("standing")?;
        Ok(Self { part, place: place.to_owned(), leader, led_from, follower })
    }

    /// The milliseconds from the leader's resignation to the follower's win.
    async fn hand_over(&mut self, reigns: &mut Reigns) -> Outcome<f64> {
        // What the last round left in the air settles, and a member that bid
        // early because of a hint may do so again: not twice within 50 ms.
        tokio::time::sleep(SETTLES).await;
        self.leader.order("resign")?;
        let until = self.follower.hear("elected")?;
        self.leader.order("stand")?;
        let from = self.leader.hear("resigned")?;
        if matches!(self.part, Part::Tenure) {
            reigns.note(&self.place, self.led_from, from);
        }
        self.led_from = until;
        std::mem::swap(&mut self.leader, &mut self.follower);
        self.follower.hear("standing")?;
        Ok((until as f64 - from as f64) / 1e6)
    }
}

/// Notifications on one server, bare and with commits that wait for the disk.
struct Floor {
    sends: tokio_postgres::Client,
    hears: tokio_postgres::Client,
    heard: tokio::sync::mpsc::UnboundedReceiver<()>,
    tells: tokio_postgres::Statement,
    writes: tokio_postgres::Statement,
}

impl Floor {
    async fn new(server: &Server) -> Outcome<Self> {
        let url = server.url("floor");
        let sends = connect(&url).await?;
        let (hears, heard) = listen(&url, "floor").await?;
        let tells = "WITH written AS (UPDATE floor SET at = clock_timestamp() WHERE id = 1 \
                     RETURNING id) SELECT pg_notify('floor', 'x') FROM written";
        let tells = sends.prepare(tells).await?;
        let writes = hears.prepare(FLOOR).await?;
        Ok(Self { sends, hears, heard, tells, writes })
    }

    /// From sending a NOTIFY until it is heard.
    async fn bare(&mut self) -> Outcome<f64> {
        tokio::time::sleep(SETTLES).await;
        let from = Instant::now();
        let sent = self.sends.batch_execute("NOTIFY floor");
        let (sent, _) = tokio::join!(sent, self.heard.recv());
        sent?;
        Ok(from.elapsed().as_secs_f64() * 1e3)
    }

    /// One row is written with a notification, and when that is heard another
    /// is: what a release and a claim cannot do without.
    async fn written(&mut self) -> Outcome<f64> {
        tokio::time::sleep(SETTLES).await;
        let from = Instant::now();
        let sent = self.sends.query(&self.tells, &[]);
        let answer = async {
            self.heard.recv().await;
            self.hears.execute(&self.writes, &[&1_i64]).await
        };
        let (sent, answered) = tokio::join!(sent, answer);
        sent?;
        answered?;
        Ok(from.elapsed().as_secs_f64() * 1e3)
    }
}

pub(crate) async fn run(
    report: &mut Report,
    reigns: &mut Reigns,
    run: usize,
    [disk, memory]: [&Server; 2],
) -> Outcome {
    println!("\nhand-over between two processes, {ROUNDS} of each in turns");
    for (server, place) in [(disk, "disk"), (memory, "memory")] {
        let name = format!("hand-over-{place}-{run}");
        let mut ours = Couple::start(Part::Tenure, &server.url("tenure"), &name)?;
        let mut river = Couple::start(Part::River, &server.url("peers"), &name)?;
        let mut floor = Floor::new(server).await?;
        let mut times: [Vec<f64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            times[0].push(ours.hand_over(reigns).await?);
            times[1].push(river.hand_over(reigns).await?);
            times[2].push(floor.bare().await?);
            times[3].push(floor.written().await?);
        }
        let [t, r, b, w] = &mut times;
        let ours = report.spread(&format!("{place}: Tenure"), t, "ms");
        let river = report.spread(&format!("{place}: River's protocol"), r, "ms");
        let bare = report.spread(&format!("{place}: a bare NOTIFY, until heard"), b, "ms");
        let written = report.spread(&format!("{place}: two commits and a NOTIFY"), w, "ms");
        report.at_most(&format!("{place}: hand-over / River's protocol"), ours / river, 0.1, "x");
        report.shown(
            &format!("{place}: hand-over / two commits and a NOTIFY"),
            ours / written,
            "x",
        );
        report.at_most(&format!("{place}: hand-over / bare NOTIFY"), ours / bare, 5.0, "x");
    }
    polled(report, reigns, run, disk).await
}

/// Without LISTEN a vacancy is found by looking.
async fn polled(report: &mut Report, reigns: &mut Reigns, run: usize, disk: &Server) -> Outcome {
    let url = format!("{}?listen=0&poll_ms={}", disk.url("tenure"), POLL.as_millis());
    let mut couple = Couple::start(Part::Tenure, &url, &format!("polled-{run}"))?;
    let mut times = Vec::new();
    for _ in 0..POLLED {
        // At any moment of the interval.
        tokio::time::sleep(POLL.mul_f64(crate::peers::dice()?)).await;
        times.push(couple.hand_over(reigns).await?);
    }
    report.spread(&format!("without LISTEN, looking every {POLL:?}"), &mut times, "ms");
    let worst = times.iter().copied().fold(0.0, f64::max);
    let poll = POLL.as_secs_f64() * 1e3;
    report.at_most("without LISTEN: slowest hand-over / poll interval", worst / poll, 1.0, "x");
    Ok(())
}
