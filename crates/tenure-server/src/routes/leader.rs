//! Whether this server leads: for load balancers, and for the application beside it. No I/O.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;
use tenure::ElectionName;
use tenure_api::millis;

use super::input;
use super::sessions::boot_id;
use crate::App;

/// What `/leader` and `/standby` say.
#[derive(Debug, Serialize)]
pub(crate) struct Here {
    election: String,
    member: String,
    leading: bool,
    term: Option<u64>,
    /// How much longer the term may be trusted, counted from before the request was sent. Only
    /// of a term that the server itself leads: a session's client is told by its own beats.
    remaining_ms: u64,
    /// The same as a moment of the boot-time clock of the machine with this boot id.
    trusted_until_boottime_ns: Option<u64>,
    boot_id: &'static str,
}

/// What is said, and whether anything here stands for the election.
fn here(app: &App, election: &ElectionName, grants: bool) -> (Here, bool) {
    let own = app.stands.look(&app.tenure, election, grants);
    let of_clients = app.sessions.here(election);
    let term = own.term.or(of_clients.leads);
    let said = Here {
        election: election.to_string(),
        member: app.tenure.id().to_string(),
        leading: term.is_some(),
        term,
        remaining_ms: millis(own.remaining),
        trusted_until_boottime_ns: own.until.map(tenure::Mono::as_nanos),
        boot_id: boot_id(),
    };
    (said, own.stands || of_clients.stands)
}

/// 200 if the server, or a client of it, leads at this instant.
pub(crate) async fn leader(
    State(app): State<Arc<App>>,
    input::Election(election): input::Election,
) -> (StatusCode, Json<Here>) {
    let (here, _) = here(&app, &election, true);
    let code = if here.leading { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(here))
}

/// 200 if the server, or a client of it, stands and does not lead.
pub(crate) async fn standby(
    State(app): State<Arc<App>>,
    input::Election(election): input::Election,
) -> (StatusCode, Json<Here>) {
    let (here, stands) = here(&app, &election, false);
    let code = match stands && !here.leading {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(here))
}
