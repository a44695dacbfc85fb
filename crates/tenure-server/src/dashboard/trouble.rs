//! What a person is shown in place of a problem in JSON, and the way to the login.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, Method, StatusCode, header};
use maud::html;
use serde::Deserialize;

use super::page::plain;
use super::text::query;

/// More than any problem is long.
const MOST: usize = 64 * 1024;

/// What the page says of a problem.
#[derive(Debug, Deserialize)]
struct Told {
    title: String,
    detail: String,
    #[serde(default)]
    remedy: Option<String>,
}

/// A browser that opens a page gets one, whatever happens: where a token is needed, the login.
pub(crate) async fn for_people(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let a_page = *request.method() == Method::GET && !path.starts_with("/v1/");
    if !a_page || !wants_html(request.headers()) {
        return next.run(request).await;
    }
    let here = request.uri().path_and_query().map_or("/", |here| here.as_str()).to_owned();
    let response = next.run(request).await;
    if !is_problem(response.headers()) {
        return response;
    }
    if response.status() == StatusCode::UNAUTHORIZED {
        return Redirect::to(&format!("/login?next={}", query(&here))).into_response();
    }
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, MOST).await.unwrap_or_default();
    match serde_json::from_slice::<Told>(&bytes) {
        Ok(told) => shown(parts.status, &told),
        Err(_) => Response::from_parts(parts, Body::from(bytes)),
    }
}

fn shown(status: StatusCode, told: &Told) -> Response {
    let first = |text: &str| {
        let mut letters = text.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    plain(
        status,
        &told.title,
        &html! {
            p.code { (status.as_u16()) }
            h1 { (first(&told.title)) }
            p { (first(&tenure::views::shown(&told.detail))) "." }
            @if let Some(remedy) = &told.remedy { p { (first(remedy)) "." } }
            p { a href="/" { "All elections" } }
        },
    )
}

fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

fn is_problem(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/problem+json")
}
