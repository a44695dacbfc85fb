//! Writing to the copy: what is written goes into it and into the turn.

use core::time::Duration;

use tenure_core::{ElectionName, Entry, Era, MemberRef, Mono, Name, Rev, Seq, Timestamp};

use super::{Partial, sure};
use crate::partial::Missing;
use crate::rows::{
    CandidacyRow, ElectionRow, EraCause, ForgottenRow, MemberRow, NameRow, NamesRow, WriteRows,
};

impl WriteRows for Partial {
    fn add_member(&mut self, row: &MemberRow) -> Result<(), Missing> {
        self.need_member(&row.member.id)?;
        self.wrote_members.insert(row.member.id.clone());
        sure(self.state.add_member(row))
    }

    fn put_member(&mut self, row: &MemberRow) -> Result<(), Missing> {
        self.need_member(&row.member.id)?;
        self.wrote_members.insert(row.member.id.clone());
        sure(self.state.put_member(row))
    }

    fn renew_member(
        &mut self,
        member: &MemberRef,
        now: Mono,
        ttl: Duration,
    ) -> Result<(), Missing> {
        self.need_member(&member.id)?;
        self.wrote_members.insert(member.id.clone());
        sure(self.state.renew_member(member, now, ttl))
    }

    fn remove_member(&mut self, member: &MemberRef) -> Result<(), Missing> {
        self.need_member(&member.id)?;
        self.wrote_members.insert(member.id.clone());
        sure(self.state.remove_member(member))
    }

    fn put_election(&mut self, row: &ElectionRow) -> Result<(), Missing> {
        self.need_election(&row.name)?;
        self.wrote_elections.insert(row.name.clone());
        sure(self.state.put_election(row))
    }

    fn put_forgotten(&mut self, row: &ForgottenRow) -> Result<(), Missing> {
        self.turn.forgotten = Some(*row);
        sure(self.state.put_forgotten(row))
    }

    fn remove_election(&mut self, name: &ElectionName) -> Result<(), Missing> {
        self.need_election(name)?;
        self.wrote_elections.insert(name.clone());
        sure(self.state.remove_election(name))
    }

    fn put_candidacy(&mut self, row: &CandidacyRow) -> Result<(), Missing> {
        self.need_candidacy(&row.election, &row.member.id)?;
        self.wrote_candidacies.insert((row.election.clone(), row.member.id.clone()));
        sure(self.state.put_candidacy(row))
    }

    fn remove_candidacy(
        &mut self,
        election: &ElectionName,
        member: &MemberRef,
    ) -> Result<bool, Missing> {
        self.need_candidacy(election, &member.id)?;
        self.wrote_candidacies.insert((election.clone(), member.id.clone()));
        sure(self.state.remove_candidacy(election, member))
    }

    fn put_names(&mut self, row: &NamesRow) -> Result<(), Missing> {
        self.turn.names = Some(*row);
        sure(self.state.put_names(row))
    }

    fn put_name(&mut self, row: &NameRow) -> Result<(), Missing> {
        self.need_name(&row.name)?;
        self.wrote_names.insert(row.name.clone());
        sure(self.state.put_name(row))
    }

    fn remove_name(&mut self, name: &Name) -> Result<(), Missing> {
        self.need_name(name)?;
        self.wrote_names.insert(name.clone());
        sure(self.state.remove_name(name))
    }

    fn add_gone(&mut self, rev: Rev, name: &Name) -> Result<(), Missing> {
        self.turn.added_gone.push((rev, name.clone()));
        sure(self.state.add_gone(rev, name))
    }

    fn forget_gone(&mut self, before: Rev, most: usize) -> Result<usize, Missing> {
        self.turn.forget_gone = Some((before, most));
        sure(self.state.forget_gone(before, most))
    }

    fn add_remains(&mut self, member: &MemberRef) -> Result<(), Missing> {
        self.turn.added_remains.push(member.clone());
        sure(self.state.add_remains(member))
    }

    fn remove_remains(&mut self, member: &MemberRef) -> Result<(), Missing> {
        self.turn.added_remains.retain(|life| life != member);
        self.turn.removed_remains.push(member.clone());
        sure(self.state.remove_remains(member))
    }

    fn append(&mut self, entry: Entry) -> Result<(), Missing> {
        self.turn.entries.push(entry.clone());
        sure(self.state.append(entry))
    }

    fn forget_entries(&mut self) -> Result<(), Missing> {
        self.turn.forget_entries = true;
        sure(self.state.forget_entries())
    }

    fn go_on_after(&mut self, place: Seq) -> Result<(), Missing> {
        self.turn.go_on_after = Some(place);
        sure(self.state.go_on_after(place))
    }

    fn begin_era(&mut self, era: Era, wall: Timestamp, cause: EraCause) -> Result<(), Missing> {
        self.turn.era = Some(era);
        sure(self.state.begin_era(era, wall, cause))
    }
}
