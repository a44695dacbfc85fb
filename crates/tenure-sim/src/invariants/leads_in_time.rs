//! Promise 4: once faults are over a member leads, within the stated time after
//! a crash and at once after a resignation, and every campaign gets an answer.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{ElectionName, Event, Input, Request, Settings};

use super::{Invariant, Setup};
use crate::clock::{Nanos, SECOND};
use crate::config::{StoreKind, nanos};
use crate::fact::{Fact, Who};

/// How long the world may take to come right after the last fault. The slowest
/// way: a life that holds nothing lives for four ttls, its namesake waits for
/// it, stands, and waits for a cooldown or a reservation of a ttl; and messages
/// of the bad times still come in for two ttls.
pub(crate) fn settling_time(longest_ttl: Nanos) -> Nanos {
    longest_ttl * 10 + SECOND
}

#[derive(Debug)]
pub(super) struct LeadsInTime {
    settings: Vec<Settings>,
    watched: bool,
    /// How often processes look where the store does not tell.
    poll: Option<Duration>,
    unanswered: BTreeMap<(Who, ElectionName), Nanos>,
    due: BTreeMap<ElectionName, Nanos>,
    healed: Option<Nanos>,
    /// Whether those who wait judge for themselves whether a leader is dead.
    observed: bool,
    /// Whether a clock was ever beyond the drift bound.
    beyond: bool,
    /// When each process last began to say that it lives.
    beats: BTreeMap<Who, Nanos>,
}

impl LeadsInTime {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            settings: setup.settings.clone(),
            watched: setup.config.watched(),
            poll: setup.config.poll(),
            unanswered: BTreeMap::new(),
            due: BTreeMap::new(),
            healed: None,
            observed: setup.config.store == StoreKind::Cas,
            beyond: !setup.config.clocks_keep_the_bound(),
            beats: BTreeMap::new(),
        }
    }

    /// When an election must have a leader again that lost its leader now.
    fn due(&self, now: Nanos, of: Who, crashed: bool) -> Nanos {
        match self.beats.get(&of) {
            Some(beat) if crashed && self.observed => beat + self.silence(of),
            _ => now + self.patience(of, crashed),
        }
    }

    /// How long after its last heartbeat a dead leader has a successor where the
    /// observer judges. An observer waits the ttl widened by drift, and a fortieth
    /// of it, from a moment by which that heartbeat had begun; it is not sure to
    /// more than a tenth of the ttl, or, where clocks may be far apart, to ten times
    /// the drift between two heartbeats, when that was; and all of it on a clock
    /// that may be slow. A clock that was beyond the bound leaves observers sure of
    /// what is not so: then it is to a heartbeat. What is left is for the requests on
    /// their way.
    fn silence(&self, of: Who) -> Nanos {
        let settings = &self.settings[of.process];
        let ttl = settings.ttl();
        let drift = settings.drift_ppm();
        let unsure = match self.beyond {
            true => settings.heartbeat(),
            false => (ttl / 10).max(settings.heartbeat() / 100_000 * drift),
        };
        let counted = nanos(settings.widened(ttl) + ttl / 40 + unsure);
        counted / u64::from(1_000_000 - drift) * 1_000_000 + SECOND / 20
    }

    /// How long an election may be without a leader after it lost its leader.
    fn patience(&self, of: Who, crashed: bool) -> Nanos {
        let settings = &self.settings[of.process];
        let candidates = u32::try_from(self.settings.len()).unwrap_or(u32::MAX);
        let longest = self.settings.iter().map(|s| s.stagger()).max().unwrap_or_default();
        let poll = self.poll.unwrap_or_default();
        if !crashed && (self.watched || self.poll.is_some()) {
            // The heir is told at once, or sees it with its next look; if it cannot
            // be reached, the next do.
            return nanos(poll + longest * (2 + candidates)) + SECOND / 20;
        }
        // One ttl and a little: a tenth of it, and what slow clocks add.
        let ttl = settings.ttl();
        let slow = ttl / 1_000_000 * settings.drift_ppm() * 3;
        // An observer begins to count when it sees the last heartbeat.
        nanos(ttl + ttl / 10 + slow + poll) + SECOND / 5
    }

    fn overdue(&self, now: Nanos) -> Result<(), String> {
        match self.due.iter().find(|(_, due)| now > **due) {
            Some((election, _)) => Err(format!("no member leads {election} in time")),
            None => Ok(()),
        }
    }

    fn survey(&self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        let Fact::Surveyed { elections } = fact else { return Ok(()) };
        for surveyed in *elections {
            if surveyed.wanted && surveyed.led.is_empty() {
                return Err(format!("no member leads {} after the healing", surveyed.election));
            }
        }
        let long_ago = |since: &Nanos| now - since >= SECOND * 5;
        match self.unanswered.iter().find(|(_, since)| long_ago(since)) {
            Some(((who, election), _)) => {
                Err(format!("{who} stands for {election} and never got an answer"))
            }
            None => Ok(()),
        }
    }
}

impl Invariant for LeadsInTime {
    fn name(&self) -> &'static str {
        "a member leads in time, and every campaign gets an answer"
    }

    fn see(&mut self, now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        self.overdue(now)?;
        match fact {
            Fact::Fed { who, input: Input::Stand { election, .. }, .. } => {
                self.unanswered.entry((*who, election.clone())).or_insert(now);
            }
            Fact::Told { who, event, .. } => {
                let answered = match event {
                    Event::Elected { term, .. } => &term.election,
                    Event::Standby { view } => &view.election,
                    Event::Withdrawn { election } => election,
                    _ => return Ok(()),
                };
                self.unanswered.remove(&(*who, answered.clone()));
                if matches!(event, Event::Elected { .. }) {
                    self.due.remove(answered);
                }
            }
            Fact::Sent { who, request: Request::Heartbeat(_) | Request::Claim(_), .. } => {
                self.beats.insert(*who, now);
            }
            Fact::Crashed { who } => self.unanswered.retain(|(stands, _), _| stands != who),
            Fact::Healed => self.healed = Some(now),
            Fact::Bereaved { who, election, crashed } => {
                let due = self.due(now, *who, *crashed);
                self.due.insert((*election).clone(), due);
            }
            Fact::Surveyed { .. } => return self.survey(now, fact),
            _ => {}
        }
        Ok(())
    }
}
