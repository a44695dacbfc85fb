//! The pages for people.
//!
//! The server writes each page whole, so that it can be read without a script. The script makes
//! it live: it follows `/v1/events`, and takes over what a new copy of the page, or of an
//! election, says. It trusts no leader longer than that leader's ttl, which it counts down from
//! before it asked.
//!
//! Names are text of strangers: [`maud`] escapes them, [`text::name`] writes out what cannot be
//! seen, and the policy that every answer carries allows no script and no style but our two
//! files.

mod actions;
mod assets;
mod election;
mod elections;
mod gantt;
mod journal;
mod login;
mod members;
mod names;
mod page;
mod state;
mod text;
mod trouble;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;

pub(crate) use login::page as login_page;
pub(crate) use trouble::for_people;

use crate::App;
use crate::board::Seen;
use crate::problem::Answer;

/// The pages.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(elections::page))
        .route("/election", get(election::page))
        .route("/members", get(members::page))
        .route("/names", get(names::page))
        .route("/journal", get(journal::page))
        .merge(assets::router())
}

/// What the server knows; of this place in the journal at least, if one is named.
async fn look(app: &App, seq: Option<u64>) -> Answer<Arc<Seen>> {
    let seen = app.board.look(false).await?;
    if seq.is_none_or(|seq| seen.snapshot.seq.get() >= seq) {
        return Ok(seen);
    }
    // An event may reach a browser before it has marked what was read as old.
    app.board.look(true).await
}
