//! What a purge leaves of names.

use std::time::Duration;

use tenure_core::{Purge, WhichNames};

use super::with_names;
use crate::Outcome;
use crate::case::{ensure, same};
use crate::world::World;

/// U2: the names of an owner that is gone are cleared away, and so are the drops once nobody
/// lives there. No token comes back, and whoever asks what changed gets all names.
pub(crate) async fn no_token_comes_back_after_a_purge(world: &World<'_>) -> Outcome {
    let traits = with_names!(world);
    if !world.capabilities().await.journal {
        return Ok(());
    }
    let a = world.owner("a").await?;
    let dropped = a.take("dropped").await?;
    a.let_go(&dropped).await?;
    for count in 0..70 {
        a.take(&format!("n{count}")).await?;
    }
    let last = a.take("last").await?;
    a.leave().await?;
    let purged = world.purge(Purge::older_than(Duration::ZERO)).await?;
    ensure!(purged.names <= 71 && purged.drops == 1, "what was left: {purged:?}");
    let b = world.owner("b").await?;
    if traits.since {
        let seen = b.names(&WhichNames::Since(dropped.rev)).await?;
        ensure!(seen.whole, "what changed is no longer known: {seen:?}");
    }
    same!(b.bound().await?.len(), 0, "names that are bound");
    for text in ["last", "dropped"] {
        let next = b.take(text).await?;
        ensure!(next.token > last.token, "{text} has a new token: {next:?} after {last:?}");
    }
    Ok(())
}
