//! Giving terms back, and no longer standing.

use rusqlite::params;
use tenure_core::{Release, ReleaseItem};

use crate::error::Outcome;
use crate::txn::Txn;

impl Txn<'_> {
    /// Ends candidacies and terms, each item on its own.
    pub(crate) fn release(&mut self, release: &Release) -> Outcome<()> {
        for item in &release.items {
            self.release_item(release, item)?;
            self.forget_if_unused(&item.election)?;
        }
        Ok(())
    }

    fn release_item(&mut self, release: &Release, item: &ReleaseItem) -> Outcome<()> {
        let member = &release.member;
        let election = self.election(&item.election)?;
        // E1: exactly this life and exactly this number, or it is too late. What a
        // life held that was ended is no longer its own to give back.
        let lives = self.recorded(member)?.is_some();
        let exact = |n| lives && n == election.number && election.is_held_by(member);
        if !item.number.is_none_or(exact) {
            return Ok(());
        }
        self.withdraw(&item.election, member)?;
        if item.number.is_some() {
            self.vacate(&election, item.cause, item.successor.as_ref(), release.heir_grace)?;
            let less = params![self.ns, member.id.as_str(), member.incarnation.to_string(), -1];
            self.run(include_str!("../sql/member_holds.sql"), less)?;
        }
        Ok(())
    }
}
