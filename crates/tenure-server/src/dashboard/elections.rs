//! The page of all elections: those without a leader first.
//!
//! The server writes the rows of one page; the script takes them over, keeps all elections and
//! shows the rows that are in sight. Both make a row from the same markup.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State as Shared;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use tenure::journal::Happening;
use tenure::views::shown;
use tenure::{ElectionName, ElectionView};
use tenure_api::Flapping;

use super::look;
use super::page::{Page, Tab};
use super::state::{Show, State};
use super::text::{self, election_href, icon, name, query, wall_millis};
use crate::App;
use crate::access::Scope;
use crate::problem::Answer;
use crate::routes::input::Asked;

/// How many rows the server writes.
const ROWS: usize = 200;
/// How much of the journal is looked through for elections that flap.
const ENTRIES: usize = 1_000;
/// Terms that begin within this time are counted.
const RECENT: u64 = 600_000;

/// What is wanted.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    q: String,
    #[serde(default)]
    show: String,
    #[serde(default)]
    from: Option<usize>,
}

/// One election as its row has it.
struct Row<'a> {
    view: &'a ElectionView,
    state: State,
    age: Duration,
    flaps: bool,
}

impl Row<'_> {
    /// What needs an operator stands first.
    fn rank(&self) -> u8 {
        match self.state {
            State::Vacant | State::HeldUp | State::Silent => 0,
            State::Kept => 1,
            _ if self.flaps || self.view.paused.is_some() || self.state == State::Stopping => 2,
            _ => 3,
        }
    }

    fn is(&self, show: Show) -> bool {
        match show {
            Show::All => true,
            Show::Vacant => self.state.is_vacant(),
            Show::Paused => self.view.paused.is_some(),
            Show::Flapping => self.flaps,
            Show::Led => !self.state.is_vacant(),
        }
    }

    fn fits(&self, wanted: &str) -> bool {
        let holds = |text: &str| text.to_lowercase().contains(wanted);
        let holder = self.view.holder.as_ref();
        holds(self.view.election.as_str()) || holder.is_some_and(|h| holds(h.member.id.as_str()))
    }

    fn note(&self) -> Option<String> {
        let view = self.view;
        let paused = || {
            let paused = view.paused.as_ref()?;
            Some(tenure_api::because(paused.reason.as_str(), paused.by.as_str()))
        };
        let note = match (&view.held_up, &view.reserved, &view.step_down) {
            (Some(held_up), _, _) if view.holder.is_none() => Some(held_up.to_string()),
            (_, Some(kept), _) if view.holder.is_none() => {
                Some(format!("kept for {}", kept.member))
            }
            (_, _, Some(asked)) if view.holder.is_some() => {
                Some(tenure_api::because(asked.reason.as_str(), asked.by.as_str()))
            }
            _ => paused(),
        };
        note.map(|note| shown(&note).into_owned())
    }

    fn render(&self, wall: u64) -> Markup {
        let view = self.view;
        let holder = view.holder.as_ref();
        let current = holder.filter(|_| self.state != State::Silent);
        html! {
            tr data-state=(self.state.key()) {
                td.state { span.word { (icon(self.state.key())) span { (self.state) } } }
                th.name scope="row" {
                    a href=(election_href(view.election.as_str())) { (name(view.election.as_str())) }
                    span.mark.paused hidden[view.paused.is_none()] { (icon("paused")) "paused" }
                    span.mark.flaps hidden[!self.flaps] { (icon("flapping")) "flapping" }
                }
                td.leader {
                    span.who { @match holder {
                        Some(holder) if self.state == State::Silent => { "was " (name(holder.member.id.as_str())) }
                        Some(holder) => (name(holder.member.id.as_str())),
                        None => "no leader",
                    } }
                    span.note { (self.note().unwrap_or_default()) }
                }
                td.term { (view.number) }
                td.since { @if let Some(holder) = current { (text::since(holder.elected_at.into(), wall)) } }
                td.ttl { @if let Some(holder) = current {
                    (text::left(holder.remaining.saturating_sub(self.age), holder.ttl))
                } }
                td.cands { (view.candidates.len()) }
            }
        }
    }
}

/// The elections whose leadership flaps, from the newest entries of the journal.
async fn flapping(app: &App) -> HashSet<ElectionName> {
    if !app.tenure.capabilities().journal {
        return HashSet::new();
    }
    let Ok((_, entries)) = app.tenure.operator().journal(ENTRIES).await else {
        return HashSet::new();
    };
    let since = wall_millis().saturating_sub(RECENT);
    let mut starts: HashMap<ElectionName, Vec<u64>> = HashMap::new();
    for entry in entries {
        let at = entry.at.unix_millis();
        if let Happening::Elected { term } = entry.what
            && at >= since
        {
            starts.entry(term.election).or_default().push(at);
        }
    }
    let flap = starts.into_iter().filter(|(_, starts)| Flapping::of(starts).is_some());
    flap.map(|(election, _)| election).collect()
}

/// The page.
pub(crate) async fn page(
    Shared(app): Shared<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Response> {
    let seen = look(&app, None).await?;
    let age = app.board.age(&seen);
    let flaps = flapping(&app).await;
    let rows = seen.snapshot.elections.iter().map(|view| Row {
        state: State::of(view, age),
        flaps: flaps.contains(&view.election),
        view,
        age,
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(Row::rank);
    let page = Page {
        app: &app,
        scope,
        tab: Tab::Elections,
        title: "Elections".into(),
        seq: seen.snapshot.seq.get(),
        age,
    };
    Ok(page.render(&main(&rows, &wanted)))
}

fn main(rows: &[Row<'_>], wanted: &Wanted) -> Markup {
    let show = Show::of(&wanted.show);
    let text = wanted.q.trim().to_lowercase();
    let fit: Vec<_> = rows.iter().filter(|row| row.is(show) && row.fits(&text)).collect();
    let from = wanted.from.unwrap_or_default().min(fit.len());
    let to = fit.len().min(from + ROWS);
    html! {
        div.head {
            h1 { "Elections" }
            (counts(rows, show, &wanted.q))
            (filter(wanted))
        }
        (table(&fit[from..to], fit.len()))
        p #none .none hidden[!fit.is_empty() || rows.is_empty()] { "No election fits." }
        div #empty .empty hidden[!rows.is_empty()] {
            h2 { "No election yet" }
            p { "An election is there as soon as a process stands for it:" }
            pre { code { "tenure run --election nightly -- ./job" } }
        }
        @if to - from < fit.len() {
            nav #pages .pages aria-label="Pages of the list" {
                @if from > 0 { a href=(page_href(wanted, from.saturating_sub(ROWS))) { "Before" } }
                span { (from + 1) " to " (to) " of " (fit.len()) }
                @if to < fit.len() { a href=(page_href(wanted, to)) { "After" } }
            }
        }
    }
}

fn page_href(wanted: &Wanted, from: usize) -> String {
    format!("/?show={}&q={}&from={from}", query(&wanted.show), query(&wanted.q))
}

/// How many there are of each kind; each is a filter.
fn counts(rows: &[Row<'_>], here: Show, text: &str) -> Markup {
    html! {
        nav #counts .counts aria-label="Which elections" {
            @for show in Show::ALL {
                @let count = rows.iter().filter(|row| row.is(show)).count();
                a href={ "/?show=" (show.key()) "&q=" (query(text)) } data-show=(show.key())
                    data-some[count > 0] aria-current=[(show == here).then_some("true")]
                {
                    @if show != Show::All { (icon(show.key())) }
                    b { (count) } " " span { (show.key()) }
                }
            }
        }
    }
}

fn filter(wanted: &Wanted) -> Markup {
    html! {
        form.filter role="search" action="/" method="get" {
            input type="hidden" name="show" value=(wanted.show);
            label for="q" { (icon("search")) span.unseen { "Filter by election or leader" } }
            input #q type="search" name="q" value=(wanted.q) autocomplete="off" spellcheck="false"
                placeholder="Election or leader";
            kbd aria-hidden="true" { "/" }
        }
    }
}

fn table(rows: &[&Row<'_>], all: usize) -> Markup {
    let blank = ElectionName::new("election").map(ElectionView::vacant);
    let wall = wall_millis();
    html! {
        table #elections .list.elections aria-rowcount=(all + 1) hidden[rows.is_empty()] {
            caption.unseen { "Elections, those without a leader first" }
            thead { tr aria-rowindex="1" {
                th.state scope="col" { "State" }
                th.name scope="col" { "Election" }
                th.leader scope="col" { "Leader" }
                th.term scope="col" { "Term" }
                th.since scope="col" { "For" }
                th.ttl scope="col" { "Ttl left" }
                th.cands scope="col" { "Candidates" }
            } }
            tbody { @for row in rows { (row.render(wall)) } }
        }
        template #row {
            @if let Ok(view) = &blank {
                (Row { view, state: State::Vacant, age: Duration::ZERO, flaps: false }.render(wall))
            }
        }
        template #ttl { (text::left(Duration::ZERO, Duration::ZERO)) }
    }
}
