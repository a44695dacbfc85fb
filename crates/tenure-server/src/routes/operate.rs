//! What operators ask for. Sent again under its `Idempotency-Key`, a request asks once; a
//! step-down that names no term means the one that led when it was asked for *first*.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::Deserialize;
use tenure::views::Amended;
use tenure::{ElectionName, MemberId, TermNumber};
use tenure_api::{Changed, Evicted, Resigned, millis};

use super::elections::unknown;
use super::input::{self, Body, Segment};
use crate::App;
use crate::access::{Scope, need};
use crate::once::Once;
use crate::problem::{Answer, Problem};

/// Why, and in whose favour.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepDown {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    to: Option<String>,
    /// The term that is meant; the present one if it is left out.
    #[serde(default)]
    term: Option<u64>,
}

/// Asks the leader to step down, or to hand over.
pub(crate) async fn step_down(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    once: Option<Extension<Once>>,
    input::Election(name): input::Election,
    Body(asked): Body<StepDown>,
) -> Answer<Json<Resigned>> {
    need(scope, Scope::Operator)?;
    let seen = app.board.look(true).await?;
    let view = seen.find(&name).ok_or_else(|| unknown(&name))?;
    let holder = view.holder.as_ref().ok_or_else(|| vacant(&name, view.number))?;
    let meant = once.as_ref().and_then(|once| once.noted::<TermNumber>());
    let number = asked.term.map(TermNumber::new).or(meant).unwrap_or(view.number);
    if let Some(Extension(once)) = once {
        once.note(number);
    }
    let to = asked.to.map(MemberId::new).transpose().map_err(tenure::Error::from)?;
    let election = app.tenure.election(&name);
    let amended = election.ask_term_to_step_down(number, to.clone(), &asked.reason).await?;
    app.board.stir();
    match amended {
        Amended::Done { .. } | Amended::Unchanged => Ok(Json(Resigned {
            election: name.to_string(),
            term: number.get(),
            leader: holder.member.id.to_string(),
            asked: true,
            ended: None,
            successor: None,
            took_ms: None,
        })),
        Amended::NoSuchCandidate => {
            let to = to.map(|to| to.to_string()).unwrap_or_default();
            let what = format!("{to} is no other live candidate of {name} that may lead");
            Err(Problem::not_found(what).remedy("name one of the election's candidates"))
        }
        Amended::Superseded { number: newest, .. } => Err(superseded(&name, number, newest)),
        _ => Err(vacant(&name, view.number)),
    }
}

fn vacant(name: &ElectionName, number: TermNumber) -> Problem {
    let what = format!("{name} is vacant: there is no leader to step down");
    Problem::new(StatusCode::CONFLICT, "vacant", "the election is vacant", what)
        .newest_term(number.get())
}

fn superseded(name: &ElectionName, number: TermNumber, newest: TermNumber) -> Problem {
    let what = format!("term {number} of {name} is over; the newest is {newest}");
    Problem::new(StatusCode::CONFLICT, "superseded", "the term is over", what)
        .remedy("look at the election, and name its present term")
        .newest_term(newest.get())
}

/// Why.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Because {
    #[serde(default)]
    reason: String,
}

/// No member is newly elected from now on; the leader stays.
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    input::Election(name): input::Election,
    Body(asked): Body<Because>,
) -> Answer<Json<Changed>> {
    need(scope, Scope::Operator)?;
    let amended = app.tenure.operator().election(&name).pause(&asked.reason).await?;
    app.board.stir();
    Ok(changed(&name, &amended))
}

/// Lifts a pause.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    input::Election(name): input::Election,
    Body(_): Body<serde_json::Map<String, serde_json::Value>>,
) -> Answer<Json<Changed>> {
    need(scope, Scope::Operator)?;
    let amended = app.tenure.operator().election(&name).resume().await?;
    app.board.stir();
    Ok(changed(&name, &amended))
}

fn changed(name: &ElectionName, amended: &Amended) -> Json<Changed> {
    let changed = matches!(amended, Amended::Done { .. });
    Json(Changed { election: name.to_string(), changed })
}

/// How a member is ended.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evict {
    /// At once, although it may still trust its terms.
    #[serde(default)]
    now: bool,
}

/// Ends a member.
pub(crate) async fn evict(
    State(app): State<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Segment(id): Segment,
    Body(asked): Body<Evict>,
) -> Answer<Json<Evicted>> {
    need(scope, Scope::Operator)?;
    let id = MemberId::new(&id).map_err(tenure::Error::from)?;
    let operator = app.tenure.operator();
    let amended = match asked.now {
        true => operator.evict_now(&id).await?,
        false => operator.evict(&id).await?,
    };
    app.board.stir();
    match amended {
        Amended::Done { member: Some(member), remaining, .. } => Ok(Json(Evicted {
            member: id.to_string(),
            incarnation: member.incarnation.to_string(),
            trusts_itself_for_ms: millis(remaining),
            free: asked.now,
        })),
        Amended::Unchanged => {
            let what = format!("{id} was evicted already");
            Err(Problem::new(StatusCode::CONFLICT, "evicted", "it was evicted already", what)
                .remedy("what it holds is free when its ttl has run out"))
        }
        _ => {
            let what = format!("there is no live member {id}");
            Err(Problem::not_found(what).remedy("/v1/members lists them"))
        }
    }
}
