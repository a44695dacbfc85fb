//! `Idempotency-Key`: a request that is sent again under its key is not carried out again.
//!
//! A client whose answer was lost sends its request once more. Without a key that may ask twice:
//! a step-down without a term would then be meant for the *next* leader. With a key the answer
//! is kept, for [`KEPT`] and for the newest [`MOST`] keys, and given again. The same key with
//! another path or body is refused.
//!
//! # Interleavings
//!
//! - **Two requests of one key at once.** The second waits for the first.
//! - **The first one failed with nothing applied, or nothing certain.** It is carried out again;
//!   what it had found out by then ([`Once::note`]: the term that was meant, the session that was
//!   begun) is used again.
//! - **A session's answers** say for how long a term may be trusted, counted from when they were
//!   asked for. So they are never given again: beginning notes the session, and tells its state
//!   anew; a beat has no use for a key.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, header};
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex as Turn;

use crate::App;
use crate::access::Scope;
use crate::problem::{Answer, Problem};

/// For how long an answer is kept.
const KEPT: Duration = Duration::from_secs(10 * 60);
/// How many keys are.
const MOST: usize = 1_000;
/// The longest key.
const KEY: usize = 128;
/// The largest answer that is kept.
const ANSWER: usize = 64 * 1024;
/// The largest body: metadata of 4 KiB, escaped, and what surrounds it.
const BODY: usize = 64 * 1024;
/// How long a client may take to send a body.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is known of one key.
#[derive(Clone, Debug)]
pub(crate) struct Once(Arc<Slot>);

#[derive(Debug)]
struct Slot {
    /// Of the path and the body.
    digest: [u8; 32],
    since: Instant,
    /// Held while a request of the key is carried out.
    answer: Turn<Option<Kept>>,
    noted: Mutex<Option<Box<dyn Any + Send>>>,
}

#[derive(Clone, Debug)]
struct Kept {
    status: StatusCode,
    kind: Option<HeaderValue>,
    body: Bytes,
}

impl Once {
    /// What an earlier request of this key has found out.
    pub(crate) fn noted<T: Clone + 'static>(&self) -> Option<T> {
        let noted = self.0.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.as_ref()?.downcast_ref::<T>().cloned()
    }

    /// Notes what the next request of this key is to use.
    pub(crate) fn note<T: Send + 'static>(&self, what: T) {
        *self.0.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(what));
    }
}

type Name = (Scope, String);

/// The keys of this server.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    known: Mutex<(HashMap<Name, Once>, VecDeque<Name>)>,
}

impl Keys {
    /// The slot of a key, unless the key was used for something else.
    fn slot(&self, name: Name, digest: [u8; 32]) -> Answer<Once> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (slots, order) = &mut *known;
        let old = |name: &Name, slots: &HashMap<Name, Once>| {
            slots.get(name).is_none_or(|once| once.0.since.elapsed() >= KEPT)
        };
        while order.len() >= MOST || order.front().is_some_and(|name| old(name, slots)) {
            if let Some(oldest) = order.pop_front() {
                slots.remove(&oldest);
            }
        }
        if let Some(once) = slots.get(&name) {
            if once.0.digest != digest {
                return Err(other_request(&name.1));
            }
            return Ok(once.clone());
        }
        let answer = Turn::new(None);
        let noted = Mutex::new(None);
        let once = Once(Arc::new(Slot { digest, since: Instant::now(), answer, noted }));
        slots.insert(name.clone(), once.clone());
        order.push_back(name);
        Ok(once)
    }
}

fn other_request(key: &str) -> Problem {
    let what = format!("the key {} was used for another request", tenure::views::shown(key));
    let title = "the key was used";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_used", title, what)
        .remedy("give each request a key of its own, and repeat one with the same path and body")
}

/// Reads the body of a request that changes something, within a bound of size and time, and
/// carries the request out once for each key.
pub(crate) async fn once(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if *request.method() != Method::POST {
        return Ok(next.run(request).await);
    }
    let (mut parts, body) = request.into_parts();
    let body = read(body).await?;
    let path = parts.uri.path();
    let is_beat = path.ends_with("/beat");
    let key = parts.headers.get("idempotency-key").filter(|_| !is_beat).cloned();
    let scope = parts.extensions.get::<Scope>().copied();
    let (Some(key), Some(scope)) = (key, scope) else {
        return Ok(next.run(Request::from_parts(parts, Body::from(body))).await);
    };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY);
    let key = key.ok_or_else(|| {
        Problem::bad_request(format!("Idempotency-Key is no text of 1 to {KEY} ASCII characters"))
            .remedy("send a UUID")
    })?;
    let mut digest = Sha256::new();
    digest.update(path.as_bytes());
    digest.update([0]);
    digest.update(&body);
    let once = app.keys.slot((scope, key.to_owned()), digest.finalize().into())?;
    let is_session = path.contains("/sessions");
    let mut answer = once.0.answer.lock().await;
    if let Some(kept) = &*answer {
        return Ok(kept.clone().into_response());
    }
    parts.extensions.insert(once.clone());
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if is_session || response.status().is_server_error() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    // Our own answers: they are there already, and small.
    let body = axum::body::to_bytes(body, ANSWER).await.unwrap_or_default();
    let kind = parts.headers.get(header::CONTENT_TYPE).cloned();
    *answer = Some(Kept { status: parts.status, kind, body: body.clone() });
    Ok(Response::from_parts(parts, Body::from(body)))
}

async fn read(body: Body) -> Answer<Bytes> {
    let read = tokio::time::timeout(PATIENCE, axum::body::to_bytes(body, BODY)).await;
    match read {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) => {
            let title = "the body is too large";
            let what = format!("the body ended early or is larger than {BODY} bytes: {error}");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", title, what)
                .remedy("/openapi.json has the schema of the body"))
        }
        Err(_) => {
            let title = "the body did not arrive";
            let what = format!("the body did not arrive within {} s", PATIENCE.as_secs());
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "too_slow", title, what)
                .remedy("send the body with the request"))
        }
    }
}

impl IntoResponse for Kept {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        if let Some(kind) = self.kind {
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        let repeated = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotency-replayed", repeated);
        response
    }
}
