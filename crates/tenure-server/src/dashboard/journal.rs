//! The page of the journal, newest first.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State as Shared;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use tenure::ElectionName;
use tenure_api::{Entry, Event, Happening};

use super::page::{Page, Tab};
use super::text::{self, election_link, icon};
use crate::App;
use crate::access::Scope;
use crate::problem::{Answer, Problem};
use crate::routes::input::Asked;

/// How many entries a page has.
const ENTRIES: usize = 200;
/// How far back the pages reach.
const REACH: usize = 20_000;
/// How many entries the script is given at once.
const NEWS: usize = 1_000;

/// Which entries.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    election: String,
    /// Those before this place.
    #[serde(default)]
    before: Option<u64>,
    /// The first after this place: what the script lacks.
    #[serde(default)]
    after: Option<u64>,
}

/// The page.
pub(crate) async fn page(
    Shared(app): Shared<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Response> {
    if !app.tenure.capabilities().journal {
        return Err(Problem::not_found("this store keeps no journal"));
    }
    let began = app.tenure.now();
    let (seq, mut entries) = read(&app, &wanted).await?;
    entries.reverse();
    let page = Page {
        app: &app,
        scope,
        tab: Tab::Journal,
        title: "Journal".into(),
        seq,
        age: app.tenure.now().since(began),
    };
    Ok(page.render(&main(&wanted, seq, &entries)))
}

/// Where the journal ends, and the entries that are wanted, oldest first.
async fn read(app: &App, wanted: &Wanted) -> Answer<(u64, Vec<Entry>)> {
    let operator = app.tenure.operator();
    let (newest, _) = operator.journal(1).await?;
    let newest = newest.get();
    let edge = wanted.after.or(wanted.before).unwrap_or(newest + 1);
    let back = usize::try_from(newest.saturating_sub(edge)).unwrap_or(REACH) + ENTRIES;
    let count = back.min(REACH);
    let entries = if wanted.election.is_empty() {
        operator.journal(count).await?.1
    } else {
        let name = ElectionName::new(&wanted.election).map_err(tenure::Error::from)?;
        operator.election(&name).journal(count).await?
    };
    let mut entries: Vec<_> = entries.iter().map(Entry::from).collect();
    if let Some(after) = wanted.after {
        entries.retain(|entry| entry.seq > after);
        entries.truncate(NEWS);
    } else {
        entries.retain(|entry| wanted.before.is_none_or(|before| entry.seq < before));
        entries.drain(..entries.len().saturating_sub(ENTRIES));
    }
    Ok((newest, entries))
}

fn main(wanted: &Wanted, seq: u64, entries: &[Entry]) -> Markup {
    let of = match wanted.election.is_empty() {
        true => String::new(),
        false => format!("&election={}", text::query(&wanted.election)),
    };
    html! {
        div.head {
            h1 { "Journal" }
            p.say { "Up to place " b { (seq) } }
            form.filter role="search" action="/journal" method="get" {
                label for="election" { (icon("search")) span.unseen { "The name of an election" } }
                input #election type="search" name="election" value=(wanted.election)
                    autocomplete="off" spellcheck="false" placeholder="Whole name of an election";
            }
        }
        // The newest page alone grows.
        div #journal data-grows[wanted.before.is_none()] data-election=(wanted.election) { (table(entries, true)) }
        @if entries.is_empty() { p.none { "There is no entry here." } }
        nav.pages aria-label="Pages of the journal" {
            @if wanted.before.is_some() { a href={ "/journal?" (of.trim_start_matches('&')) } { "Newest" } }
            @if let Some(oldest) = entries.last().filter(|_| entries.len() >= ENTRIES) {
                a href={ "/journal?before=" (oldest.seq) (of) } { "Older" }
            }
        }
    }
}

/// Entries, newest first.
pub(crate) fn table(entries: &[Entry], with_election: bool) -> Markup {
    html! {
        table.list.small.journal {
            thead { tr {
                th.num scope="col" { "Place" }
                th scope="col" { "At" }
                @if with_election { th scope="col" { "Election" } }
                th scope="col" { "What happened" }
            } }
            tbody { @for entry in entries { (row(entry, with_election)) } }
        }
    }
}

fn row(entry: &Entry, with_election: bool) -> Markup {
    let said = entry.what.to_string();
    html! {
        tr data-entry=(entry.seq) {
            td.num { (entry.seq) }
            td.at { (text::moment(entry.at)) }
            @if with_election {
                td.of { @if let Some(election) = election(&entry.what) { (election_link(election)) } }
            }
            td.what data-state=(tone(&entry.what)) {
                (icon(symbol(entry.what.event())))
                span { bdi { (tenure::views::shown(&said)) } }
            }
        }
    }
}

fn election(what: &Happening) -> Option<&str> {
    match what {
        Happening::Joined { .. } | Happening::Left { .. } | Happening::Ended { .. } => None,
        Happening::Stood { election, .. }
        | Happening::Elected { election, .. }
        | Happening::Released { election, .. }
        | Happening::StepDownAsked { election, .. }
        | Happening::Paused { election, .. }
        | Happening::Resumed { election, .. }
        | Happening::Leads { election, .. } => Some(election),
        _ => None,
    }
}

fn symbol(event: Event) -> &'static str {
    match event {
        Event::Joined => "in",
        Event::Left => "out",
        Event::Ended => "ended",
        Event::Stood => "stood",
        Event::Elected | Event::Leads | Event::Resumed => "led",
        Event::Released => "vacant",
        Event::StepDownAsked => "stopping",
        Event::Paused => "paused",
        _ => "still",
    }
}

/// The state whose colour it has.
fn tone(what: &Happening) -> &'static str {
    match what {
        Happening::Elected { .. } => "led",
        Happening::Ended { .. } => "vacant",
        Happening::Released { cause, .. } if super::gantt::is_hard(*cause) => "vacant",
        Happening::StepDownAsked { .. } => "stopping",
        Happening::Paused { .. } => "paused",
        _ => "plain",
    }
}
