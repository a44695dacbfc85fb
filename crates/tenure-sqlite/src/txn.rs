//! One atomic step on one namespace: the questions the verbs ask, and the few
//! ways in which a term or a member comes to its end.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Params, Row, named_params, params};
use tenure_core::{
    ElectionName, EndCause, Entry, Happening, Incarnation, MemberId, MemberRef, ReleaseCause, Seq,
    Timestamp,
};

use crate::error::Outcome;
use crate::journal::{self, number};
use crate::judge::Judge;
use crate::rows::{self, Election, Member, Standing, instant, nanos};
use crate::schema;

/// How many candidacies of an ended life one step clears away at most.
const SWEPT: usize = 64;

/// A transaction at work, or a snapshot being read.
#[derive(Debug)]
pub(crate) struct Txn<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) ns: &'a str,
    pub(crate) judge: Judge<'a>,
    pub(crate) wall: Timestamp,
    seq: u64,
    trimmed: u64,
    began_at: u64,
    /// The highest number that this step gave out.
    pub(crate) won: u64,
    /// Lives that this step ended or found to be over: their locks may go.
    pub(crate) over: Vec<Incarnation>,
}

impl<'a> Txn<'a> {
    /// Begins on a connection that already holds the lock or the snapshot. The
    /// judge's moment is no earlier than that.
    pub(crate) fn begin(
        db: &'a Connection,
        ns: &'a str,
        judge: Judge<'a>,
        wall: Timestamp,
    ) -> Outcome<Self> {
        let (seq, trimmed) = place(db, ns)?;
        Ok(Self { db, ns, judge, wall, seq, trimmed, began_at: seq, won: 0, over: Vec::new() })
    }

    /// The journal's place.
    pub(crate) fn seq(&self) -> Seq {
        Seq::new(self.seq)
    }

    /// Lets the journal go on after this place; what it lacks up to there is told as
    /// entries that are no longer kept.
    pub(crate) fn go_on_after(&mut self, place: Seq) {
        self.seq = place.get();
        self.trimmed = place.get();
    }

    /// Whether this step wrote to the journal.
    pub(crate) fn wrote(&self) -> bool {
        self.seq != self.began_at
    }

    /// Writes the journal's place back, and trims the journal if it has grown
    /// an eighth beyond what is kept: rarely enough to cost nothing (H27).
    pub(crate) fn finish(&mut self, keep: u64) -> Outcome<()> {
        if !self.wrote() {
            return Ok(());
        }
        if self.seq - self.trimmed > keep.saturating_add(keep / 8) {
            self.trimmed = self.seq - keep;
            let upto = params![self.ns, number(self.trimmed)];
            self.run(include_str!("sql/journal_trim.sql"), upto)?;
            self.run(include_str!("sql/ended_trim.sql"), upto)?;
        }
        let place = params![self.ns, number(self.seq), number(self.trimmed)];
        self.run(include_str!("sql/namespace_put.sql"), place)?;
        Ok(())
    }

    pub(crate) fn run(&self, sql: &str, params: impl Params) -> Outcome<usize> {
        Ok(self.db.prepare_cached(sql)?.execute(params)?)
    }

    pub(crate) fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Option<T>> {
        let mut select = self.db.prepare_cached(sql)?;
        let mut rows = select.query(params)?;
        rows.next()?.map(read).transpose()
    }

    pub(crate) fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl Fn(&Row<'_>) -> Outcome<T>,
    ) -> Outcome<Vec<T>> {
        let mut select = self.db.prepare_cached(sql)?;
        let mut rows = select.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    /// Writes one line of the journal.
    pub(crate) fn tell(&mut self, what: Happening) -> Outcome<Seq> {
        self.seq += 1;
        let entry = Entry { seq: self.seq(), at: self.wall, what };
        journal::append(self.db, self.ns, &entry)?;
        Ok(entry.seq)
    }

    /// Whoever goes by this id, live or not.
    pub(crate) fn named(&self, id: &MemberId) -> Outcome<Option<Member>> {
        let sql = include_str!("sql/member_get.sql");
        self.one(sql, params![self.ns, id.as_str()], Member::read)
    }

    /// Exactly this life, live or not, as long as nobody ended it.
    pub(crate) fn recorded(&self, member: &MemberRef) -> Outcome<Option<Member>> {
        Ok(self.named(&member.id)?.filter(|found| found.member == *member))
    }

    /// What is left of a member's ttl; `None` if it is not live.
    pub(crate) fn remaining(&self, member: &Member) -> Option<Duration> {
        self.judge.remaining(&member.stamp())
    }

    /// Why a member may be ended now; `None` while others must reckon with it.
    pub(crate) fn fate(&self, member: &Member) -> Option<EndCause> {
        if self.remaining(member).is_none() {
            let condemned = member.condemned;
            return Some(if condemned { EndCause::Evicted } else { EndCause::Expired });
        }
        let dead = self.judge.proven_dead(member.member.incarnation, &member.boot, member.lock);
        dead.then_some(EndCause::ProvenDead)
    }

    /// Whether a member that is over cannot be ended yet, since processes still
    /// work under it. The ttl alone frees what nobody works for.
    pub(crate) fn at_work(&self, member: &Member) -> bool {
        self.judge.at_work(member.member.incarnation, &member.boot)
    }

    /// Exactly this life, if it may still act for itself (rule M1): live, and
    /// not condemned.
    pub(crate) fn acting(&self, member: &MemberRef) -> Outcome<Option<Member>> {
        let found = self.recorded(member)?;
        Ok(found.filter(|m| !m.condemned && self.remaining(m).is_some()))
    }

    /// Whether another life goes by this one's id.
    pub(crate) fn superseded(&self, member: &MemberRef) -> Outcome<bool> {
        Ok(self.named(&member.id)?.is_some_and(|found| found.member != *member))
    }

    /// An election, as vacant with number 0 if there is no row for it.
    pub(crate) fn election(&self, name: &ElectionName) -> Outcome<Election> {
        let sql = include_str!("sql/election_get.sql");
        let found = self.one(sql, params![self.ns, name.as_str()], Election::read)?;
        Ok(found.unwrap_or_else(|| Election::unknown(name.clone())))
    }

    /// The elections a life holds.
    pub(crate) fn held_by(&self, life: Incarnation) -> Outcome<Vec<Election>> {
        let sql = include_str!("sql/election_held.sql");
        self.all(sql, params![self.ns, life.to_string()], Election::read)
    }

    /// The candidates whose members live and may act, the preferred first.
    pub(crate) fn standing(&self, name: &ElectionName) -> Outcome<Vec<Standing>> {
        let sql = include_str!("sql/candidate_ranked.sql");
        let mut found = self.all(sql, params![self.ns, name.as_str()], Standing::read)?;
        found.retain(|s| !s.member.condemned && self.fate(&s.member).is_none());
        Ok(found)
    }

    /// Those who could lead if the election were vacant, the preferred first.
    /// The holder waits for nothing.
    pub(crate) fn ranked(&self, election: &Election) -> Outcome<Vec<Standing>> {
        let mut ranked = self.standing(&election.name)?;
        let holder = election.holder.as_ref();
        ranked.retain(|s| s.priority.may_lead() && Some(&s.member.member) != holder);
        Ok(ranked)
    }

    /// For whom a vacancy is still kept, and for how long: the time has not run
    /// out, and the heir lives.
    pub(crate) fn kept_for(&self, election: &Election) -> Outcome<Option<(MemberId, Duration)>> {
        let Some(kept) = &election.reserved else { return Ok(None) };
        let Some(left) = self.judge.remaining(&kept.stamp) else { return Ok(None) };
        let heir = self.named(&kept.heir)?.filter(|heir| self.fate(heir).is_none());
        Ok(heir.map(|_| (kept.heir.clone(), left)))
    }

    /// Ends a member (rule M2). No heartbeat in flight finds it alive from here on.
    pub(crate) fn end(&mut self, member: &MemberRef, cause: EndCause) -> Outcome<()> {
        self.tell(Happening::Ended { member: member.clone(), cause })?;
        self.remove(member)
    }

    /// Removes a member whose end was told just now, at the same cost whatever it
    /// held (rule M5). Its terms and candidacies are void with its life: nobody
    /// reads them any more. A term is written off by [`settle`](Self::settle) when
    /// somebody bids for it; candidacies are cleared away a few at a time.
    pub(crate) fn remove(&mut self, member: &MemberRef) -> Outcome<()> {
        let id = member.id.as_str();
        let life = member.incarnation.to_string();
        self.run(include_str!("sql/member_delete.sql"), params![self.ns, id, life])?;
        let ended = params![self.ns, life, number(self.seq)];
        self.run(include_str!("sql/ended_insert.sql"), ended)?;
        if !self.sweep_life(member)? {
            self.run(include_str!("sql/remains_insert.sql"), params![self.ns, id, life])?;
        }
        self.over.push(member.incarnation);
        Ok(())
    }

    /// Clears away some candidacies of one life that ended earlier.
    pub(crate) fn sweep(&mut self) -> Outcome<()> {
        let sql = include_str!("sql/remains_get.sql");
        let Some(member) = self.one(sql, params![self.ns], rows::member_ref)? else {
            return Ok(());
        };
        if self.sweep_life(&member)? {
            let life = params![self.ns, member.incarnation.to_string()];
            self.run(include_str!("sql/remains_delete.sql"), life)?;
        }
        Ok(())
    }

    /// Clears away some candidacies of an ended life, and says whether none is left.
    fn sweep_life(&self, member: &MemberRef) -> Outcome<bool> {
        let sql = include_str!("sql/candidate_of.sql");
        let life = member.incarnation.to_string();
        let some = params![self.ns, member.id.as_str(), life, SWEPT];
        let stood = self.all(sql, some, |row| {
            let text: String = row.get(0)?;
            crate::rows::name::<ElectionName>("tenure_candidates", &text)
        })?;
        for election in &stood {
            self.withdraw(election, member)?;
            self.forget_if_unused(election)?;
        }
        Ok(stood.len() < SWEPT)
    }

    /// Writes off a term that ended with its holder's life, and keeps the vacancy
    /// for its heir. The cause is the life's, for as long as the journal has it.
    pub(crate) fn settle(&mut self, election: &Election, grace: Duration) -> Outcome<()> {
        let Some(holder) = &election.holder else { return Ok(()) };
        let known = self.end_of(holder.incarnation)?;
        let cause = known.unwrap_or(ReleaseCause::Ended(EndCause::Expired));
        self.vacate(election, cause, None, grace)
    }

    /// The end of a life in the journal, as far back as that goes.
    pub(crate) fn end_entry(&self, life: Incarnation) -> Outcome<Option<Entry>> {
        let sql = include_str!("sql/ended_get.sql");
        let seq = self.one(sql, params![self.ns, life.to_string()], |row| Ok(row.get(0)?))?;
        let Some(seq) = seq.map(|seq: u64| Seq::new(seq.saturating_sub(1))) else {
            return Ok(None);
        };
        Ok(journal::after(self.db, self.ns, seq, 1)?.into_iter().next())
    }

    /// How a life came to its end, as far back as the journal goes.
    fn end_of(&self, life: Incarnation) -> Outcome<Option<ReleaseCause>> {
        Ok(self.end_entry(life)?.and_then(|entry| match &entry.what {
            Happening::Left { .. } => Some(ReleaseCause::Left),
            Happening::Ended { cause, .. } => Some(ReleaseCause::Ended(*cause)),
            _ => None,
        }))
    }

    /// Ends exactly this life's candidacy, and what was kept for it.
    pub(crate) fn withdraw(&self, name: &ElectionName, member: &MemberRef) -> Outcome<()> {
        let (name, id) = (name.as_str(), member.id.as_str());
        let candidacy = params![self.ns, name, id, member.incarnation.to_string()];
        if self.run(include_str!("sql/candidate_delete.sql"), candidacy)? > 0 {
            let sql = include_str!("sql/election_disinherit.sql");
            self.run(sql, params![self.ns, name, id])?;
        }
        Ok(())
    }

    /// Makes a held election vacant and keeps the vacancy for its heir. A live
    /// holder's count of holdings is the caller's to lower.
    pub(crate) fn vacate(
        &mut self,
        election: &Election,
        cause: ReleaseCause,
        successor: Option<&(MemberId, Duration)>,
        grace: Duration,
    ) -> Outcome<()> {
        let Some(holder) = election.holder.clone() else { return Ok(()) };
        let heir = self.heir(election, successor, grace)?;
        self.run(
            include_str!("sql/election_vacate.sql"),
            named_params! {
                ":ns": self.ns,
                ":name": election.name.as_str(),
                ":heir": heir.as_ref().map(|(id, _)| id.as_str()),
                ":boot": heir.as_ref().map(|_| self.judge.boot),
                ":from": heir.as_ref().map(|_| instant(self.judge.now)),
                ":span": heir.as_ref().map(|(_, span)| nanos(*span)),
            },
        )?;
        let heir = heir.map(|(id, _)| id);
        if let Some(heir) = &heir {
            let sql = include_str!("sql/member_attention.sql");
            self.run(sql, params![self.ns, heir.as_str()])?;
        }
        let (election, number) = (election.name.clone(), election.number);
        self.tell(Happening::Released { election, number, member: holder, cause, heir })?;
        Ok(())
    }

    /// For whom a vacancy is to be kept: the successor named if it is there to
    /// take over, or else whoever is preferred. No grace keeps it for nobody.
    fn heir(
        &self,
        election: &Election,
        successor: Option<&(MemberId, Duration)>,
        grace: Duration,
    ) -> Outcome<Option<(MemberId, Duration)>> {
        if successor.is_none() && grace.is_zero() {
            return Ok(None);
        }
        let ranked = self.ranked(election)?;
        let ids = || ranked.iter().map(|s| &s.member.member.id);
        let named = successor.filter(|(id, _)| ids().any(|ranked| ranked == id)).cloned();
        let heir = named.or_else(|| ids().next().map(|id| (id.clone(), grace)));
        Ok(heir.filter(|(_, grace)| !grace.is_zero()))
    }

    /// Drops an election that nobody ever won, stands for or has paused (H27).
    pub(crate) fn forget_if_unused(&self, name: &ElectionName) -> Outcome<()> {
        self.run(include_str!("sql/election_forget.sql"), params![self.ns, name.as_str()])?;
        Ok(())
    }
}

/// The newest place of a namespace's journal, and the newest that is trimmed.
///
/// Every transaction and every look begins with it, and so it is also here that
/// tables which were upgraded or removed since they were opened are noticed.
pub(crate) fn place(db: &Connection, ns: &str) -> Outcome<(u64, u64)> {
    let mut select = db.prepare_cached(include_str!("sql/namespace_get.sql"))?;
    let found = select.query_row(params![ns], |row| {
        Ok((
            row.get::<_, Option<i64>>(0)?,
            row.get::<_, Option<_>>(1)?,
            row.get::<_, Option<_>>(2)?,
        ))
    });
    let (version, seq, trimmed) = found?;
    schema::check_version(version, db.path().map(Path::new))?;
    Ok((seq.unwrap_or(0), trimmed.unwrap_or(0)))
}

/// What was found out about locks, at no moment yet.
pub(crate) fn nothing_probed() -> std::cell::RefCell<HashMap<Incarnation, bool>> {
    std::cell::RefCell::default()
}
