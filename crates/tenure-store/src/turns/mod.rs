//! Stores that judge by their own clock and keep their rows elsewhere.
//!
//! Such a store implements [`Rows`]: look at some rows, and take a turn under guards.
//! [`TurnStore`] runs the rules in between, and makes a [`Store`] of it.

mod follow;
mod memory;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, ElectionName, Examined, Heartbeat, Join,
    Joined, MemberRef, NamesView, Namespace, Query, Release, Rev, Seq, Snapshot, Which, WhichNames,
};
use tenure_rules::{Looked, Missing, Partial, Turn, Want};

pub use self::memory::MemoryRows;
use crate::{Capabilities, Error, ErrorKind, Following, Page, Result, SharedStore, Store};

/// How often a turn is tried that others come before.
const TRIES: usize = 100;

/// Rows that lie in a service which judges by its own clock.
///
/// Every method is one round trip and one atomic step of the service, for one namespace.
#[async_trait]
pub trait Rows: Send + Sync + fmt::Debug {
    /// The rows wanted, all of one moment, and that moment by the service's clock.
    async fn look(&self, ns: &Namespace, wants: &BTreeSet<Want>) -> Result<Looked>;

    /// Writes a turn, if all of its guards hold; the service's clock is read after whatever
    /// the step waits for. If one does not hold, nothing is written, and `wants` are looked
    /// at once more in the same step.
    async fn turn(&self, ns: &Namespace, turn: &Turn, wants: &BTreeSet<Want>) -> Result<Turned>;

    /// A heartbeat that names no term: renews the row of exactly this life if it is live and
    /// not condemned when the step has whatever it waits for (rule M1). Raises no version.
    async fn beat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat>;

    /// At most `most` journal entries after a place; see [`Store::journal`].
    async fn entries(&self, ns: &Namespace, after: Seq, most: usize) -> Result<Page>;

    /// Waits until the journal may have grown beyond a place, or names may have changed since
    /// a revision. Returning early is harmless.
    async fn wait(&self, ns: &Namespace, after: Seq, since: Rev) -> Result<()>;

    /// What the store can do.
    fn capabilities(&self) -> Capabilities;
}

/// What became of a [`Turn`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)]
pub enum Turned {
    /// It is written.
    Applied,
    /// A guard did not hold; nothing is written. The rows as they are now.
    Conflict(Looked),
}

/// A [`Store`] over [`Rows`].
#[derive(Clone, Debug)]
pub struct TurnStore {
    rows: Arc<dyn Rows>,
}

impl TurnStore {
    /// The store over these rows.
    #[must_use]
    pub fn new(rows: Arc<dyn Rows>) -> Self {
        Self { rows }
    }

    /// This store, as most functions take one.
    #[must_use]
    pub fn shared(self) -> SharedStore {
        Arc::new(self)
    }

    /// Looks, lets the rules decide, and writes what they changed; again, for as long as
    /// something is missing or another came before.
    async fn decide<T>(
        &self,
        ns: &Namespace,
        caller: Option<&MemberRef>,
        mut wants: BTreeSet<Want>,
        rule: impl Fn(&mut Partial) -> std::result::Result<T, Missing>,
    ) -> Result<T> {
        let mut looked = self.rows.look(ns, &wants).await?;
        for _ in 0..TRIES {
            let mut partial = Partial::new(wants.clone(), looked);
            let answer = match rule(&mut partial) {
                Ok(answer) => answer,
                Err(missing) => {
                    wants.append(&mut partial.wants_besides(missing));
                    looked = self.rows.look(ns, &wants).await?;
                    continue;
                }
            };
            let turn = partial.into_turn(caller);
            if turn.is_empty() {
                return Ok(answer);
            }
            match self.rows.turn(ns, &turn, &wants).await? {
                Turned::Applied => return Ok(answer),
                Turned::Conflict(fresh) => looked = fresh,
            }
        }
        let what = format!("others came before each of {TRIES} turns in the namespace {ns}");
        Err(Error::new(ErrorKind::Busy, what).remedy("try again"))
    }
}

#[async_trait]
impl Store for TurnStore {
    async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        let own = Want::Member(join.member.id.clone());
        let over = Want::EndOf(join.member.clone());
        let wants = BTreeSet::from([own, over, Want::IdleMembers, Want::Remains]);
        let rule = |rows: &mut Partial| tenure_rules::join(rows, rows.at(), join);
        self.decide(ns, None, wants, rule).await
    }

    async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        if beat.held.is_empty() {
            return self.rows.beat(ns, beat).await;
        }
        let held = beat.held.iter().map(|term| Want::Election(term.election.clone()));
        let wants = held.chain([Want::Member(beat.member.id.clone())]).collect();
        let rule = |rows: &mut Partial| tenure_rules::heartbeat(rows, rows.at(), beat);
        self.decide(ns, Some(&beat.member), wants, rule).await
    }

    async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let wants = BTreeSet::from([Want::Member(member.id.clone())]);
        let rule = |rows: &mut Partial| tenure_rules::leave(rows, rows.at(), member);
        self.decide(ns, None, wants, rule).await
    }

    async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Claims> {
        self.capabilities().within_batch("bids", claim.bids.len())?;
        let names = claim.bids.iter().map(|bid| &bid.election);
        let own = [Want::Member(claim.member.id.clone()), Want::Remains];
        let wants = names.flat_map(election_wants).chain(own).collect();
        let rule = |rows: &mut Partial| tenure_rules::claim(rows, rows.at(), claim);
        self.decide(ns, Some(&claim.member), wants, rule).await
    }

    async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        self.capabilities().within_batch("releases", release.items.len())?;
        let names = release.items.iter().map(|item| &item.election);
        let own = Want::Member(release.member.id.clone());
        let wants = names.flat_map(election_wants).chain([own]).collect();
        let rule = |rows: &mut Partial| tenure_rules::release(rows, rows.at(), release);
        self.decide(ns, None, wants, rule).await
    }

    async fn bind(&self, ns: &Namespace, bind: &Bind) -> Result<Bindings> {
        self.capabilities().accepts(bind)?;
        let names = bind.ops.iter().map(|op| Want::Name(op.name.clone()));
        let fence = bind.fence.iter().map(|term| Want::Election(term.election.clone()));
        let own = bind.member.iter().map(|member| Want::Member(member.id.clone()));
        let wants = names.chain(fence).chain(own).chain([Want::Remains]).collect();
        let rule = |rows: &mut Partial| tenure_rules::bind(rows, rows.at(), bind);
        self.decide(ns, bind.member.as_ref(), wants, rule).await
    }

    async fn names(&self, ns: &Namespace, which: &WhichNames) -> Result<NamesView> {
        self.capabilities().keeps_names()?;
        let mut wants = BTreeSet::from([Want::Names(which.clone())]);
        if let WhichNames::Since(since) = which {
            wants.extend([Want::NamesGone(*since), Want::Members]);
        }
        let rule = |rows: &mut Partial| tenure_rules::names(rows, rows.at().now, which);
        self.decide(ns, None, wants, rule).await
    }

    async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        let wants = match amend {
            Amend::StepDown { election, .. }
            | Amend::Pause { election, .. }
            | Amend::Resume { election, .. } => election_wants(election).into(),
            Amend::Evict { member, .. } => BTreeSet::from([Want::Member(member.clone())]),
            Amend::Purge(purge) => BTreeSet::from([
                Want::Members,
                Want::Remains,
                Want::ElectionsAfter(purge.after.clone(), purge.most),
            ]),
            // What a rule needs beyond its first rows it asks for, at the price of another look.
            _ => BTreeSet::new(),
        };
        let rule = |rows: &mut Partial| tenure_rules::amend(rows, rows.at(), amend);
        self.decide(ns, None, wants, rule).await
    }

    async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        let mut wants: BTreeSet<Want> = match &query.which {
            Which::Nothing => BTreeSet::new(),
            Which::All => BTreeSet::from([Want::Elections]),
            Which::Named(names) => names.iter().cloned().map(Want::Election).collect(),
            Which::HeldBy(life) => BTreeSet::from([Want::ElectionsHeldBy(*life)]),
        };
        if query.members {
            wants.insert(Want::Members);
        }
        let rule = |rows: &mut Partial| tenure_rules::read(rows, rows.at().now, query);
        let snapshot = self.decide(ns, None, wants, rule).await?;
        // Its rows keep neither when an era began nor why.
        Ok(Snapshot { examined: query.examine.then(Examined::default), ..snapshot })
    }

    async fn journal(&self, ns: &Namespace, after: Seq) -> Result<Page> {
        self.rows.entries(ns, after, follow::BATCH).await
    }

    async fn follow(&self, ns: &Namespace) -> Result<Box<dyn Following>> {
        Ok(Box::new(follow::Follower::new(Arc::clone(&self.rows), ns).await?))
    }

    fn capabilities(&self) -> Capabilities {
        self.rows.capabilities()
    }
}

/// An election, and those who stand for it.
fn election_wants(name: &ElectionName) -> [Want; 2] {
    [Want::Election(name.clone()), Want::Candidates(name.clone())]
}
