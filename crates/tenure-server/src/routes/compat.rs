//! What older sidecars answered: Kubernetes' retired leader-elector, and nais/elector.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::middleware;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use axum::{Json, Router};
use futures_core::Stream;
use futures_util::StreamExt as _;
use serde::Serialize;
use tenure::{Election, Observed};
use tenure_api::Moment;

use super::guarded;
use crate::App;
use crate::front::is_for_us;
use crate::problem::{Answer, Problem};

/// The election that is told of.
#[derive(Clone, Debug)]
struct Compat {
    app: Arc<App>,
    election: Option<Election>,
}

/// `/` has the leader's name, `/sse` each change of it.
pub(crate) fn router(app: Arc<App>, election: Option<&String>) -> Router {
    let election = election.map(|name| app.tenure.election(name));
    let hosts = Arc::new(app.hosts.clone());
    Router::new()
        .route("/", get(name))
        .route("/sse", get(changes))
        // A page whose name was rebound to this address learns no names either.
        .layer(middleware::from_fn_with_state(hosts, is_for_us))
        .layer(middleware::from_fn(guarded))
        .with_state(Compat { app, election })
}

/// Who leads; an empty name if the election is vacant.
#[derive(Debug, Serialize)]
struct Leader {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_update: Option<Moment>,
}

impl Compat {
    fn election(&self) -> Answer<&Election> {
        self.election.as_ref().ok_or_else(|| {
            Problem::not_found("this server stands for no election")
                .remedy("start it with --stand ELECTION")
        })
    }
}

async fn name(State(compat): State<Compat>) -> Answer<Json<Leader>> {
    let election = compat.election()?;
    let name = election.name().map_err(Problem::from)?.clone();
    let seen = compat.app.board.look(false).await?;
    let view = seen.find(&name).map(|view| compat.app.board.aged(&seen, view)).transpose()?;
    let holder = view.and_then(|view| view.holder);
    Ok(Json(Leader {
        name: holder.as_ref().map(|holder| holder.member.id.to_string()).unwrap_or_default(),
        last_update: holder.map(|holder| holder.elected_at.into()),
    }))
}

async fn changes(
    State(compat): State<Compat>,
) -> Answer<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    let told = compat.election()?.observe().map_err(Problem::from)?;
    let news = told.filter_map(|news| async move {
        let leader = match news.observed {
            Observed::Leads { term, .. } => Leader {
                name: term.member.id.to_string(),
                last_update: Some(term.elected_at.into()),
            },
            Observed::Vacant { .. } => Leader { name: String::new(), last_update: None },
            _ => return None,
        };
        Some(Ok(Event::default().data(serde_json::to_string(&leader).unwrap_or_default())))
    });
    let mut stop = compat.app.close.subscribe();
    let stopped = async move { drop(stop.wait_for(|stop| *stop).await) };
    let alive = KeepAlive::new().interval(Duration::from_secs(10));
    Ok(Sse::new(news.take_until(Box::pin(stopped))).keep_alive(alive))
}
