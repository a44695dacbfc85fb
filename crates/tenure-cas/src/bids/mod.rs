//! A claim: a bid for each of its elections, and the heartbeat that makes a win one.

mod bid;
mod together;

use futures_util::future::join;
use tenure_core::{Bid, Claim, Claimed, Claims, ElectionName, Namespace};
use tenure_rules::bidding::{Bidder, Opening};
use tenure_store::Result;

use self::bid::{Claiming, Fate, opening};
use crate::cells::{Cells, partly};
use crate::eras::Eras;
use crate::lives::Lives;
use crate::members::{Edit, Life};
use crate::outcomes::{is_passing, none_for_good, passable};
use crate::parts::Parts;
use crate::reader::Found;
use crate::record::candidacies::{CandidaciesRecord, CandidacyRecord};
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::views::Views;

/// From how many elections on a claim does not look first at those that it knows nothing of.
const MANY: usize = 8;

/// An election that was there may hold an older term of this very member: then the heartbeat
/// after a win is to count as a change of what it holds.
fn is_again(found: &[Result<Found>]) -> bool {
    found.iter().flatten().any(Option::is_some)
}

/// Standing for elections and winning them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bids<'a> {
    parts: Parts<'a>,
    lives: Lives<'a>,
    views: Views<'a>,
    eras: Eras<'a>,
}

impl<'a> Bids<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self {
            parts: Parts::new(cells, ns),
            lives: Lives::new(cells, ns),
            views: Views::new(cells, ns),
            eras: Eras::new(cells, ns),
        }
    }
}

impl Bids<'_> {
    /// See [`Store::claim`](tenure_store::Store::claim).
    ///
    /// First every election is loaded; then each bid; then, if anything was won,
    /// the member's heartbeat, which alone makes it so; and last the candidacies of
    /// what was not won. A bid whose own requests fail on their way stays open, and
    /// the others go on.
    pub(crate) async fn claim(&self, claim: &Claim) -> Result<Claims> {
        self.parts.cells.check_batch("bids", claim.bids.len())?;
        // Before the first request, so that what is loaded from here on counts as fresh.
        let started = self.parts.cells.now();
        let member = match self.parts.members.load_life(&claim.member).await? {
            Life::Over { superseded } => return Ok(Claims::Ended { superseded }),
            Life::Live(seen) => seen,
        };
        let names: Vec<_> = claim.bids.iter().map(|bid| bid.election.clone()).collect();
        self.parts.reader.remember_names(&names);
        let claiming = Claiming { claim, profile: &member.record.profile, started };
        let mut found = self.find(claim, &names).await?;
        let mut together = self.bid_together(&claiming, &found).await?;
        if together.is_none() && self.are_unseen(&names) {
            // They were taken to have no record, and one has.
            found = none_for_good(self.parts.reader.load_each_changed(&names, |_| false).await)?;
            together = self.bid_together(&claiming, &found).await?;
        }
        let fresh = self.fresh(claim, &found);
        let all_won = |fates: &Vec<Fate>| fates.iter().all(|fate| matches!(fate, Fate::Won(_)));
        if !together.as_ref().is_some_and(all_won)
            && fresh.iter().any(|bid| {
                self.parts.candidates.known_candidacy(&claim.member, &bid.election).is_none()
            })
        {
            // A candidate is ranked among those that are known: know them all.
            let refreshed = self.parts.reader.refresh_members(started).await;
            partly(together.is_some(), refreshed)?;
        }
        let again = is_again(&found);
        let confirmed = together.is_some();
        let outcomes = match together {
            Some(fates) => fates.into_iter().map(Ok).collect(),
            None => {
                let bids = claim.bids.iter().zip(found);
                let bids = bids.map(|(bid, found)| self.bid_on(&claiming, bid, found)).collect();
                self.parts.cells.all(bids).await
            }
        };
        let won = |outcome: &Result<Fate>| matches!(outcome, Ok(Fate::Won(_)));
        let any_won = outcomes.iter().any(won);
        // From the first win on an error may have applied something, and has to say so.
        let outcomes = partly(any_won, passable(outcomes))?;
        // A bid whose requests failed may have won: it is repeated, and its nonce tells.
        let outcomes = outcomes.into_iter().map(|outcome| outcome.unwrap_or(Fate::Open));
        let mut outcomes: Vec<Fate> = outcomes.collect();
        if any_won {
            let settled = self.settle_wins(&claiming, again, confirmed, &mut outcomes).await;
            if let Life::Over { superseded } = partly(true, settled)? {
                return Ok(Claims::Ended { superseded });
            }
            self.lives.remove_long_dead(false).await;
        }
        match self.stand(claim, &fresh, &outcomes).await {
            // What was won is won; who waits for the rest is not written down.
            Err(error) if any_won && is_passing(&error) => {
                let lost = |outcome: &&mut Fate| matches!(outcome, Fate::Lost(_));
                outcomes.iter_mut().filter(lost).for_each(|outcome| *outcome = Fate::Open);
            }
            stood => partly(any_won, stood)?,
        }
        Ok(Claims::Answered(self.answers(&claiming, outcomes).await))
    }

    /// The elections of a claim, each as it is now; or as the register has told it, for a
    /// member that waits for all of them already.
    async fn find(&self, claim: &Claim, names: &[ElectionName]) -> Result<Vec<Result<Found>>> {
        if self.are_unseen(names) {
            // Mostly they are new. If one is not, the batch conflicts, and they are loaded.
            return Ok(names.iter().map(|_| Ok(None)).collect());
        }
        let waits = |name: &ElectionName| {
            self.parts.candidates.known_candidacy(&claim.member, name).is_some()
        };
        none_for_good(self.parts.reader.load_each_changed(names, waits).await)
    }

    /// Whether these are many, to be won in one step, and nothing is known of any of them.
    fn are_unseen(&self, names: &[ElectionName]) -> bool {
        let cells = self.parts.cells;
        let key = |name| cells.keys.election(self.parts.ns, name);
        cells.register.batches().is_some()
            && names.len() >= MANY
            && names.iter().all(|name| cells.known::<ElectionRecord>(&key(name)).is_none())
    }

    /// One bid, if its election could be loaded.
    async fn bid_on(
        &self,
        claiming: &Claiming<'_>,
        bid: &Bid,
        found: Result<Found>,
    ) -> Result<Fate> {
        self.bid(claiming, bid, found?).await
    }

    /// Makes wins of what was swapped: raises the heartbeat, and looks meanwhile whether the
    /// numbers are above the floor (see `eras.rs`). Those that are not are lifted, and the
    /// heartbeat is raised once more.
    async fn settle_wins(
        &self,
        claiming: &Claiming<'_>,
        again: bool,
        confirmed: bool,
        outcomes: &mut [Fate],
    ) -> Result<Life> {
        let claim = claiming.claim;
        self.note_wins(claim, outcomes);
        // Side by side, which spares a round trip: the floor has to be read after the swaps
        // of the bids, and that they are written is known already.
        let known = self.parts.members.known_to_live(&claim.member).filter(|_| confirmed);
        let confirm = async {
            match known {
                // In the step in which they were won.
                Some(seen) => Ok(Life::Live(seen)),
                None => self.confirm(claim, again).await,
            }
        };
        let (life, floor) = join(confirm, self.eras.load()).await;
        let (life, floor) = match (life?, floor) {
            (Life::Live(seen), Ok(floor)) => (Life::Live(seen), floor),
            (Life::Live(seen), Err(error)) if is_passing(&error) => {
                // It is not known whether they are: the bids are repeated.
                let won = outcomes.iter_mut().filter(|o| matches!(o, Fate::Won(_)));
                won.for_each(|outcome| *outcome = Fate::Open);
                return Ok(Life::Live(seen));
            }
            (Life::Live(_), Err(error)) => return Err(error),
            // A life that was over has won nothing, wherever the floor is.
            (over, _) => return Ok(over),
        };
        let floor = self.parts.cells.decide.floor_of_terms(floor);
        let is_low = |o: &Fate| matches!(o, Fate::Won(term) if term.number.get() <= floor);
        let low: Vec<_> = (0..outcomes.len()).filter(|i| is_low(&outcomes[*i])).collect();
        if low.is_empty() {
            return Ok(life);
        }
        let lifts = low.iter().map(|i| self.begin_above(claiming, &claim.bids[*i], floor));
        let lifted = passable(self.parts.cells.all(lifts.collect()).await)?;
        for (i, outcome) in low.into_iter().zip(lifted) {
            outcomes[i] = outcome.unwrap_or(Fate::Open);
        }
        // The heartbeat before this one confirmed terms that were given up since.
        self.note_wins(claim, outcomes);
        self.confirm(claim, true).await
    }

    /// Remembers what was won, before the heartbeat that says that anything was:
    /// nothing that is written from then on may say otherwise.
    fn note_wins(&self, claim: &Claim, outcomes: &[Fate]) {
        let key = self.parts.cells.keys.member(self.parts.ns, &claim.member.id);
        let mut memory = self.parts.cells.memory();
        for outcome in outcomes {
            if let Fate::Won(term) = outcome {
                memory.won(&key, term);
            }
        }
    }

    /// Raises the heartbeat of a member that has just won: only if that is written is
    /// anything won, because only then was its life not over before. It makes
    /// trust that is counted from the start of the claim safe as well.
    async fn confirm(&self, claim: &Claim, again: bool) -> Result<Life> {
        let renew = |record: &mut MemberRecord| self.renew_for_win(claim, again, record);
        self.parts.members.edit(&claim.member, Edit::Beat(claim.ttl), renew).await
    }

    /// Makes a heartbeat one that confirms wins; says whether it does.
    fn renew_for_win(&self, claim: &Claim, again: bool, record: &mut MemberRecord) -> bool {
        record.ttl_ns = claim.ttl;
        record.holds = record.holds.won(self.parts.cells.clock_id);
        // It may have taken the place of an older term of its own.
        record.changes = record.changes.wrapping_add(u64::from(again));
        self.parts.cells.decide.confirms_wins()
    }

    /// The bids that stand for something, and are no copies of older ones.
    fn fresh<'a>(&self, claim: &'a Claim, found: &[Result<Found>]) -> Vec<&'a Bid> {
        let bids = claim.bids.iter().zip(found);
        let bids = bids.filter_map(|(bid, found)| Some((bid, found.as_ref().ok()?)));
        let new = bids.filter(|(bid, found)| {
            let bidder = Bidder { caller: &claim.member, bid };
            opening(found.as_ref(), bidder) == Opening::Open && self.stands_otherwise(claim, bid)
        });
        new.map(|(bid, _)| bid).collect()
    }

    /// Whether the candidacy of a bid is not written down as it is.
    fn stands_otherwise(&self, claim: &Claim, bid: &Bid) -> bool {
        let known = self.parts.candidates.known_candidacy(&claim.member, &bid.election);
        known.is_none_or(|stood| stood.priority != bid.priority.get())
    }

    /// Writes down the candidacies of what was not won.
    async fn stand(&self, claim: &Claim, fresh: &[&Bid], outcomes: &[Fate]) -> Result<()> {
        let lost = claim.bids.iter().zip(outcomes);
        let lost = lost.filter(|(_, outcome)| matches!(outcome, Fate::Lost(_)));
        let lost: Vec<_> = lost.map(|(bid, _)| bid).filter(|bid| fresh.contains(bid)).collect();
        if lost.is_empty() {
            return Ok(());
        }
        let orders: Vec<_> =
            lost.iter().map(|bid| self.parts.candidates.next_order(&bid.election)).collect();
        let enter = |record: &mut CandidaciesRecord| {
            let entered = lost.iter().zip(&orders).map(|(bid, order)| {
                let priority = bid.priority.get();
                let entry = record.elections.entry(bid.election.clone());
                // A new entry begins with another priority than the one asked for, so that
                // the replacement below counts it as a change.
                let stood = entry.or_insert(CandidacyRecord { priority: !priority, order: *order });
                std::mem::replace(&mut stood.priority, priority) != priority
            });
            entered.fold(false, |changed, entered| changed | entered)
        };
        self.parts.candidates.edit(&claim.member, enter).await.map(drop)
    }

    /// Losing is an answer, with the view. The rank in it may be as old as
    /// [`CasOptions::listing_age`](crate::CasOptions::listing_age); if it cannot
    /// be found out, what is known has to do.
    async fn answers(&self, claiming: &Claiming<'_>, outcomes: Vec<Fate>) -> Vec<Claimed> {
        let claim = claiming.claim;
        if outcomes.iter().any(|outcome| matches!(outcome, Fate::Lost(_))) {
            let _ = self
                .parts
                .reader
                .know_members(self.parts.cells.now() - self.parts.cells.options.listing_age)
                .await;
        }
        let answer = |(bid, outcome): (&Bid, Fate)| match outcome {
            Fate::Won(term) => Claimed::Won(term),
            Fate::Lost(found) => {
                let asker = Some(&claim.member);
                Claimed::Held(self.views.view(&bid.election, found.as_ref(), asker, false))
            }
            Fate::Open => Claimed::Unknown(bid.election.clone()),
        };
        claim.bids.iter().zip(outcomes).map(answer).collect()
    }
}
