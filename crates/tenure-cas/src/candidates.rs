//! Candidates: who waits for what, and who comes next.

use std::time::Duration;

use tenure_core::{Candidate, ElectionName, MemberId, MemberRef, Namespace, Priority};
use tenure_rules::bidding::Bidder;
use tenure_rules::rank::{Stands, ahead, compare, heir, may_follow};
use tenure_store::{Error, ErrorKind, Result};

use crate::cells::{ATTEMPTS, Cells, too_busy};
use crate::judge::Judge;
use crate::record::candidacies::{CandidaciesRecord, CandidacyRecord, MAX_CANDIDACIES};
use crate::record::election::ElectionRecord;
use crate::record::member::MemberRecord;
use crate::seen::Seen;

/// One candidate, with all that ranks it.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) member: MemberRef,
    pub(crate) priority: Priority,
    order: u64,
    waiting: Duration,
}

impl Stands for Standing {
    fn member(&self) -> &MemberRef {
        &self.member
    }

    fn priority(&self) -> Priority {
        self.priority
    }

    fn place(&self) -> u64 {
        self.order
    }
}

/// The candidates of a namespace, as far as is known, and their records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidates<'a> {
    cells: &'a Cells,
    ns: &'a Namespace,
    judge: Judge<'a>,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(cells: &'a Cells, ns: &'a Namespace) -> Self {
        Self { cells, ns, judge: Judge::new(cells, ns) }
    }
}

impl Candidates<'_> {
    /// The live candidates known, the preferred first: the holder and those
    /// that never lead among them, the condemned not.
    pub(crate) fn standing(
        &self,
        name: &ElectionName,
        found: Option<&Seen<ElectionRecord>>,
    ) -> Vec<Standing> {
        let now = self.cells.now();
        let mut live: Vec<_> =
            self.judge.live_members().into_iter().map(|(seen, _)| seen).collect();
        live.retain(|seen| !seen.record.condemned);
        let lives = |who: &MemberRef| live.iter().any(|seen| seen.record.member() == *who);
        let memory = self.cells.memory();
        let waits = |seen: &Seen<MemberRecord>| {
            let key = self.cells.keys.standing(self.ns, &seen.record.member);
            let stands = memory.standings.get(&key)?;
            let of_this_life = stands.record.incarnation == seen.record.incarnation;
            let candidacy = *stands.record.elections.get(name).filter(|_| of_this_life)?;
            let waiting = now.since(memory.stood(&key, name).unwrap_or(now));
            Some(Standing {
                member: seen.record.member(),
                priority: Priority::new(candidacy.priority),
                order: candidacy.order,
                waiting,
            })
        };
        let mut standing: Vec<_> = live.iter().filter_map(waits).collect();
        // A holder stands for what it holds, and has stood the longest.
        if let Some((seen, holder)) = found.and_then(|s| Some((s, s.record.holder.as_ref()?)))
            && lives(&holder.member())
        {
            standing.retain(|s| s.member != holder.member());
            standing.push(Standing {
                member: holder.member(),
                priority: Priority::new(holder.priority),
                order: 0,
                waiting: now.since(seen.since),
            });
        }
        standing.sort_by(compare);
        standing
    }

    /// The candidates that could lead if the election were vacant, the preferred first.
    pub(crate) fn eligible(
        &self,
        name: &ElectionName,
        holder: Option<&MemberRef>,
    ) -> Vec<Standing> {
        let mut eligible = self.standing(name, None);
        eligible.retain(|candidate| may_follow(candidate, holder));
        eligible
    }

    /// How many candidates that may lead come before `asker`, as far as is known.
    pub(crate) fn ahead(
        &self,
        name: &ElectionName,
        holder: Option<&MemberRef>,
        asker: &MemberRef,
    ) -> u32 {
        ahead(&self.standing(name, None), holder, asker)
    }

    /// The heir of the vacancy that the end of this record's term leaves, and for how
    /// long the vacancy is kept; `None` if it is not kept.
    pub(crate) fn heir(
        &self,
        record: &ElectionRecord,
        successor: Option<&(MemberId, Duration)>,
        grace: Duration,
    ) -> Option<(MemberId, Duration)> {
        let holder = record.holder.as_ref().map(|holder| holder.member());
        let candidates = self.standing(&record.election, None);
        let (heir, time) = heir(&candidates, holder.as_ref(), successor, grace)?;
        (!time.is_zero()).then(|| (heir.member.id.clone(), time))
    }

    /// The heir of a vacancy that a bid uncovers, and for how long the vacancy is kept for
    /// it. The bidder stands as its bid says, whether or not that is written down yet.
    pub(crate) fn heir_of(
        &self,
        record: &ElectionRecord,
        bidder: Bidder<'_>,
        grace: Duration,
    ) -> Option<(MemberId, Duration)> {
        let mut candidates = self.standing(&record.election, None);
        let priority = bidder.bid.priority;
        match candidates.iter_mut().find(|one| one.member == *bidder.caller) {
            Some(own) => own.priority = priority,
            None => candidates.push(Standing {
                member: bidder.caller.clone(),
                priority,
                order: self.next_order(&record.election),
                waiting: Duration::ZERO,
            }),
        }
        let holder = record.holder.as_ref().map(|holder| holder.member());
        let (heir, time) = heir(&candidates, holder.as_ref(), None, grace)?;
        (!time.is_zero()).then(|| (heir.member.id.clone(), time))
    }

    /// Whether the one for whom a vacancy is kept still stands for it.
    pub(crate) async fn heir_stands(&self, name: &ElectionName, heir: &MemberId) -> Result<bool> {
        // Loaded anew: a reservation for an heir that has withdrawn since would keep the
        // election vacant for the rest of the grace.
        self.cells.load::<MemberRecord>(&self.cells.keys.member(self.ns, heir)).await?;
        self.cells.load::<CandidaciesRecord>(&self.cells.keys.standing(self.ns, heir)).await?;
        Ok(self.known_to_stand(name, heir))
    }

    /// The same, as far as is known.
    pub(crate) fn known_to_stand(&self, name: &ElectionName, id: &MemberId) -> bool {
        let member = self.cells.known::<MemberRecord>(&self.cells.keys.member(self.ns, id));
        let stands = self.cells.known::<CandidaciesRecord>(&self.cells.keys.standing(self.ns, id));
        let (Some(member), Some(stands)) = (member, stands) else { return false };
        !member.record.condemned
            && !self.judge.member_left(&member).is_zero()
            && stands.record.incarnation == member.record.incarnation
            && stands.record.elections.contains_key(name)
    }

    /// What `who` waits for, as far as is known.
    pub(crate) fn known_candidacy(
        &self,
        who: &MemberRef,
        name: &ElectionName,
    ) -> Option<CandidacyRecord> {
        let known =
            self.cells.known::<CandidaciesRecord>(&self.cells.keys.standing(self.ns, &who.id))?;
        let of_this_life = known.record.incarnation == who.incarnation;
        known.record.elections.get(name).copied().filter(|_| of_this_life)
    }

    /// The next place in the queue for an election.
    pub(crate) fn next_order(&self, name: &ElectionName) -> u64 {
        let standing = self.standing(name, None);
        standing.iter().map(|s| s.order).max().unwrap_or(0).saturating_add(1)
    }

    /// Changes what `who` waits for; `edit` says whether it changed anything,
    /// and so does the answer. What it holds by now is taken off in passing.
    pub(crate) async fn edit(
        &self,
        who: &MemberRef,
        mut edit: impl FnMut(&mut CandidaciesRecord) -> bool,
    ) -> Result<bool> {
        let key = self.cells.keys.standing(self.ns, &who.id);
        // What is known will do, although it may be old: then the swap conflicts.
        let mut seen = self.cells.known::<CandidaciesRecord>(&key);
        if seen.is_none() {
            seen = self.cells.load(&key).await?;
        }
        for _ in 0..ATTEMPTS {
            let mut record = match &seen {
                Some(seen) if seen.record.incarnation == who.incarnation => (*seen.record).clone(),
                Some(other) => CandidaciesRecord::new(who, other.record.revision),
                None => CandidaciesRecord::new(who, 0),
            };
            if !edit(&mut record) {
                return Ok(false);
            }
            let held = |name: &ElectionName| {
                let known =
                    self.cells.known::<ElectionRecord>(&self.cells.keys.election(self.ns, name));
                known.is_some_and(|s| s.record.is_held_by(who))
            };
            record.elections.retain(|name, _| !held(name));
            if record.elections.len() > MAX_CANDIDACIES {
                let what = format!("{who} would wait for too many elections");
                let remedy = format!("this kind of store takes {MAX_CANDIDACIES} for each member");
                return Err(Error::new(ErrorKind::Invalid, what).remedy(remedy));
            }
            if self.cells.swap(&key, seen.as_ref(), record, self.cells.now(), None).await?.is_some()
            {
                return Ok(true);
            }
            seen = self.cells.load(&key).await?;
            let newer = |s: &Seen<CandidaciesRecord>| s.record.incarnation != who.incarnation;
            if seen.as_ref().is_some_and(newer) {
                // Another candidate's since then: not to be overwritten by the one whose
                // place is taken.
                let member = self
                    .cells
                    .load::<MemberRecord>(&self.cells.keys.member(self.ns, &who.id))
                    .await?;
                if member.is_none_or(|m| !m.record.shows(who.incarnation)) {
                    return Ok(false);
                }
            }
        }
        Err(too_busy(&key))
    }
}

/// A candidate, as a view shows it.
pub(crate) fn candidate(standing: Standing) -> Candidate {
    let Standing { member, priority, waiting, .. } = standing;
    Candidate { member, priority, waiting }
}
