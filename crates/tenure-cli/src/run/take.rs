//! Taking the name, now or when its owner is gone.

use std::time::{Duration, Instant};

use tenure::Tenure;
use tenure::naming::{Binding, Name, NameError, Registration, Value};
use tenure_api::span;

use super::lead::Job;
use super::stand::{failing, no_answer, no_longer};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};

/// How long to wait at least and at most between two attempts to take the name, unless the store
/// says sooner that names changed.
///
/// Not a back-off: the next attempt comes when its owner's ttl has run out by what the
/// store showed, however often that was before.
const LIMITS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

pub(crate) async fn taken(
    tenure: &Tenure,
    job: &Job<'_>,
    name: &Name,
    value: &Value,
    waited: Duration,
) -> Outcome<Registration> {
    let args = job.args;
    if args.no_wait {
        let what = || format!("the store gave no answer about {name}");
        let names = tenure.names();
        return tokio::select! {
            answer = names.take(name.clone(), value.clone()) => match answer {
                Ok(registration) => Ok(registration),
                Err(error) => Err(refused(tenure, name, error)),
            },
            () = no_longer(true) => Err(failing(tenure).unwrap_or_else(|| no_answer(&what()))),
        };
    }
    let trying = until_free(tenure, name, value);
    let Some(limit) = args.wait else { return trying.await };
    match tokio::time::timeout(limit.saturating_sub(waited), trying).await {
        Ok(answer) => answer,
        Err(_) => Err(failing(tenure).unwrap_or_else(|| {
            let limit = span::show(limit);
            Failure::new(Exit::NotInTime, format!("{name} was not free within {limit}"))
        })),
    }
}

async fn until_free(tenure: &Tenure, name: &Name, value: &Value) -> Outcome<Registration> {
    let names = tenure.names();
    // Heard before the name is tried, so that no change falls between.
    let mut hints = names.hints()?;
    loop {
        let began = Instant::now();
        let left = match names.take(name.clone(), value.clone()).await {
            Ok(registration) => return Ok(registration),
            Err(NameError::Taken(binding)) => left_of(&binding),
            Err(NameError::Unknown { .. }) => Duration::ZERO,
            Err(error) => return Err(refused(tenure, name, error)),
        };
        let pause = left.saturating_sub(began.elapsed()).clamp(LIMITS.0, LIMITS.1);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = hints.next() => tokio::time::sleep(LIMITS.0).await,
        }
    }
}

fn left_of(binding: &Binding) -> Duration {
    // A name without an owner stays until it is dropped.
    if binding.owner.is_some() { binding.remaining } else { LIMITS.1 }
}

/// Why the name cannot be had.
fn refused(tenure: &Tenure, name: &Name, error: NameError) -> Failure {
    match error {
        NameError::Taken(binding) => {
            let taken = match &binding.owner {
                Some(owner) => format!("is owned by {}", owner.id),
                None => "is bound without an owner".to_owned(),
            };
            let what = format!("{name} {taken} (token {})", binding.token);
            Failure::new(Exit::NotInTime, what)
        }
        NameError::Other(error) => error.into(),
        other => failing(tenure).unwrap_or_else(|| Failure::new(Exit::Store, other.to_string())),
    }
}

/// For whom the user waits.
pub(crate) async fn waiting(tenure: &Tenure, name: &Name) -> String {
    let which = tenure::naming::WhichNames::Named(vec![name.clone()]);
    let owner = match tenure.names().read(which).await {
        Ok(view) => match view.bindings.first() {
            Some(Binding { owner: Some(owner), token, .. }) => {
                format!("{} owns it under token {token}", owner.id)
            }
            Some(_) => "it is bound without an owner; `tenure release` drops it".into(),
            None => "it has no owner yet".into(),
        },
        Err(error) => error.to_string(),
    };
    format!("{} waits for {name}: {owner}", tenure.id())
}
