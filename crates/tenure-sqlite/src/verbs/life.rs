//! The verbs of a member's life: join, heartbeat, leave.

use std::time::Duration;

use rusqlite::{OptionalExtension, named_params, params};
use tenure_core::{Beat, EndCause, Happening, Heartbeat, Join, Joined, MemberRef, Seq};

use crate::error::Outcome;
use crate::rows::{Member, endpoints_text, instant, nanos};
use crate::txn::Txn;

impl Txn<'_> {
    /// Makes a member.
    pub(crate) fn join(&mut self, join: &Join) -> Outcome<Joined> {
        self.catch_up(join.seen)?;
        if self.acting(&join.member)?.is_some() {
            return self.join_again(join);
        }
        if let Some(taken) = self.taken(join)? {
            return Ok(taken);
        }
        self.make_room(&join.member)?;
        self.collect()?;
        self.sweep()?;
        self.admit(join)
    }

    /// A repeated request: as if it were the first, except that it is not news.
    fn join_again(&mut self, join: &Join) -> Outcome<Joined> {
        self.renew(&join.member, join.ttl)?;
        let (id, profile) = (join.member.id.as_str(), &join.profile);
        let lock = self.lock_of(&join.member);
        let columns = params![self.ns, id, endpoints_text(profile), profile.metadata(), lock];
        self.run(include_str!("../sql/member_profile.sql"), columns)?;
        self.joined(join)
    }

    /// Why a newcomer has to wait, or has to come back as somebody else.
    fn taken(&self, join: &Join) -> Outcome<Option<Joined>> {
        let found = self.named(&join.member.id)?;
        let (own, other) = match found {
            Some(row) if row.member == join.member => (Some(row), None),
            other => (None, other),
        };
        if own.is_some() || self.is_over(&join.member)? {
            let left = own.and_then(|row| self.remaining(&row)).unwrap_or(Duration::ZERO);
            return Ok(Some(Joined::Taken { by: join.member.incarnation, remaining: left }));
        }
        let stays = |row: &Member| self.fate(row).is_none() || self.at_work(row);
        let Some(other) = other.filter(stays) else { return Ok(None) };
        if join.supersede && other.holds == 0 {
            return Ok(None);
        }
        let remaining = self.remaining(&other).unwrap_or(Duration::ZERO);
        Ok(Some(Joined::Taken { by: other.member.incarnation, remaining }))
    }

    /// Whether this life has ended, as far back as the journal goes.
    fn is_over(&self, member: &MemberRef) -> Outcome<bool> {
        let sql = include_str!("../sql/ended_get.sql");
        let life = params![self.ns, member.incarnation.to_string()];
        Ok(self.one(sql, life, |_| Ok(()))?.is_some())
    }

    /// Ends the older life of an id that a newcomer may replace.
    fn make_room(&mut self, newcomer: &MemberRef) -> Outcome<()> {
        let Some(older) = self.named(&newcomer.id)? else { return Ok(()) };
        let cause = self.fate(&older).unwrap_or(EndCause::Superseded);
        self.end(&older.member, cause)
    }

    /// Ends the dead who hold nothing. Only a join adds members, so sweeping
    /// here keeps them from growing without bound (H27). Those who hold terms
    /// stay until somebody wants the terms (rule M2).
    fn collect(&mut self) -> Outcome<()> {
        let sql = include_str!("../sql/member_idle.sql");
        for idle in self.all(sql, params![self.ns], Member::read)? {
            if let Some(cause) = self.fate(&idle) {
                self.end(&idle.member, cause)?;
            }
        }
        Ok(())
    }

    fn admit(&mut self, join: &Join) -> Outcome<Joined> {
        let (member, profile) = (&join.member, &join.profile);
        self.run(
            include_str!("../sql/member_insert.sql"),
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":boot": self.judge.boot,
                ":lock": self.lock_of(member),
                ":now": instant(self.judge.now),
                ":ttl": nanos(join.ttl),
                ":wall": crate::journal::number(self.wall.unix_millis()),
                ":endpoints": endpoints_text(profile),
                ":metadata": profile.metadata(),
            },
        )?;
        self.tell(Happening::Joined { member: member.clone(), profile: profile.clone() })?;
        self.joined(join)
    }

    /// The inode of the lock that this handle holds for a member, as the tables
    /// keep it; that of no file if it holds none.
    fn lock_of(&self, member: &MemberRef) -> i64 {
        let held = self.judge.lives.and_then(|lives| lives.lock_of(member.incarnation));
        held.map_or(0, u64::cast_signed)
    }

    fn joined(&self, join: &Join) -> Outcome<Joined> {
        let attention = self.named(&join.member.id)?.map_or(0, |m| m.attention);
        Ok(Joined::In { attention, seq: self.seq() })
    }

    /// Renews a live member. The common case is one statement on one row,
    /// whatever the member holds (C12).
    pub(crate) fn heartbeat(&mut self, beat: &Heartbeat) -> Outcome<Beat> {
        let member = &beat.member;
        let mut update = self.db.prepare_cached(include_str!("../sql/member_beat.sql"))?;
        let renewed = update.query_row(
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":boot": self.judge.boot,
                ":now": instant(self.judge.now),
                ":ttl": nanos(beat.ttl),
            },
            |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<u64>>(2)?)),
        );
        if let Some((attention, holds, seq)) = renewed.optional()? {
            let seq = Seq::new(seq.unwrap_or(0));
            return Ok(Beat::Alive { attention, holds: Some(holds), seq, terms: Vec::new() });
        }
        self.heartbeat_elsewhere(beat)
    }

    /// The rare case: the member is over, or its last heartbeat was written in
    /// another boot or time namespace than this one.
    fn heartbeat_elsewhere(&mut self, beat: &Heartbeat) -> Outcome<Beat> {
        let Some(member) = self.acting(&beat.member)? else {
            self.over.push(beat.member.incarnation);
            return Ok(Beat::Ended { superseded: self.superseded(&beat.member)? });
        };
        self.renew(&beat.member, beat.ttl)?;
        let (attention, holds) = (member.attention, Some(member.holds));
        Ok(Beat::Alive { attention, holds, seq: self.seq(), terms: Vec::new() })
    }

    /// Renews a member that was found to be live, from this boot on.
    pub(crate) fn renew(&self, member: &MemberRef, ttl: Duration) -> Outcome<()> {
        self.run(
            include_str!("../sql/member_renew.sql"),
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":boot": self.judge.boot,
                ":now": instant(self.judge.now),
                ":ttl": nanos(ttl),
            },
        )?;
        Ok(())
    }

    /// Ends the caller's own life. One whose ttl has run out may still leave,
    /// as long as nobody ended it: that only frees what nobody has taken yet.
    pub(crate) fn leave(&mut self, member: &MemberRef) -> Outcome<()> {
        self.over.push(member.incarnation);
        if self.recorded(member)?.is_some() {
            self.tell(Happening::Left { member: member.clone() })?;
            self.remove(member)?;
        }
        Ok(())
    }
}
