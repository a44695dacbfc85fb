//! The workers as their parent sees them: places, each filled by one process
//! after the other.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::checker::Worker;
use crate::clock::{self, Nanos};
use crate::failure::{Doing, Failure, Outcome};
use crate::guarded::Programs;
use crate::options::Options;
use crate::record::{self, Line};
use crate::worker::Orders;

/// How much of a log's end tells who leads.
const TAIL: u64 = 4_096;

/// One process.
#[derive(Debug)]
struct Member {
    child: Child,
    worker: Worker,
    log: PathBuf,
    stopped: bool,
}

impl Member {
    fn signal(&self, signal: Signal) -> Outcome {
        // The id cannot have been given to another: the child was not waited for.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::new("a worker without a process id"))?;
        kill_process(pid, signal).doing(|| format!("signal worker {}", self.worker))
    }

    /// The last moment at which it said that it leads.
    fn led_at(&self) -> Option<Nanos> {
        let mut file = File::open(&self.log).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
        let mut end = String::new();
        file.read_to_string(&mut end).ok()?;
        // The first line may be cut off by where we began to read.
        let whole = end.split_once('\n').map_or("", |(_, rest)| rest);
        let lines = record::parse(whole).ok()?;
        lines.iter().rev().find_map(|line| match line {
            Line::Trust { to, .. } => Some(*to),
            _ => None,
        })
    }
}

/// How the wall clock of a worker is taken in hand.
#[derive(Clone, Debug)]
pub(crate) struct FakeClock {
    /// The library that does it.
    pub(crate) library: PathBuf,
}

impl FakeClock {
    /// Finds libfaketime where Debian and others put it.
    pub(crate) fn find() -> Option<Self> {
        let mut folders = vec![PathBuf::from("/usr/lib/faketime")];
        let below = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        folders.extend(below.map(|entry| entry.path().join("faketime")));
        let libraries = folders.into_iter().map(|folder| folder.join("libfaketime.so.1"));
        libraries.into_iter().find(|path| path.is_file()).map(|library| Self { library })
    }
}

/// All places.
pub(crate) struct Crew {
    folder: PathBuf,
    options: Options,
    /// What each place reaches the store by.
    urls: Vec<String>,
    clock: Option<FakeClock>,
    /// How many of the first places have their wall clock in our hands.
    pub(crate) jumps: usize,
    places: Vec<Option<Member>>,
    lives: Vec<u32>,
    /// Those that run a command under guard.
    pub(crate) programs: Programs,
}

impl Crew {
    /// The first URLs are for the workers, the rest for the programs.
    pub(crate) fn new(options: &Options, folder: &Path, mut urls: Vec<String>) -> Outcome<Self> {
        let programs = Programs::new(options, folder, urls.split_off(options.workers))?;
        let clock = FakeClock::find();
        let jumps = if clock.is_some() { options.workers / 2 } else { 0 };
        let places = urls.iter().map(|_| None).collect();
        let lives = vec![0; urls.len()];
        let folder = folder.to_path_buf();
        let options = options.clone();
        Ok(Self { folder, options, urls, clock, jumps, places, lives, programs })
    }

    /// Fills every place that is empty.
    pub(crate) fn fill(&mut self) -> Outcome {
        (0..self.places.len()).try_for_each(|slot| self.spawn(slot))?;
        self.programs.fill()
    }

    /// Fills a place if it is empty.
    pub(crate) fn spawn(&mut self, slot: usize) -> Outcome {
        if self.places[slot].is_some() {
            return Ok(());
        }
        self.lives[slot] += 1;
        let worker = Worker { slot, life: self.lives[slot] };
        let log = self.folder.join(format!("{worker}.log"));
        let orders = Orders {
            worker,
            url: self.urls[slot].clone(),
            log: log.clone(),
            ttl: self.options.ttl,
            sabotage: self.options.sabotage,
            parent: std::process::id(),
        };
        let shown = || format!("start worker {worker}");
        let program = std::env::current_exe().doing(shown)?;
        let said = File::create(self.folder.join(format!("{worker}.err"))).doing(shown)?;
        let mut command = Command::new(program);
        command.arg("worker").args(orders.args()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        if slot < self.jumps {
            self.fake_clock(&mut command, slot)?;
        }
        let child = command.spawn().doing(shown)?;
        self.places[slot] = Some(Member { child, worker, log, stopped: false });
        Ok(())
    }

    fn fake_clock(&self, command: &mut Command, slot: usize) -> Outcome {
        let Some(clock) = &self.clock else { return Ok(()) };
        let file = self.clock_file(slot);
        if !file.exists() {
            self.jump(slot, 0)?;
        }
        command.env("LD_PRELOAD", &clock.library).env("FAKETIME_TIMESTAMP_FILE", file);
        command.env("FAKETIME_CACHE_DURATION", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Ok(())
    }

    fn clock_file(&self, slot: usize) -> PathBuf {
        self.folder.join(format!("s{slot}.clock"))
    }

    /// Sets the wall clock of a place to so many seconds off the truth.
    pub(crate) fn jump(&self, slot: usize, to: i64) -> Outcome {
        let file = self.clock_file(slot);
        fs::write(&file, format!("{to:+}\n")).doing(|| format!("write {}", file.display()))
    }

    /// Whether the place is filled by a process that runs.
    pub(crate) fn runs(&self, slot: usize) -> bool {
        self.places[slot].as_ref().is_some_and(|member| !member.stopped)
    }

    /// How many places of workers there are.
    pub(crate) fn size(&self) -> usize {
        self.places.len()
    }

    /// The ttl of every worker.
    pub(crate) fn ttl(&self) -> Duration {
        self.options.ttl
    }

    /// Who leads, as far as logs tell.
    pub(crate) fn leader(&self) -> Option<usize> {
        self.led_since(clock::now().saturating_sub(clock::nanos(self.options.ttl)))
    }

    /// Who of those that run was the last to lead, if that was after `recent`.
    pub(crate) fn led_since(&self, recent: Nanos) -> Option<usize> {
        let running = (0..self.places.len()).filter(|slot| self.runs(*slot));
        let led = running.filter_map(|slot| Some((self.places[slot].as_ref()?.led_at()?, slot)));
        led.filter(|(at, _)| *at > recent).max().map(|(_, slot)| slot)
    }

    /// `kill -9`. False if no process runs there.
    pub(crate) fn kill(&mut self, slot: usize) -> Outcome<bool> {
        let Some(mut member) = self.places[slot].take() else { return Ok(false) };
        member.child.kill().doing(|| format!("kill worker {}", member.worker))?;
        member.child.wait().doing(|| format!("wait for worker {}", member.worker))?;
        Ok(true)
    }

    /// SIGSTOP; gives the life that was stopped. `None` if no process runs there.
    pub(crate) fn stop(&mut self, slot: usize) -> Outcome<Option<u32>> {
        let Some(member) = self.places[slot].as_mut().filter(|member| !member.stopped) else {
            return Ok(None);
        };
        member.signal(Signal::STOP)?;
        member.stopped = true;
        Ok(Some(member.worker.life))
    }

    /// SIGCONT, if that life still is.
    pub(crate) fn resume(&mut self, slot: usize, life: u32) -> Outcome {
        match self.places[slot].as_mut().filter(|m| m.stopped && m.worker.life == life) {
            Some(member) => {
                member.stopped = false;
                member.signal(Signal::CONT)
            }
            None => Ok(()),
        }
    }

    /// A worker that ended without being killed is a failure of its own.
    pub(crate) fn all_well(&mut self) -> Outcome {
        self.programs.tend()?;
        for member in self.places.iter_mut().flatten() {
            let ended = member.child.try_wait().doing(|| "look after a worker".into())?;
            if let Some(status) = ended {
                let said = fs::read_to_string(member.log.with_extension("err"));
                let said = said.unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing").to_owned();
                let worker = member.worker;
                return Err(Failure::new(format!(
                    "worker {worker} ended by itself: {status}: {last}"
                )));
            }
        }
        Ok(())
    }

    /// Ends all workers.
    pub(crate) fn end(&mut self) -> Outcome {
        (0..self.places.len()).try_for_each(|slot| self.kill(slot).map(drop))?;
        self.programs.end()
    }

    /// What all workers of the run wrote down.
    pub(crate) fn logs(&self) -> Outcome<Vec<(Worker, Vec<Line>)>> {
        let mut logs = Vec::new();
        for (slot, lives) in self.lives.iter().enumerate() {
            for life in 1..=*lives {
                let worker = Worker { slot, life };
                let path = self.folder.join(format!("{worker}.log"));
                // One that was killed before it began has said nothing.
                let Ok(text) = fs::read_to_string(&path) else { continue };
                let lines = record::parse(&text).doing(|| format!("read {}", path.display()))?;
                logs.push((worker, lines));
            }
        }
        Ok(logs)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        drop(self.end());
    }
}
