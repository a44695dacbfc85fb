//! The pages for people.

use std::sync::Arc;

use axum::Router;
use axum::response::{Html, IntoResponse, Response};

use crate::App;

/// The pages.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
}

/// The page that asks for a token.
pub(crate) fn login_page(_app: &App) -> Response {
    Html("<!doctype html>").into_response()
}
