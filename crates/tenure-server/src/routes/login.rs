//! How a browser shows a token: once, for a cookie that no script can read.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::json;

use super::input::Body;
use crate::App;
use crate::access::COOKIE;
use crate::dashboard;
use crate::problem::{Answer, Problem};

/// The page that asks for a token.
pub(crate) async fn page(State(app): State<Arc<App>>) -> Response {
    dashboard::login_page(&app)
}

/// A token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogIn {
    token: String,
}

/// Gives a cookie for a token.
pub(crate) async fn log_in(
    State(app): State<Arc<App>>,
    Body(asked): Body<LogIn>,
) -> Answer<Response> {
    let Some((scope, cookie)) = app.tokens.log_in(&asked.token) else {
        let title = "the token is not known";
        let what = "no token file of this server has that token";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", title, what)
            .remedy("copy it whole; a token that was replaced is refused"));
    };
    let secure = if app.is_tls { " Secure;" } else { "" };
    let cookie =
        format!("{COOKIE}={cookie}; HttpOnly;{secure} SameSite=Strict; Path=/; Max-Age=86400");
    Ok(([(header::SET_COOKIE, cookie)], Json(json!({ "scope": scope.name() }))).into_response())
}

/// Forgets the browser.
pub(crate) async fn log_out(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Body(_): Body<serde_json::Map<String, serde_json::Value>>,
) -> Response {
    app.tokens.log_out(&headers);
    let cookie = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response()
}
