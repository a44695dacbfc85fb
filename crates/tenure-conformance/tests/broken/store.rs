//! A sound store with one defect: most change the answer, or do something
//! behind the caller's back; `requests.rs` has those that change the request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bid, Bind, Bindings, Claim, Claimed, Claims, ElectionName, ElectionView,
    Era, Heartbeat, Holder, Join, Joined, MemberId, MemberRef, NamesView, Namespace, Nonce, Note,
    Priority, Profile, Query, Release, ReleaseCause, ReleaseItem, Seq, Snapshot, StepDown, Term,
    TermNumber, TermRef, WhichNames,
};
use tenure_store::{Capabilities, Following, Judge, MemoryStore, Page, Result, Store};

use crate::defect::Defect;
use crate::follow::{BrokenFollowing, broken_page};
use crate::names::Remembered;

#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) inner: MemoryStore,
    pub(crate) defect: Defect,
    count: Arc<AtomicU64>,
    ttls: Arc<Mutex<HashMap<MemberRef, Duration>>>,
    step_downs: Arc<Mutex<HashMap<ElectionName, StepDown>>>,
    /// The newest term of each election, until it is given back.
    newest: Arc<Mutex<HashMap<ElectionName, Term>>>,
    pub(crate) names: Remembered,
    /// Whether there was a purge.
    pub(crate) purged: Arc<AtomicBool>,
}

impl Broken {
    pub(crate) fn new(inner: MemoryStore, defect: Defect) -> Self {
        let (count, ttls, step_downs, newest, names, purged) = Default::default();
        Self { inner, defect, count, ttls, step_downs, newest, names, purged }
    }

    pub(crate) fn is(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    pub(crate) fn counted(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) async fn view(&self, ns: &Namespace, name: &ElectionName) -> Result<ElectionView> {
        let mut seen = self.inner.read(ns, &Query::elections([name.clone()])).await?;
        Ok(seen.elections.remove(0))
    }

    /// The ttl that a member stated last.
    pub(crate) fn ttl_of(&self, member: &MemberRef) -> Option<Duration> {
        self.ttls.lock().expect("no panic").get(member).copied()
    }

    /// The live member that goes by the id.
    async fn bearer(&self, ns: &Namespace, member: &MemberRef) -> Result<Option<MemberRef>> {
        let seen = self.inner.read(ns, &Query::members()).await?;
        Ok(seen.members.into_iter().map(|m| m.member).find(|m| m.id == member.id))
    }

    async fn lives(&self, ns: &Namespace, id: &MemberId) -> Result<bool> {
        let seen = self.inner.read(ns, &Query::members()).await?;
        Ok(seen.members.iter().any(|m| m.member.id == *id))
    }

    /// Shows the newest term as if nothing had ended it but a release.
    fn outlive(&self, view: &mut ElectionView) {
        let newest = self.newest.lock().expect("no panic").get(&view.election).cloned();
        if let Some(term) = newest.filter(|_| view.holder.is_none()) {
            let ttl = Duration::from_secs(1);
            view.holder = Some(Holder {
                member: term.member,
                profile: Profile::default(),
                elected_at: term.elected_at,
                ttl,
                remaining: ttl,
                unconfirmed: false,
            });
        }
    }

    /// Two journal entries about nothing.
    pub(crate) async fn trace(&self, ns: &Namespace) -> Result<()> {
        let election = ElectionName::new("trace").expect("good");
        let reason = Note::default();
        let by = Note::default();
        let pause = Amend::Pause { election: election.clone(), reason, by: by.clone() };
        self.inner.amend(ns, &pause).await?;
        self.inner.amend(ns, &Amend::Resume { election, by }).await?;
        Ok(())
    }

    /// Takes an election from its holder.
    async fn dethrone(&self, ns: &Namespace, name: &ElectionName) -> Result<()> {
        let view = self.view(ns, name).await?;
        let Some(holder) = view.holder else { return Ok(()) };
        let item = ReleaseItem::term(TermRef::new(name.clone(), view.number));
        let item = item.with_cause(ReleaseCause::Abandoned);
        self.inner.release(ns, &Release::new(holder.member, [item])).await
    }

    /// What a broken store does before it looks at a claim.
    async fn before_claim(&self, ns: &Namespace, claim: &mut Claim) -> Result<()> {
        for bid in &mut claim.bids {
            let view = self.view(ns, &bid.election).await?;
            let other = view.holder.filter(|h| h.member != claim.member);
            match self.defect {
                Defect::PurgesAttempts if self.has_purged() => {
                    bid.nonce = Nonce::new(1_000 + self.counted());
                }
                Defect::IgnoresNonces => bid.nonce = Nonce::new(1_000 + self.counted()),
                Defect::Preempts if other.is_some() => self.dethrone(ns, &bid.election).await?,
                Defect::UnconfirmedIsFree if other.as_ref().is_some_and(|h| h.unconfirmed) => {
                    self.dethrone(ns, &bid.election).await?;
                }
                Defect::ChallengersTtl
                    if other.is_some_and(|h| h.ttl - h.remaining >= claim.ttl) =>
                {
                    self.dethrone(ns, &bid.election).await?;
                }
                Defect::ForgetsWaiting => {
                    let item = ReleaseItem::candidacy(bid.election.clone());
                    let withdrawal = Release::new(claim.member.clone(), [item]);
                    self.inner.release(ns, &withdrawal).await?;
                }
                _ => {}
            }
        }
        if self.is(Defect::WinIsNoHeartbeat) {
            let ttls = self.ttls.lock().expect("no panic");
            claim.ttl = ttls.get(&claim.member).copied().unwrap_or(claim.ttl);
        }
        Ok(())
    }

    async fn claim_in_parts(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        let mut all = Vec::new();
        for bids in claim.bids.chunks(self.inner.capabilities().batch) {
            let part = Claim { bids: bids.to_vec(), ..claim.clone() };
            match self.inner.claim(ns, &part).await? {
                Claims::Answered(answers) => all.extend(answers),
                ended => return Ok(ended),
            }
        }
        Ok(Claims::Answered(all))
    }

    async fn after_claim(
        &self,
        ns: &Namespace,
        claim: &Claim,
        mut answers: Vec<Claimed>,
    ) -> Result<Vec<Claimed>> {
        let lost = answers.iter().any(|a| matches!(a, Claimed::Held(_)));
        for (bid, answer) in claim.bids.iter().zip(&mut answers) {
            match (self.defect, &mut *answer) {
                (Defect::ReusesNumbers, Claimed::Won(term)) => term.number = TermNumber::new(1),
                (Defect::NumbersComeBack, Claimed::Won(term)) if self.has_purged() => {
                    term.number = TermNumber::new(1);
                }
                (Defect::TermsOutliveTheirLife, Claimed::Won(term)) => {
                    let mut newest = self.newest.lock().expect("no panic");
                    newest.insert(term.election.clone(), term.clone());
                }
                (Defect::CountsFromZero, Claimed::Won(term)) => {
                    term.number = TermNumber::new(term.number.get() - 1);
                }
                (Defect::AllOrNothing, Claimed::Won(_)) if lost => {
                    *answer = Claimed::Held(self.view(ns, &bid.election).await?);
                }
                (Defect::HidesHolder, Claimed::Held(view)) => view.holder = None,
                (Defect::MiscountsAhead, Claimed::Held(view)) => view.ahead += 1,
                _ => {}
            }
        }
        if self.is(Defect::ShortAnswers) {
            answers.truncate(10);
        }
        Ok(answers)
    }

    async fn stand_again(&self, ns: &Namespace, release: &Release) -> Result<()> {
        let bids = release.items.iter().filter(|item| item.number.is_some()).map(|item| {
            Bid::new(item.election.clone(), Nonce::new(1_000_000 + self.counted()))
                .with_priority(Priority::NEVER)
        });
        let claim = Claim::new(release.member.clone(), Duration::from_secs(1_000), bids);
        self.inner.claim(ns, &claim).await?;
        Ok(())
    }
}

fn done() -> Amended {
    Amended::Done { number: None, member: None, remaining: Duration::ZERO }
}

#[async_trait]
impl Store for Broken {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        let ns = &self.defect.namespace(ns);
        let join = &self.defect.join(join);
        let bearer = self.bearer(ns, &join.member).await?;
        if self.is(Defect::RefusesRepeatedJoins) && bearer.as_ref() == Some(&join.member) {
            let by = join.member.incarnation;
            let remaining = join.ttl;
            return Ok(Joined::Taken { by, remaining });
        }
        if self.is(Defect::AlwaysSupersedes) && bearer.is_some_and(|b| b != join.member) {
            let member = join.member.id.clone();
            let by = Note::default();
            self.inner.amend(ns, &Amend::Evict { member, now: true, by }).await?;
        }
        self.ttls.lock().expect("no panic").insert(join.member.clone(), join.ttl);
        let again = self.bearer(ns, &join.member).await?.as_ref() == Some(&join.member);
        let inherits = join.inherits || again && self.is(Defect::KeepsFirstJoin);
        self.inner.join(ns, &Join { inherits, ..join.clone() }).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        let ns = &self.defect.namespace(ns);
        let beat = &self.defect.heartbeat(beat);
        self.ttls.lock().expect("no panic").insert(beat.member.clone(), beat.ttl);
        if self.is(Defect::WritesOnHeartbeat) {
            self.trace(ns).await?;
        }
        let attention = 0;
        let holds = Some(0);
        let terms = Vec::new();
        let alive = Beat::Alive { attention, holds, seq: Seq::new(1), terms };
        if self.is(Defect::ForgetsHeartbeats)
            && self.bearer(ns, &beat.member).await?.as_ref() == Some(&beat.member)
        {
            return Ok(alive);
        }
        if self.is_spared(&beat.member) {
            return Ok(alive);
        }
        let mut answer = self.inner.heartbeat(ns, &self.taking(ns, beat).await?).await?;
        if let Beat::Alive { terms, .. } = &mut answer {
            self.answer_for_terms(ns, beat, terms).await?;
        }
        match (self.defect, &mut answer) {
            (Defect::HeartbeatRevives, Beat::Ended { .. }) => answer = alive,
            (Defect::CountsNothing, Beat::Alive { holds, .. }) => *holds = Some(0),
            (Defect::NeverRaisesAttention, Beat::Alive { attention, .. }) => *attention = 0,
            (Defect::CallsNoMember, Beat::Alive { attention, .. })
                if Era::has_begun(0, *attention) =>
            {
                *attention = 0;
            }
            (Defect::CallsOnce, Beat::Alive { attention, .. }) => {
                *attention = (*attention).min(Era::JUMP);
            }
            _ => {}
        }
        Ok(answer)
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let ns = &self.defect.namespace(ns);
        match self.defect {
            Defect::NeverLeaves => Ok(()),
            Defect::LeavesById => match self.bearer(ns, member).await? {
                Some(bearer) => self.inner.leave(ns, &bearer).await,
                None => Ok(()),
            },
            _ => self.inner.leave(ns, member).await,
        }
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        let ns = &self.defect.namespace(ns);
        let mut claim = self.defect.claim(claim);
        self.before_claim(ns, &mut claim).await?;
        if let Some(claimed) = self.handed_already(ns, &claim).await? {
            return Ok(Claims::Answered(vec![claimed]));
        }
        let standing = self.standing(ns, &claim).await?;
        let mut claims = match self.defect {
            Defect::UnlimitedBatch => self.claim_in_parts(ns, &claim).await?,
            _ => self.inner.claim(ns, &claim).await?,
        };
        if self.is(Defect::AdmitsStrangers) && matches!(claims, Claims::Ended { .. }) {
            self.inner.join(ns, &Join::new(claim.member.clone(), claim.ttl)).await?;
            claims = self.inner.claim(ns, &claim).await?;
        }
        self.stand_as_before(ns, standing).await?;
        match claims {
            Claims::Answered(answers) => {
                Ok(Claims::Answered(self.after_claim(ns, &claim, answers).await?))
            }
            ended => Ok(ended),
        }
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        let ns = &self.defect.namespace(ns);
        let mut release = self.defect.release(release);
        match self.defect {
            Defect::KeepsTerms => return Ok(()),
            Defect::ReleasesAnyTerm => {
                for item in release.items.iter().filter(|item| item.number.is_some()) {
                    self.dethrone(ns, &item.election).await?;
                }
            }
            Defect::ReusesNumbers => {
                for item in release.items.iter_mut().filter(|item| item.number.is_some()) {
                    item.number = Some(self.view(ns, &item.election).await?.number);
                }
            }
            Defect::NeverGivesBack => self.keep_unconfirmed(ns, &mut release).await?,
            _ => {}
        }
        let heirs = self.heirs(ns, &release).await?;
        if self.is(Defect::HandsOverOne) && release.items.len() > 1 {
            let items = release.items.split_off(1);
            let rest = Release { items, confirm_within: Duration::ZERO, ..release.clone() };
            self.inner.release(ns, &rest).await?;
        }
        self.inner.release(ns, &release).await?;
        self.hand_over_oddly(ns, &release, heirs).await?;
        if self.is(Defect::KeepsCandidacies) {
            self.stand_again(ns, &release).await?;
        }
        Ok(())
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        let ns = &self.defect.namespace(ns);
        self.bind_oddly(ns, bind).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        let ns = &self.defect.namespace(ns);
        self.names_oddly(ns, which).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        let ns = &self.defect.namespace(ns);
        let amend = &self.defect.amend(amend);
        match (self.defect, amend) {
            (Defect::IgnoresPauses, Amend::Pause { .. })
            | (Defect::NeverResumes, Amend::Resume { .. }) => return Ok(done()),
            (Defect::EvictsOnlyTheLiving, Amend::Evict { member, .. })
                if !self.lives(ns, member).await? =>
            {
                return Ok(Amended::NoSuchMember);
            }
            (Defect::KeepsFirstStepDown, Amend::StepDown { election, .. })
                if self.view(ns, election).await?.step_down.is_some() =>
            {
                return Ok(done());
            }
            (Defect::KeepsItsEra, Amend::Restored { .. }) => {
                return Ok(Amended::Restored { before: 0, after: 1 });
            }
            (_, Amend::Purge(purge)) => return self.purge_oddly(ns, purge).await,
            _ => {}
        }
        let amended = self.inner.amend(ns, amend).await?;
        if let Amend::StepDown { election, .. } = amend
            && let Some(step_down) = self.view(ns, election).await?.step_down
        {
            let mut kept = self.step_downs.lock().expect("no panic");
            kept.insert(election.clone(), step_down);
        }
        Ok(match (self.defect, amended) {
            (Defect::EvictsStrangers, Amended::NoSuchMember)
            | (Defect::NeverUnchanged, Amended::Unchanged)
            | (Defect::StepsDownVacancies, Amended::Vacant) => done(),
            (_, amended) => amended,
        })
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        let ns = &self.defect.namespace(ns);
        let query = &self.defect.query(query);
        if self.is(Defect::WritesOnRead) {
            self.trace(ns).await?;
        }
        let mut seen = self.inner.read(ns, query).await?;
        match self.defect {
            Defect::OmitsUnknown => seen.elections.retain(|e| e.number > TermNumber::NONE),
            Defect::CountsNothing => seen.members.iter_mut().for_each(|m| m.holds = 0),
            Defect::HistoryBackwards => seen.history.reverse(),
            Defect::PositionBehind => seen.seq = Seq::new(seen.seq.get().saturating_sub(1)),
            Defect::PositionZero => seen.seq = Seq::START,
            _ => {}
        }
        for view in &mut seen.elections {
            match self.defect {
                Defect::MiscountsAhead => view.ahead += 1,
                Defect::TermsOutliveTheirLife => self.outlive(view),
                Defect::HidesUnconfirmed => {
                    view.holder.iter_mut().for_each(|h| h.unconfirmed = false);
                }
                Defect::StretchesHanded => {
                    view.holder.iter_mut().for_each(|h| h.remaining = h.ttl);
                }
                Defect::SortsCandidatesByName => {
                    view.candidates.sort_by(|a, b| a.member.cmp(&b.member));
                }
                Defect::StepDownOutlivesTerm => {
                    let kept = self.step_downs.lock().expect("no panic");
                    view.step_down = kept.get(&view.election).cloned();
                }
                _ => {}
            }
        }
        Ok(seen)
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        let ns = &self.defect.namespace(ns);
        let defect = self.defect;
        let from_the_start = defect == Defect::FollowsFromTheStart;
        let after = if from_the_start { Seq::START } else { after };
        Ok(broken_page(defect, after, self.inner.journal(ns, after).await?))
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        let ns = &self.defect.namespace(ns);
        let defect = self.defect;
        let inner = self.inner.follow(ns).await?;
        Ok(Box::new(BrokenFollowing {
            inner,
            defect,
            heard: false,
            told_of_names: false,
            later: None,
        }))
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        match self.defect {
            Defect::DeniesJournal => capabilities.journal = false,
            Defect::DeniesHandingOver => capabilities.elects_heirs = false,
            Defect::DeniesNames => capabilities.names = None,
            Defect::DeniesJudging => capabilities.judge = Judge::Observer,
            Defect::ClaimsVary => {
                capabilities.batch -= usize::try_from(self.counted()).expect("few") % 500;
            }
            _ => {}
        }
        capabilities
    }
}
