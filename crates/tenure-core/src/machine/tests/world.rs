//! A store for one machine and one rival, small enough to be obviously right. It
//! keeps no time: the dice end members and give elections away.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::random::Dice;
use super::script::{held_by, member};
use crate::*;

/// The rival's life.
const OTHER: u128 = 77;

pub(super) struct World {
    /// Whether a heartbeat's answer counts the terms held: some stores cannot.
    counts: bool,
    member: Option<MemberRef>,
    ended: BTreeSet<Incarnation>,
    elections: BTreeMap<ElectionName, Election>,
}

#[derive(Default)]
struct Election {
    number: u64,
    holder: Option<MemberRef>,
    /// Who won last, by which attempt.
    won: Option<(Incarnation, Nonce)>,
    step_down: bool,
    paused: bool,
}

impl World {
    pub(super) fn new(counts: bool) -> Self {
        let ended = BTreeSet::new();
        let elections = BTreeMap::new();
        Self { counts, member: None, ended, elections }
    }

    /// What the machine's member holds here.
    pub(super) fn ours(&self) -> BTreeMap<ElectionName, TermNumber> {
        let ours = self.elections.iter().filter(|(_, s)| s.holder.is_some());
        let ours = ours.filter(|(_, s)| s.holder == self.member);
        ours.map(|(name, election)| (name.clone(), TermNumber::new(election.number))).collect()
    }

    /// Some life: the rival's, ours, or one that no member has.
    pub(super) fn some_life(&self, dice: &mut Dice) -> Incarnation {
        let ours = self.member.as_ref().map(|me| me.incarnation);
        match dice.roll(3) {
            0 => ours.unwrap_or(Incarnation::from_u128(0)),
            1 => Incarnation::from_u128(OTHER),
            _ => Incarnation::from_u128(5),
        }
    }

    /// Something happens that the machine has no part in.
    pub(super) fn shake(&mut self, dice: &mut Dice) {
        if dice.roll(6) == 0 {
            return self.end();
        }
        let rival = member("other", OTHER);
        let at = dice.roll(3) as usize;
        let Some(election) = self.elections.values_mut().nth(at) else { return };
        match dice.roll(5) {
            0 if election.holder.is_none() => {
                election.number += 1;
                election.won = Some((rival.incarnation, Nonce::new(0)));
                election.holder = Some(rival);
            }
            1 => election.step_down = election.holder.is_some(),
            2 => election.paused = !election.paused,
            _ => {
                election.holder.take_if(|holder| *holder == rival);
            }
        }
    }

    /// The rival goes, and nothing is paused any more.
    pub(super) fn make_way(&mut self) {
        for election in self.elections.values_mut() {
            election.holder.take_if(|holder| holder.id.as_str() == "other");
            election.paused = false;
        }
    }

    fn end(&mut self) {
        let Some(member) = self.member.take() else { return };
        self.ended.insert(member.incarnation);
        for election in self.elections.values_mut() {
            election.holder.take_if(|holder| *holder == member);
        }
    }

    pub(super) fn perform(&mut self, request: &Request) -> Reply {
        match request {
            Request::Join(join) => Reply::Join(self.join(&join.member)),
            Request::Heartbeat(beat) => Reply::Heartbeat(self.beat(beat)),
            Request::Claim(claim) => Reply::Claim(self.claim(claim)),
            Request::Release(release) => self.release(release),
            Request::Read(query) => self.read(query),
            Request::Bind(_) => unreachable!("names have a world of their own"),
            Request::Leave(member) => {
                if self.member.as_ref() == Some(member) {
                    self.end();
                }
                self.ended.insert(member.incarnation);
                Reply::Leave
            }
        }
    }

    fn join(&mut self, member: &MemberRef) -> Joined {
        if self.ended.contains(&member.incarnation) {
            return Joined::Taken { by: member.incarnation, remaining: Duration::ZERO };
        }
        if self.member.as_ref() != Some(member) {
            self.end();
            self.member = Some(member.clone());
        }
        Joined::In { attention: 0, seq: Seq::START }
    }

    fn beat(&mut self, beat: &Heartbeat) -> Beat {
        if self.member.as_ref() != Some(&beat.member) {
            return Beat::Ended { superseded: false };
        }
        let ours = self.ours();
        let answer = |term: &TermRef| {
            let held = ours.get(&term.election) == Some(&term.number);
            let renewed = TermOutcome::Renewed { step_down: None };
            TermBeat { term: term.clone(), outcome: if held { renewed } else { TermOutcome::Lost } }
        };
        let terms = beat.held.iter().map(answer).collect();
        let holds = self.counts.then(|| u32::try_from(ours.len()).unwrap());
        Beat::Alive { attention: 0, holds, seq: Seq::START, terms }
    }

    fn claim(&mut self, claim: &Claim) -> Claims {
        if self.member.as_ref() != Some(&claim.member) {
            return Claims::Ended { superseded: false };
        }
        Claims::Answered(claim.bids.iter().map(|bid| self.bid(&claim.member, bid)).collect())
    }

    fn bid(&mut self, me: &MemberRef, bid: &Bid) -> Claimed {
        let election = self.elections.entry(bid.election.clone()).or_default();
        let ours = election.holder.as_ref() == Some(me);
        let last = election.won.filter(|(life, _)| *life == me.incarnation).map(|(_, nonce)| nonce);
        let repeated = last == Some(bid.nonce);
        let late = last.is_some_and(|nonce| nonce > bid.nonce);
        let free =
            (ours || election.holder.is_none()) && !election.paused && bid.priority.may_lead();
        if !repeated && !late && free {
            election.number += 1;
            election.step_down = false;
            election.holder = Some(me.clone());
            election.won = Some((me.incarnation, bid.nonce));
        } else if !(repeated && ours) {
            return Claimed::Held(self.view(&bid.election));
        }
        Claimed::Won(Term {
            election: bid.election.clone(),
            number: TermNumber::new(election.number),
            member: me.clone(),
            elected_at: Timestamp::default(),
        })
    }

    fn release(&mut self, release: &Release) -> Reply {
        for item in &release.items {
            let Some(election) = self.elections.get_mut(&item.election) else { continue };
            if item.number == Some(TermNumber::new(election.number)) {
                election.holder.take_if(|holder| *holder == release.member);
            }
        }
        Reply::Release
    }

    fn read(&self, query: &Query) -> Reply {
        let names: Vec<_> = match &query.which {
            Which::Named(names) => names.clone(),
            Which::HeldBy(_) => {
                let held = self.ours().into_keys();
                held.filter(|_| query.asker == self.member).collect()
            }
            _ => Vec::new(),
        };
        let elections = names.iter().map(|name| self.view(name)).collect();
        Reply::Read(Snapshot { elections, ..Snapshot::default() })
    }

    fn view(&self, name: &ElectionName) -> ElectionView {
        let Some(election) = self.elections.get(name) else {
            return ElectionView::vacant(name.clone());
        };
        let number = TermNumber::new(election.number);
        let reason = Note::default();
        let by = Note::default();
        let to = None;
        let asked = StepDown { number, reason, by, to };
        let view = match &election.holder {
            Some(holder) => held_by(name.as_str(), holder.clone(), election.number, 7_000),
            None => ElectionView { number, ..ElectionView::vacant(name.clone()) },
        };
        let step_down = Some(asked).filter(|_| election.step_down && election.holder.is_some());
        let paused = election.paused.then(Pause::default);
        ElectionView { step_down, paused, ..view }
    }
}
