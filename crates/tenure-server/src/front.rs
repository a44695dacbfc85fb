//! What answers a request: while the store has not answered yet, what says so.
//!
//! A store that is down at the start is waited for. Until then the process lives, which is what a
//! supervisor asks at `/livez`, and everything else is refused with a reason: no answer at all
//! would be taken for a server that hangs.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use http::StatusCode;

use crate::access::Hosts;
use crate::problem::Problem;
use crate::routes::{guarded, health};

const WAITS: &str = "the store has not answered since the server was started; it is tried again";

/// The answers of one listener.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    starting: Router,
    started: Arc<OnceLock<Router>>,
}

impl Front {
    pub(crate) fn new(hosts: &Hosts) -> Self {
        let starting = Router::new()
            .route("/livez", get(health::livez))
            .route("/readyz", get(not_ready))
            .fallback(not_yet)
            .layer(middleware::from_fn_with_state(Arc::new(hosts.clone()), is_for_us))
            .layer(middleware::from_fn(guarded));
        Self { starting, started: Arc::default() }
    }

    /// From now on these answer.
    pub(crate) fn start(&self, router: Router) {
        // It is called once.
        let _ = self.started.set(router);
    }

    /// Who answers now.
    pub(crate) fn router(&self) -> Router {
        self.started.get().unwrap_or(&self.starting).clone()
    }
}

/// Refuses a request for another host (DNS rebinding), and a change that another page asks for.
pub(crate) async fn is_for_us(
    State(hosts): State<Arc<Hosts>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    hosts.check(request.method(), request.headers())?;
    Ok(next.run(request).await)
}

async fn not_ready() -> (StatusCode, Json<health::Ready>) {
    (StatusCode::SERVICE_UNAVAILABLE, Json(health::Ready::not(WAITS)))
}

async fn not_yet() -> Problem {
    let title = "the server starts";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting", title, WAITS)
        .remedy("see that the store runs and can be reached from this host; the request may be repeated")
        .retry_after(Duration::from_secs(1))
}
