//! What the user is told when something other than the command ends it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use tenure::naming::Registration;
use tenure::{LostReason, Tenure};
use tenure_api::Cause;

use super::hold::Hold;
use crate::exit::Exit;
use crate::output::say;

/// How long the store may take to say why it ended a term.
const PATIENCE: Duration = Duration::from_secs(2);

/// Says why a term was lost, if that was not said yet.
pub(crate) async fn lost(tenure: &Tenure, hold: &Hold, reason: LostReason) {
    let leadership = match hold {
        Hold::Term(leadership) => leadership,
        Hold::Name(registration) => return lost_name(tenure, registration, reason),
    };
    let term = leadership.term();
    let number = term.number;
    let election = &term.election;
    match reason {
        // The guardian's deadlines are told as they come, and so is a request to stop.
        LostReason::Resigned | LostReason::SteppedDown | LostReason::TrustEnded => {}
        LostReason::DrainTimeout => {
            say(&format!("the command did not stop in time: term {number} of {election} is lost"));
        }
        LostReason::RolledBack => say(&format!(
            "the store was rolled back: it has forgotten what it told before, and term {number} of \
             {election} may be among it; the command was killed (after a restore from a backup, \
             run `tenure restored`)"
        )),
        LostReason::Superseded => {
            let election_of = tenure.election(election.as_str());
            let asked = tokio::time::timeout(PATIENCE, election_of.history(20)).await;
            let past = asked.ok().and_then(Result::ok).unwrap_or_default();
            let cause = past.iter().find(|past| past.term.number == number);
            let cause = cause.and_then(|past| past.ended).map_or_else(
                || "the store does not tell why".to_owned(),
                |(_, cause)| Cause::from(cause).to_string(),
            );
            let id = tenure.id();
            say(&format!(
                "the store has ended {id}, or its term {number} of {election}: {cause}; the \
                 command was killed"
            ));
        }
        other => say(&format!("term {number} of {election} is lost: {other}")),
    }
}

fn lost_name(tenure: &Tenure, name: &Registration, reason: LostReason) {
    let token = name.token();
    let name = name.name();
    match reason {
        LostReason::RolledBack => say(&format!(
            "the store was rolled back, and token {token} of {name} may be among what it has \
             forgotten; the command was killed (after a restore from a backup, run `tenure \
             restored`)"
        )),
        LostReason::Superseded => {
            let id = tenure.id();
            say(&format!("the store has ended {id}, and with it {name}; the command was killed"));
        }
        // The guardian's deadlines are told as they come.
        _ => {}
    }
}

/// A process was killed and is still there.
pub(crate) fn stuck(pid: i32) {
    say(&format!("{}: the term is kept for as long as it can be", described(pid)));
}

/// Ends this program beside a process that cannot be ended. Nothing is released:
/// where the store knows that the process still works, no other member leads until it
/// is gone.
pub(crate) fn leave_behind(pid: i32) -> ! {
    say(&format!(
        "{}, although its term is over; it is left behind, and its term is not given up: end it by \
         hand",
        described(pid)
    ));
    std::process::exit(Exit::System.code().into());
}

fn described(pid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let refused = Pid::from_raw(pid).is_some_and(|p| test_kill_process(p) == Err(Errno::PERM));
    let why = if refused { " (it belongs to another user)" } else { "" };
    format!("process {pid} ({}) was killed and still runs{why}", name.trim())
}
