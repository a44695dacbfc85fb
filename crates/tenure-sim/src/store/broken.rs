//! Stores that break a rule: the reference, with its requests, its time or its
//! answers bent on the way.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::{
    Amend, Amended, Beat, Binding, Claim, Claimed, Claims, ElectionName, ElectionView, Entry,
    Happening, Heartbeat, Holder, Incarnation, Mono, Nonce, Priority, Profile, Query, Release,
    Reply, Request, Term, TermNumber, Timestamp,
};

use tenure_store::MemoryState;

use super::SimStore;
use super::broken_names::BrokenNames;
use crate::mutation::StoreRule;

/// A store that breaks one rule, and what it needs to remember for it.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) rule: StoreRule,
    /// When each life was last renewed.
    beaten: BTreeMap<Incarnation, Mono>,
    /// Lives whose terms were taken.
    bereft: BTreeSet<Incarnation>,
    /// The newest term of each election, until it is written off.
    newest: BTreeMap<ElectionName, Term>,
    /// How often a term of each election was given back.
    released: BTreeMap<ElectionName, u64>,
    nonces: u64,
    names: BrokenNames,
}

impl Broken {
    pub(super) fn new(rule: StoreRule) -> Self {
        Self {
            rule,
            beaten: BTreeMap::new(),
            bereft: BTreeSet::new(),
            newest: BTreeMap::new(),
            released: BTreeMap::new(),
            nonces: 0,
            names: BrokenNames::default(),
        }
    }

    /// Bends what a read of names shows.
    pub(super) fn show(&self, live: &mut [Binding]) {
        self.names.show(self.rule, live);
    }

    pub(super) fn perform(
        &mut self,
        store: &mut SimStore,
        now: Mono,
        wall: Timestamp,
        request: &Request,
    ) -> Reply {
        match request {
            Request::Heartbeat(beat) => self.heartbeat(store, now, wall, beat),
            Request::Claim(claim) => {
                let at = self.judged_at(store, now, claim);
                let reply = store.properly(at, wall, &Request::Claim(self.bend_claim(claim)));
                self.retell_reply(reply)
            }
            Request::Join(join) if self.rule == StoreRule::ToldNotHeeded => {
                let bent = join.clone().with_seen(join.seen.place);
                store.properly(now, wall, &Request::Join(bent))
            }
            Request::Bind(bind) => self.names.bind(self.rule, store, (now, wall), bind),
            Request::Release(release) => {
                let bent = self.bend_release(store, now, release);
                store.properly(now, wall, &Request::Release(bent))
            }
            other => {
                let reply = store.properly(now, wall, other);
                self.retell_reply(reply)
            }
        }
    }

    fn heartbeat(
        &mut self,
        store: &mut SimStore,
        now: Mono,
        wall: Timestamp,
        beat: &Heartbeat,
    ) -> Reply {
        let life = beat.member.incarnation;
        let mut reply = store.properly(now, wall, &Request::Heartbeat(beat.clone()));
        let ended = matches!(reply, Reply::Heartbeat(Beat::Ended { .. }));
        if ended && self.rule == StoreRule::HeartbeatRevives {
            // As if it had come when the life was not over yet.
            let then = self.beaten.get(&life).copied().unwrap_or(now);
            let ttl = beat.ttl + now.since(then);
            let late = Heartbeat { ttl, ..beat.clone() };
            reply = store.properly(then, wall, &Request::Heartbeat(late));
        }
        let goes_on = match self.rule {
            StoreRule::TakenNotEnded => self.bereft.contains(&life),
            StoreRule::NameOwnerNotEnded => self.names.bereft.contains(&life),
            _ => false,
        };
        if ended && goes_on {
            let attention = 0;
            let seq = store.seq();
            let alive = Beat::Alive { attention, holds: Some(0), seq, terms: Vec::new() };
            return Reply::Heartbeat(alive);
        }
        if matches!(reply, Reply::Heartbeat(Beat::Alive { .. })) {
            self.beaten.insert(life, now);
        }
        reply
    }

    /// The time by which a claim judges the holder.
    fn judged_at(&self, store: &SimStore, now: Mono, claim: &Claim) -> Mono {
        if self.rule != StoreRule::ChallengersTtl {
            return now;
        }
        let names = claim.bids.iter().map(|bid| bid.election.clone());
        let seen = store.state.read(now, &Query::elections(names));
        let holders = seen.elections.into_iter().filter_map(|view| view.holder);
        let early = holders.filter(|h| h.ttl - h.remaining > claim.ttl).map(|h| h.remaining).max();
        early.map_or(now, |remaining| now + remaining)
    }

    fn bend_claim(&mut self, claim: &Claim) -> Claim {
        let mut claim = claim.clone();
        if self.rule == StoreRule::ToldNotHeeded {
            claim.seen.number = TermNumber::NONE;
        }
        for bid in &mut claim.bids {
            if self.rule == StoreRule::NonceIgnored {
                self.nonces += 1;
                bid.nonce = Nonce::new(self.nonces);
            }
            if self.rule == StoreRule::AnyoneLeads {
                bid.priority = bid.priority.max(Priority::new(1));
            }
        }
        if self.rule == StoreRule::HeirIgnored {
            claim.heir_grace = std::time::Duration::ZERO;
        }
        claim
    }

    fn bend_release(&self, store: &SimStore, now: Mono, release: &Release) -> Release {
        let mut release = release.clone();
        if self.rule == StoreRule::ToldNotHeeded {
            release.seen.number = TermNumber::NONE;
        }
        for item in &mut release.items {
            match self.rule {
                StoreRule::ReleaseNotScoped if item.number.is_some() => {
                    if let Some((holder, number)) = store.holder(now, &item.election) {
                        release.member = holder;
                        item.number = Some(number);
                    }
                }
                StoreRule::NumbersReused => {
                    let more = self.released.get(&item.election).copied().unwrap_or(0);
                    item.number = item.number.map(|n| TermNumber::new(n.get() + more));
                }
                StoreRule::HeirIgnored => {
                    item.successor = None;
                    release.heir_grace = std::time::Duration::ZERO;
                    release.confirm_within = std::time::Duration::ZERO;
                }
                _ => {}
            }
        }
        release
    }

    /// The number that the store says it gave.
    fn told(&self, election: &ElectionName, number: TermNumber) -> TermNumber {
        let less = self.released.get(election).copied().unwrap_or(0);
        TermNumber::new(number.get().saturating_sub(less).max(1))
    }

    /// Shows a term of an ended life as if it stood.
    fn outlive(&self, view: &mut ElectionView) {
        let newest = self.newest.get(&view.election);
        let void = newest.filter(|term| self.bereft.contains(&term.member.incarnation));
        if let Some(term) = void.filter(|_| view.holder.is_none()) {
            let ttl = std::time::Duration::from_secs(1);
            view.holder = Some(Holder {
                member: term.member.clone(),
                profile: Profile::default(),
                elected_at: term.elected_at,
                ttl,
                remaining: ttl,
                unconfirmed: false,
            });
        }
    }

    fn retell_reply(&self, mut reply: Reply) -> Reply {
        if let (StoreRule::TermOutlivesLife, Reply::Read(snapshot)) = (self.rule, &mut reply) {
            snapshot.elections.iter_mut().for_each(|view| self.outlive(view));
        }
        if let (StoreRule::NumbersReused, Reply::Claim(Claims::Answered(answers))) =
            (self.rule, &mut reply)
        {
            for answer in answers {
                if let Claimed::Won(term) = answer {
                    term.number = self.told(&term.election, term.number);
                }
            }
        }
        reply
    }

    /// A pause that is ignored is lifted as soon as it is made; a resume makes
    /// one first, so that there is something to lift.
    pub(super) fn amend(
        &self,
        state: &mut MemoryState,
        now: Mono,
        wall: Timestamp,
        amend: &Amend,
    ) -> Amended {
        let ignored = self.rule == StoreRule::PauseIgnored;
        match amend {
            Amend::Pause { election, by, .. } if ignored => {
                let answer = state.amend(now, wall, amend);
                let lift = Amend::Resume { election: election.clone(), by: by.clone() };
                state.amend(now, wall, &lift);
                answer
            }
            Amend::Resume { election, by } if ignored => {
                let election = election.clone();
                let reason = by.clone();
                let by = by.clone();
                state.amend(now, wall, &Amend::Pause { election, reason, by });
                state.amend(now, wall, amend)
            }
            _ => state.amend(now, wall, amend),
        }
    }

    /// The journal tells of such a pause, or of its end, as of a real one.
    pub(super) fn retell_amend(&self, amend: &Amend, entries: &mut [Entry]) {
        let ignored = self.rule == StoreRule::PauseIgnored;
        let [one, two] = entries else { return };
        match amend {
            Amend::Pause { .. } if ignored => two.what = one.what.clone(),
            Amend::Resume { .. } if ignored => one.what = two.what.clone(),
            _ => {}
        }
    }

    /// Bends what the journal says of the last request.
    pub(super) fn retell(&mut self, request: &Request, entries: &mut [Entry]) {
        for entry in entries.iter_mut() {
            match &mut entry.what {
                Happening::Ended { member, .. } => {
                    self.bereft.insert(member.incarnation);
                    if matches!(request, Request::Bind(_)) {
                        self.names.bereft.insert(member.incarnation);
                    }
                }
                Happening::Elected { term, .. } if self.rule == StoreRule::TermOutlivesLife => {
                    self.newest.insert(term.election.clone(), term.clone());
                }
                Happening::Released { election, .. }
                    if self.rule == StoreRule::TermOutlivesLife =>
                {
                    self.newest.remove(election);
                }
                Happening::Elected { term, .. } if self.rule == StoreRule::NumbersReused => {
                    term.number = self.told(&term.election, term.number);
                }
                Happening::Released { election, number, .. }
                    if self.rule == StoreRule::NumbersReused =>
                {
                    *number = self.told(election, *number);
                    if matches!(request, Request::Release(_)) {
                        *self.released.entry(election.clone()).or_default() += 1;
                    }
                }
                _ => {}
            }
        }
    }
}
