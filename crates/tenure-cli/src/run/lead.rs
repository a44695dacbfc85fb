//! One term, or one time as the owner of a name: the command runs under guard, its deadlines
//! follow the trust, and what is held is given up only when nothing of the command is left.

use std::pin::Pin;
use std::time::Duration;

use rustix::process::Signal;
use tenure::store::Backoff;
use tenure::{LostReason, StopReason, Stopping, Tenure};
use tenure_api::because;
use tenure_guard::{CommandEnd, CommandSpec, Guarded, Report, Signals, Terminal, is_ending, now};
use tokio::sync::Notify;

use super::command;
use super::hold::{Hold, Wanted};
use super::timings::Timings;
use super::told;
use crate::args::{OnLost, Restart, WorkArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::say;

/// The pauses before the command is started again.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(200), LONG);

/// A command that ran for longer did not fail at its start. Also the longest pause.
const LONG: Duration = Duration::from_secs(30);

/// How long a guardian may take beyond the grace.
const PATIENCE: Duration = Duration::from_secs(2);

/// What does not change from term to term.
pub(crate) struct Job<'a> {
    pub(crate) context: &'a Context,
    pub(crate) args: &'a WorkArgs,
    pub(crate) wanted: &'a Wanted,
    pub(crate) timings: &'a Timings,
    pub(crate) renewals: &'a Notify,
}

/// How a term ended.
pub(crate) enum Ended {
    /// The program ends with this.
    Done(Exit),
    /// The term was lost or given up as asked.
    Lost,
}

/// Why the command was told to stop, the gravest reason last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    /// It was not.
    Not,
    /// A signal asked this process to end.
    Signal,
    /// An operator asked the leader to step down.
    Asked,
    /// The term was not renewed in time, or is lost.
    Lost,
}

pub(crate) async fn lead(
    tenure: &Tenure,
    job: &Job<'_>,
    signals: &mut Signals,
    hold: Hold,
) -> Outcome<Ended> {
    let quiet = job.args.quiet;
    if !quiet {
        say(&hold.begun(tenure.id().as_str()));
    }
    let mut pauses = PAUSES;
    loop {
        if let Some(signal) = settle(job, &hold, signals).await {
            return Ok(Ended::Done(Exit::signal(signal)));
        }
        let began = now();
        let life = Life::begin(tenure, job, &hold)?;
        let Over { end, why, signalled, lost } = life.run(signals).await;
        let exit = exit_of(end);
        match end {
            CommandEnd::Failed(errno) => {
                let error = std::io::Error::from_raw_os_error(errno);
                say(&format!("the command could not be started: {error}"));
            }
            CommandEnd::Stuck(pid) => told::leave_behind(pid),
            CommandEnd::Exited(_) | CommandEnd::Killed(_) => {}
        }
        if let Some(reason) = lost.filter(|_| !quiet) {
            told::lost(tenure, &hold, reason).await;
        }
        let ended = match why {
            Why::Not if again(job.args.restart, end) => None,
            Why::Not | Why::Signal => Some(Ended::Done(exit)),
            // A signal to end ends, whatever else was going on.
            _ if signalled && job.args.on_lost == OnLost::Standby => Some(Ended::Done(exit)),
            Why::Asked | Why::Lost => Some(Ended::Lost),
        };
        if let Some(ended) = ended {
            if let Some(error) = tenure.status().last_error
                && !quiet
                && why == Why::Lost
            {
                let noun = hold.noun();
                say(&format!("{noun} was lost; the store's last error: {error}"));
            }
            // Nothing of the command is left: the term may go.
            tokio::select! {
                given = hold.give_back() => if let Err(error) = given
                    && !quiet
                    && why != Why::Lost
                {
                    say(&error);
                },
                signal = signals.ending() => return Ok(Ended::Done(Exit::signal(signal))),
            }
            return Ok(ended);
        }
        // One that ran for a while starts over with the shortest pause.
        if now().since(began) > LONG {
            pauses.reset();
        }
        let pause = pauses.pause();
        if !quiet {
            let pause = tenure_api::span::roughly(pause);
            say(&format!(
                "the command ended with code {}; starting it again in {pause}",
                exit.code()
            ));
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = hold.stopping() => return Ok(Ended::Lost),
            signal = signals.ending() => return Ok(Ended::Done(Exit::signal(signal))),
        }
    }
}

fn again(restart: Restart, end: CommandEnd) -> bool {
    let interrupted =
        [Signal::INT, Signal::QUIT, Signal::HUP].map(|s| CommandEnd::Killed(s.as_raw()));
    match restart {
        // A person who pressed Ctrl-C did not mean "again".
        _ if interrupted.contains(&end) => false,
        Restart::Never => false,
        Restart::OnFailure => end != CommandEnd::Exited(0),
        Restart::Always => true,
    }
}

fn exit_of(end: CommandEnd) -> Exit {
    match end {
        CommandEnd::Exited(code) => Exit::Passed(u8::try_from(code).unwrap_or(u8::MAX)),
        CommandEnd::Killed(signal) => Exit::signal(signal),
        CommandEnd::Failed(_) | CommandEnd::Stuck(_) => Exit::System,
    }
}

/// One life of the command.
struct Life<'a> {
    guarded: Guarded,
    job: &'a Job<'a>,
    hold: &'a Hold,
    terminal: Option<Terminal>,
    end: Option<CommandEnd>,
    why: Why,
    signalled: bool,
    lost: Option<LostReason>,
}

/// How one life of the command ended.
struct Over {
    end: CommandEnd,
    why: Why,
    /// Whether a signal asked this process to end meanwhile.
    signalled: bool,
    /// Why the term was lost, if it was.
    lost: Option<LostReason>,
}

/// Waits until trust reaches past the command's grace. Just after a hand-over it is
/// short until the store has answered a heartbeat, which takes milliseconds. Says
/// which signal came meanwhile.
async fn settle(job: &Job<'_>, hold: &Hold, signals: &mut Signals) -> Option<i32> {
    let mut lost = std::pin::pin!(hold.lost());
    while job.timings.deadlines(hold.trusted_until()).term_at <= now() {
        tokio::select! {
            () = job.renewals.notified() => {}
            _ = &mut lost => return None,
            signal = signals.ending() => return Some(signal),
        }
    }
    None
}

impl<'a> Life<'a> {
    fn begin(tenure: &Tenure, job: &'a Job<'a>, hold: &'a Hold) -> Outcome<Self> {
        let environment = command::environment(
            hold.environment(),
            tenure.id().as_str(),
            &job.context.shown_store(),
            &job.context.namespace,
        );
        let guarded = Guarded::start(CommandSpec {
            command: &job.args.command,
            environment: environment.into(),
            lock: hold.liveness_lock(),
            deadlines: job.timings.deadlines(hold.trusted_until()),
            grace: job.timings.grace(),
        });
        let guarded = guarded.map_err(|error| Failure::system("starting the guardian", error))?;
        let terminal = Terminal::in_foreground();
        let why = Why::Not;
        Ok(Self { guarded, job, hold, terminal, end: None, why, signalled: false, lost: None })
    }

    /// Until nothing of the command is left.
    async fn run(mut self, signals: &mut Signals) -> Over {
        let hold = self.hold;
        let mut stopping = std::pin::pin!(hold.stopping());
        let mut lost = std::pin::pin!(hold.lost());
        let mut told = (false, false);
        let mut force: Option<Pin<Box<tokio::time::Sleep>>> = None;
        let mut forced = false;
        loop {
            if self.why != Why::Not && force.is_none() && !forced {
                // A guardian that is stopped itself does not obey.
                let patience = self.job.timings.grace() + PATIENCE;
                force = Some(Box::pin(tokio::time::sleep(patience)));
            }
            tokio::select! {
                report = self.guarded.next() => match report {
                    Some(report) => self.on_report(report),
                    None => break,
                },
                () = self.job.renewals.notified() => self.renew(),
                stopping = &mut stopping, if !told.0 => {
                    told.0 = true;
                    self.on_stopping(&stopping);
                }
                reason = &mut lost, if !told.1 => {
                    told.1 = true;
                    self.why = Why::Lost;
                    self.lost = Some(reason);
                    self.guarded.kill();
                    // Half of the margin for the guardian, half for us.
                    let margin = self.job.timings.settings().margin();
                    force = Some(Box::pin(tokio::time::sleep(margin / 2)));
                }
                () = due(&mut force) => {
                    self.guarded.force();
                    force = None;
                    forced = true;
                }
                signal = signals.next() => self.on_signal(signal),
            }
        }
        if let Some(terminal) = &self.terminal {
            terminal.take_back();
        }
        let end = self.guarded.finish(self.end, || hold.is_current());
        let end = end.unwrap_or(CommandEnd::Killed(Signal::KILL.as_raw()));
        Over { end, why: self.why, signalled: self.signalled, lost: self.lost }
    }

    fn renew(&self) {
        let until = self.hold.trusted_until();
        self.guarded.renew(self.job.timings.deadlines(until));
    }

    fn on_report(&mut self, report: Report) {
        match report {
            Report::Started(_) => {
                if let Some(terminal) = &self.terminal {
                    terminal.give(&self.guarded);
                }
                // A renewal may have come while the guardian started.
                self.renew();
                if self.hold.is_current() {
                    self.guarded.begin();
                }
            }
            Report::Deadline => {
                self.why = self.why.clone().max(Why::Lost);
                if !self.job.args.quiet {
                    let noun = self.hold.noun();
                    say(&format!("{noun} was not renewed in time: the command is being stopped"));
                }
            }
            Report::TooLate => {
                self.why = self.why.clone().max(Why::Lost);
                if !self.job.args.quiet {
                    let noun = self.hold.noun();
                    say(&format!(
                        "{noun} was not renewed in time, and its time is over: the command is killed"
                    ));
                }
            }
            Report::Stuck(pid) => told::stuck(pid),
            Report::Suspended(_) => self.on_suspended(),
            Report::Exited(_) | Report::Killed(_) | Report::Failed(_) => self.end = report.end(),
        }
    }

    fn on_suspended(&self) {
        let Some(terminal) = &self.terminal else { return };
        terminal.suspend();
        // It goes on here, perhaps much later.
        terminal.give(&self.guarded);
        self.guarded.signal(Signal::CONT.as_raw());
    }

    fn on_stopping(&mut self, stopping: &Stopping) {
        if let Stopping::Asked { reason: StopReason::Asked { reason, by, to }, .. } = stopping {
            self.why = self.why.clone().max(Why::Asked);
            self.guarded.stop(Signal::TERM.as_raw());
            if !self.job.args.quiet {
                let to = to.as_ref().map(|to| format!(" in favour of {to}")).unwrap_or_default();
                let because = because(reason.as_str(), by.as_str());
                say(&format!("asked to step down{to} {because}: the command is being stopped"));
            }
        }
    }

    fn on_signal(&mut self, number: i32) {
        if is_ending(number) {
            self.why = self.why.clone().max(Why::Signal);
            self.signalled = true;
            self.guarded.stop(number);
        } else {
            self.guarded.signal(number);
        }
    }
}

async fn due(pause: &mut Option<Pin<Box<tokio::time::Sleep>>>) {
    match pause {
        Some(pause) => pause.await,
        None => std::future::pending().await,
    }
}
