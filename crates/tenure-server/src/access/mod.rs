//! Who may do what.
//!
//! Three scopes, each with all of those before it: a *viewer* reads, a *candidate* stands for
//! elections, an *operator* steers those of others. Where no token file is given, every client that
//! reaches the server is an operator: so it listens on a Unix socket of its user or on loopback
//! alone, and `Options` refuses any other address.
//!
//! A browser sends requests of any page to any address. So a request is refused whose `Host` is
//! not one of ours (DNS rebinding), and one that changes something if it comes from another
//! origin, or is not JSON.

mod origin;
mod tokens;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};

pub(crate) use origin::Hosts;
pub(crate) use tokens::{Tokens, tokens as tokens_of};

use crate::App;
use crate::problem::{Answer, Problem};

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    Viewer,
    Candidate,
    Operator,
}

impl Scope {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Scope::Viewer => "viewer",
            Scope::Candidate => "candidate",
            Scope::Operator => "operator",
        }
    }
}

/// The name of the cookie that a browser keeps after it showed a token.
pub(crate) const COOKIE: &str = "tenure";

/// Looks at every request before it reaches a handler; handlers find the caller's [`Scope`].
pub(crate) async fn check(
    State(app): State<std::sync::Arc<App>>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    app.hosts.check(request.method(), request.headers())?;
    let scope = app.tokens.scope(request.headers());
    if let Some(scope) = scope {
        request.extensions_mut().insert(scope);
    }
    let open = matches!(request.uri().path(), "/livez" | "/readyz" | "/login" | "/openapi.json")
        || request.uri().path().starts_with("/assets/");
    if !open && scope.is_none() {
        return Err(unauthorized());
    }
    Ok(next.run(request).await)
}

/// The caller's scope is at least this.
pub(crate) fn need(scope: Scope, wanted: Scope) -> Answer<()> {
    if scope >= wanted {
        return Ok(());
    }
    let what =
        format!("this token is a {}'s, and the request needs a {}'s", scope.name(), wanted.name());
    Err(Problem::forbidden(what).remedy("ask the server's operator for a token of that scope"))
}

fn unauthorized() -> Problem {
    let title = "a token is needed";
    let what = "the request has no token that this server knows";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", title, what).remedy(
        "send `Authorization: Bearer TOKEN` with a token of one of the server's token files; a \
         browser logs in at /login",
    )
}

/// A form of another page cannot send this type without asking first. So each handler that takes
/// a body looks at it ([`Body`](crate::routes::input::Body)); a DELETE has none, and no form sends
/// one.
pub(crate) fn is_json(headers: &HeaderMap) -> Answer<()> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).map(str::trim);
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let title = "the body is not JSON";
    let what = "a request that changes something needs `Content-Type: application/json`";
    Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", title, what)
        .remedy("send a JSON object, `{}` if there is nothing to say"))
}
