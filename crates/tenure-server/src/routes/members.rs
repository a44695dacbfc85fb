//! The live members.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use tenure_api::{Member, millis};

use super::elections::Fresh;
use super::input::Asked;
use crate::App;
use crate::problem::Answer;

/// What `/v1/members` says.
#[derive(Debug, Serialize)]
pub(crate) struct Members {
    namespace: String,
    seq: u64,
    age_ms: u64,
    members: Vec<Member>,
}

/// Every member whose ttl has not run out since it was read.
pub(crate) async fn all(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<Fresh>,
) -> Answer<Json<Members>> {
    let seen = app.board.look(asked.is_fresh()).await?;
    let age = app.board.age(&seen);
    let live = seen.snapshot.members.iter().filter(|view| view.remaining > age);
    let members = live.map(|view| {
        let mut member = Member::from(view);
        member.expires_in_ms = member.expires_in_ms.saturating_sub(millis(age));
        member
    });
    Ok(Json(Members {
        namespace: app.tenure.namespace().to_string(),
        seq: seen.snapshot.seq.get(),
        age_ms: millis(age),
        members: members.collect(),
    }))
}
