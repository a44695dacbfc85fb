//! Names cost heartbeats nothing: a member that owns names sends no more heartbeats than one
//! that leads, however many it takes and drops.

use std::collections::{BTreeMap, VecDeque};

use tenure_core::{Mono, Request, Settings};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

/// Beyond one in each interval: at the ends of the span, and where something was won or bound
/// while a heartbeat of an idle member was on its way.
const MORE: usize = 4;

#[derive(Debug)]
pub(super) struct NoMoreBeats {
    settings: Vec<Settings>,
    beats: BTreeMap<Who, VecDeque<Mono>>,
    /// Whether the world has had time to come right.
    calm: bool,
}

impl NoMoreBeats {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { settings: setup.settings.clone(), beats: BTreeMap::new(), calm: false }
    }
}

impl Invariant for NoMoreBeats {
    fn name(&self) -> &'static str {
        "names cost no heartbeats"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::NamesSurveyed { .. } => self.calm = true,
            Fact::Sent { who, local, request: Request::Heartbeat(_), .. } if self.calm => {
                let settings = &self.settings[who.process];
                let beats = self.beats.entry(*who).or_default();
                beats.push_back(*local);
                while beats.front().is_some_and(|first| local.since(*first) > settings.ttl()) {
                    beats.pop_front();
                }
                let intervals = settings.ttl().as_nanos() / settings.heartbeat().as_nanos().max(1);
                let most = usize::try_from(intervals).unwrap_or(usize::MAX) + MORE;
                if beats.len() > most {
                    let sent = beats.len();
                    return Err(format!("{who} sent {sent} heartbeats in a ttl; {most} would do"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
