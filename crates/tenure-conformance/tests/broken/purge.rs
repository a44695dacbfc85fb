//! Purges that go wrong.

use std::sync::atomic::Ordering;

use tenure_core::{
    Amend, Amended, Bind, BindOp, Namespace, Nonce, Note, Purge, Purged, Query, Release,
    ReleaseItem, TermRef, Which, WhichNames,
};
use tenure_store::{Result, Store};

use crate::defect::Defect;
use crate::store::Broken;

impl Broken {
    /// A purge, with this store's defect.
    pub(crate) async fn purge_oddly(&self, ns: &Namespace, purge: &Purge) -> Result<Amended> {
        let mut purge = purge.clone();
        match self.defect {
            Defect::NeverPurges => return Ok(Amended::Purged(Purged::default())),
            Defect::PurgesWithoutAWord => return Ok(Amended::Unchanged),
            Defect::DryRunsPurge => purge.dry_run = false,
            Defect::PurgesAtOnce => purge.most = usize::MAX,
            Defect::PurgesTheHeld | Defect::PurgesTheStoodFor | Defect::PurgesThePaused => {
                self.make_unused(ns).await?;
            }
            _ => {}
        }
        self.purged.store(true, Ordering::SeqCst);
        let left = WhichNames::Prefix("tenure-left:".to_owned());
        let kept = match self.defect {
            Defect::KeepsWhatWasLeft if !purge.dry_run => {
                self.inner.names(ns, &left).await?.bindings
            }
            _ => Vec::new(),
        };
        let amended = self.inner.amend(ns, &Amend::Purge(purge)).await;
        for binding in kept {
            let post = BindOp::post(binding.name, Nonce::new(1), binding.value);
            self.inner.bind(ns, &Bind::anonymous([post])).await?;
        }
        amended
    }

    /// Takes away what keeps elections from being purged.
    async fn make_unused(&self, ns: &Namespace) -> Result<()> {
        let query = Query { which: Which::All, candidates: true, ..Query::nothing() };
        for view in self.inner.read(ns, &query).await?.elections {
            if self.defect == Defect::PurgesThePaused {
                let resume = Amend::resume(view.election.clone(), Note::default());
                self.inner.amend(ns, &resume).await?;
            }
            let term = TermRef::new(view.election.clone(), view.number);
            let held = view.holder.filter(|_| self.defect == Defect::PurgesTheHeld);
            if let Some(holder) = held {
                let release = Release::new(holder.member, [ReleaseItem::term(term)]);
                self.inner.release(ns, &release).await?;
            }
            for candidate in view.candidates {
                if self.defect == Defect::PurgesTheStoodFor {
                    let item = ReleaseItem::candidacy(view.election.clone());
                    self.inner.release(ns, &Release::new(candidate.member, [item])).await?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn has_purged(&self) -> bool {
        self.purged.load(Ordering::SeqCst)
    }
}
