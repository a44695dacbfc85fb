//! What a guarded program runs: a command of three processes that stamp that they run. One
//! stays in the command's group, one makes a session of its own.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};
use tenure_testkit::Stamps;

use crate::checker::Worker;
use crate::failure::{Doing, Failure, Outcome};
use crate::worker::die_with;

/// How often a process stamps.
const PACE: Duration = Duration::from_millis(2);

/// Which process of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The one that the program starts; it starts the others.
    First,
    /// A child in the same process group.
    Child,
    /// A child in a session of its own.
    Daemon,
}

impl Part {
    const ALL: [Self; 3] = [Self::First, Self::Child, Self::Daemon];

    fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Child => "child",
            Self::Daemon => "daemon",
        }
    }
}

/// What a process of a command is told.
#[derive(Clone, Debug)]
pub struct CommandOrders {
    /// Where it stamps.
    pub(super) stamps: PathBuf,
    /// The program that runs it.
    pub(super) worker: Worker,
    /// Whether it gives up the lock of its work, which is wrong.
    pub(super) escapes: bool,
    /// The process that all this belongs to: it ends with that, whichever its parent is.
    pub(super) overseer: u32,
    /// Which one it is.
    pub(super) part: Part,
}

impl CommandOrders {
    /// As arguments of a process. Folder and program come first: by these it is found.
    pub(super) fn args(&self) -> Vec<String> {
        vec![
            self.stamps.display().to_string(),
            self.worker.to_string(),
            self.part.name().to_owned(),
            u32::from(self.escapes).to_string(),
            self.overseer.to_string(),
        ]
    }

    /// Understands how a process of a command was told what to do.
    pub fn parse(args: &[String]) -> Outcome<Self> {
        let bad = || Failure::new("a command is started by the program itself; leave it to that");
        let [stamps, worker, part, escapes, overseer] = args else { return Err(bad()) };
        Ok(Self {
            stamps: stamps.into(),
            worker: Worker::parse(worker).ok_or_else(bad)?,
            part: Part::ALL.into_iter().find(|p| p.name() == part).ok_or_else(bad)?,
            escapes: escapes == "1",
            overseer: overseer.parse().map_err(|_| bad())?,
        })
    }
}

/// Runs until it is killed, or the run is over however that ended.
pub fn run_command(orders: &CommandOrders) -> Outcome {
    let overseer = orders.overseer.cast_signed();
    let overseer =
        Pid::from_raw(overseer).ok_or_else(|| Failure::new("a command without an overseer"))?;
    let overseer =
        pidfd_open(overseer, PidfdFlags::empty()).doing(|| "look after the overseer".into())?;
    match orders.part {
        Part::First => start_the_others(orders)?,
        Part::Child => {}
        Part::Daemon => {
            setsid().doing(|| "make a session".into())?;
        }
    }
    if orders.escapes && orders.part != Part::First {
        leave_the_lock()?;
    }
    let term = std::env::var("TENURE_TERM").ok().and_then(|term| term.parse().ok());
    let term = term.ok_or_else(|| Failure::new("a command without a term"))?;
    let stamps = Stamps::begin(&orders.stamps, term, &orders.worker.to_string());
    let stamps = stamps.doing(|| "begin to stamp".into())?;
    let pace = Timespec { tv_sec: 0, tv_nsec: i64::from(PACE.subsec_nanos()) };
    loop {
        stamps.again().doing(|| "stamp".into())?;
        match poll(&mut [PollFd::new(&overseer, PollFlags::IN)], Some(&pace)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error).doing(|| "wait".into()),
        }
    }
}

fn start_the_others(orders: &CommandOrders) -> Outcome {
    let program = std::env::current_exe().doing(|| "find this program's own file".into())?;
    for part in [Part::Child, Part::Daemon] {
        let orders = CommandOrders { part, ..orders.clone() };
        let mut command = Command::new(&program);
        command.arg("command").args(orders.args()).stdin(Stdio::null());
        // It does not end before the command: there is nothing to wait for.
        command.spawn().map(drop).doing(|| format!("start the {}", part.name()))?;
    }
    Ok(())
}

/// What `--sabotage guard` does: nothing tells any more that this process still runs.
fn leave_the_lock() -> Outcome {
    let Ok(lock) = std::env::var("TENURE_LOCK_FD") else { return Ok(()) };
    let lock: i32 = lock.parse().doing(|| "read TENURE_LOCK_FD".into())?;
    nix::unistd::close(lock).doing(|| "close the lock".into())
}

/// Becomes `tenure`, which then ends with the process that started it, stopped or not.
/// `args` are that process, and the program with its arguments.
pub fn become_program(args: &[String]) -> Outcome {
    let bad = || Failure::new("a program is started by the program itself; leave it to that");
    let [parent, program, rest @ ..] = args else { return Err(bad()) };
    die_with(parent.parse().map_err(|_| bad())?)?;
    let exists = fs::metadata(program).doing(|| format!("find {program}"))?.is_file();
    if !exists {
        return Err(Failure::new(format!("{program} is no file; name it by --tenure")));
    }
    Err(Command::new(program).args(rest).exec()).doing(|| format!("execute {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the parent says is what the command hears.
    #[test]
    fn orders_come_through() {
        for (part, escapes) in Part::ALL.into_iter().zip([true, false, true]) {
            let orders = CommandOrders {
                stamps: "/logs/a b/stamps".into(),
                worker: Worker { slot: 6, life: 12 },
                escapes,
                overseer: 77,
                part,
            };
            let heard = CommandOrders::parse(&orders.args()).unwrap();
            assert_eq!(format!("{heard:?}"), format!("{orders:?}"));
            assert!(CommandOrders::parse(&orders.args()[1..]).is_err());
        }
    }

    /// One whose overseer is gone must not stay behind, nor one that is not ours.
    #[test]
    fn a_program_without_its_parent_is_not_started() {
        let me = std::process::id().to_string();
        let refused = become_program(&[me, "/bin/true".into()]).unwrap_err();
        assert!(refused.to_string().contains("the parent is gone"), "{refused}");
    }
}
