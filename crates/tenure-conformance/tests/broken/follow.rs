//! Defects in following.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{Entry, Happening, Hint, ReleaseCause, Seq};
use tenure_store::{Followed, Following, Page, Result};
use tenure_testkit::let_pass;

use crate::defect::Defect;

#[derive(Debug)]
pub(crate) struct BrokenFollowing {
    pub(crate) inner: Box<dyn Following>,
    pub(crate) defect: Defect,
    pub(crate) heard: bool,
    /// Whether it was told that names changed.
    pub(crate) told_of_names: bool,
    /// A hint to be given next.
    pub(crate) later: Option<Hint>,
}

#[async_trait]
impl Following for BrokenFollowing {
    async fn next(&mut self) -> Result<Followed> {
        if self.heard && self.defect == Defect::FallsSilent {
            std::future::pending::<()>().await;
        }
        if let Some(hint) = self.later.take() {
            return Ok(Followed::Hint(hint));
        }
        let followed = self.inner.next().await?;
        let first = !std::mem::replace(&mut self.heard, true);
        match (self.defect, &followed) {
            (Defect::NoFirstHint, Followed::Hint(Hint::Anything)) if first => self.next().await,
            (Defect::HidesGrowth, Followed::Grown(_)) => self.next().await,
            (Defect::HidesNames, Followed::Hint(Hint::Names)) => self.next().await,
            (Defect::TellsOfNamesOnce, Followed::Hint(Hint::Names)) => {
                if std::mem::replace(&mut self.told_of_names, true) {
                    return self.next().await;
                }
                Ok(followed)
            }
            (Defect::HintsAtVacancies, Followed::Hint(Hint::Election(name))) => {
                let vacant = Hint::Vacant { election: name.clone(), heir: None };
                self.later = Some(Hint::Election(name.clone()));
                Ok(Followed::Hint(vacant))
            }
            (Defect::LosesWhenDropped, _) => {
                let_pass(Duration::from_millis(3), "a moment at which it can be dropped").await;
                Ok(followed)
            }
            _ => Ok(followed),
        }
    }
}

/// What becomes of a page of the journal.
pub(crate) fn broken_page(defect: Defect, after: Seq, mut page: Page) -> Page {
    match (defect, &mut page) {
        // The trimmed part is passed over in silence.
        (Defect::HidesTrimming, Page::Trimmed(_)) => return Page::Entries(Vec::new()),
        (Defect::IgnoresTheEnd, Page::Trimmed(to)) if *to < after => {
            return Page::Entries(Vec::new());
        }
        (Defect::SkipsEntries, Page::Entries(entries)) => {
            entries.retain(|entry| entry.seq.get() % 5 != 0);
        }
        (Defect::EndsAreResignations, Page::Entries(entries)) => {
            for entry in entries {
                if let Happening::Released { cause, .. } = &mut entry.what {
                    *cause = ReleaseCause::Resigned;
                }
            }
        }
        (Defect::JournalsTheHeirTwice, Page::Entries(entries)) => name_heirs(entries),
        _ => {}
    }
    page
}

/// Has each release name the member that was elected right after it.
fn name_heirs(entries: &mut [Entry]) {
    let mut elected = None;
    for entry in entries.iter_mut().rev() {
        match &mut entry.what {
            Happening::Elected { term, .. } => elected = Some(term.member.id.clone()),
            Happening::Released { heir, .. } => *heir = heir.take().or(elected.take()),
            _ => elected = None,
        }
    }
}
