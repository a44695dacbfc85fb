//! Campaigns of processes in other languages: begin, beat, resign.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use tenure_api::millis;

use super::input::{self, Body, Segment};
use crate::App;
use crate::access::{Scope, need};
use crate::once::Once;
use crate::problem::{Answer, Problem};
use crate::sessions::{Entry, NewSession, State as At, View};

/// How long a resignation may take to be confirmed.
const CONFIRM: Duration = Duration::from_secs(10);

/// What a session is told with every answer.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    session: String,
    election: String,
    member: String,
    /// `waiting`, `leading`, `stopping` or `lost`.
    state: &'static str,
    /// To be sent with the next beat, which then waits for another state than this.
    seen: u64,
    term: Option<u64>,
    /// How much longer the term may be trusted, counted from before the request was sent.
    remaining_ms: u64,
    /// The same as a moment of the boot-time clock of the machine with this boot id.
    trusted_until_boottime_ns: Option<u64>,
    boot_id: &'static str,
    /// How long the client may be silent.
    ttl_ms: u64,
    /// How long after an answer the next beat is due.
    beat_ms: u64,
    /// While stopping: how much longer the client may take to stop.
    drain_ms: Option<u64>,
    /// Why it is to stop, why the term is over, or what keeps it waiting.
    reason: Option<String>,
}

impl Told {
    fn new(entry: &Entry, view: &View) -> Self {
        let (span, until) = entry.grant(view);
        let (state, term, drain, reason) = match &view.state {
            At::Waiting => ("waiting", None, None, entry.obstacle()),
            At::Leading(leadership) => ("leading", Some(leadership.token()), None, None),
            At::Stopping { leadership, reason, drain_until } => {
                let left = drain_until.since(entry.member.now());
                ("stopping", Some(leadership.token()), Some(millis(left)), Some(reason.clone()))
            }
            At::Over { term, reason } => ("lost", *term, None, Some(reason.clone())),
        };
        Self {
            session: entry.key.clone(),
            election: entry.election.to_string(),
            member: entry.member.id().to_string(),
            state,
            seen: view.seen,
            term,
            // Rounded down: trust is never said to be longer than it is.
            remaining_ms: millis(span),
            trusted_until_boottime_ns: until.map(tenure::Mono::as_nanos),
            boot_id: boot_id(),
            ttl_ms: millis(entry.ttl()),
            beat_ms: millis(entry.ttl() / 4),
            drain_ms: drain,
            reason,
        }
    }
}

/// Which boot of which machine this is: moments of its boot-time clock mean nothing elsewhere.
pub(super) fn boot_id() -> &'static str {
    static ID: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    ID.get_or_init(|| {
        let read = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        read.map(|text| text.trim().to_owned()).unwrap_or_default()
    })
}

/// Begins a session.
pub(crate) async fn begin(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    once: Option<Extension<Once>>,
    input::Election(election): input::Election,
    Body(asked): Body<NewSession>,
) -> Answer<Response> {
    need(scope, Scope::Candidate)?;
    // Asked for again, it is the same session; what it is told is told anew (W1).
    let begun = once.as_ref().and_then(|once| once.noted::<Arc<Entry>>());
    let entry = match begun {
        Some(entry) => entry,
        None => app.sessions.begin(election, asked).await?,
    };
    if let Some(Extension(once)) = once {
        once.note(entry.clone());
    }
    let told = Told::new(&entry, &entry.state());
    let at = format!("/v1/sessions/{}", entry.key);
    Ok((StatusCode::CREATED, [(header::LOCATION, at)], Json(told)).into_response())
}

/// What a beat says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beat {
    /// What was `seen` in the last answer.
    #[serde(default)]
    seen: u64,
    /// How long the answer may wait for another state.
    #[serde(default)]
    wait_ms: u64,
}

/// The client lives; it is told when its state is another, or after a while.
pub(crate) async fn beat(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Segment(key): Segment,
    Body(beat): Body<Beat>,
) -> Answer<Json<Told>> {
    need(scope, Scope::Candidate)?;
    let entry = app.sessions.find(&key)?;
    let view = entry.beat(beat.seen, Duration::from_millis(beat.wait_ms)).await;
    Ok(Json(Told::new(&entry, &view)))
}

/// The client has stopped: the term is given back at once. Answers when it is.
pub(crate) async fn resign(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Segment(key): Segment,
    Body(_): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Json<Told>> {
    need(scope, Scope::Candidate)?;
    let entry = app.sessions.find(&key)?;
    stopped(&entry).await?;
    Ok(Json(Told::new(&entry, &entry.state())))
}

/// The same, for clients that want no answer.
pub(crate) async fn end(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Segment(key): Segment,
) -> Answer<StatusCode> {
    need(scope, Scope::Candidate)?;
    stopped(&*app.sessions.find(&key)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The client has stopped; returns when the store has confirmed that the term is given back.
async fn stopped(entry: &Entry) -> Answer<()> {
    entry.resign();
    if let Ok(true) = tokio::time::timeout(CONFIRM, entry.given_back()).await {
        return Ok(());
    }
    let what = format!("the store has not confirmed that {} is given back", entry.election);
    let title = "it is not confirmed";
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unconfirmed", title, what)
        .remedy(
            "nothing: the session is over and grants nothing, and the server repeats the release; \
             if it cannot, the term ends with the ttl",
        )
        .maybe_applied())
}
