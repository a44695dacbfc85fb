//! Elections, their terms, and the journal.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tenure::journal::{Journalled, Seq};
use tenure_api::{Election, ElectionHistory, Entry, millis};

use super::input::{self, Asked};
use crate::App;
use crate::problem::{Answer, Problem};

/// How many past terms or entries are given at most.
const MOST: usize = 1_000;

/// `?fresh=1`: ask the store.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fresh {
    #[serde(default)]
    fresh: Option<String>,
}

impl Fresh {
    pub(crate) fn is_fresh(&self) -> bool {
        self.fresh.as_deref().is_some_and(|text| text != "0" && text != "false")
    }
}

/// What `/v1/elections` says.
#[derive(Debug, Serialize)]
pub(crate) struct Elections {
    namespace: String,
    seq: u64,
    age_ms: u64,
    elections: Vec<Election>,
}

/// Every election. Where one is stale all are: a list with holes would be taken for the whole.
pub(crate) async fn all(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<Fresh>,
) -> Answer<Json<Elections>> {
    let seen = app.board.look(asked.is_fresh()).await?;
    let namespace = app.tenure.namespace().to_string();
    let views = seen.snapshot.elections.iter().map(|view| app.board.aged(&seen, view));
    let elections = views.map(|view| Ok(Election::new(&namespace, &view?)));
    let elections = elections.collect::<Answer<_>>()?;
    let seq = seen.snapshot.seq.get();
    Ok(Json(Elections { namespace, seq, age_ms: millis(app.board.age(&seen)), elections }))
}

/// What `/v1/elections/{election}` says.
#[derive(Debug, Serialize)]
pub(crate) struct One {
    #[serde(flatten)]
    election: Election,
    seq: u64,
    age_ms: u64,
}

/// One election.
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    input::Election(name): input::Election,
    Asked(asked): Asked<Fresh>,
) -> Answer<Json<One>> {
    let seen = app.board.look(asked.is_fresh()).await?;
    let view = seen.find(&name).ok_or_else(|| unknown(&name))?;
    let view = app.board.aged(&seen, view)?;
    Ok(Json(One {
        election: Election::new(app.tenure.namespace().as_str(), &view),
        seq: seen.snapshot.seq.get(),
        age_ms: millis(app.board.age(&seen)),
    }))
}

pub(crate) fn unknown(name: &tenure::ElectionName) -> Problem {
    Problem::not_found(format!("no member ever stood for the election {name}"))
        .remedy("/v1/elections lists them")
}

/// How much is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Newest {
    #[serde(default)]
    limit: Option<usize>,
}

/// Which entries are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    #[serde(default)]
    after: Option<u64>,
    #[serde(default)]
    limit: Option<usize>,
}

fn within(limit: Option<usize>) -> Answer<usize> {
    let limit = limit.unwrap_or(100);
    if (1..=MOST).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::bad_request(format!("limit is {limit}, and must be 1 to {MOST}")))
}

/// The newest terms of an election, oldest first.
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    input::Election(name): input::Election,
    Asked(newest): Asked<Newest>,
) -> Answer<Json<ElectionHistory>> {
    let terms = app.tenure.election(&name).history(within(newest.limit)?).await?;
    if terms.is_empty() && app.board.look(false).await?.find(&name).is_none() {
        return Err(unknown(&name));
    }
    Ok(Json(tenure::json::history(&name, &terms)))
}

/// What `/v1/journal` says.
#[derive(Debug, Serialize)]
pub(crate) struct Journal {
    namespace: String,
    /// Where the journal ends now, or the last entry given.
    seq: u64,
    entries: Vec<Entry>,
}

/// Entries after a place, or the newest.
pub(crate) async fn journal(
    State(app): State<Arc<App>>,
    Asked(page): Asked<Page>,
) -> Answer<Json<Journal>> {
    if !app.tenure.capabilities().journal {
        return Err(Problem::not_found("this store keeps no journal"));
    }
    let limit = within(page.limit)?;
    let namespace = app.tenure.namespace().to_string();
    let (newest, mut entries) = app.tenure.journal(limit).await?;
    let mut seq = newest;
    if let Some(after) = page.after {
        let begins_later = entries.first().is_some_and(|entry| entry.seq.get() > after + 1);
        if begins_later {
            entries = page_after(&app, Seq::new(after), limit).await?;
            seq = entries.last().map_or(newest, |entry| entry.seq);
        }
        entries.retain(|entry| entry.seq.get() > after);
    }
    let entries = entries.iter().map(Entry::from).collect();
    Ok(Json(Journal { namespace, seq: seq.get(), entries }))
}

/// The first entries after a place that lies further back than the newest.
async fn page_after(app: &App, after: Seq, limit: usize) -> Answer<Vec<tenure::journal::Entry>> {
    let mut stream = app.tenure.follow(Some(after))?;
    while let Some(news) = stream.next().await {
        match news {
            Journalled::Entries(mut entries) => {
                entries.truncate(limit);
                return Ok(entries);
            }
            Journalled::Trimmed(up_to) => {
                let what = format!("the journal no longer has what happened up to {up_to}");
                let status = http::StatusCode::GONE;
                return Err(Problem::new(status, "trimmed", "the entries are gone", what)
                    .remedy(format!("ask for what came after {up_to}")));
            }
            Journalled::Interrupted(error) => {
                let status = http::StatusCode::SERVICE_UNAVAILABLE;
                return Err(Problem::new(status, "store_away", "the store does not answer", error));
            }
            _ => {}
        }
    }
    Err(tenure::Error::ShutDown.into())
}
