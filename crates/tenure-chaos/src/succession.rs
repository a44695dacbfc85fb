//! How a holder of many elections is killed: it is started, killed once it leads
//! them all, and another process stands for a sample of what it led.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::checker::Death;
use crate::clock::{self, Nanos};
use crate::failure::{Doing, Failure, Outcome};
use crate::holder::HolderOrders;
use crate::record::{self, Line};

/// A holder that does not lead all its elections within this is given up, and
/// counts for nothing. A store that is killed and locked takes its time.
const CLAIMING: Duration = Duration::from_secs(120);
/// Within this the sample must have been taken over.
pub(crate) const TAKING: Duration = Duration::from_secs(30);
/// How recently a holder must have said that it leads all when it is killed.
const FRESH: Duration = Duration::from_millis(500);

/// One of the two processes.
struct Holder {
    child: Child,
    log: PathBuf,
    from: Nanos,
}

impl Holder {
    /// When it last said that it leads all it is to lead, and how many those are.
    fn holds(&self) -> Option<(u32, Nanos)> {
        let lines = record::parse(&fs::read_to_string(&self.log).ok()?).ok()?;
        lines.iter().rev().find_map(|line| match line {
            Line::Holds { count, at } => Some((*count, *at)),
            _ => None,
        })
    }

    fn well(&mut self) -> Outcome {
        match self.child.try_wait().doing(|| "look after a holder".into())? {
            None => Ok(()),
            Some(status) => {
                let log = self.log.display();
                Err(Failure::new(format!("the holder of {log} ended by itself: {status}")))
            }
        }
    }

    fn since(&self) -> Duration {
        Duration::from_nanos(clock::now().saturating_sub(self.from))
    }
}

impl Drop for Holder {
    /// `kill -9`.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

enum Stage {
    Idle,
    Claiming(Holder),
    Taking(Holder),
}

/// Holders, one after the other.
pub(crate) struct Succession {
    folder: PathBuf,
    url: String,
    count: u32,
    ttl: Duration,
    stage: Stage,
    logs: Vec<PathBuf>,
    deaths: Vec<Death>,
}

impl Succession {
    /// Holders of `count` elections in the store at `url`. Their ttl is longer than
    /// that of the workers: no fault hits them before they are killed.
    pub(crate) fn new(folder: &Path, url: &str, count: u32, ttl: Duration) -> Self {
        Self {
            folder: folder.into(),
            url: url.into(),
            count,
            ttl: ttl * 5,
            stage: Stage::Idle,
            logs: Vec::new(),
            deaths: Vec::new(),
        }
    }

    /// Whether one is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !matches!(self.stage, Stage::Idle)
    }

    /// Starts a holder.
    pub(crate) fn begin(&mut self) -> Outcome {
        self.stage = Stage::Claiming(self.spawn("holder", false)?);
        Ok(())
    }

    /// Takes the next step if it is time for it. True if the holder was killed now.
    pub(crate) fn look(&mut self) -> Outcome<bool> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Idle => Ok(false),
            Stage::Claiming(mut holder) => {
                holder.well()?;
                let fresh = clock::now().saturating_sub(clock::nanos(FRESH));
                match holder.holds().filter(|(_, at)| *at >= fresh) {
                    Some((held, _)) => {
                        drop(holder);
                        let killed = clock::now();
                        self.deaths.push(Death { killed, held, taken: None });
                        self.stage = Stage::Taking(self.spawn("heir", true)?);
                        Ok(true)
                    }
                    None if holder.since() > CLAIMING => Ok(false),
                    None => {
                        self.stage = Stage::Claiming(holder);
                        Ok(false)
                    }
                }
            }
            Stage::Taking(mut heir) => {
                heir.well()?;
                if let Some(death) = self.deaths.last_mut() {
                    death.taken = heir.holds().map(|(_, at)| at);
                    if death.taken.is_none() && heir.since() <= TAKING {
                        self.stage = Stage::Taking(heir);
                    }
                }
                Ok(false)
            }
        }
    }

    /// What came of it: every death, and what each process wrote down, in order.
    pub(crate) fn outcome(&self) -> Outcome<(Vec<Death>, Vec<Vec<Line>>)> {
        let mut logs = Vec::new();
        for path in &self.logs {
            // One that was given up before it began has said nothing.
            let Ok(text) = fs::read_to_string(path) else { continue };
            logs.push(record::parse(&text).doing(|| format!("read {}", path.display()))?);
        }
        Ok((self.deaths.clone(), logs))
    }

    fn spawn(&mut self, id: &str, sample: bool) -> Outcome<Holder> {
        let log = self.folder.join(format!("{id}-{}.log", self.logs.len() + 1));
        let orders = HolderOrders {
            id: id.into(),
            url: self.url.clone(),
            log: log.clone(),
            ttl: self.ttl,
            count: self.count,
            sample,
            parent: std::process::id(),
        };
        let shown = || format!("start a {id} of many elections");
        let program = std::env::current_exe().doing(shown)?;
        let said = File::create(log.with_extension("err")).doing(shown)?;
        let mut command = Command::new(program);
        command.arg("holder").args(orders.args()).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let child = command.spawn().doing(shown)?;
        self.logs.push(log.clone());
        Ok(Holder { child, log, from: clock::now() })
    }
}
