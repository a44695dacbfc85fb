//! `tenure doctor`: looks for what is wrong, and says what to do about it.
//!
//! It writes to a namespace of its own, which it leaves as it found it but for
//! a few journal entries.

use std::time::{Duration, Instant};

use tenure::{Happening, Journalled, Mono, Tenure, Watch};
use tenure_api::{Finding, Findings, Verdict};

use crate::args::DoctorArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Output, Table, Tone};
use crate::show::watch_mode;
use crate::span;

/// Where the doctor tries things out.
const NAMESPACE: &str = "tenure-doctor";

struct Report {
    findings: Vec<Finding>,
}

impl Report {
    fn fine(&mut self, what: &'static str, found: impl Into<String>) {
        let found = found.into();
        let what = what.into();
        self.findings.push(Finding { verdict: Verdict::Fine, what, found, remedy: None });
    }

    fn add(
        &mut self,
        verdict: Verdict,
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let found = found.into();
        let remedy = Some(remedy.into());
        self.findings.push(Finding { verdict, what: what.into(), found, remedy });
    }
}

pub(crate) async fn run(context: &Context, args: &DoctorArgs) -> Outcome {
    let mut report = Report { findings: Vec::new() };
    let began = Instant::now();
    // A short ttl: the store's countdown is then fine enough to read.
    let builder = context.builder().namespace(NAMESPACE).preset(args.preset.into());
    match builder.connect().await {
        Ok(tenure) => {
            let took = span::show(began.elapsed());
            report.fine("connection", format!("{} opened in {took}", context.shown_store()));
            report.fine("schema", "the tables are of the version this program knows");
            examine(&tenure, args, &mut report).await;
            // If it cannot be confirmed, the ttl ends the doctor's membership.
            let _ = tenure.shutdown().await;
        }
        Err(error) => report.add(
            Verdict::Wrong,
            "connection",
            format!("{} cannot be used", context.shown_store()),
            error.to_string(),
        ),
    }
    print(context.output, &report)?;
    let wrong = report.findings.iter().any(|finding| finding.verdict == Verdict::Wrong);
    Ok(if wrong { Exit::No } else { Exit::Ok })
}

async fn examine(tenure: &Tenure, args: &DoctorArgs, report: &mut Report) {
    let Some(round_trip) = round_trips(tenure, report).await else { return };
    timings(tenure, round_trip, report);
    notifications(tenure, report).await;
    permissions(tenure, report).await;
    clock(tenure, args.clock_for, report).await;
    let capabilities = tenure.capabilities();
    if capabilities.proof_of_death {
        report.fine("crashes", "a dead process of this host is noticed at once");
    }
    if !capabilities.transactional_fence {
        let found = "the token cannot be checked inside your own transaction on this store";
        report.add(Verdict::Note, "fence", found, "let whatever you write to refuse older tokens");
    }
}

/// The median of several reads.
async fn round_trips(tenure: &Tenure, report: &mut Report) -> Option<Duration> {
    let mut took = Vec::new();
    for _ in 0..9 {
        let asked = Instant::now();
        if let Err(error) = tenure.members().await {
            report.add(Verdict::Wrong, "round trip", "a read failed", error.to_string());
            return None;
        }
        took.push(asked.elapsed());
    }
    took.sort();
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    let found = format!("{} (worst of 9: {})", span::show(median), span::show(worst));
    report.fine("round trip", found);
    Some(worst)
}

fn timings(tenure: &Tenure, round_trip: Duration, report: &mut Report) {
    let settings = tenure.settings();
    let found = format!(
        "ttl {}, heartbeat {}, request timeout {}",
        span::show(settings.ttl()),
        span::show(settings.heartbeat()),
        span::show(settings.request_timeout())
    );
    if round_trip * 4 > settings.request_timeout() {
        let remedy = format!(
            "a request may take {} and took {}: use a longer preset, or bring the store nearer",
            span::show(settings.request_timeout()),
            span::show(round_trip)
        );
        report.add(Verdict::Wrong, "timings", found, remedy);
    } else {
        report.fine("timings", found);
    }
}

/// Joins, stands, leads, resigns: everything a member needs to be allowed.
async fn permissions(tenure: &Tenure, report: &mut Report) {
    let asked = Instant::now();
    let tried = async {
        let limit = tenure.settings().ttl();
        let leadership = tenure.election("doctor").campaign_timeout(limit).await?;
        let elected = asked.elapsed();
        leadership.resign().await?;
        Ok::<_, tenure::Error>(elected)
    };
    match tried.await {
        Ok(took) => {
            let took = span::show(took);
            report.fine("permissions", format!("joined, led and resigned; elected in {took}"));
        }
        Err(error) => report.add(
            Verdict::Wrong,
            "permissions",
            "an election could not be won in the doctor's own namespace",
            error.to_string(),
        ),
    }
}

/// Joins, and waits for the news of it to come back.
async fn notifications(tenure: &Tenure, report: &mut Report) {
    let capabilities = tenure.capabilities();
    let mode = watch_mode(capabilities.watch);
    if !capabilities.journal {
        report.add(Verdict::Note, "notifications", mode, "the store keeps no journal to follow");
        return;
    }
    let heard = async {
        let mut journal = tenure.follow(Some(tenure.journal(1).await?.0))?;
        let asked = Instant::now();
        tenure.join()?;
        let limit = match capabilities.watch {
            Watch::Native => Duration::from_secs(2),
            Watch::Polled(every) => every * 2 + Duration::from_secs(1),
        };
        let news = tokio::time::timeout(limit, async {
            while let Some(news) = journal.next().await {
                let Journalled::Entries(entries) = news else { continue };
                if entries.iter().any(|e| matches!(e.what, Happening::Joined { .. })) {
                    return Some(asked.elapsed());
                }
            }
            None
        });
        Ok::<_, tenure::Error>(news.await.ok().flatten())
    };
    let because = tenure.capabilities().polled_because;
    let remedy = because.unwrap_or_else(|| unheard(capabilities.name));
    match (heard.await, capabilities.watch) {
        (Ok(Some(took)), Watch::Native) => {
            let took = span::show(took);
            report.fine("notifications", format!("{mode}; a change was heard of after {took}"));
        }
        (Ok(Some(took)), Watch::Polled(_)) => {
            let found = format!("{mode}; a change was heard of after {}", span::show(took));
            report.add(Verdict::Note, "notifications", found, remedy);
        }
        (Ok(None), _) => {
            let found = format!("{mode}, but no change was heard of");
            report.add(Verdict::Wrong, "notifications", found, remedy);
        }
        (Err(error), _) => {
            report.add(Verdict::Wrong, "notifications", mode, error.to_string());
        }
    }
}

/// Why changes may not be heard of, by the kind of store.
fn unheard(store: &str) -> &'static str {
    match store {
        "sqlite" => {
            "the kernel gives this process no notifications: raise fs.inotify.max_user_instances \
             and fs.inotify.max_user_watches; changes are still found, later"
        }
        "postgres" => {
            "a connection pooler or a proxy between here and the store often drops them: connect \
             directly; changes are still found, later"
        }
        _ => "this store has no notifications; changes are found by looking, at this pace",
    }
}

/// Compares how fast the store counts this member's ttl down with how fast this
/// host's clock runs. Durations only: the two clocks' readings are not
/// compared.
async fn clock(tenure: &Tenure, long: Duration, report: &mut Report) {
    let bound = f64::from(tenure.settings().drift_ppm());
    let what = "clock";
    match two_countdowns(tenure, long).await {
        Ok(Some((first, second))) => {
            let (ours, theirs) = (second.at - first.at, first.left - second.left);
            // What lies between asking and being answered cannot be told apart
            // from drift, nor can the store's rounding to milliseconds.
            let slack = first.slack + second.slack + 0.002;
            let drift = ((theirs - ours).abs() - slack).max(0.0) / ours * 1e6;
            if drift > bound {
                let found = format!("the store's clock runs {drift:.0} ppm off, or was set");
                let remedy = format!(
                    "the bound is {bound:.0} ppm: look at time synchronisation on the store's \
                     host, and let it slew rather than step"
                );
                report.add(Verdict::Wrong, what, found, remedy);
            } else {
                let long = span::show(long);
                report.fine(what, format!("the store counted {long} as this host did"));
            }
        }
        Ok(None) => {
            let found = "this member was not in the store, or beat meanwhile";
            report.add(Verdict::Note, what, found, "run the doctor again");
        }
        Err(error) => report.add(Verdict::Wrong, what, "a read failed", error.to_string()),
    }
}

/// What was left of this member's ttl, and when, in seconds.
struct Countdown {
    at: f64,
    left: f64,
    slack: f64,
}

/// Two looks at the countdown, `long` apart, with no heartbeat in between.
async fn two_countdowns(
    tenure: &Tenure,
    long: Duration,
) -> Result<Option<(Countdown, Countdown)>, tenure::Error> {
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

async fn countdown(tenure: &Tenure) -> Result<Option<Countdown>, tenure::Error> {
    let asked = Instant::now();
    let members = tenure.members().await?;
    let took = asked.elapsed();
    let Some(life) = tenure.status().member else { return Ok(None) };
    let Some(view) = members.iter().find(|view| view.member == life) else { return Ok(None) };
    let at = tenure_guard::now().since(Mono::ZERO);
    let middle = at.saturating_sub(took / 2);
    let (at, left) = (middle.as_secs_f64(), view.remaining.as_secs_f64());
    Ok(Some(Countdown { at, left, slack: took.as_secs_f64() / 2.0 }))
}

fn print(out: Output, report: &Report) -> Outcome<()> {
    if out.json {
        return out.value(&Findings { findings: report.findings.clone() });
    }
    let mut table = Table::facts();
    for finding in &report.findings {
        table.row(vec![
            (tone_of(finding.verdict), finding.verdict.to_string()),
            (Tone::Strong, finding.what.clone()),
            (Tone::Plain, finding.found.clone()),
        ]);
        if let Some(remedy) = &finding.remedy {
            let cells = ["".to_owned(), String::new(), format!("→ {remedy}")];
            table.row(cells.into_iter().map(|cell| (Tone::Plain, cell)).collect());
        }
    }
    out.table(&table)
}

fn tone_of(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Fine => Tone::Good,
        Verdict::Wrong => Tone::Bad,
        _ => Tone::Warn,
    }
}
