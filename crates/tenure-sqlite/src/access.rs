//! The rows of one step, as the rules read and write them.

use std::time::Duration;

use rusqlite::{named_params, params};
use tenure_core::{
    ElectionName, Entry, Era, Happening, Incarnation, MemberId, MemberRef, Mono, Name, Rev, Seq,
    StepDown, TermNumber, Timestamp, WhichNames,
};
use tenure_rules::{
    CandidacyRow, ElectionRow, EraCause, ForgottenRow, Held, MemberRow, NameRow, NamesRow,
    ReadRows, Reserved, WriteRows,
};

use crate::era::number_of;
use crate::error::{Fault, Outcome};
use crate::journal::{self, number};
use crate::rows::{self, Election, endpoints_text, instant, nanos};
use crate::txn::Txn;

impl ReadRows for Txn<'_> {
    type Error = Fault;

    fn member(&self, id: &MemberId) -> Outcome<Option<MemberRow>> {
        let sql = include_str!("sql/member_get.sql");
        self.one(sql, params![self.ns, id.as_str()], |row| self.read_member(row))
    }

    fn members(&self) -> Outcome<Vec<MemberRow>> {
        let sql = include_str!("sql/member_all.sql");
        self.all(sql, params![self.ns], |row| self.read_member(row))
    }

    fn idle_members(&self) -> Outcome<Vec<MemberRow>> {
        let sql = include_str!("sql/member_idle.sql");
        self.all(sql, params![self.ns], |row| self.read_member(row))
    }

    fn is_proven_dead(&self, member: &MemberRow) -> Outcome<bool> {
        let life = member.member.incarnation;
        let lock = self.lock_of(life);
        Ok(lock.is_some_and(|(boot, lock)| self.judge.proven_dead(life, &boot, lock)))
    }

    fn is_at_work(&self, member: &MemberRow) -> Outcome<bool> {
        let life = member.member.incarnation;
        Ok(self.lock_of(life).is_some_and(|(boot, _)| self.judge.at_work(life, &boot)))
    }

    fn election(&self, name: &ElectionName) -> Outcome<Option<ElectionRow>> {
        let sql = include_str!("sql/election_get.sql");
        let found = self.one(sql, params![self.ns, name.as_str()], Election::read)?;
        Ok(found.map(|election| election.judged(&self.judge)))
    }

    fn elections(&self) -> Outcome<Vec<ElectionRow>> {
        let sql = include_str!("sql/election_all.sql");
        self.all(sql, params![self.ns], |row| Ok(Election::read(row)?.judged(&self.judge)))
    }

    fn elections_after(
        &self,
        after: Option<&ElectionName>,
        most: usize,
    ) -> Outcome<Vec<ElectionRow>> {
        let sql = include_str!("sql/election_after.sql");
        let after = after.map_or("", ElectionName::as_str);
        self.all(sql, params![self.ns, after, most], |row| {
            Ok(Election::read(row)?.judged(&self.judge))
        })
    }

    fn forgotten(&self) -> Outcome<ForgottenRow> {
        let found = self.one(include_str!("sql/forgotten_get.sql"), params![self.ns], |row| {
            Ok(ForgottenRow { number: TermNumber::new(row.get(0)?), era: row.get(1)? })
        })?;
        Ok(found.unwrap_or_default())
    }

    fn elections_held_by(&self, life: Incarnation) -> Outcome<Vec<ElectionRow>> {
        let sql = include_str!("sql/election_held.sql");
        self.all(sql, params![self.ns, life.to_string()], |row| {
            Ok(Election::read(row)?.judged(&self.judge))
        })
    }

    fn candidacy(&self, election: &ElectionName, id: &MemberId) -> Outcome<Option<CandidacyRow>> {
        let sql = include_str!("sql/candidate_get.sql");
        self.one(sql, params![self.ns, election.as_str(), id.as_str()], |row| {
            rows::candidacy(row, election, "boot", &self.judge)
        })
    }

    fn candidates(&self, election: &ElectionName) -> Outcome<Vec<(CandidacyRow, MemberRow)>> {
        let sql = include_str!("sql/candidate_standing.sql");
        self.all(sql, params![self.ns, election.as_str()], |row| {
            let candidacy = rows::candidacy(row, election, "stood_boot", &self.judge)?;
            Ok((candidacy, self.read_member(row)?))
        })
    }

    fn has_candidates(&self, election: &ElectionName) -> Outcome<bool> {
        let sql = include_str!("sql/candidate_any.sql");
        Ok(self.one(sql, params![self.ns, election.as_str()], |_| Ok(()))?.is_some())
    }

    fn candidacies_of(&self, member: &MemberRef, most: usize) -> Outcome<Vec<ElectionName>> {
        let sql = include_str!("sql/candidate_of.sql");
        let life = member.incarnation.to_string();
        self.all(sql, params![self.ns, member.id.as_str(), life, most], |row| {
            rows::name("tenure_candidates", &row.get::<_, String>(0)?)
        })
    }

    fn remains(&self) -> Outcome<Option<MemberRef>> {
        self.one(include_str!("sql/remains_get.sql"), params![self.ns], rows::member_ref)
    }

    fn names(&self) -> Outcome<NamesRow> {
        self.names_at()
    }

    fn name(&self, name: &Name) -> Outcome<Option<NameRow>> {
        self.read_name(name)
    }

    fn names_asked(&self, which: &WhichNames) -> Outcome<Vec<NameRow>> {
        self.read_names(which)
    }

    fn names_after(&self, after: Option<&Name>, most: usize) -> Outcome<Vec<NameRow>> {
        self.some_after(after, most)
    }

    fn names_gone(&self, since: Rev) -> Outcome<Vec<Name>> {
        self.dropped_since(since)
    }

    fn names_of(&self, life: &MemberRef, most: usize) -> Outcome<Vec<Name>> {
        self.some_of(life, most)
    }

    fn era(&self) -> Outcome<Era> {
        self.present_era()
    }

    fn seq(&self) -> Seq {
        Seq::new(self.seq)
    }

    fn end_of(&self, life: &MemberRef) -> Outcome<Option<Entry>> {
        let sql = include_str!("sql/ended_get.sql");
        let life = params![self.ns, life.incarnation.to_string()];
        let Some(place) = self.one(sql, life, |row| Ok(row.get::<_, u64>(0)?))? else {
            return Ok(None);
        };
        let before = Seq::new(place.saturating_sub(1));
        Ok(journal::after(self.db, self.ns, before, 1)?.into_iter().next())
    }

    fn newest(&self, election: Option<&ElectionName>, most: usize) -> Outcome<Vec<Entry>> {
        journal::newest(self.db, self.ns, election, most)
    }
}

impl WriteRows for Txn<'_> {
    fn add_member(&mut self, row: &MemberRow) -> Outcome<()> {
        let member = &row.member;
        self.run(
            include_str!("sql/member_insert.sql"),
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":boot": self.judge.boot,
                // The inode of no file, if this handle holds no lock for it.
                ":lock": self.own_lock(member).unwrap_or(0),
                ":now": instant(self.judge.now),
                ":ttl": nanos(row.ttl),
                ":holds": row.holds,
                ":attention": number(row.attention),
                ":condemned": row.condemned,
                ":takes_over": row.inherits,
                ":joined_at": number(row.joined_at.unix_millis()),
                ":endpoints": endpoints_text(&row.profile),
                ":metadata": row.profile.metadata(),
            },
        )?;
        Ok(())
    }

    fn put_member(&mut self, row: &MemberRow) -> Outcome<()> {
        let member = &row.member;
        self.run(
            include_str!("sql/member_put.sql"),
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":lock": self.own_lock(member),
                ":holds": row.holds,
                ":attention": number(row.attention),
                ":condemned": row.condemned,
                ":takes_over": row.inherits,
                ":endpoints": endpoints_text(&row.profile),
                ":metadata": row.profile.metadata(),
            },
        )?;
        Ok(())
    }

    fn renew_member(&mut self, member: &MemberRef, now: Mono, ttl: Duration) -> Outcome<()> {
        self.run(
            include_str!("sql/member_renew.sql"),
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":boot": self.judge.boot,
                ":now": instant(now),
                ":ttl": nanos(ttl),
            },
        )?;
        Ok(())
    }

    fn remove_member(&mut self, member: &MemberRef) -> Outcome<()> {
        let life = params![self.ns, member.id.as_str(), member.incarnation.to_string()];
        self.run(include_str!("sql/member_delete.sql"), life)?;
        Ok(())
    }

    fn put_election(&mut self, row: &ElectionRow) -> Outcome<()> {
        self.highest = self.highest.max(row.number.get());
        let held = row.holder.as_ref();
        let lapses = held.and_then(|held: &Held| held.lapses);
        let (winner, nonce) = row.won.unzip();
        let paused = row.paused.as_ref();
        let asked = row.step_down.as_ref();
        let kept = row.reserved.as_ref();
        let until = kept.map(|kept: &Reserved| kept.until);
        // Both instants are written as what is left of them from now on, in this boot.
        let left = |until: Option<Mono>| until.map(|until| nanos(until.since(self.judge.now)));
        let here = |until: Option<Mono>| until.map(|_| self.judge.boot);
        let from = |until: Option<Mono>| until.map(|_| instant(self.judge.now));
        self.run(
            include_str!("sql/election_put.sql"),
            named_params! {
                ":ns": self.ns,
                ":name": row.name.as_str(),
                ":number": number(row.number.get()),
                ":era": number(row.era),
                ":holder": held.map(|held| held.member.id.as_str()),
                ":incarnation": held.map(|held| held.member.incarnation.to_string()),
                ":elected_at": number(held.map_or(0, |held| held.elected_at.unix_millis())),
                ":handed": held.is_some_and(|held| held.handed),
                ":lapse_boot": here(lapses),
                ":lapse_from": from(lapses),
                ":lapse_span": left(lapses),
                ":winner": winner.map(|winner: Incarnation| winner.to_string()),
                ":nonce": nonce.unwrap_or_default().get().cast_signed(),
                ":pause_reason": paused.map(|pause| pause.reason.as_str()),
                ":pause_by": paused.map(|pause| pause.by.as_str()),
                ":step_reason": asked.map(|asked: &StepDown| asked.reason.as_str()),
                ":step_by": asked.map(|asked| asked.by.as_str()),
                ":step_to": asked.and_then(|asked| asked.to.as_ref()).map(MemberId::as_str),
                ":heir": kept.map(|kept| kept.member.as_str()),
                ":heir_boot": here(until),
                ":heir_from": from(until),
                ":heir_span": left(until),
                ":changed_at": number(row.changed_at.unix_millis()),
            },
        )?;
        Ok(())
    }

    fn put_forgotten(&mut self, row: &ForgottenRow) -> Outcome<()> {
        let values = params![self.ns, number(row.number.get()), number(row.era)];
        self.run(include_str!("sql/forgotten_put.sql"), values)?;
        Ok(())
    }

    fn remove_election(&mut self, name: &ElectionName) -> Outcome<()> {
        self.run(include_str!("sql/election_delete.sql"), params![self.ns, name.as_str()])?;
        Ok(())
    }

    fn put_candidacy(&mut self, row: &CandidacyRow) -> Outcome<()> {
        self.run(
            include_str!("sql/candidate_put.sql"),
            named_params! {
                ":ns": self.ns,
                ":election": row.election.as_str(),
                ":id": row.member.id.as_str(),
                ":incarnation": row.member.incarnation.to_string(),
                ":priority": row.priority.get(),
                ":stood": number(row.stood.get()),
                ":boot": self.judge.boot,
                ":since": instant(row.since),
            },
        )?;
        Ok(())
    }

    fn remove_candidacy(&mut self, election: &ElectionName, member: &MemberRef) -> Outcome<bool> {
        let life = member.incarnation.to_string();
        let candidacy = params![self.ns, election.as_str(), member.id.as_str(), life];
        Ok(self.run(include_str!("sql/candidate_delete.sql"), candidacy)? > 0)
    }

    fn put_names(&mut self, row: &NamesRow) -> Outcome<()> {
        self.write_names_at(row)
    }

    fn put_name(&mut self, row: &NameRow) -> Outcome<()> {
        self.write_name(row)
    }

    fn remove_name(&mut self, name: &Name) -> Outcome<()> {
        self.run(include_str!("sql/name_delete.sql"), params![self.ns, name.as_str()])?;
        Ok(())
    }

    fn add_gone(&mut self, rev: Rev, name: &Name) -> Outcome<()> {
        let dropped = params![self.ns, number(rev.get()), name.as_str()];
        self.run(include_str!("sql/dropped_insert.sql"), dropped)?;
        Ok(())
    }

    fn forget_gone(&mut self, before: Rev, most: usize) -> Outcome<usize> {
        let oldest = params![self.ns, number(before.get()), most];
        self.run(include_str!("sql/dropped_trim.sql"), oldest)
    }

    fn add_remains(&mut self, member: &MemberRef) -> Outcome<()> {
        let life = params![self.ns, member.id.as_str(), member.incarnation.to_string()];
        self.run(include_str!("sql/remains_insert.sql"), life)?;
        Ok(())
    }

    fn remove_remains(&mut self, member: &MemberRef) -> Outcome<()> {
        let life = params![self.ns, member.incarnation.to_string()];
        self.run(include_str!("sql/remains_delete.sql"), life)?;
        Ok(())
    }

    fn append(&mut self, entry: Entry) -> Outcome<()> {
        journal::append(self.db, self.ns, &entry)?;
        self.seq = entry.seq.get();
        if let Happening::Left { member, .. } | Happening::Ended { member, .. } = &entry.what {
            let ended = params![self.ns, member.incarnation.to_string(), number(self.seq)];
            self.run(include_str!("sql/ended_insert.sql"), ended)?;
            self.over.push(member.incarnation);
        }
        Ok(())
    }

    fn forget_entries(&mut self) -> Outcome<()> {
        self.trim_to(self.seq)
    }

    fn go_on_after(&mut self, place: Seq) -> Outcome<()> {
        tracing::error!(
            namespace = self.ns,
            seen = place.get(),
            found = self.seq,
            "the file was rolled back: it has less of the journal than was seen of it before; the \
             era of term numbers rises"
        );
        self.jump_to(place);
        Ok(())
    }

    fn begin_era(&mut self, era: Era, wall: Timestamp, cause: EraCause) -> Outcome<()> {
        let at = number(wall.unix_millis());
        let cause = number_of(cause);
        let values = params![number(era.count()), number(era.floor()), at, number(cause)];
        self.run(include_str!("sql/meta_raise.sql"), values)?;
        let floor = number(era.floor());
        self.run(include_str!("sql/member_attention_all.sql"), params![floor])?;
        self.era.set(Some(era));
        Ok(())
    }
}

impl Txn<'_> {
    /// The inode of the lock that this handle holds for a member.
    fn own_lock(&self, member: &MemberRef) -> Option<i64> {
        self.judge.lives.lock_of(member.incarnation).map(u64::cast_signed)
    }
}
