//! Defects in how terms are handed over and taken on.

use std::time::Duration;

use tenure_core::{
    Amend, Bid, Candidate, Claim, Claimed, ElectionName, Heartbeat, MemberRef, Namespace, Nonce,
    Note, Priority, Query, Release, Term, TermBeat, TermOutcome, TermRef, Which,
};
use tenure_store::{Result, Store};

use crate::defect::Defect;
use crate::store::Broken;

/// Who stood for an election.
pub(crate) type Standing = Vec<(ElectionName, Vec<Candidate>)>;

impl Broken {
    /// The heartbeat, with the terms that a broken store takes it to name.
    pub(crate) async fn taking(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Heartbeat> {
        let mut beat = beat.clone();
        match self.defect {
            Defect::BeatTakesNothingOn => beat.held.clear(),
            Defect::AnyBeatTakesOn => {
                let which = Which::HeldBy(beat.member.incarnation);
                let seen = self.inner.read(ns, &Query { which, ..Query::nothing() }).await?;
                let all = seen.elections.into_iter();
                let all = all.map(|v| TermRef { election: v.election, number: v.number });
                beat.held.extend(all);
            }
            Defect::TakesOnAnyTerm => {
                for term in &mut beat.held {
                    term.number = self.view(ns, &term.election).await?.number;
                }
            }
            _ => {}
        }
        Ok(beat)
    }

    /// The answers for the terms that the heartbeat did name.
    pub(crate) async fn answer_for_terms(
        &self,
        ns: &Namespace,
        beat: &Heartbeat,
        terms: &mut Vec<TermBeat>,
    ) -> Result<()> {
        terms.truncate(beat.held.len());
        terms.iter_mut().zip(&beat.held).for_each(|(answer, named)| answer.term = named.clone());
        let renewed = TermOutcome::Renewed { step_down: None };
        match self.defect {
            Defect::AnswersForOne => terms.truncate(1),
            Defect::ForgetsStepDowns => {
                terms.iter_mut().filter(|t| t.outcome != TermOutcome::Lost).for_each(|t| {
                    t.outcome = renewed.clone();
                });
            }
            Defect::AnswersForTerms | Defect::BeatTakesNothingOn | Defect::RevivesLapsed => {
                terms.clear();
                for term in beat.held.iter().cloned() {
                    let view = self.view(ns, &term.election).await?;
                    let own = view.is_held_by(beat.member.incarnation);
                    let present = view.number == term.number;
                    let lapsed = self.is(Defect::RevivesLapsed) && view.holder.is_none();
                    let good = self.is(Defect::AnswersForTerms) || present && (own || lapsed);
                    let outcome = if good { renewed.clone() } else { TermOutcome::Lost };
                    terms.push(TermBeat { term, outcome });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What a broken store does with the bid of a member that was handed the term.
    pub(crate) async fn handed_already(
        &self,
        ns: &Namespace,
        claim: &Claim,
    ) -> Result<Option<Claimed>> {
        let [bid] = &claim.bids[..] else { return Ok(None) };
        let view = self.view(ns, &bid.election).await?;
        if view.handed_to(claim.member.incarnation).is_none() {
            return Ok(None);
        }
        let election = view.election;
        let number = view.number;
        match (self.defect, view.holder) {
            (Defect::BidTakesNothingOn, Some(holder)) => {
                let member = holder.member;
                let elected_at = holder.elected_at;
                Ok(Some(Claimed::Won(Term { election, number, member, elected_at })))
            }
            (Defect::BidsAreAllNews, _) => {
                let held = vec![TermRef { election, number }];
                let member = claim.member.clone();
                let ttl = claim.ttl;
                self.inner.heartbeat(ns, &Heartbeat::new(member, ttl).with_held(held)).await?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Who stands before a claim that may end what has lapsed.
    pub(crate) async fn standing(&self, ns: &Namespace, claim: &Claim) -> Result<Standing> {
        if !self.is(Defect::KeepsLapsedCandidacies) {
            return Ok(Vec::new());
        }
        let names = claim.bids.iter().map(|bid| bid.election.clone());
        let query = Query { candidates: true, ..Query::elections(names) };
        let seen = self.inner.read(ns, &query).await?;
        Ok(seen.elections.into_iter().map(|v| (v.election, v.candidates)).collect())
    }

    /// Has those who stood before stand again.
    pub(crate) async fn stand_as_before(&self, ns: &Namespace, standing: Standing) -> Result<()> {
        for (election, candidates) in standing {
            for candidate in candidates {
                self.bid_for(ns, &election, candidate.member, candidate.priority).await?;
            }
        }
        Ok(())
    }

    /// Whether or not it wins, it stands from then on.
    async fn bid_for(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        member: MemberRef,
        priority: Priority,
    ) -> Result<()> {
        if self.view(ns, name).await?.is_held_by(member.incarnation) {
            return Ok(());
        }
        let nonce = Nonce::new(2_000_000 + self.counted());
        let bid = Bid::new(name.clone(), nonce).with_priority(priority);
        self.inner.claim(ns, &Claim::new(member, Duration::from_secs(10_000), [bid])).await?;
        Ok(())
    }

    /// Drops from a release what its sender was handed and has not taken on.
    pub(crate) async fn keep_unconfirmed(
        &self,
        ns: &Namespace,
        release: &mut Release,
    ) -> Result<()> {
        let mut kept = Vec::new();
        for item in release.items.drain(..) {
            let view = self.view(ns, &item.election).await?;
            if view.handed_to(release.member.incarnation).is_none() {
                kept.push(item);
            }
        }
        release.items = kept;
        Ok(())
    }

    /// Lifts a pause for as long as it takes, or looks who is next.
    pub(crate) async fn heirs(&self, ns: &Namespace, release: &Release) -> Result<Standing> {
        let mut heirs = Vec::new();
        for item in release.items.iter().filter(|item| item.number.is_some()) {
            let election = item.election.clone();
            let by = Note::default();
            if self.is(Defect::HandsOverPaused) {
                self.inner.amend(ns, &Amend::Resume { election, by }).await?;
            } else if self.is(Defect::HandsOverInTwoSteps) {
                let query = Query { candidates: true, ..Query::elections([election]) };
                let seen = self.inner.read(ns, &query).await?;
                heirs.extend(seen.elections.into_iter().map(|v| (v.election, v.candidates)));
            }
        }
        Ok(heirs)
    }

    /// What a broken store does after a release that hands terms over.
    pub(crate) async fn hand_over_oddly(
        &self,
        ns: &Namespace,
        release: &Release,
        heirs: Standing,
    ) -> Result<()> {
        for item in release.items.iter().filter(|item| item.number.is_some()) {
            let election = item.election.clone();
            let view = self.view(ns, &election).await?;
            match (self.defect, view.holder.filter(|h| h.unconfirmed)) {
                (Defect::HandsOverPaused, Some(_)) => {
                    let reason = Note::default();
                    let by = Note::default();
                    self.inner.amend(ns, &Amend::Pause { election, reason, by }).await?;
                }
                (Defect::HandsOverForGood, Some(holder)) => {
                    let held = vec![TermRef { election, number: view.number }];
                    let member = holder.member;
                    let ttl = holder.ttl;
                    self.inner.heartbeat(ns, &Heartbeat::new(member, ttl).with_held(held)).await?;
                }
                _ => {}
            }
        }
        for (election, candidates) in heirs {
            tokio::task::yield_now().await;
            let next = candidates.into_iter().find(|c| c.member != release.member);
            if let Some(next) = next {
                self.bid_for(ns, &election, next.member, next.priority).await?;
            }
        }
        Ok(())
    }
}
