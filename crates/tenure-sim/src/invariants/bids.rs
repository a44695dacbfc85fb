//! F4, H11, B19: bids are bounded: after a leader's crash, and always; and so is
//! everything else that is repeated.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tenure_core::{ElectionName, Event, Mono, Request};

use super::{Invariant, Setup};
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

/// The most bids of one candidate for one election within its ttl, and the most looks
/// of one member. Storms of forged hints are paced: a few go out in a row, then one in
/// each thirty-second of the ttl; once over for hints in general, and once for those
/// that name the member. Nothing but hints causes more than a few.
const WITHIN_A_TTL: usize = 2 * (8 + 32) + 10;

/// The most requests of one kind, other than looks and bids, within a ttl. A
/// pause after a failure is at least a hundredth of the ttl and soon doubles.
const TRIES: usize = 60;

#[derive(Debug)]
pub(super) struct BoundedBids {
    ttls: Vec<Duration>,
    /// How many bids after a crash are fine, all candidates together.
    after_a_crash: usize,
    sent: BTreeMap<(Who, ElectionName), VecDeque<Mono>>,
    tries: BTreeMap<(Who, &'static str), VecDeque<Mono>>,
    /// Elections whose leader crashed, and how many bids came since.
    bereaved: BTreeMap<ElectionName, usize>,
}

impl BoundedBids {
    pub(super) fn new(setup: &Setup) -> Self {
        let ttls: Vec<_> = setup.settings.iter().map(|s| s.ttl()).collect();
        let each = setup.settings.iter().map(|s| bids_each(s.drift_ppm(), &ttls));
        let after_a_crash = each.sum();
        Self {
            ttls,
            after_a_crash,
            sent: BTreeMap::new(),
            tries: BTreeMap::new(),
            bereaved: BTreeMap::new(),
        }
    }
}

/// Adds one more to those sent, and counts those within `span`.
fn within(sent: &mut VecDeque<Mono>, local: Mono, span: Duration) -> usize {
    sent.push_back(local);
    while sent.front().is_some_and(|first| local.since(*first) > span) {
        sent.pop_front();
    }
    sent.len()
}

/// How many bids one candidate may need: what is left of the holder's ttl is
/// counted on another clock than the store's, so a bid may come early by twice
/// the drift, and so may the next, by twice the drift of what was left then,
/// until the rest is a hair. Then one that wins, and one that a hint causes.
fn bids_each(drift_ppm: u32, ttls: &[Duration]) -> usize {
    let hair = Duration::from_micros(500);
    let mut left = ttls.iter().max().copied().unwrap_or_default();
    let mut bids = 3;
    while left > hair && drift_ppm > 0 {
        left = left / 1_000_000 * 2 * drift_ppm;
        bids += 1;
    }
    bids
}

impl Invariant for BoundedBids {
    fn name(&self) -> &'static str {
        "bids are bounded"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Sent { who, local, request: Request::Claim(claim), .. } => {
                let most = self.after_a_crash;
                for bid in &claim.bids {
                    let sent = self.sent.entry((*who, bid.election.clone())).or_default();
                    let count = within(sent, *local, self.ttls[who.process]);
                    if count > WITHIN_A_TTL {
                        let election = &bid.election;
                        return Err(format!("{who} bid {count} times for {election} in a ttl"));
                    }
                    let Some(count) = self.bereaved.get_mut(&bid.election) else { continue };
                    *count += 1;
                    if *count > most {
                        let election = &bid.election;
                        return Err(format!("{count} bids for {election} after a crash"));
                    }
                }
            }
            Fact::Sent { who, local, request, .. } => {
                let kind = match request {
                    Request::Join(_) => "join",
                    Request::Heartbeat(_) => "heartbeat",
                    Request::Release(_) => "release",
                    Request::Read(_) => "look",
                    _ => return Ok(()),
                };
                let most = if kind == "look" { WITHIN_A_TTL } else { TRIES };
                let sent = self.tries.entry((*who, kind)).or_default();
                let count = within(sent, *local, self.ttls[who.process]);
                if count > most {
                    return Err(format!("{who} sent a {kind} {count} times in a ttl"));
                }
            }
            Fact::Bereaved { election, crashed: true, .. } => {
                self.bereaved.insert((*election).clone(), 0);
            }
            Fact::Told { event: Event::Elected { term, .. }, .. } => {
                self.bereaved.remove(&term.election);
            }
            _ => {}
        }
        Ok(())
    }
}
