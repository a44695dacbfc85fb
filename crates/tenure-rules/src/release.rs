//! Giving terms back, and no longer standing.

use tenure_core::{Release, ReleaseItem};

use crate::rows::{Moment, WriteRows};
use crate::step::{Keep, Step};

/// Ends candidacies and terms, each item on its own.
pub fn release<R: WriteRows>(rows: &mut R, at: Moment, release: &Release) -> Result<(), R::Error> {
    Step::run(rows, at, |step| {
        // The heir that is elected in this step gets a number that was never given out (rule M6),
        // also when it is given up by one whom the store knows only from before a rollback.
        if !release.confirm_within.is_zero() && step.view().recorded(&release.member)?.is_some() {
            step.catch_up(release.seen)?;
        }
        release.items.iter().try_for_each(|item| step.release_item(release, item))
    })
}

impl<R: WriteRows> Step<'_, R> {
    fn release_item(&mut self, release: &Release, item: &ReleaseItem) -> Result<(), R::Error> {
        let Some(loaded) = self.rows.election(&item.election)? else { return Ok(()) };
        let member = &release.member;
        // E1: exactly this life and exactly this number, or it is too late. What a life
        // held that was ended is no longer its own to give back.
        if let Some(number) = item.number {
            let is_own = loaded.number == number && loaded.is_held_by(member);
            if !is_own || self.view().recorded(member)?.is_none() {
                return Ok(());
            }
        }
        let mut election = loaded.clone();
        self.withdraw(&mut election, member)?;
        if item.number.is_some() {
            let keep = Keep {
                successor: item.successor.as_ref(),
                grace: release.heir_grace,
                confirm_within: release.confirm_within,
            };
            self.vacate(&mut election, item.cause, &keep)?;
        }
        self.put_changed(Some(&loaded), &election)?;
        self.forget_if_unused(&election)
    }
}
