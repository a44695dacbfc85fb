//! Whether this server leads: for load balancers, and for the application beside it. No I/O.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use tenure::{Election, ElectionName, Leadership, Stopping, Tenure};

use super::input;
use crate::App;

/// The elections that the server itself stands for.
#[derive(Debug, Default)]
pub(crate) struct Stands {
    held: Arc<Mutex<HashMap<ElectionName, Option<Leadership>>>>,
}

impl Stands {
    /// Stands for each, until the member is shut down.
    pub(crate) fn begin(&self, tenure: &Tenure, names: &[String]) -> Result<(), tenure::Error> {
        for name in names {
            let election = tenure.election(name);
            let name = election.name()?.clone();
            let held = self.held.clone();
            put(&held, &name, None);
            let tenure = tenure.clone();
            tokio::spawn(async move { stand(&tenure, &election, &name, &held).await });
        }
        Ok(())
    }

    /// The number of the term that the server itself leads with at this instant.
    fn leads(&self, election: &ElectionName) -> Option<u64> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let leadership = held.get(election)?.as_ref()?;
        (leadership.is_current() && !leadership.is_stopping()).then(|| leadership.token())
    }

    /// What the server itself leads, and for how much longer it may be trusted.
    pub(crate) fn leading(&self) -> Vec<(ElectionName, Duration)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let led = held.values().flatten();
        led.map(|led| (led.term().election.clone(), led.remaining())).collect()
    }

    fn has(&self, election: &ElectionName) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).contains_key(election)
    }
}

type Held = Mutex<HashMap<ElectionName, Option<Leadership>>>;

fn put(held: &Held, name: &ElectionName, leadership: Option<Leadership>) {
    held.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), leadership);
}

/// Leads one term after the other. The work is in another process, which only asks: nobody
/// tells when it has stopped. So a term that is to be given up is kept for the whole drain (E4).
async fn stand(tenure: &Tenure, election: &Election, name: &ElectionName, held: &Held) {
    loop {
        let leadership = match election.campaign().await {
            Ok(leadership) => leadership,
            Err(tenure::Error::ShutDown) => return,
            Err(error) => {
                tracing::error!(%error, election = %name, "the server cannot stand for an election");
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            }
        };
        put(held, name, Some(leadership.clone()));
        if let Stopping::Asked { drain_until, .. } = leadership.stopping().await {
            tokio::select! {
                _ = leadership.lost() => {}
                () = tenure.sleep_until(drain_until) => {}
            }
        }
        put(held, name, None);
    }
}

/// What `/leader` and `/standby` say.
#[derive(Debug, Serialize)]
pub(crate) struct Here {
    election: String,
    member: String,
    leading: bool,
    term: Option<u64>,
}

fn here(app: &App, election: &ElectionName) -> Here {
    let term = app.stands.leads(election).or_else(|| app.sessions.leads(election));
    Here {
        election: election.to_string(),
        member: app.tenure.id().to_string(),
        leading: term.is_some(),
        term,
    }
}

/// 200 if the server, or a client of it, leads at this instant.
pub(crate) async fn leader(
    State(app): State<Arc<App>>,
    input::Election(election): input::Election,
) -> (StatusCode, Json<Here>) {
    let here = here(&app, &election);
    let code = if here.leading { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(here))
}

/// 200 if the server, or a client of it, stands and does not lead.
pub(crate) async fn standby(
    State(app): State<Arc<App>>,
    input::Election(election): input::Election,
) -> (StatusCode, Json<Here>) {
    let here = here(&app, &election);
    let stands = app.stands.has(&election) || app.sessions.stands(&election);
    let code = match stands && !here.leading {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(here))
}
