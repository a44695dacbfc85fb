//! The verbs of one step: the rules, and what a file has besides them. A life that is found
//! to be over is noted, so that its lock is let go.

use rusqlite::{OptionalExtension, named_params};
use tenure_core::{
    Amend, Amended, Beat, Bind, Bindings, Claim, Claims, Heartbeat, Join, Joined, MemberRef,
    NamesView, Query, Release, Seq, Snapshot, WhichNames,
};

use crate::error::Outcome;
use crate::rows::{instant, nanos};
use crate::txn::Txn;

impl Txn<'_> {
    pub(crate) fn join(&mut self, join: &Join) -> Outcome<Joined> {
        tenure_rules::join(self, self.at(), join)
    }

    /// Renews a live member. The common case is one statement on one row, whatever the
    /// member holds (C12). The rules decide the rest: a member that is over, one whose
    /// last heartbeat was written in another boot or time namespace than this one, and one
    /// that confirms terms.
    pub(crate) fn heartbeat(&mut self, beat: &Heartbeat) -> Outcome<Beat> {
        if beat.held.is_empty()
            && let Some(alive) = self.renew(beat)?
        {
            return Ok(alive);
        }
        let answer = tenure_rules::heartbeat(self, self.at(), beat)?;
        if matches!(answer, Beat::Ended { .. }) {
            self.over.push(beat.member.incarnation);
        }
        Ok(answer)
    }

    /// The common case of a heartbeat; `None` if this is another.
    fn renew(&self, beat: &Heartbeat) -> Outcome<Option<Beat>> {
        let member = &beat.member;
        let mut update = self.db.prepare_cached(include_str!("sql/member_beat.sql"))?;
        let renewed = update.query_row(
            named_params! {
                ":ns": self.ns,
                ":id": member.id.as_str(),
                ":incarnation": member.incarnation.to_string(),
                ":boot": self.judge.boot,
                ":now": instant(self.judge.now),
                ":ttl": nanos(beat.ttl),
            },
            |row| {
                Ok(Beat::Alive {
                    attention: row.get(0)?,
                    holds: Some(row.get(1)?),
                    seq: Seq::new(row.get::<_, Option<u64>>(2)?.unwrap_or(0)),
                    terms: Vec::new(),
                })
            },
        );
        Ok(renewed.optional()?)
    }

    pub(crate) fn leave(&mut self, member: &MemberRef) -> Outcome<()> {
        self.over.push(member.incarnation);
        tenure_rules::leave(self, self.at(), member)
    }

    pub(crate) fn claim(&mut self, claim: &Claim) -> Outcome<Claims> {
        let answer = tenure_rules::claim(self, self.at(), claim)?;
        if matches!(answer, Claims::Ended { .. }) {
            self.over.push(claim.member.incarnation);
        }
        Ok(answer)
    }

    pub(crate) fn release(&mut self, release: &Release) -> Outcome<()> {
        tenure_rules::release(self, self.at(), release)
    }

    pub(crate) fn bind(&mut self, bind: &Bind) -> Outcome<Bindings> {
        let answer = tenure_rules::bind(self, self.at(), bind)?;
        if let (Bindings::Ended { .. }, Some(member)) = (&answer, &bind.member) {
            self.over.push(member.incarnation);
        }
        Ok(answer)
    }

    pub(crate) fn look_up(&self, which: &WhichNames) -> Outcome<NamesView> {
        tenure_rules::names(self, self.judge.now, which)
    }

    pub(crate) fn amend(&mut self, amend: &Amend) -> Outcome<Amended> {
        tenure_rules::amend(self, self.at(), amend)
    }

    pub(crate) fn read(&self, query: &Query) -> Outcome<Snapshot> {
        tenure_rules::read(self, self.judge.now, query)
    }
}
