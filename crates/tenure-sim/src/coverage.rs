//! Coverage: situations that must be reached now and then. A suite in which one
//! of them never happens proves less than it seems to, and fails.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Amended, Beat, Bind, BindAnswer, Bindings, Claimed, Claims, EndCause, Entry, Event, Happening,
    Incarnation, Input, Joined, LostReason, MemberRef, Mono, NameAnswer, Nonce, ReleaseCause,
    Reply, Request, StopReason, TermBeat, TermOutcome, What,
};

use crate::fact::Fact;

/// A situation, by its name.
pub type Situation = &'static str;

/// Every situation that a suite must reach.
const SITUATIONS: &[Situation] = &[
    "a client of a server led",
    "a client was stopped",
    "a bid that was repeated got its own term back",
    "a bid was answered: ended",
    "a claim failed and may have been applied",
    "a dead member was collected",
    "a fenced write was accepted",
    "a fenced write was refused",
    "a heartbeat was answered: ended",
    "a heartbeat was answered: ended by a namesake",
    "a hand-over was asked for",
    "a leader crashed and another led in time",
    "a leader resigned and another led in time",
    "a member left holding a term",
    "a member was evicted at once",
    "a member was evicted and waited out",
    "a step-down was asked for a term that was over",
    "a term was given back unknown",
    "a turn was refused by a guard",
    "a turn waited for the lock",
    "a term was handed over",
    "a term that was handed over lapsed",
    "a term that was handed over was taken on by a heartbeat",
    "a term was lost: drained too slowly",
    "a term was lost: resigned",
    "a term was lost: stepped down",
    "a term was lost: superseded",
    "a term was lost: the store was rolled back",
    "a term was lost: trust ended",
    "a vacancy was kept for its heir",
    "an election was paused",
    "an id was taken",
    "an older life was superseded by a newer one",
    "an operator's successor was no candidate",
    "a leader was told to stop for its own shutdown",
    "a holder expired and was ended by a claim",
    "a process was stopped",
    "a process was suspended",
    "a copy was promoted without the last writes",
    "a promoted copy gave a number twice",
    "a promoted copy showed an older term",
    "a promoted copy took a deposed leader's write",
    "a promoted copy went back in its numbers",
    "two trusted after a copy was promoted",
    "a bind was answered: ended",
    "a bind was fenced",
    "a drop of an old binding changed nothing",
    "a name was changed",
    "a name was dropped",
    "a name was lost: resigned",
    "a name was lost: superseded",
    "a name was lost: the store was rolled back",
    "a name was lost: trust ended",
    "a name was taken",
    "a name was taken from an owner that had expired",
    "a promoted copy gave a token twice",
    "a take was answered: taken",
    "a take that was repeated got its own binding back",
    "a take was withdrawn on its way",
    "an owner crashed and another took its name in time",
    "two trusted in a name after a copy was promoted",
];

/// How often each situation was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<Situation, u64>,
    /// The takes of this run that were answered.
    takes: BTreeSet<(Option<Incarnation>, Nonce)>,
}

impl Coverage {
    pub(crate) fn mark(&mut self, situation: Situation) {
        debug_assert!(SITUATIONS.contains(&situation), "{situation} is not in the list");
        *self.counts.entry(situation).or_default() += 1;
    }

    /// Adds another run's.
    pub fn add(&mut self, other: &Coverage) {
        for (situation, count) in &other.counts {
            *self.counts.entry(situation).or_default() += count;
        }
    }

    /// The situations that were never reached.
    #[must_use]
    pub fn unreached(&self) -> Vec<Situation> {
        SITUATIONS.iter().copied().filter(|s| !self.counts.contains_key(s)).collect()
    }

    /// How often each situation was reached.
    pub fn iter(&self) -> impl Iterator<Item = (Situation, u64)> {
        self.counts.iter().map(|(situation, count)| (*situation, *count))
    }

    pub(crate) fn see(&mut self, fact: &Fact<'_>) {
        match fact {
            Fact::Told { event, .. } => self.told(event),
            Fact::Applied { request, reply, entries, .. } => {
                if let Ok(reply) = reply {
                    self.applied(request, reply, entries);
                }
                self.written(entries);
            }
            Fact::Stepped { step, .. } => {
                if step.conflict {
                    self.mark("a turn was refused by a guard");
                }
                self.written(&step.entries);
            }
            Fact::Amended { answer, entries, .. } => {
                match answer {
                    Amended::Superseded { .. } => {
                        self.mark("a step-down was asked for a term that was over");
                    }
                    Amended::NoSuchCandidate => {
                        self.mark("an operator's successor was no candidate");
                    }
                    _ => {}
                }
                self.written(entries);
            }
            Fact::Fed { input: Input::Reply { result, .. }, .. }
                if result.as_ref().as_ref().is_err_and(|failed| failed.may_have_applied) =>
            {
                self.mark("a claim failed and may have been applied");
            }
            Fact::Wrote { accepted: true, .. } => self.mark("a fenced write was accepted"),
            Fact::Wrote { .. } => self.mark("a fenced write was refused"),
            Fact::Froze { suspended: true, .. } => self.mark("a process was suspended"),
            Fact::Froze { .. } => self.mark("a process was stopped"),
            Fact::Promoted { lost } if *lost > 0 => {
                self.mark("a copy was promoted without the last writes");
            }
            Fact::Fed { input: Input::WithdrawName { .. }, .. } => {
                self.mark("a take was withdrawn on its way");
            }
            Fact::Bereaved { crashed: true, .. } => {
                self.mark("a leader crashed and another led in time");
            }
            Fact::Bereaved { .. } => self.mark("a leader resigned and another led in time"),
            _ => {}
        }
    }

    fn told(&mut self, event: &Event) {
        match event {
            Event::IdTaken { .. } => self.mark("an id was taken"),
            Event::Lost { reason, .. } => self.mark(match reason {
                LostReason::Resigned => "a term was lost: resigned",
                LostReason::SteppedDown => "a term was lost: stepped down",
                LostReason::DrainTimeout => "a term was lost: drained too slowly",
                LostReason::TrustEnded => "a term was lost: trust ended",
                LostReason::Superseded => "a term was lost: superseded",
                LostReason::RolledBack => "a term was lost: the store was rolled back",
                _ => "a term was lost: otherwise",
            }),
            Event::NamesLost { reason, .. } => self.mark(match reason {
                LostReason::TrustEnded => "a name was lost: trust ended",
                LostReason::Superseded => "a name was lost: superseded",
                LostReason::RolledBack => "a name was lost: the store was rolled back",
                _ => "a name was lost: resigned",
            }),
            Event::NameAnswered { answer, .. } => match answer {
                NameAnswer::Bound { trusted_until, .. } if *trusted_until > Mono::ZERO => {
                    self.mark("a name was taken");
                }
                NameAnswer::Bound { .. } => self.mark("a name was changed"),
                NameAnswer::Taken(_) => self.mark("a take was answered: taken"),
                NameAnswer::Fenced { .. } => self.mark("a bind was fenced"),
                NameAnswer::Gone(_) => self.mark("a name was dropped"),
                NameAnswer::ShutDown => {}
            },
            Event::Stopping { reason: StopReason::Shutdown, .. } => {
                self.mark("a leader was told to stop for its own shutdown");
            }
            _ => {}
        }
    }

    fn applied(&mut self, request: &Request, reply: &Reply, entries: &[Entry]) {
        match reply {
            Reply::Heartbeat(Beat::Ended { superseded: true }) => {
                self.mark("a heartbeat was answered: ended by a namesake");
            }
            Reply::Heartbeat(Beat::Ended { .. }) => self.mark("a heartbeat was answered: ended"),
            Reply::Heartbeat(Beat::Alive { terms, .. }) if is_renewed(terms) => {
                self.mark("a term that was handed over was taken on by a heartbeat");
            }
            Reply::Claim(Claims::Ended { .. }) => self.mark("a bid was answered: ended"),
            Reply::Claim(Claims::Answered(answers)) => {
                let won = answers.iter().any(|answer| matches!(answer, Claimed::Won(_)));
                let elected = |e: &Entry| matches!(e.what, Happening::Elected { .. });
                if won && !entries.iter().any(elected) {
                    self.mark("a bid that was repeated got its own term back");
                }
            }
            Reply::Bind(Bindings::Ended { .. }) => self.mark("a bind was answered: ended"),
            Reply::Bind(Bindings::Answered(answers)) => {
                if let Request::Bind(bind) = request {
                    self.bound(bind, answers, entries);
                }
            }
            Reply::Join(Joined::In { .. }) => {
                let collected =
                    |e: &Entry| matches!(e.what, Happening::Ended { cause: EndCause::Expired, .. });
                if entries.iter().any(collected) {
                    self.mark("a dead member was collected");
                }
            }
            _ => {}
        }
        let elected = |e: &Entry| matches!(e.what, Happening::Elected { .. });
        if matches!(request, Request::Release(_)) && entries.iter().any(elected) {
            self.mark("a term was handed over");
        }
        let lapsed = |e: &Entry, by: &MemberRef| matches!(&e.what, Happening::Released { cause: ReleaseCause::Abandoned, member, .. } if member != by);
        if let Request::Claim(claim) = request
            && entries.iter().any(|e| lapsed(e, &claim.member))
        {
            self.mark("a term that was handed over lapsed");
        }
    }

    fn bound(&mut self, bind: &Bind, answers: &[BindAnswer], entries: &[Entry]) {
        let expired =
            |e: &Entry| matches!(e.what, Happening::Ended { cause: EndCause::Expired, .. });
        for (op, answer) in bind.ops.iter().zip(answers) {
            match (&op.what, answer) {
                (What::Drop { .. }, BindAnswer::Gone(Some(_))) => {
                    self.mark("a drop of an old binding changed nothing");
                }
                (What::Take { .. }, BindAnswer::Bound(_)) => {
                    let life = bind.member.as_ref().map(|member| member.incarnation);
                    if !self.takes.insert((life, op.nonce)) {
                        self.mark("a take that was repeated got its own binding back");
                    } else if entries.iter().any(expired) {
                        self.mark("a name was taken from an owner that had expired");
                    }
                }
                _ => {}
            }
        }
    }

    fn written(&mut self, entries: &[Entry]) {
        for entry in entries {
            match &entry.what {
                Happening::Ended { cause: EndCause::Superseded, .. } => {
                    self.mark("an older life was superseded by a newer one");
                }
                Happening::Ended { cause: EndCause::Evicted, .. } => {
                    self.mark("a member was evicted at once");
                }
                Happening::Released { cause, heir, .. } => {
                    if heir.is_some() {
                        self.mark("a vacancy was kept for its heir");
                    }
                    match cause {
                        ReleaseCause::Ended(EndCause::Expired) => {
                            self.mark("a holder expired and was ended by a claim");
                        }
                        ReleaseCause::Ended(EndCause::Evicted) => {
                            self.mark("a member was evicted and waited out");
                        }
                        ReleaseCause::Left => self.mark("a member left holding a term"),
                        ReleaseCause::Abandoned => self.mark("a term was given back unknown"),
                        _ => {}
                    }
                }
                Happening::Paused { .. } => self.mark("an election was paused"),
                Happening::StepDownAsked { to: Some(_), .. } => {
                    self.mark("a hand-over was asked for");
                }
                _ => {}
            }
        }
    }
}

/// Whether a heartbeat took on a term.
fn is_renewed(terms: &[TermBeat]) -> bool {
    terms.iter().any(|term| matches!(term.outcome, TermOutcome::Renewed { .. }))
}
