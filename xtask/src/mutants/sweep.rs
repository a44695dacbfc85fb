//! All mutants of one crate's statements, several at a time.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::ledger::{Fate, Ledger};
use super::programs::{self, Programs};
use super::reach::Reach;
use super::record::Record;
use super::scout;
use super::scratch::Scratch;
use super::worker::{self, Look, Shared, Worker};
use super::{Options, Statement, Statements, ledger_of, started};
use crate::failure::{Failure, Outcome};
use crate::steps::root;

/// How many tests each worker runs at a time: most of them wait for time to pass.
const SLOTS: usize = 4;

/// What is left to do: the mutant, and which tests it has passed.
type Queue<'a> = Mutex<VecDeque<(&'a Statement, BTreeSet<usize>)>>;

pub(super) fn run(kept: &Path, package: &str, all: &Statements, options: &Options) -> Outcome {
    let mut ledger = Ledger::open(&ledger_of(package));
    let mut left = left(package, all, options, &mut ledger);
    if left.is_empty() {
        println!("\n{}", ledger.summary());
        return Ok(());
    }

    let tree = Scratch::copy(&root(), &kept.join(format!("sql-{package}")), &[&all.folder])?;
    let built = tree.build(package, &tree.needed(package, options.scout, &options.by))?;
    let tests = programs::tests(&built)?;
    let name = |(program, name): &(usize, String)| format!("{} {name}", built[*program].target);
    let names: Vec<_> = tests.iter().map(name).collect();
    let reached = kept.join(format!("{package}.reach.tsv"));
    let mut shared = Shared {
        built: &built,
        tests: &tests,
        names: &names,
        ledger: Mutex::new(ledger),
        record: Mutex::new(Record::open(&kept.join(format!("{package}.tests.tsv")))),
        reach: Reach::open(&reached),
        slots: SLOTS,
        by: &options.by,
        histories: options.histories,
        scouted: BTreeSet::new(),
    };
    if !shared.reach.knows(&names) && options.by.is_empty() && !options.scout {
        let programs = Programs::default();
        let servers = started(&[package])?;
        worker::prepare(&servers)?;
        let folder = kept.join(format!("{package}-0"));
        let reach = Worker { shared: &shared, programs, folder, servers }.reach()?;
        if let Some(reach) = reach {
            reach.write(&reached)?;
            shared.reach = reach;
        }
    }
    if options.by.is_empty() || options.scout {
        let scouted = scouted(kept, package, left.make_contiguous(), &shared, options)?;
        let ledger = shared.ledger.get_mut().map_err(broken)?;
        let judged = |m: &Statement| ledger.is_final(&m.name, &m.digest);
        let done = |m: &Statement| scouted.contains(&m.name) && (options.scout || judged(m));
        left.retain(|mutant| !done(mutant));
        if left.is_empty() {
            println!("\n{}", ledger.summary());
            return Ok(());
        }
        shared.scouted = scouted;
    }
    let workers = workers(kept, package, all, &shared, options)?;

    let first: Queue<'_> = Mutex::new(left.into_iter().map(|m| (m, BTreeSet::new())).collect());
    if !options.by.is_empty() {
        look(&workers, &first, Look::Whole)?;
        println!("\n{}", shared.ledger.into_inner().map_err(broken)?.summary());
        return Ok(());
    }
    let second = look(&workers, &first, if options.scout { Look::Scout } else { Look::First })?;
    if !options.first && !options.scout {
        look(&workers, &Mutex::new(second), Look::Whole)?;
    }
    println!("\n{}", shared.ledger.into_inner().map_err(broken)?.summary());
    Ok(())
}

/// The mutants that are chosen and not judged yet. What the ledger knows of mutants that are
/// not there any more is forgotten.
fn left<'a>(
    package: &str,
    all: &'a Statements,
    options: &Options,
    ledger: &mut Ledger,
) -> VecDeque<&'a Statement> {
    for mutant in &all.mutants {
        ledger.moved(&mutant.name, &mutant.digest);
    }
    let there: BTreeSet<&str> = all.mutants.iter().map(|mutant| mutant.name.as_str()).collect();
    ledger.forget(|name| !there.contains(name) || options.again && options.names(name));
    let chosen: Vec<_> = all.mutants.iter().filter(|m| options.names(&m.name)).collect();
    let known = |mutant: &&Statement| {
        ledger.is_final(&mutant.name, &mutant.digest)
            && !(options.survived && ledger.has_survived(&mutant.name))
    };
    // What the scout, or a longer look, has left open is not for the scout again.
    let seen = |m: &&Statement| {
        let entry = ledger.entry(&m.name).filter(|entry| entry.digest == m.digest);
        options.scout && !options.survived && !options.open && entry.is_some()
    };
    let left = chosen.iter().filter(|m| !known(m) && !seen(m));
    let left: VecDeque<_> = left.copied().collect();
    println!("{package}: {} SQL mutants, of which {} are left", chosen.len(), left.len());
    left
}

/// Those who judge, each with programs and servers of its own.
fn workers<'a>(
    kept: &Path,
    package: &str,
    all: &Statements,
    shared: &'a Shared<'a>,
    options: &Options,
) -> Outcome<Vec<Worker<'a>>> {
    let worker = |number| {
        let folder = kept.join(format!("{package}-{number}"));
        let programs = Programs::copy(shared.built, &folder.join("programs"), &all.texts)?;
        let servers = started(&[package])?;
        worker::prepare(&servers)?;
        Ok(Worker { shared, programs, folder, servers })
    };
    (0..options.jobs).map(worker).collect()
}

/// Lets the random histories look at all that are left, where the crate has them. Gives the
/// names of those at which they did.
fn scouted(
    kept: &Path,
    package: &str,
    left: &[&Statement],
    shared: &Shared<'_>,
    options: &Options,
) -> Outcome<BTreeSet<String>> {
    if !scout::is_in(shared.built) {
        return Ok(BTreeSet::new());
    }
    let servers = started(&[package])?;
    worker::prepare(&servers)?;
    let folder = kept.join(format!("{package}-scout"));
    let worker = Worker { shared, programs: Programs::default(), folder, servers };
    let whole = !options.first && !options.scout;
    let environment = worker.environment(if whole { Look::Whole } else { Look::Scout })?;
    let folder = worker.folder.join("broken");
    scout::run(shared.built, left, &folder, &environment, &options.by, &shared.ledger)
}

fn broken<T>(_: std::sync::PoisonError<T>) -> Failure {
    Failure::new("a worker panicked")
}

/// Lets all workers judge what is in the queue. Gives what is still open.
fn look<'a>(
    workers: &[Worker<'_>],
    queue: &Queue<'a>,
    how: Look,
) -> Outcome<VecDeque<(&'a Statement, BTreeSet<usize>)>> {
    let count = queue.lock().map_err(broken)?.len();
    let done = AtomicUsize::new(0);
    let open: Queue<'a> = Mutex::default();
    thread::scope(|scope| {
        let working: Vec<_> = workers
            .iter()
            .map(|worker| {
                scope.spawn(|| {
                    work(worker, queue, &open, how, &|| {
                        format!("{:>4}/{count}", done.fetch_add(1, Ordering::Relaxed) + 1)
                    })
                })
            })
            .collect();
        let ended = working
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|_| Err(Failure::new("a worker panicked"))));
        ended.collect::<Outcome<Vec<()>>>()
    })?;
    open.into_inner().map_err(broken)
}

/// What one worker does until the queue is empty.
fn work<'a>(
    worker: &Worker<'_>,
    queue: &Queue<'a>,
    open: &Queue<'a>,
    how: Look,
    next: &dyn Fn() -> String,
) -> Outcome {
    loop {
        let Some((mutant, mut passed)) = queue.lock().map_err(broken)?.pop_front() else {
            return Ok(());
        };
        let from = Instant::now();
        let entry = worker.judge(mutant, how, &mut passed)?;
        let took = from.elapsed().as_secs_f64();
        println!("{} {took:>5.1} s {:<8} {}  {}", next(), entry.fate.name(), mutant.name, entry.by);
        let fate = entry.fate;
        worker.shared.ledger.lock().map_err(broken)?.note(&mutant.name, entry)?;
        worker.shared.record.lock().map_err(broken)?.write()?;
        if fate == Fate::Open {
            open.lock().map_err(broken)?.push_back((mutant, passed));
        }
    }
}
