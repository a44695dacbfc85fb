//! What the tests share.

#![allow(clippy::expect_used, clippy::unwrap_used, dead_code, unreachable_pub, unused_imports)]

use std::time::Duration;

use tenure::testing::Stage;
use tenure::{Leadership, Tenure};
pub use tenure_testkit::{let_pass, let_pass_blocking, until, within};

pub const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A stage with one member on it that leads `e`.
pub async fn leader() -> (Stage, Tenure, Leadership) {
    let stage = Stage::new();
    let tenure = stage.connect("a").await.unwrap();
    let leadership = within(tenure.election("e").campaign()).await.unwrap();
    (stage, tenure, leadership)
}

/// Lets a candidate stand in the background, until the store knows of it.
pub async fn stands(
    stage: &Stage,
    tenure: &Tenure,
    priority: u16,
) -> tokio::task::JoinHandle<Leadership> {
    let election = tenure.election("e").priority(priority);
    let stood = election.clone();
    let campaign = tokio::spawn(async move { stood.campaign().await.unwrap() });
    within(async {
        loop {
            stage.settle().await;
            let view = election.view().await.unwrap();
            if view.candidates.iter().any(|c| c.member.id == *tenure.id()) {
                return;
            }
        }
    })
    .await;
    campaign
}
