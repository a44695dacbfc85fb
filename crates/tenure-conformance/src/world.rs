//! What a case works with: one namespace of one backend, the members in it, and
//! the time that passes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::{
    Amend, Amended, ElectionName, ElectionView, Entry, Happening, Incarnation, MAX_DRIFT_PPM,
    MemberId, MemberRef, Namespace, Note, Profile, Query, Seq, Snapshot, widened,
};
use tenure_store::{Capabilities, Followed, Following, Judge, Page, SharedStore};

use crate::actor::Actor;
use crate::case::ensure;
use crate::{CaseFailure, Harness, Outcome};

/// How long the suite listens in one go before it lets time pass for the store.
const LISTEN: Duration = Duration::from_millis(25);
/// How often it does so before it gives up.
const PATIENCE: u32 = 200;

/// One namespace of a harness's backend.
pub(crate) struct World<'h> {
    harness: &'h dyn Harness,
    pub(crate) ns: Namespace,
    lives: AtomicU64,
}

impl<'h> World<'h> {
    pub(crate) fn new(harness: &'h dyn Harness) -> Self {
        Self { harness, ns: Namespace::default(), lives: AtomicU64::new(0) }
    }

    /// The same backend, another namespace.
    pub(crate) fn namespace(&self, name: &str) -> Outcome<World<'h>> {
        // Lives of two namespaces must not be told apart by their incarnation.
        let harness = self.harness;
        let ns = Namespace::new(name)?;
        Ok(World { harness, ns, lives: AtomicU64::new(0) })
    }

    /// A handle of no member in particular.
    pub(crate) async fn store(&self) -> SharedStore {
        self.harness.open().await
    }

    pub(crate) async fn capabilities(&self) -> Capabilities {
        self.store().await.capabilities()
    }

    pub(crate) fn unit(&self) -> Duration {
        self.harness.unit()
    }

    /// Longer than any case takes.
    pub(crate) fn long(&self) -> Duration {
        self.harness.unit() * 500
    }

    /// The most that may be said to be left of a ttl. A store that judges by its own
    /// clock has to wait out the drift as well, and says how long it will wait.
    pub(crate) async fn most_left(&self, ttl: Duration) -> Duration {
        match self.capabilities().await.judge {
            Judge::Store => ttl,
            Judge::Observer => widened(ttl, MAX_DRIFT_PPM),
        }
    }

    pub(crate) fn journal_bound(&self) -> Option<usize> {
        self.harness.journal_bound()
    }

    pub(crate) fn clock(&self) -> std::sync::Arc<dyn tenure_store::Clock> {
        self.harness.clock()
    }

    pub(crate) async fn pass(&self, time: Duration) {
        self.harness.pass(time).await;
    }

    /// A new life of `id` in a process of its own, that has not joined yet.
    pub(crate) async fn life(&self, id: &str) -> Outcome<Actor> {
        let life = self.lives.fetch_add(1, Ordering::Relaxed) + 1;
        // High bits too, so that a store that keeps only half of them fails.
        let incarnation = Incarnation::from_u128(u128::from(life) << 64 | u128::from(life % 3));
        let me = MemberRef::new(MemberId::new(id)?, incarnation);
        Ok(Actor::new(self.store().await, self.ns.clone(), me, self.long()))
    }

    /// A member that lives longer than the case.
    pub(crate) async fn member(&self, id: &str) -> Outcome<Actor> {
        let actor = self.life(id).await?;
        actor.enter().await?;
        Ok(actor)
    }

    /// A member that publishes something.
    pub(crate) async fn member_with(&self, id: &str, profile: Profile) -> Outcome<Actor> {
        let mut actor = self.life(id).await?;
        actor.profile = profile;
        actor.enter().await?;
        Ok(actor)
    }

    /// A member that a term may be handed to.
    pub(crate) async fn taker(&self, id: &str) -> Outcome<Actor> {
        let mut actor = self.life(id).await?;
        actor.inherits = true;
        actor.enter().await?;
        Ok(actor)
    }

    /// Lets the short lives run out. The observers look first: where they judge
    /// by what they saw, this is what they saw.
    pub(crate) async fn lapse(&self, observers: &[&Actor]) -> Outcome {
        for observer in observers {
            observer.read(&Query::everything()).await?;
        }
        self.pass(self.unit() * 3 / 2).await;
        Ok(())
    }

    pub(crate) async fn read(&self, query: &Query) -> Outcome<Snapshot> {
        Ok(self.store().await.read(&self.ns, query).await?)
    }

    /// One election, as a reader sees it that is no member.
    pub(crate) async fn view(&self, name: &str) -> Outcome<ElectionView> {
        let mut seen = self.read(&Query::elections([election(name)?])).await?;
        ensure!(seen.elections.len() == 1, "one view for one name, found {seen:?}");
        Ok(seen.elections.remove(0))
    }

    /// The ids of the live members.
    pub(crate) async fn ids(&self) -> Outcome<Vec<String>> {
        let seen = self.read(&Query::members()).await?;
        let mut ids: Vec<_> = seen.members.iter().map(|m| m.member.id.to_string()).collect();
        ids.sort();
        Ok(ids)
    }

    pub(crate) async fn amend(&self, amend: Amend) -> Outcome<Amended> {
        Ok(self.store().await.amend(&self.ns, &amend).await?)
    }

    pub(crate) async fn pause(&self, name: &str) -> Outcome<Amended> {
        let reason = Note::new("maintenance");
        let by = Note::new("ops");
        self.amend(Amend::Pause { election: election(name)?, reason, by }).await
    }

    pub(crate) async fn resume(&self, name: &str) -> Outcome<Amended> {
        self.amend(Amend::Resume { election: election(name)?, by: Note::new("ops") }).await
    }

    pub(crate) async fn evict(&self, id: &str, now: bool) -> Outcome<Amended> {
        let member = MemberId::new(id)?;
        self.amend(Amend::Evict { member, now, by: Note::new("ops") }).await
    }

    pub(crate) async fn follow(&self) -> Outcome<Box<dyn Following>> {
        Ok(self.store().await.follow(&self.ns).await?)
    }

    /// A page of the journal.
    pub(crate) async fn page(&self, after: Seq) -> Outcome<Page> {
        Ok(self.store().await.journal(&self.ns, after).await?)
    }

    /// Waits for the next thing followed, letting time pass for stores that have
    /// to look; dropping the future on the way must lose nothing.
    pub(crate) async fn heard(&self, following: &mut dyn Following) -> Outcome<Followed> {
        for _ in 0..PATIENCE {
            if let Ok(followed) = tokio::time::timeout(LISTEN, following.next()).await {
                return Ok(followed?);
            }
            self.pass(self.unit() / 4).await;
        }
        Err(CaseFailure::new("nothing was heard although something happened"))
    }

    /// Every entry after `position`.
    pub(crate) async fn entries(&self, mut position: Seq) -> Outcome<Vec<Entry>> {
        let mut entries = Vec::new();
        loop {
            match self.page(position).await? {
                Page::Entries(more) => match more.last() {
                    Some(last) if last.seq > position => {
                        position = last.seq;
                        entries.extend(more);
                    }
                    Some(last) => {
                        let said = format!("after {position} there is no entry {}", last.seq);
                        return Err(CaseFailure::new(said));
                    }
                    None => return Ok(entries),
                },
                Page::Trimmed(seq) => {
                    return Err(CaseFailure::new(format!("trimmed up to {seq} already")));
                }
            }
        }
    }

    /// What the journal says happened so far.
    pub(crate) async fn happenings(&self) -> Outcome<Vec<Happening>> {
        Ok(self.entries(Seq::START).await?.into_iter().map(|e| e.what).collect())
    }
}

/// A name that is surely good.
pub(crate) fn election(name: &str) -> Outcome<ElectionName> {
    Ok(ElectionName::new(name)?)
}
