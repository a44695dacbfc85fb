//! The page of members: who lives, what they lead, and when they were heard last.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State as Shared;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use tenure::views::{Incarnation, MemberView, shown};
use tenure_api::Member;

use super::page::{Page, Tab};
use super::text::{self, icon, name};
use super::{actions, look};
use crate::App;
use crate::access::Scope;
use crate::board::Seen;
use crate::problem::Answer;
use crate::routes::input::Asked;

/// How many are written out, each with its dialog.
const ROWS: usize = 100;
/// How many elections of a member are named.
const NAMED: usize = 3;

/// Which members.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    q: String,
    #[serde(default)]
    seq: Option<u64>,
}

/// The page.
pub(crate) async fn page(
    Shared(app): Shared<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Response> {
    let seen = look(&app, wanted.seq).await?;
    let age = app.board.age(&seen);
    let page = Page {
        app: &app,
        scope,
        tab: Tab::Members,
        title: "Members".into(),
        seq: seen.snapshot.seq.get(),
        age,
    };
    Ok(page.render(&main(&seen, age, &wanted, scope == Scope::Operator)))
}

fn main(seen: &Seen, age: Duration, wanted: &Wanted, operator: bool) -> Markup {
    let mut led: HashMap<Incarnation, Vec<&str>> = HashMap::new();
    for view in &seen.snapshot.elections {
        if let Some(holder) = &view.holder {
            led.entry(holder.member.incarnation).or_default().push(view.election.as_str());
        }
    }
    let text = wanted.q.trim().to_lowercase();
    let mut live: Vec<_> =
        seen.snapshot.members.iter().filter(|view| view.remaining > age).collect();
    let all = live.len();
    live.retain(|view| fits(view, &text));
    live.sort_by(|a, b| a.member.id.cmp(&b.member.id));
    let rows = &live[..live.len().min(ROWS)];
    let none = Vec::new();
    let led = |view: &MemberView| led.get(&view.member.incarnation).unwrap_or(&none).as_slice();
    html! {
        div.head {
            h1 { "Members " span #count .count data-live { (all) } }
            form.filter role="search" action="/members" method="get" {
                label for="q" { (icon("search")) span.unseen { "Filter by id or endpoint" } }
                input #q type="search" name="q" value=(wanted.q) autocomplete="off"
                    spellcheck="false" placeholder="Id or endpoint";
            }
        }
        div #members data-live {
            table.list.members {
                thead { tr {
                    th scope="col" { "Member" }
                    th scope="col" { "Leads" }
                    th scope="col" { "Reached at" }
                    th.num scope="col" { "Member for" }
                    th scope="col" { "Ttl left" }
                    @if operator { th scope="col" { span.unseen { "Steer" } } }
                } }
                tbody { @for view in rows { (row(view, led(view), age, operator)) } }
            }
            @if live.is_empty() { p.none { "No member fits." } }
            @if rows.len() < live.len() {
                p.none { (rows.len()) " of " (live.len()) " are shown. Filter for the others." }
            }
        }
        div #dialogs data-live { @if operator { @for view in rows { (actions::evict(view, led(view))) } } }
    }
}

fn fits(view: &MemberView, wanted: &str) -> bool {
    let holds = |text: &str| text.to_lowercase().contains(wanted);
    holds(view.member.id.as_str()) || view.profile.endpoints().iter().any(|at| holds(at))
}

fn row(view: &MemberView, led: &[&str], age: Duration, operator: bool) -> Markup {
    let member = Member::from(view);
    html! {
        tr {
            th scope="row" {
                (name(&member.id))
                span.note { code { (member.incarnation.get(..8).unwrap_or_default()) }
                    @if let Some(metadata) = text::metadata(&member.metadata) { " " (metadata) } }
            }
            td.leads {
                @for (n, election) in led.iter().take(NAMED).enumerate() {
                    @if n > 0 { ", " } (text::election_link(election))
                }
                @if led.len() > NAMED {
                    a href={ "/?show=led&q=" (text::query(&member.id)) } { " and " (led.len() - NAMED) " more" }
                }
            }
            td { @for (n, at) in member.endpoints.iter().enumerate() {
                @if n > 0 { ", " } code { (shown(at)) }
            } }
            td.num { (text::since(member.joined_at, text::wall_millis())) }
            td.ttl { (text::left(view.remaining.saturating_sub(age), Duration::from_millis(member.ttl_ms))) }
            @if operator { td.act { (actions::evict_button(view)) } }
        }
    }
}
