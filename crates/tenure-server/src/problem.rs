//! Errors as `application/problem+json` (RFC 9457): what happened, to what, what to do, and
//! whether a write may have been applied.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tenure::{Error, ErrorKind};

/// What a handler answers with.
pub(crate) type Answer<T> = Result<T, Problem>;

/// A request that was not carried out.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Problem {
    /// Which kind of problem: a word that programs compare.
    code: &'static str,
    title: &'static str,
    #[serde(serialize_with = "code_of")]
    status: StatusCode,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    may_have_applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    newest_term: Option<u64>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn code_of<S: serde::Serializer>(status: &StatusCode, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u16(status.as_u16())
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            code,
            title,
            status,
            detail: detail.into(),
            remedy: None,
            may_have_applied: false,
            newest_term: None,
            retry_after: None,
        }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    pub(crate) fn retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(span);
        self
    }

    /// What was asked for may have been done.
    pub(crate) fn maybe_applied(mut self) -> Self {
        self.may_have_applied = true;
        self
    }

    pub(crate) fn newest_term(mut self, term: u64) -> Self {
        self.newest_term = Some(term);
        self
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "bad_request",
            "the request cannot be understood",
            detail,
        )
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no such thing", detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "the request is not allowed", detail)
    }

    /// What is known is too old to name a leader.
    pub(crate) fn stale(age: Duration) -> Self {
        let detail = format!(
            "the store last answered {} ms ago, which is longer than the leader's ttl",
            age.as_millis()
        );
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stale", "what is known is too old", detail)
            .remedy(
                "look at /readyz, which says what the store answers; the request may be repeated",
            )
            .retry_after(Duration::from_secs(1))
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        let kind = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, kind);
        if let Some(span) = self.retry_after {
            // A client that comes back too early is told so again.
            let seconds = HeaderValue::from(span.as_millis().div_ceil(1_000) as u64);
            headers.insert(header::RETRY_AFTER, seconds);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"tenure\"");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        let unavailable = |code, title| {
            Self::new(StatusCode::SERVICE_UNAVAILABLE, code, title, detail.clone())
                .retry_after(Duration::from_secs(1))
        };
        match &error {
            Error::Store(store) => {
                let mut problem = match store.kind() {
                    ErrorKind::Invalid => Self::bad_request(detail),
                    ErrorKind::Denied => {
                        unavailable("store_denied", "the store refused the request")
                    }
                    _ => unavailable("store_away", "the store does not answer"),
                };
                problem.may_have_applied = store.may_have_applied();
                problem
            }
            Error::Name(_) | Error::Settings(_) => Self::bad_request(detail),
            Error::AlreadyStanding(_) => {
                Self::new(StatusCode::CONFLICT, "already_standing", "it stands already", detail)
            }
            Error::ShutDown => unavailable("shutting_down", "the server shuts down"),
            _ if error.may_pass() => unavailable("store_away", "the store does not answer"),
            _ => {
                let title = "the server failed";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", title, detail)
            }
        }
    }
}
