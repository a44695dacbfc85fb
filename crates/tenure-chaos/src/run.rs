//! A whole run: everything is started, hurt, healed, ended, and looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenure::Tenure;
use tenure_testkit::Proxy;
use tokio::signal::unix::{SignalKind, signal};

use crate::books::Books;
use crate::checker::{self, Evidence, Worker};
use crate::clock;
use crate::crew::Crew;
use crate::failure::{Doing, Failure, Outcome};
use crate::keeper::Keeper;
use crate::nemesis::{History, Mark, Nemesis, Victim};
use crate::options::{Options, StoreKind};
use crate::record::Line;
use crate::report::{Healed, Report};
use crate::rollback::Past;
use crate::schedule;
use crate::succession::Succession;

/// When faults have ended, a worker must lead within this, on a busy machine too.
const HEALING: Duration = Duration::from_secs(60);
/// How many times a leader is stopped at the end, at most, to lose a write.
const LESSONS: u32 = 20;
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Runs everything and gives the report; its text and its picture lie in a folder
/// below the one named in the options. Ctrl-C ends it, and every process with it.
pub fn run(options: &Options) -> Outcome<Report> {
    // One thread starts all workers: they follow that thread into its end.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.doing(|| "start the runtime".into())?;
    runtime.block_on(async {
        let mut terminated =
            signal(SignalKind::terminate()).doing(|| "listen for signals".into())?;
        tokio::select! {
            report = whole(options) => report,
            _ = tokio::signal::ctrl_c() => Err(Failure::new("interrupted; all was stopped")),
            _ = terminated.recv() => Err(Failure::new("terminated; all was stopped")),
        }
    })
}

async fn whole(options: &Options) -> Outcome<Report> {
    let folder = fresh_folder(options)?;
    let (victim, urls, direct) = store(options, &folder).await?;
    let mut crew = Crew::new(options, &folder, urls)?;
    let planned = schedule::plan(options, crew.jumps);
    let succession = Succession::new(&folder, &direct, options.held, options.ttl);
    let mut history = History { past: Past::default(), succession };

    let from = clock::now();
    crew.fill()?;
    let mut marks = Nemesis::new(&mut crew, &victim, &mut history, &planned, from).run().await?;
    let healed = heal(&mut crew).await?;
    marks.extend(lessons(&mut crew, &victim, &mut history, &direct).await?);
    let to = clock::now();
    crew.end()?;
    if let Victim::Postgres { proxies, .. } = &victim {
        proxies.iter().for_each(Proxy::cut);
    }

    let mut books = Books::open(&direct).await?;
    books.quiet().await?;
    let evidence = evidence(&crew, &history, &mut books).await?;
    let jumped = jumped(&evidence.logs);
    let verdict = checker::check(&evidence);
    let jumps = crew.jumps;
    let report = Report {
        options: options.clone(),
        folder,
        from,
        to,
        marks,
        verdict,
        guarded: crew.programs.told(),
        rollbacks: evidence.rollbacks.len(),
        deaths: evidence.deaths,
        healed,
        jumps,
        jumped,
    };
    report.write()?;
    Ok(report)
}

/// All that there is by now.
async fn evidence(crew: &Crew, history: &History, books: &mut Books) -> Outcome<Evidence> {
    let (fenced, loose) = books.read().await?;
    let (deaths, holders) = history.succession.outcome()?;
    let rollbacks = history.past.rollbacks();
    let logs = crew.logs()?;
    let stamped = crew.programs.stamped()?;
    let excuses = crew.programs.excuses();
    let ttl = crew.ttl();
    Ok(Evidence { logs, fenced, loose, ttl, rollbacks, deaths, holders, stamped, excuses })
}

/// A folder of this run's own, by absolute path: workers run elsewhere.
fn fresh_folder(options: &Options) -> Outcome<PathBuf> {
    let name = format!("{}-{}", options.store.name(), options.seed);
    let folder = std::path::absolute(options.out.join(name)).doing(|| "find the folder".into())?;
    let shown = folder.display();
    if folder.exists() {
        fs::remove_dir_all(&folder).doing(|| format!("remove the earlier run in {shown}"))?;
    }
    fs::create_dir_all(&folder).doing(|| format!("create {shown}"))?;
    Ok(folder)
}

/// Starts the store and makes its tables. Gives what can be hurt of it, what each
/// worker and each program reaches it by, and how we reach it ourselves.
async fn store(options: &Options, folder: &Path) -> Outcome<(Victim, Vec<String>, String)> {
    let (victim, urls, direct) = match options.store {
        StoreKind::Sqlite => {
            let path = folder.join("tenure.db").display().to_string();
            let url = format!("sqlite:{path}");
            (Victim::Sqlite(path), vec![url.clone(); options.workers + options.programs], url)
        }
        StoreKind::Postgres => {
            let log = folder.join("postgres.log");
            let keeper = tokio::task::spawn_blocking(move || Keeper::start(&log)).await;
            let keeper = keeper.map_err(|_| Failure::new("the keeper's start panicked"))??;
            let address = keeper.address();
            let url =
                |port| format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable");
            let mut proxies = Vec::new();
            for _ in 0..options.workers + options.programs {
                proxies.push(Proxy::start(address).doing(|| "start a proxy".into())?);
            }
            let urls = proxies.iter().map(|proxy| url(proxy.port())).collect();
            let keeper = Arc::new(Mutex::new(keeper));
            (Victim::Postgres { keeper, proxies }, urls, url(address.port()))
        }
    };
    let tenure = Tenure::connect(&direct).await.doing(|| "open the store".into())?;
    tenure.shutdown().await.doing(|| "close the store".into())?;
    Books::open(&direct).await?.make().await?;
    Ok((victim, urls, direct))
}

/// Faults are over: how long it takes until a worker leads, and until a command runs.
async fn heal(crew: &mut Crew) -> Outcome<Healed> {
    let from = clock::now();
    crew.fill()?;
    let mut healed = Healed::default();
    loop {
        crew.all_well()?;
        let since = Duration::from_nanos(clock::now() - from);
        if healed.led.is_none() && crew.led_since(from).is_some() {
            healed.led = Some(since);
        }
        if healed.ran.is_none() && crew.programs.ran_since(from)? {
            healed.ran = Some(since);
        }
        if healed.led.is_some() && healed.ran.is_some() {
            return Ok(healed);
        }
        if since > HEALING {
            let what = if healed.led.is_none() { "no worker leads" } else { "no command runs" };
            let text = format!("{what}, though all faults have ended {HEALING:?} ago");
            return Err(Failure::new(text));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A short run may have missed the moment between reading and writing every time.
/// Then leaders are stopped for longer than the ttl, one after the other, until an
/// unfenced write was lost; each is a fault like any other.
async fn lessons(
    crew: &mut Crew,
    victim: &Victim,
    history: &mut History,
    direct: &str,
) -> Outcome<Vec<Mark>> {
    let mut marks = Vec::new();
    for _ in 0..LESSONS {
        let evidence = evidence(crew, history, &mut Books::open(direct).await?).await?;
        if checker::check(&evidence).loose_lost > 0 {
            break;
        }
        heal(crew).await?;
        let stop = [schedule::lesson(crew.ttl())];
        marks.extend(Nemesis::new(crew, victim, history, &stop, clock::now()).run().await?);
        // The one that was continued writes what it had in mind.
        tokio::time::sleep(crew.ttl()).await;
    }
    Ok(marks)
}

/// How many terms were won by a worker whose wall clock was off the truth.
fn jumped(logs: &[(Worker, Vec<Line>)]) -> usize {
    let seconds = |nanos: u64| i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    let started = clock::wall() - seconds(clock::now());
    let lines = logs.iter().flat_map(|(_, lines)| lines);
    let off = lines.filter(|line| match line {
        Line::Wall { at, wall } => (wall - seconds(*at)).abs_diff(started) > 1,
        _ => false,
    });
    off.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the report says of jumped clocks is what workers saw.
    #[test]
    fn a_clock_off_the_truth_is_told_from_a_right_one() {
        let at = clock::now();
        let wall = clock::wall();
        let lines = [0, 60, -86_400].map(|off| Line::Wall { at, wall: wall + off }).to_vec();
        assert_eq!(jumped(&[(Worker { slot: 0, life: 1 }, lines)]), 2);
    }
}
