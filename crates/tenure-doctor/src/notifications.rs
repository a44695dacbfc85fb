//! Whether changes are noticed at once.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::journal::{Happening, Journalled};
use tenure::store::{Finding, Watch};
use tenure_api::span;

const CODE: &str = "notifications";

/// Joins, and waits for the news of it. `late_because` is what the store says about its
/// notifications.
pub(crate) async fn look(tenure: &Tenure, late_because: Option<&'static str>) -> Finding {
    let capabilities = tenure.capabilities();
    let mode = capabilities.watch.to_string();
    if !capabilities.journal {
        return Finding::note(CODE, CODE, mode, "the store keeps no journal to follow");
    }
    let noticed = noticed(tenure, capabilities.watch).await;
    // Asked anew: why notifications are off may have been learnt meanwhile.
    let remedy =
        tenure.capabilities().polled_because.or(late_because).unwrap_or(
            "this store has no notifications; changes are found by looking, at this pace",
        );
    match (noticed, capabilities.watch) {
        (Ok(Some(took)), watch) => {
            let found = format!("{mode}; a change was noticed after {}", span::show(took));
            match watch {
                Watch::Native => Finding::fine(CODE, CODE, found),
                Watch::Polled(_) => Finding::note(CODE, CODE, found, remedy),
            }
        }
        (Ok(None), _) => {
            Finding::wrong(CODE, CODE, format!("{mode}, but no change was noticed"), remedy)
        }
        (Err(error), _) => Finding::wrong(CODE, CODE, mode, error.to_string()),
    }
}

/// After how long the join was noticed, if it was.
async fn noticed(tenure: &Tenure, watch: Watch) -> tenure::Result<Option<Duration>> {
    let mut journal = tenure.follow(Some(tenure.journal(1).await?.0))?;
    let asked = Instant::now();
    tenure.join()?;
    let limit = match watch {
        Watch::Native => Duration::from_secs(2),
        Watch::Polled(every) => every * 2 + Duration::from_secs(1),
    };
    let news = tokio::time::timeout(limit, async {
        while let Some(news) = journal.next().await {
            let Journalled::Entries(entries) = news else { continue };
            if entries.iter().any(|entry| matches!(entry.what, Happening::Joined { .. })) {
                return Some(asked.elapsed());
            }
        }
        None
    });
    Ok(news.await.ok().flatten())
}
