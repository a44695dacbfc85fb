//! The page of names and their owners.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use tenure::naming::WhichNames;
use tenure::views::shown;
use tenure_api::BoundName;

use super::page::{Page, Tab};
use super::text::{self, icon, name};
use crate::App;
use crate::access::Scope;
use crate::problem::Answer;
use crate::routes::input::Asked;

/// How many are written out.
const ROWS: usize = 500;

/// Which names.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    prefix: String,
}

/// The page.
pub(crate) async fn page(
    Shared(app): Shared<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Response> {
    let began = app.tenure.now();
    let view = app.tenure.operator().names(WhichNames::Prefix(wanted.prefix.clone())).await?;
    let names: Vec<_> = view.bindings.iter().take(ROWS).map(BoundName::from).collect();
    // The journal has no names: their page is read anew now and then.
    let (seq, _) = app.tenure.operator().journal(1).await?;
    let page = Page {
        app: &app,
        scope,
        tab: Tab::Names,
        title: "Names".into(),
        seq: seq.get(),
        age: app.tenure.now().since(began),
    };
    Ok(page.render(&main(&wanted, &names, view.bindings.len(), view.rev.get())))
}

fn main(wanted: &Wanted, names: &[BoundName], all: usize, rev: u64) -> Markup {
    html! {
        div.head {
            h1 { "Names " span #count .count data-live { (all) } }
            p #rev .say data-live { "At revision " b { (rev) } }
            form.filter role="search" action="/names" method="get" {
                label for="prefix" { (icon("search")) span.unseen { "Beginning of a name" } }
                input #prefix type="search" name="prefix" value=(wanted.prefix) autocomplete="off"
                    spellcheck="false" placeholder="Beginning of a name";
            }
        }
        div #names data-live {
            @if names.is_empty() {
                div.empty {
                    h2 { "No name is bound" }
                    p { "A process owns a name for as long as it lives:" }
                    pre { code { "tenure register orders:user/42 -- ./serve" } }
                }
            } @else {
                table.list.names {
                    thead { tr {
                        th scope="col" { "Name" }
                        th scope="col" { "Owner" }
                        th scope="col" { "Served at" }
                        th.num scope="col" { "Token" }
                        th.num scope="col" { "Since" }
                    } }
                    tbody { @for bound in names { (row(bound)) } }
                }
                @if names.len() < all {
                    p.none { (names.len()) " of " (all) " are shown. Give the beginning of a name." }
                }
            }
        }
    }
}

fn row(bound: &BoundName) -> Markup {
    html! {
        tr {
            th scope="row" {
                (name(&bound.name))
                span.note { @for (key, value) in &bound.index {
                    code { (shown(key)) "=" (shown(value)) } " "
                } }
            }
            td { @match &bound.owner {
                Some(owner) => a href={ "/members?q=" (text::query(owner)) } { (name(owner)) },
                None => span.dim { "no owner" },
            } }
            td { @if let Some(at) = &bound.endpoint { code { (shown(at)) } } }
            td.num { (bound.token) }
            td.num { (text::since(bound.bound_at, text::wall_millis())) }
        }
    }
}
