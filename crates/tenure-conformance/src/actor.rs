//! One life of one member, in a process of its own: its handle on the store, its
//! nonces, and the terms it believes in.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    Beat, Bid, Claim, Claimed, Claims, ElectionView, Heartbeat, Join, Joined, MemberId, MemberRef,
    Namespace, Nonce, Priority, Profile, Query, Release, ReleaseCause, ReleaseItem, Snapshot, Term,
    TermRef, Which,
};
use tenure_store::SharedStore;

use crate::case::ensure;
use crate::world::election;
use crate::{CaseFailure, Outcome};

pub(crate) struct Actor {
    pub(crate) store: SharedStore,
    pub(crate) ns: Namespace,
    pub(crate) me: MemberRef,
    pub(crate) profile: Profile,
    /// What a join, a heartbeat or a claim states unless told otherwise.
    pub(crate) ttl: Duration,
    /// Whether a term may be handed to it, as its next join says.
    pub(crate) inherits: bool,
    nonce: AtomicU64,
    held: Mutex<Vec<TermRef>>,
}

/// A claim, apart from who makes it and for what.
#[derive(Clone, Copy)]
pub(crate) struct How {
    pub(crate) priority: Priority,
    pub(crate) grace: Duration,
}

impl Default for How {
    fn default() -> Self {
        Self { priority: Priority::default(), grace: Duration::ZERO }
    }
}

impl How {
    pub(crate) fn priority(level: u16) -> Self {
        Self { priority: Priority::new(level), ..Self::default() }
    }

    pub(crate) fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }
}

impl Actor {
    pub(crate) fn new(store: SharedStore, ns: Namespace, me: MemberRef, ttl: Duration) -> Self {
        let profile = Profile::default();
        let inherits = false;
        let nonce = AtomicU64::new(0);
        let held = Mutex::default();
        Self { store, ns, me, profile, ttl, inherits, nonce, held }
    }

    pub(crate) async fn join(&self, supersede: bool) -> Outcome<Joined> {
        let join = Join::new(self.me.clone(), self.ttl)
            .with_profile(self.profile.clone())
            .with_supersede(supersede)
            .with_inherits(self.inherits);
        Ok(self.store.join(&self.ns, &join).await?)
    }

    /// Joins where nothing is in the way.
    pub(crate) async fn enter(&self) -> Outcome {
        let joined = self.join(false).await?;
        ensure!(matches!(joined, Joined::In { .. }), "{} must be let in: {joined:?}", self.me);
        self.settle().await
    }

    /// Beats as a process does that has run for a while: a store may know a shorter way
    /// for a heartbeat like the last one, and that is the way that is to be tested (P15).
    async fn settle(&self) -> Outcome {
        self.alive().await?;
        self.alive().await?;
        Ok(())
    }

    /// One heartbeat for everything that is held.
    pub(crate) async fn beat_for(&self, ttl: Duration) -> Outcome<Beat> {
        self.send_beat(ttl, Vec::new()).await
    }

    /// One heartbeat, naming these terms.
    pub(crate) async fn beat_naming(&self, held: Vec<TermRef>) -> Outcome<Beat> {
        self.send_beat(self.ttl, held).await
    }

    async fn send_beat(&self, ttl: Duration, held: Vec<TermRef>) -> Outcome<Beat> {
        let beat = Heartbeat::new(self.me.clone(), ttl).with_held(held);
        Ok(self.store.heartbeat(&self.ns, &beat).await?)
    }

    pub(crate) async fn beat(&self) -> Outcome<Beat> {
        self.beat_for(self.ttl).await
    }

    /// Beats, and must be answered as a live member.
    pub(crate) async fn alive(&self) -> Outcome<u64> {
        match self.beat().await? {
            Beat::Alive { attention, .. } => Ok(attention),
            ended => Err(CaseFailure::new(format!("{} must be alive: {ended:?}", self.me))),
        }
    }

    /// Beats, and must be answered *ended*; whether another took its place.
    pub(crate) async fn ended(&self) -> Outcome<bool> {
        match self.beat().await? {
            Beat::Ended { superseded } => Ok(superseded),
            alive => Err(CaseFailure::new(format!("{} must be ended: {alive:?}", self.me))),
        }
    }

    /// Has a short while left to live, unless it beats again. Said twice, the second
    /// time by the store's shorter way, if it has one.
    pub(crate) async fn fade(&self, unit: Duration) -> Outcome {
        for _ in 0..2 {
            let beat = self.beat_for(unit).await?;
            ensure!(matches!(beat, Beat::Alive { .. }), "{} must be alive: {beat:?}", self.me);
        }
        Ok(())
    }

    pub(crate) fn next_nonce(&self) -> Nonce {
        Nonce::new(self.nonce.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A claim of one bid.
    pub(crate) fn claim_for(&self, name: &str, nonce: Nonce, how: How) -> Outcome<Claim> {
        let bid = Bid::new(election(name)?, nonce).with_priority(how.priority);
        Ok(Claim::new(self.me.clone(), self.ttl, [bid]).with_heir_grace(how.grace))
    }

    pub(crate) async fn send(&self, claim: &Claim) -> Outcome<Claims> {
        let claims = self.store.claim(&self.ns, claim).await?;
        if let Claims::Answered(answers) = &claims {
            let found = answers.len();
            let expected = claim.bids.len();
            ensure!(found == expected, "{found} answers to {expected} bids");
            for answer in answers {
                if let Claimed::Won(term) = answer {
                    self.believe(term);
                }
            }
        }
        Ok(claims)
    }

    /// One bid by a live member.
    pub(crate) async fn send_one(&self, claim: &Claim) -> Outcome<Claimed> {
        match self.send(claim).await? {
            Claims::Answered(mut answers) if answers.len() == 1 => Ok(answers.remove(0)),
            other => Err(CaseFailure::new(format!("{} bid once and got {other:?}", self.me))),
        }
    }

    pub(crate) async fn bid(&self, name: &str, how: How) -> Outcome<Claimed> {
        self.send_one(&self.claim_for(name, self.next_nonce(), how)?).await
    }

    /// Bids, and must win; then beats, as every leader does.
    pub(crate) async fn win(&self, name: &str) -> Outcome<Term> {
        self.win_by(name, How::default()).await
    }

    pub(crate) async fn win_by(&self, name: &str, how: How) -> Outcome<Term> {
        let term = won(self.bid(name, how).await?)?;
        self.settle().await?;
        Ok(term)
    }

    /// Bids for all of these in one claim, and must win each.
    pub(crate) async fn win_all(&self, names: &[String]) -> Outcome<Vec<Term>> {
        let mut claim = self.claim_for(&names[0], self.next_nonce(), How::default())?;
        for name in &names[1..] {
            let bid = Bid {
                election: election(name)?,
                nonce: self.next_nonce(),
                ..claim.bids[0].clone()
            };
            claim.bids.push(bid);
        }
        match self.send(&claim).await? {
            Claims::Answered(answers) => answers.into_iter().map(won).collect(),
            ended => Err(CaseFailure::new(format!("{} must be alive: {ended:?}", self.me))),
        }
    }

    /// Bids, and must not win.
    pub(crate) async fn lose(&self, name: &str) -> Outcome<ElectionView> {
        self.lose_by(name, How::default()).await
    }

    pub(crate) async fn lose_by(&self, name: &str, how: How) -> Outcome<ElectionView> {
        held(self.bid(name, how).await?)
    }

    /// A claim by one whose life is over; whether another took its place.
    pub(crate) async fn bid_ended(&self, name: &str) -> Outcome<bool> {
        match self.send(&self.claim_for(name, self.next_nonce(), How::default())?).await? {
            Claims::Ended { superseded } => Ok(superseded),
            other => Err(CaseFailure::new(format!("{} must be ended: {other:?}", self.me))),
        }
    }

    /// Gives one term up.
    pub(crate) async fn resign(&self, term: &Term) -> Outcome {
        self.resign_with(term, None, Duration::ZERO).await
    }

    pub(crate) async fn resign_with(
        &self,
        term: &Term,
        successor: Option<(MemberId, Duration)>,
        heir_grace: Duration,
    ) -> Outcome {
        self.release(vec![resignation(term, successor)], heir_grace).await
    }

    /// Gives one term up, to be handed over for this long; where that is not
    /// done, the vacancy is to be kept as long.
    pub(crate) async fn hand_over(&self, term: &Term, time: Duration) -> Outcome {
        self.hand_over_all(std::slice::from_ref(term), time).await
    }

    pub(crate) async fn hand_over_all(&self, terms: &[Term], time: Duration) -> Outcome {
        let items = terms.iter().map(|term| resignation(term, None)).collect();
        self.send_release(items, time, time).await
    }

    /// The same, to a successor for a time of its own.
    pub(crate) async fn hand_over_to(
        &self,
        term: &Term,
        successor: (MemberId, Duration),
        time: Duration,
    ) -> Outcome {
        self.send_release(vec![resignation(term, Some(successor))], time, time).await
    }

    /// Ends a candidacy alone.
    pub(crate) async fn withdraw(&self, name: &str) -> Outcome {
        let item = ReleaseItem::candidacy(election(name)?);
        self.release(vec![item], Duration::ZERO).await
    }

    pub(crate) async fn release(&self, items: Vec<ReleaseItem>, grace: Duration) -> Outcome {
        self.send_release(items, grace, Duration::ZERO).await
    }

    async fn send_release(
        &self,
        items: Vec<ReleaseItem>,
        heir_grace: Duration,
        confirm_within: Duration,
    ) -> Outcome {
        let release = Release::new(self.me.clone(), items)
            .with_heir_grace(heir_grace)
            .with_confirm_within(confirm_within);
        self.store.release(&self.ns, &release).await?;
        for item in &release.items {
            self.forget(item);
        }
        Ok(())
    }

    pub(crate) async fn leave(&self) -> Outcome {
        Ok(self.store.leave(&self.ns, &self.me).await?)
    }

    pub(crate) async fn read(&self, query: &Query) -> Outcome<Snapshot> {
        Ok(self.store.read(&self.ns, query).await?)
    }

    /// One election, as this member sees it.
    pub(crate) async fn view(&self, name: &str) -> Outcome<ElectionView> {
        let asker = Some(self.me.clone());
        let query = Query { asker, candidates: true, ..Query::elections([election(name)?]) };
        let mut seen = self.read(&query).await?;
        ensure!(seen.elections.len() == 1, "one view for one name, found {seen:?}");
        Ok(seen.elections.remove(0))
    }

    /// One election as the machine looks at it, without anything besides: a store may
    /// know a shorter way for that.
    pub(crate) async fn look(&self, name: &str) -> Outcome<ElectionView> {
        let asker = Some(self.me.clone());
        let query = Query { asker, ..Query::elections([election(name)?]) };
        let mut seen = self.read(&query).await?;
        ensure!(seen.elections.len() == 1, "one view for one name, found {seen:?}");
        Ok(seen.elections.remove(0))
    }

    /// The names of what it holds, as the store has it.
    pub(crate) async fn holding(&self) -> Outcome<Vec<String>> {
        let query = Query { which: Which::HeldBy(self.me.incarnation), ..Query::nothing() };
        let seen = self.read(&query).await?;
        let mut names: Vec<_> = seen.elections.iter().map(|e| e.election.to_string()).collect();
        names.sort();
        Ok(names)
    }

    /// The terms it believes in.
    pub(crate) fn held(&self) -> Vec<TermRef> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn believe(&self, term: &Term) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|t| t.election != term.election);
        held.push(named(term));
    }

    fn forget(&self, item: &ReleaseItem) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|t| t.election != item.election || Some(t.number) != item.number);
    }
}

fn resignation(term: &Term, successor: Option<(MemberId, Duration)>) -> ReleaseItem {
    let election = term.election.clone();
    let number = Some(term.number);
    ReleaseItem { election, number, cause: ReleaseCause::Resigned, successor }
}

/// A term, as a heartbeat names it.
pub(crate) fn named(term: &Term) -> TermRef {
    TermRef { election: term.election.clone(), number: term.number }
}

/// The term, where a bid had to win.
pub(crate) fn won(claimed: Claimed) -> Outcome<Term> {
    match claimed {
        Claimed::Won(term) => Ok(term),
        other => Err(CaseFailure::new(format!("the bid must win: {other:?}"))),
    }
}

/// The view, where a bid had to lose.
pub(crate) fn held(claimed: Claimed) -> Outcome<ElectionView> {
    match claimed {
        Claimed::Held(view) => Ok(view),
        other => Err(CaseFailure::new(format!("the bid must not win: {other:?}"))),
    }
}
