//! How long it takes until a copy of the names has what was registered.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::{Name, NameError, Names, Value, WhichNames};
use tenure::store::{Finding, Watch};
use tenure_api::span;

const CODE: &str = "replica-lag";
const WHAT: &str = "copies of names";

/// Takes a name in the doctor's own namespace, and does what the copy of a registry does: waits
/// for the hint, and asks what changed. `late_because` is what the store says about its
/// notifications. Nothing is said of a store that keeps no names.
pub(crate) async fn look(tenure: &Tenure, late_because: Option<&'static str>) -> Option<Finding> {
    let capabilities = tenure.capabilities();
    let traits = capabilities.names?;
    if !traits.since {
        let found = "the store cannot tell which names changed: a copy reads all of them, once in \
                     half a ttl";
        let remedy = "ask the store itself (`lookup_consistent`) where that is too late";
        return Some(Finding::note(CODE, WHAT, found, remedy));
    }
    let limit = match capabilities.watch {
        Watch::Native => Duration::from_secs(2),
        Watch::Polled(every) => every * 2 + Duration::from_secs(1),
    };
    let remedy = tenure
        .capabilities()
        .polled_because
        .or(late_because)
        .unwrap_or("this store has no notifications; copies ask what changed, at this pace");
    Some(match lag(&tenure.names(), tenure.id().as_str(), limit).await {
        Ok(Some(took)) => {
            let found = format!("a registration was in a copy after {}", span::show(took));
            match capabilities.watch {
                Watch::Native => Finding::fine(CODE, WHAT, found),
                Watch::Polled(_) => Finding::note(CODE, WHAT, found, remedy),
            }
        }
        Ok(None) => {
            let limit = span::show(limit);
            let found = format!("no hint of a registration came within {limit}");
            Finding::wrong(CODE, WHAT, found, remedy)
        }
        Err(error) => {
            let found = "no name could be taken in the doctor's own namespace";
            Finding::wrong(CODE, WHAT, found, error.to_string())
        }
    })
}

/// From the answer to a registration until a reader of changes has it, if that comes in time.
async fn lag(names: &Names, id: &str, limit: Duration) -> Result<Option<Duration>, NameError> {
    // Each doctor has a name of its own: several may look at once.
    let name = Name::new(format!("doctor/{id}")).map_err(tenure::Error::from)?;
    let mut hints = names.hints()?;
    let before = names.read(WhichNames::Named(Vec::new())).await?.rev;
    let taken = names.take(name, Value::empty()).await?;
    let answered = Instant::now();
    let seen = tokio::time::timeout(limit, async {
        while hints.next().await.is_some() {
            let changed = names.read(WhichNames::Since(before)).await?;
            if changed.bindings.iter().any(|binding| binding.token == taken.token()) {
                return Ok(Some(answered.elapsed()));
            }
        }
        Ok(None)
    });
    let seen = seen.await.unwrap_or(Ok(None));
    taken.release().await?;
    seen
}
