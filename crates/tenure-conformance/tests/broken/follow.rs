//! Defects in following.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::Hint;
use tenure_store::{Followed, Following, Result};

use crate::defect::Defect;

#[derive(Debug)]
pub(crate) struct BrokenFollowing {
    pub(crate) inner: Box<dyn Following>,
    pub(crate) defect: Defect,
    pub(crate) heard: bool,
}

#[async_trait]
impl Following for BrokenFollowing {
    async fn next(&mut self) -> Result<Followed> {
        if self.heard && self.defect == Defect::FallsSilent {
            std::future::pending::<()>().await;
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
            (Defect::LosesWhenDropped, _) => {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Ok(followed)
            }
            _ => Ok(followed),
        }
    }
}
