//! Whether the server lives, and whether it is of use: never whether it leads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use serde::Serialize;

use crate::App;

/// The process answers.
pub(crate) async fn livez() -> &'static str {
    "ok\n"
}

/// What `/readyz` says.
#[derive(Debug, Serialize)]
pub(crate) struct Ready {
    ready: bool,
    member: Option<String>,
    store_answered_ms_ago: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
}

impl Ready {
    /// It is not, for this reason.
    pub(crate) fn not(because: &str) -> Self {
        let because = Some(because.to_owned());
        Self { ready: false, member: None, store_answered_ms_ago: None, because }
    }
}

/// 200 if the member has joined and the store answered within two ttls, whether it leads or not.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> (StatusCode, Json<Ready>) {
    let status = app.tenure.status();
    let heard = status.last_success;
    // A member that holds nothing is asked for a sign of life once in a ttl.
    let recent = heard.is_some_and(|ago| ago <= app.tenure.settings().ttl() * 2);
    let because = if app.is_stopping() {
        Some("the server shuts down".to_owned())
    } else if status.member.is_none() {
        Some(status.last_error.unwrap_or_else(|| "the member has not joined yet".into()))
    } else if !recent {
        Some(status.last_error.unwrap_or_else(|| "the store has not answered for a ttl".into()))
    } else {
        None
    };
    let ready = because.is_none();
    let member = status.member.map(|member| member.id.to_string());
    let store_answered_ms_ago = heard.map(tenure_api::millis);
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Ready { ready, member, store_answered_ms_ago, because }))
}
