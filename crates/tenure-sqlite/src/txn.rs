//! One atomic step on one namespace, and the rows that the rules ask it for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;

use rusqlite::{Connection, Params, Row, params};
use tenure_core::{Era, Incarnation, Seq, Timestamp};
use tenure_rules::{MemberRow, Moment};

use crate::error::Outcome;
use crate::journal::number;
use crate::judge::Judge;
use crate::rows::Member;
use crate::schema;

/// A transaction at work, or a snapshot being read.
#[derive(Debug)]
pub(crate) struct Txn<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) ns: &'a str,
    pub(crate) judge: Judge<'a>,
    pub(crate) wall: Timestamp,
    pub(crate) seq: u64,
    trimmed: u64,
    began_at: u64,
    /// The highest number of a term and the highest revision of names that this step wrote.
    pub(crate) highest: u64,
    /// Whether this step changed names.
    pub(crate) bound: bool,
    /// Lives that this step ended or found to be over: their locks may go.
    pub(crate) over: Vec<Incarnation>,
    /// The era, once it was asked for.
    pub(crate) era: Cell<Option<Era>>,
    /// The boot and the lock file's inode of each member that this step has read.
    locks: RefCell<HashMap<Incarnation, (String, u64)>>,
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
        Ok(Self {
            db,
            ns,
            judge,
            wall,
            seq,
            trimmed,
            began_at: seq,
            highest: 0,
            bound: false,
            over: Vec::new(),
            era: Cell::new(None),
            locks: RefCell::default(),
        })
    }

    /// The journal's place.
    pub(crate) fn seq(&self) -> Seq {
        Seq::new(self.seq)
    }

    /// The moment of this step, for the rules.
    pub(crate) fn at(&self) -> Moment {
        Moment { now: self.judge.now, wall: self.wall }
    }

    /// Lets the journal go on after this place; what it lacks up to there is told as
    /// entries that are no longer kept.
    pub(crate) fn jump_to(&mut self, place: Seq) {
        self.seq = place.get();
        self.trimmed = place.get();
    }

    /// Whether this step wrote to the journal.
    fn wrote(&self) -> bool {
        self.seq != self.began_at
    }

    /// Whether this step did something that others are told of.
    pub(crate) fn is_news(&self) -> bool {
        self.wrote() || self.bound
    }

    /// Writes the journal's place back, and trims the journal if it has grown
    /// an eighth beyond what is kept: rarely enough to cost nothing (H27).
    pub(crate) fn finish(&mut self, keep: u64) -> Outcome<()> {
        if !self.wrote() {
            return Ok(());
        }
        if self.seq - self.trimmed > keep.saturating_add(keep / 8) {
            return self.trim_to(self.seq - keep);
        }
        put_place(self)
    }

    /// Forgets journal entries up to this place.
    pub(crate) fn trim_to(&mut self, place: u64) -> Outcome<()> {
        self.trimmed = place;
        let upto = params![self.ns, number(place)];
        self.run(include_str!("sql/journal_trim.sql"), upto)?;
        self.run(include_str!("sql/ended_trim.sql"), upto)?;
        put_place(self)
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

    /// A member, as this step judges it.
    pub(crate) fn read_member(&self, row: &Row<'_>) -> Outcome<MemberRow> {
        let member = Member::read(row)?;
        self.locks.borrow_mut().insert(member.life(), (member.boot.clone(), member.lock));
        Ok(member.judged(&self.judge))
    }

    /// The boot and the lock file's inode of a member that this step has read.
    pub(crate) fn lock_of(&self, life: Incarnation) -> Option<(String, u64)> {
        self.locks.borrow().get(&life).cloned()
    }
}

/// Writes where the journal stands.
fn put_place(txn: &Txn<'_>) -> Outcome<()> {
    let place = params![txn.ns, number(txn.seq), number(txn.trimmed)];
    txn.run(include_str!("sql/namespace_put.sql"), place)?;
    Ok(())
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
