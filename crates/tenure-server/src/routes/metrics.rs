//! Measurements, as Prometheus reads them.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;

use crate::App;

/// OpenMetrics.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Response {
    // What cannot be read is left out; the age of the last contact says so.
    let seen = app.board.look(false).await.ok();
    let text = app.measured.encode(&app, seen.as_deref());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
