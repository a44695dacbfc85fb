//! What the tests share.

#![allow(clippy::expect_used, clippy::unwrap_used, dead_code, unreachable_pub)]

use std::future::Future;
use std::time::Duration;

use tenure::testing::Stage;
use tenure::{Leadership, Tenure};

/// A limit for a test that would otherwise hang: never waited for when all is
/// well.
pub async fn within<T>(work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, work).await.expect("the test does not come to its end")
}

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
