//! Names and their owners.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use tenure::naming::{Name, WhichNames};
use tenure_api::{BoundName, BoundNames};

use super::input::{Asked, Segment};
use crate::App;
use crate::problem::{Answer, Problem};

/// Which names are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    owner: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

/// Names that begin with a prefix, with their owners. Asks the store.
pub(crate) async fn all(
    State(app): State<Arc<App>>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Json<BoundNames>> {
    let view = app.tenure.operator().names(WhichNames::Prefix(wanted.prefix)).await?;
    let owned = |binding: &&tenure::naming::Binding| {
        let owner = binding.owner.as_ref().map(|owner| owner.id.as_str());
        wanted.owner.is_none() || owner == wanted.owner.as_deref()
    };
    let bound = view.bindings.iter().filter(owned).take(wanted.limit.unwrap_or(usize::MAX));
    let names = bound.map(BoundName::from).collect();
    let namespace = app.tenure.namespace().to_string();
    Ok(Json(BoundNames { namespace, rev: view.rev.get(), names }))
}

/// One name, with its owner. Asks the store.
pub(crate) async fn one(
    State(app): State<Arc<App>>,
    Segment(text): Segment,
) -> Answer<Json<BoundName>> {
    let name = Name::new(&text).map_err(tenure::Error::from)?;
    let view = app.tenure.operator().names(WhichNames::Named(vec![name])).await?;
    let binding = view.bindings.first().ok_or_else(|| {
        let shown = tenure::views::shown(&text);
        Problem::not_found(format!("the name {shown} is free"))
    })?;
    Ok(Json(binding.into()))
}
