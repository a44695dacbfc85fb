//! What is answered where.

pub(crate) mod compat;
mod elections;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod input;
pub(crate) mod leader;
mod login;
mod members;
mod metrics;
mod names;
mod openapi;
mod operate;
pub(crate) mod sessions;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{delete, get, post};
use http::{HeaderValue, header};

use crate::problem::Problem;
use crate::{App, access, dashboard, once};

/// Everything but what older sidecars answered.
pub(crate) fn router(app: Arc<App>) -> Router {
    let election = "/v1/elections/{election}";
    let of = |rest: &str| format!("{election}{rest}");
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .route("/openapi.json", get(openapi::document))
        .route("/login", get(login::page).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/v1/elections", get(elections::all))
        .route(election, get(elections::one))
        .route(&of("/history"), get(elections::history))
        .route(&of("/leader"), get(leader::leader).options(leader::leader))
        .route(&of("/standby"), get(leader::standby).options(leader::standby))
        .route(&of("/sessions"), post(sessions::begin))
        .route(&of("/step-down"), post(operate::step_down))
        .route(&of("/pause"), post(operate::pause))
        .route(&of("/resume"), post(operate::resume))
        .route("/v1/sessions/{session}", delete(sessions::end))
        .route("/v1/sessions/{session}/beat", post(sessions::beat))
        .route("/v1/sessions/{session}/resign", post(sessions::resign))
        .route("/v1/members", get(members::all))
        .route("/v1/members/{member}/evict", post(operate::evict))
        .route("/v1/journal", get(elections::journal))
        .route("/v1/names", get(names::all))
        .route("/v1/names/{*name}", get(names::one))
        .route("/v1/events", get(events::events))
        .merge(dashboard::router())
        .fallback(unknown_route)
        .method_not_allowed_fallback(unknown_method)
        .layer(middleware::from_fn_with_state(app.clone(), once::once))
        .layer(middleware::from_fn_with_state(app.clone(), access::check))
        .layer(middleware::from_fn(dashboard::for_people))
        .layer(middleware::from_fn(guarded))
        .with_state(app)
}

async fn unknown_route(request: Request) -> Problem {
    let path = tenure::views::shown(request.uri().path()).to_string();
    Problem::not_found(format!("nothing is at {path}")).remedy("/openapi.json lists what there is")
}

async fn unknown_method(request: Request) -> Problem {
    let path = tenure::views::shown(request.uri().path()).to_string();
    let what = format!("{path} does not take {}", request.method());
    let status = http::StatusCode::METHOD_NOT_ALLOWED;
    Problem::new(status, "bad_method", "the method is not allowed", what)
        .remedy("/openapi.json lists what there is")
}

/// What every answer says to browsers and caches.
pub(crate) async fn guarded(request: Request, next: Next) -> Response {
    /// Scripts and styles of our own alone, and no page around ours.
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' \
        data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
