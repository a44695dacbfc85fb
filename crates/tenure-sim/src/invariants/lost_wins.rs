//! E2, H21: a win whose acknowledgement was lost is adopted by the bid that is
//! repeated. It does not cost the winner its term, only to be given another.

use std::collections::BTreeMap;

use tenure_core::{
    Claims, ElectionName, Event, Happening, Incarnation, Input, Nonce, ReleaseCause, Reply, Request,
};

use super::Invariant;
use crate::clock::Nanos;
use crate::fact::{Fact, Who};

type Key = (Incarnation, ElectionName);

#[derive(Debug, Default)]
pub(super) struct LostWins {
    /// How often each process's campaign for an election came to an end.
    campaigns: BTreeMap<(Who, ElectionName), u64>,
    /// The newest bid of each life, and the one before it if that was never
    /// answered.
    newest: BTreeMap<Key, Newest>,
    sent: BTreeMap<(Who, u64), Vec<(Key, Nonce)>>,
    /// Who won each election last, by which bid.
    won: BTreeMap<ElectionName, (Incarnation, Nonce)>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    nonce: Nonce,
    campaign: u64,
    answered: bool,
    instead_of: Option<Nonce>,
}

impl LostWins {
    fn bid(&mut self, who: Who, key: &Key, nonce: Nonce) {
        let campaign = self.campaigns.get(&(who, key.1.clone())).copied().unwrap_or(0);
        let last = self.newest.get(key).copied();
        if last.is_some_and(|last| last.nonce == nonce) {
            return;
        }
        // A campaign that ended owes nothing to its last bid.
        let open = last.filter(|last| !last.answered && last.campaign == campaign);
        let instead_of = open.map(|last| last.nonce);
        self.newest.insert(key.clone(), Newest { nonce, campaign, answered: false, instead_of });
    }

    fn answered(&mut self, who: Who, id: u64) {
        for (key, nonce) in self.sent.remove(&(who, id)).unwrap_or_default() {
            if let Some(newest) = self.newest.get_mut(&key).filter(|n| n.nonce == nonce) {
                newest.answered = true;
            }
        }
    }

    fn ended(&mut self, who: Who, event: &Event) {
        let election = match event {
            Event::Elected { term, .. } => &term.election,
            Event::Lost { election, .. } | Event::Withdrawn { election } => election,
            _ => return,
        };
        *self.campaigns.entry((who, election.clone())).or_default() += 1;
    }
}

impl Invariant for LostWins {
    fn name(&self) -> &'static str {
        "a win whose answer was lost is adopted"
    }

    fn see(&mut self, _now: Nanos, fact: &Fact<'_>) -> Result<(), String> {
        match fact {
            Fact::Sent { who, id, request: Request::Claim(claim), .. } => {
                let life = claim.member.incarnation;
                let bids = claim.bids.iter().map(|b| ((life, b.election.clone()), b.nonce));
                let bids: Vec<_> = bids.collect();
                for (key, nonce) in &bids {
                    self.bid(*who, key, *nonce);
                }
                self.sent.insert((*who, *id), bids);
            }
            Fact::Fed { who, input: Input::Reply { id, result }, .. } => match &**result {
                Ok(Reply::Claim(Claims::Answered(_))) => self.answered(*who, id.get()),
                _ => {
                    self.sent.remove(&(*who, id.get()));
                }
            },
            Fact::Told { who, event, .. } => self.ended(*who, event),
            Fact::Applied { request: Request::Claim(claim), entries, .. } => {
                let life = claim.member.incarnation;
                let mut thrown_away = None;
                for entry in *entries {
                    match &entry.what {
                        Happening::Released {
                            election, cause: ReleaseCause::Abandoned, ..
                        } => thrown_away = self.won.get(election).copied(),
                        Happening::Elected { term, .. } => {
                            let key = (life, term.election.clone());
                            let newest = self.newest.get(&key).copied();
                            let instead_of = newest.and_then(|n| Some((life, n.instead_of?)));
                            if instead_of.is_some() && thrown_away.take() == instead_of {
                                return Err(format!(
                                    "{} was given {}#{} in place of a win whose answer was lost",
                                    term.member, term.election, term.number
                                ));
                            }
                            let bid = claim.bids.iter().find(|b| b.election == term.election);
                            if let Some(bid) = bid {
                                self.won.insert(term.election.clone(), (life, bid.nonce));
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
