//! The guarded places: `tenure run` programs that stand for an election of their own, and
//! the commands that each runs while it leads.
//!
//! What must stay true: a process is signalled only while it is held by a descriptor that
//! means it and no later one of the same number; and whatever a blow leaves behind is
//! ended by us, since the store may wait for it, and is ended with the run.

mod blow;
mod command;
mod processes;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tenure_testkit::lives;

use self::processes::{Auxiliaries, Process};
use crate::checker::{Excuse, Stamped, Worker};
use crate::clock::{self, Nanos};
use crate::failure::{Doing, Failure, Outcome};
use crate::options::{Options, StoreKind};

pub(crate) use blow::{Blow, Whom};
pub use command::{CommandOrders, become_program, run_command};

/// The name of their election.
const ELECTION: &str = "guarded";
/// The program, beside our own file.
const PROGRAM: &str = "tenure";
/// Where the processes of the commands stamp.
const STAMPS: &str = "stamps";
/// One that stamped so recently runs.
const FRESH: Duration = Duration::from_millis(200);
/// Before a program that ended by itself is started again.
const PAUSE: Duration = Duration::from_millis(300);
/// Killed processes are gone within this, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(20);
/// No timings of `tenure run` hold with a ttl below this.
pub(crate) const LEAST_TTL: Duration = Duration::from_secs(1);

/// How a program may end by itself: the store could not be reached when it began (69), or
/// its command was killed with the guardian (128 + 9).
const ENDS: [i32; 2] = [69, 137];

/// One program.
struct Program {
    child: Child,
    worker: Worker,
    /// What goes on when it is resumed; empty if nothing is stopped.
    stopped: Vec<Process>,
}

/// All guarded places.
pub(crate) struct Programs {
    folder: PathBuf,
    options: Options,
    tenure: PathBuf,
    /// What each place reaches the store by.
    urls: Vec<String>,
    places: Vec<Option<Program>>,
    lives: Vec<u32>,
    /// When a place is filled again whose program ended by itself.
    due: Vec<Nanos>,
    ended: BTreeMap<i32, u32>,
    excuses: Vec<Excuse>,
    watchmen: u32,
}

impl Programs {
    /// Places for as many programs as there are URLs.
    pub(crate) fn new(options: &Options, folder: &Path, urls: Vec<String>) -> Outcome<Self> {
        let stamps = folder.join(STAMPS);
        fs::create_dir_all(&stamps).doing(|| format!("create {}", stamps.display()))?;
        let tenure = match (&options.tenure, urls.is_empty()) {
            (Some(path), _) => path.clone(),
            (None, true) => PathBuf::new(),
            (None, false) => beside()?,
        };
        let places = urls.iter().map(|_| None).collect();
        Ok(Self {
            folder: folder.into(),
            options: options.clone(),
            tenure,
            lives: vec![0; urls.len()],
            due: vec![0; urls.len()],
            urls,
            places,
            ended: BTreeMap::new(),
            excuses: Vec::new(),
            watchmen: 0,
        })
    }

    /// How many places there are.
    pub(crate) fn size(&self) -> usize {
        self.places.len()
    }

    /// Fills every place that is empty.
    pub(crate) fn fill(&mut self) -> Outcome {
        (0..self.size()).try_for_each(|place| self.spawn(place))
    }

    /// Fills a place if it is empty.
    fn spawn(&mut self, place: usize) -> Outcome {
        if self.places[place].is_some() {
            return Ok(());
        }
        self.lives[place] += 1;
        let worker = Worker { slot: self.options.workers + place, life: self.lives[place] };
        let shown = || format!("start program {worker}");
        let us = std::env::current_exe().doing(shown)?;
        let said = File::create(self.folder.join(format!("{worker}.err"))).doing(shown)?;
        let ttl = self.options.ttl.max(LEAST_TTL);
        let millis = |span: Duration| format!("{}ms", span.as_millis());
        let mut command = Command::new(&us);
        command.args(["program", &std::process::id().to_string()]).arg(&self.tenure);
        command.args(["run", "--election", ELECTION, "--id", &format!("program-{place}")]);
        command.args(["--ttl", &millis(ttl), "--grace", &millis(ttl * 15 / 100)]);
        command.args(["--on-lost", "standby", "--"]).arg(&us);
        command.arg("command").args(self.orders(worker).args());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TENURE_STORE", &self.urls[place]).env("HOME", &self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).process_group(0);
        let child = command.spawn().doing(shown)?;
        self.places[place] = Some(Program { child, worker, stopped: Vec::new() });
        Ok(())
    }

    fn orders(&self, worker: Worker) -> CommandOrders {
        CommandOrders {
            stamps: self.stamps(),
            worker,
            escapes: self.options.sabotage.guard,
            overseer: std::process::id(),
            part: command::Part::First,
        }
    }

    fn stamps(&self) -> PathBuf {
        self.folder.join(STAMPS)
    }

    /// Whether the place is filled by a program of which nothing is stopped.
    fn runs(&self, place: usize) -> bool {
        self.places[place].as_ref().is_some_and(|program| program.stopped.is_empty())
    }

    /// A place whose program runs: the one whose command runs, if that is `wanted`.
    pub(crate) fn aim(&self, place: usize, leader: bool) -> Outcome<Option<usize>> {
        let named = if leader { self.leader()?.unwrap_or(place) } else { place };
        let size = self.size();
        let mut from_there = (0..size).map(|step| (named + step) % size);
        Ok(from_there.find(|place| self.runs(*place)))
    }

    /// Whether a command runs now whose program and guardian do too.
    pub(crate) fn has_leader(&self) -> Outcome<bool> {
        Ok(self.leader()?.is_some_and(|place| self.runs(place)))
    }

    fn leader(&self) -> Outcome<Option<usize>> {
        let recent = clock::now().saturating_sub(clock::nanos(FRESH));
        let newest = self.stamped()?.into_iter().max_by_key(|stamped| stamped.term);
        let newest = newest.filter(|stamped| stamped.to > recent);
        Ok(newest.and_then(|stamped| stamped.program.slot.checked_sub(self.options.workers)))
    }

    /// Does it, if what it is meant for is there. Gives the life of the place that was hit.
    pub(crate) fn strike(&mut self, place: usize, blow: Blow) -> Outcome<Option<u32>> {
        let Some(program) = self.places[place].as_mut() else { return Ok(None) };
        let worker = program.worker;
        let Auxiliaries { guardian, watchman } = processes::auxiliaries(id(&program.child));
        if blow.needs_a_guardian() && guardian.is_none() {
            return Ok(None);
        }
        self.watchmen += u32::from(watchman.is_some());
        let from = clock::now();
        let is_watched = watchman.is_some();
        let Some(itself) = processes::child(id(&program.child)) else { return Ok(None) };
        match blow {
            Blow::Kill(whom) => {
                if whom == Whom::Guardian {
                    processes::signal(guardian.iter(), Signal::KILL)?;
                } else {
                    // It would do its duty when it sees the guardian die.
                    itself.signal(Signal::STOP)?;
                    if whom == Whom::All {
                        processes::signal(watchman.iter(), Signal::KILL)?;
                    }
                    if whom != Whom::Program {
                        processes::signal(guardian.iter(), Signal::KILL)?;
                    }
                    self.kill(place)?;
                }
            }
            Blow::Stop(whom) => {
                let mut stopped = Vec::new();
                stopped.extend(guardian.filter(|_| whom != Whom::Program));
                stopped.extend(Some(itself).filter(|_| whom != Whom::Guardian));
                processes::signal(stopped.iter(), Signal::STOP)?;
                if let Some(program) = self.places[place].as_mut() {
                    program.stopped = stopped;
                }
            }
            Blow::Silence => {}
        }
        if self.options.store != StoreKind::Sqlite && !blow.is_promised(is_watched) {
            self.excuses.push(Excuse { program: worker, from, until: Nanos::MAX });
        }
        Ok(Some(worker.life))
    }

    fn kill(&mut self, place: usize) -> Outcome {
        let Some(mut program) = self.places[place].take() else { return Ok(()) };
        let worker = program.worker;
        program.child.kill().doing(|| format!("kill program {worker}"))?;
        program.child.wait().map(drop).doing(|| format!("wait for program {worker}"))
    }

    /// The end of a blow to that life of a place: what was stopped goes on, what was left
    /// behind is ended, and the place is filled again.
    pub(crate) fn recover(&mut self, place: usize, life: u32) -> Outcome {
        let worker = Worker { slot: self.options.workers + place, life };
        match self.places[place].as_mut().filter(|program| program.worker == worker) {
            Some(program) => {
                processes::signal(program.stopped.drain(..).as_slice().iter(), Signal::CONT)?;
            }
            None => {
                self.clear(Some(worker))?;
                self.spawn(place)?;
            }
        }
        let now = clock::now();
        for excuse in self.excuses.iter_mut().filter(|excuse| excuse.program == worker) {
            excuse.until = excuse.until.min(now);
        }
        Ok(())
    }

    /// Ends what is left of the commands of a program that is gone, or of all programs.
    fn clear(&self, of: Option<Worker>) -> Outcome {
        let stamps = self.stamps().display().to_string();
        let mut words = vec!["command".to_owned(), stamps];
        words.extend(of.map(|worker| worker.to_string()));
        let end = clock::now() + clock::nanos(PATIENCE);
        loop {
            let left = processes::with_arguments(&words);
            if left.is_empty() {
                return Ok(());
            }
            if clock::now() > end {
                return Err(Failure::new(format!(
                    "{} processes of commands were killed {PATIENCE:?} ago and still run",
                    left.len()
                )));
            }
            processes::signal(left.iter(), Signal::KILL)?;
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Programs that ended by themselves are started again, if that is how one may end.
    pub(crate) fn tend(&mut self) -> Outcome {
        let now = clock::now();
        for place in 0..self.size() {
            let Some(program) = self.places[place].as_mut() else {
                if (1..=now).contains(&self.due[place]) {
                    self.due[place] = 0;
                    self.spawn(place)?;
                }
                continue;
            };
            let worker = program.worker;
            let ended = program.child.try_wait().doing(|| format!("look after {worker}"))?;
            let Some(status) = ended else { continue };
            let Some(code) = status.code().filter(|code| ENDS.contains(code)) else {
                let said = fs::read_to_string(self.folder.join(format!("{worker}.err")));
                let said = said.unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing");
                return Err(Failure::new(format!(
                    "program {worker} ended by itself: {status}: {last}"
                )));
            };
            *self.ended.entry(code).or_default() += 1;
            self.places[place] = None;
            self.due[place] = now + clock::nanos(PAUSE);
        }
        Ok(())
    }

    /// Whether a command has begun to run since that moment, or still does.
    pub(crate) fn ran_since(&self, moment: Nanos) -> Outcome<bool> {
        Ok(self.size() == 0 || self.stamped()?.iter().any(|stamped| stamped.to > moment))
    }

    /// Ends all programs, and what is left of their commands.
    pub(crate) fn end(&mut self) -> Outcome {
        for place in 0..self.size() {
            self.kill(place)?;
            self.due[place] = 0;
        }
        // A guardian has its command among its arguments, and so it is found with that.
        if self.size() == 0 { Ok(()) } else { self.clear(None) }
    }

    /// What each process of a command stamped.
    pub(crate) fn stamped(&self) -> Outcome<Vec<Stamped>> {
        let lives = lives(&self.stamps()).doing(|| "read what the commands stamped".into())?;
        let stamped = lives.into_iter().map(|life| {
            let program = Worker::parse(&life.label)?;
            Some(Stamped { program, term: life.term, from: life.first, to: life.last })
        });
        let stamped: Option<Vec<Stamped>> = stamped.collect();
        stamped.ok_or_else(|| Failure::new("a stranger stamps among the commands"))
    }

    /// What is not promised, because of what was done.
    pub(crate) fn excuses(&self) -> Vec<Excuse> {
        self.excuses.clone()
    }

    /// Of how many blows the victim had a watchman, and how programs ended by themselves.
    pub(crate) fn told(&self) -> Told {
        Told { watchmen: self.watchmen, ended: self.ended.clone() }
    }
}

/// What the report says of the programs, beside what the checker does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How many blows fell on a program whose command had a control group.
    pub watchmen: u32,
    /// With which code programs ended by themselves, and how many.
    pub ended: BTreeMap<i32, u32>,
}

impl Drop for Programs {
    fn drop(&mut self) {
        drop(self.end());
    }
}

fn id(child: &Child) -> i32 {
    child.id().cast_signed()
}

fn beside() -> Outcome<PathBuf> {
    let us = std::env::current_exe().doing(|| "find this program's own file".into())?;
    let path = us.with_file_name(PROGRAM);
    if path.is_file() {
        return Ok(path);
    }
    let why = "build it, as `cargo xtask chaos` and `cargo xtask test` do; name another by \
               --tenure, or do without by --programs 0";
    Err(Failure::new(format!("there is no {}: {why}", path.display())))
}
