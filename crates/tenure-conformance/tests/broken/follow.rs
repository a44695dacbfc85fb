//! Defects in following.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{Entry, Happening, Hint, ReleaseCause};
use tenure_store::{Followed, Following, Result};

use crate::defect::Defect;

#[derive(Debug)]
pub(crate) struct BrokenFollowing {
    pub(crate) inner: Box<dyn Following>,
    pub(crate) defect: Defect,
    pub(crate) heard: bool,
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
        let mut followed = self.inner.next().await?;
        let first = !std::mem::replace(&mut self.heard, true);
        match (self.defect, &mut followed) {
            (Defect::NoFirstHint, Followed::Hint(Hint::Anything)) if first => self.next().await,
            (Defect::HidesTrimming, Followed::Trimmed(_)) => self.next().await,
            (Defect::SkipsEntries, Followed::Entries(entries)) => {
                entries.retain(|entry| entry.seq.get() % 5 != 0);
                Ok(followed)
            }
            (Defect::EndsAreResignations, Followed::Entries(entries)) => {
                for entry in entries {
                    if let Happening::Released { cause, .. } = &mut entry.what {
                        *cause = ReleaseCause::Resigned;
                    }
                }
                Ok(followed)
            }
            (Defect::JournalsTheHeirTwice, Followed::Entries(entries)) => {
                name_heirs(entries);
                Ok(followed)
            }
            (Defect::HintsAtVacancies, Followed::Hint(Hint::Election(name))) => {
                let vacant = Hint::Vacant { election: name.clone(), heir: None };
                self.later = Some(Hint::Election(name.clone()));
                Ok(Followed::Hint(vacant))
            }
            (Defect::LosesWhenDropped, _) => {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Ok(followed)
            }
            _ => Ok(followed),
        }
    }
}

/// Has each release name whoever was elected right after it.
fn name_heirs(entries: &mut [Entry]) {
    let mut elected = None;
    for entry in entries.iter_mut().rev() {
        match &mut entry.what {
            Happening::Elected { term } => elected = Some(term.member.id.clone()),
            Happening::Released { heir, .. } => *heir = heir.take().or(elected.take()),
            _ => elected = None,
        }
    }
}
