//! The contract, as a document.

use axum::response::{IntoResponse, Response};
use http::header;

/// OpenAPI 3.1, written by hand; the tests hold every answer against it.
pub(crate) const DOCUMENT: &str = include_str!("../../openapi.json");

/// The document.
pub(crate) async fn document() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT).into_response()
}
