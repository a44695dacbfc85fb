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
/// No contender is busy before a hand-over, nor before what it is measured by.
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

/// A bare NOTIFY from one process to another, and one back.
struct Bare {
    notifier: Actor,
    echo: Actor,
}

impl Bare {
    fn start(server: &Server) -> Outcome<Self> {
        let start = |part| -> Outcome<Actor> {
            let mut actor = Actor::start(part, &server.url("bare"), "there", TTL)?;
            actor.hear("listening")?;
            Ok(actor)
        };
        Ok(Self { notifier: start(Part::Notifier)?, echo: start(Part::Echo)? })
    }

    /// The milliseconds until it is heard, and until the answer is.
    async fn notify(&mut self) -> Outcome<[f64; 2]> {
        tokio::time::sleep(SETTLES).await;
        self.notifier.order("notify")?;
        let back = self.notifier.hear("back")?;
        self.notifier.order("say when")?;
        let from = self.notifier.hear("notified")?;
        self.echo.order("say when")?;
        let heard = self.echo.hear("heard")?;
        Ok([heard, back].map(|until| (until as f64 - from as f64) / 1e6))
    }
}

/// One row is written with a notification, and when that is heard another is: what
/// a release and a claim cannot do without.
struct Written {
    sends: tokio_postgres::Client,
    hears: tokio_postgres::Client,
    heard: tokio::sync::mpsc::UnboundedReceiver<()>,
    tells: tokio_postgres::Statement,
    writes: tokio_postgres::Statement,
}

impl Written {
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

    async fn write(&mut self) -> Outcome<f64> {
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
        let mut bare = Bare::start(server)?;
        let mut written = Written::new(server).await?;
        let mut times: [Vec<f64>; 5] = Default::default();
        for _ in 0..ROUNDS {
            let tenure = ours.hand_over(reigns).await?;
            let river = river.hand_over(reigns).await?;
            let [there, and_back] = bare.notify().await?;
            let written = written.write().await?;
            for (times, time) in times.iter_mut().zip([tenure, river, there, and_back, written]) {
                times.push(time);
            }
        }
        let names = [
            "Tenure",
            "River's protocol",
            "a bare NOTIFY, until it is heard",
            "a bare NOTIFY, there and back",
            "two commits and a NOTIFY",
        ];
        let mut mids = [0.0; 5];
        for ((mid, name), times) in mids.iter_mut().zip(names).zip(&mut times) {
            *mid = report.spread(&format!("{place}: {name}"), times, "ms");
        }
        let [tenure, river, there, and_back, written] = mids;
        let over = |what: &str| format!("{place}: hand-over / {what}");
        report.at_most(&over("River's protocol"), tenure / river, 0.1, "x");
        report.at_most(&over("a NOTIFY, one way"), tenure / there, 5.0, "x");
        report.shown(&over("a NOTIFY, there and back"), tenure / and_back, "x");
        report.shown(&over("two commits and a NOTIFY"), tenure / written, "x");
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
