//! The page of one election: who leads, who waits, every term and why it ended.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State as Shared;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use tenure::views::{Holder, shown};
use tenure::{ElectionName, ElectionView};
use tenure_api::{ElectionHistory, Entry, Leader, PastTerm, because};

use super::page::{Page, Tab};
use super::state::State;
use super::text::{self, icon, name, wall_millis};
use super::{actions, gantt, journal, look};
use crate::App;
use crate::access::Scope;
use crate::problem::{Answer, Problem};
use crate::routes::input::Asked;

/// How many terms are shown at first, and at most.
const TERMS: usize = 40;
const MOST_TERMS: usize = 1_000;
/// How many entries of the journal.
const ENTRIES: usize = 15;

/// Which election.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    name: String,
    #[serde(default)]
    terms: Option<usize>,
    /// The place in the journal that the page must have reached.
    #[serde(default)]
    seq: Option<u64>,
}

/// Everything that the page shows.
struct Shown<'a> {
    view: &'a ElectionView,
    state: State,
    age: Duration,
    history: ElectionHistory,
    /// How many terms were asked for.
    asked: usize,
    entries: Vec<Entry>,
    wall: u64,
}

/// The page.
pub(crate) async fn page(
    Shared(app): Shared<Arc<App>>,
    Extension(scope): Extension<Scope>,
    Asked(wanted): Asked<Wanted>,
) -> Answer<Response> {
    let election = ElectionName::new(&wanted.name).map_err(tenure::Error::from)?;
    let seen = look(&app, wanted.seq).await?;
    let view = seen.find(&election).ok_or_else(|| {
        Problem::not_found(format!("no member ever stood for the election {election}"))
            .remedy("it is there as soon as a member stands for it")
    })?;
    let asked = wanted.terms.unwrap_or(TERMS).clamp(1, MOST_TERMS);
    let terms = app.tenure.election(&election).history(asked).await?;
    let entries = match app.tenure.capabilities().journal {
        true => app.tenure.operator().election(&election).journal(ENTRIES).await?,
        false => Vec::new(),
    };
    // After the store was asked again: what is shown is older by that.
    let age = app.board.age(&seen);
    let shown = Shown {
        view,
        state: State::of(view, age),
        age,
        history: tenure::json::history(&election, &terms),
        asked,
        entries: entries.iter().rev().map(Entry::from).collect(),
        wall: wall_millis(),
    };
    let page = Page {
        app: &app,
        scope,
        tab: Tab::Election,
        title: election.to_string(),
        seq: seen.snapshot.seq.get(),
        age,
    };
    Ok(page.render(&shown.main(scope == Scope::Operator)))
}

impl Shown<'_> {
    fn main(&self, operator: bool) -> Markup {
        let view = self.view;
        html! {
            div #head .head data-live data-name=(view.election) data-state=(self.state.key())
                data-term=(view.number)
            {
                p.path { a href="/" { "Elections" } }
                h1 { (name(view.election.as_str())) }
                span.word data-state=(self.state.key()) { (icon(self.state.key())) span { (self.state) } }
                @if view.paused.is_some() { span.mark.paused { (icon("paused")) "paused" } }
                @if self.history.flapping.is_some() { span.mark.flaps { (icon("flapping")) "flapping" } }
                @if operator { (actions::buttons(view)) }
            }
            div.columns {
                section #leader .card aria-labelledby="h-leader" data-live data-state=(self.state.key()) {
                    h2 #h-leader { "Leader" }
                    (self.leader())
                    (self.notes())
                }
                section #candidates .card aria-labelledby="h-candidates" data-live {
                    h2 #h-candidates { "Candidates " span.count { (view.candidates.len()) } }
                    (self.candidates())
                }
            }
            section #terms .card aria-labelledby="h-terms" data-live {
                h2 #h-terms { "Terms " span.count { (self.history.terms.len()) } }
                (self.terms())
            }
            @if !self.entries.is_empty() {
                section #recent .card aria-labelledby="h-recent" data-live {
                    h2 #h-recent { "Journal" }
                    (journal::table(&self.entries, false))
                    p.more { a href={ "/journal?election=" (text::query(view.election.as_str())) } {
                        "The journal of this election"
                    } }
                }
            }
            div #dialogs data-live { @if operator { (actions::dialogs(view)) } }
        }
    }

    fn leader(&self) -> Markup {
        match &self.view.holder {
            Some(holder) if self.state != State::Silent => self.current(holder),
            Some(holder) => html! {
                p.big.was { "was " (name(holder.member.id.as_str())) }
                p.say { (State::Silent.meaning()) }
            },
            None => html! {
                p.big.was { "no leader" }
                p.say { (self.state.meaning()) }
                @if let Some(last) = self.history.terms.last() { p.say { (ending(last)) } }
            },
        }
    }

    fn current(&self, holder: &Holder) -> Markup {
        let leader = Leader::from(holder);
        let left = holder.remaining.saturating_sub(self.age);
        html! {
            p.big { (name(&leader.id)) }
            p.say.silent hidden { (State::Silent.meaning()) }
            dl.facts {
                dt { "Term" } dd.num { (self.view.number) }
                dt { "For" } dd { (text::since(holder.elected_at.into(), self.wall)) }
                dt { "Ttl left" } dd { (text::left(left, holder.ttl))
                    span.of { " of " (text::whole(holder.ttl)) } }
                @if !leader.endpoints.is_empty() {
                    dt { "Reached at" } dd { @for (n, at) in leader.endpoints.iter().enumerate() {
                        @if n > 0 { ", " } code { (shown(at)) }
                    } }
                }
                @if let Some(metadata) = text::metadata(&leader.metadata) {
                    dt { "Publishes" } dd { code { (metadata) } }
                }
                dt { "Incarnation" } dd { code.dim { (leader.incarnation) } }
            }
            @if holder.unconfirmed {
                p.say { "The term was handed over to it, and it has not taken it on yet." }
            }
        }
    }

    /// What is under way, and who asked for it.
    fn notes(&self) -> Markup {
        let view = self.view;
        let said = |reason: &str, by: &str| shown(&because(reason, by)).into_owned();
        html! {
            @if let Some(asked) = &view.step_down {
                p.note data-state="stopping" { (icon("stopping")) span {
                    "Asked to step down"
                    @if let Some(to) = &asked.to { " in favour of " (name(to.as_str())) }
                    " " (said(asked.reason.as_str(), asked.by.as_str()))
                } }
            }
            @if let Some(paused) = &view.paused {
                p.note data-state="paused" { (icon("paused")) span {
                    "Paused " (said(paused.reason.as_str(), paused.by.as_str()))
                    ". No member is newly elected."
                } }
            }
            @if let Some(kept) = &view.reserved {
                p.note data-state="kept" { (icon("kept")) span {
                    "Kept for " (name(kept.member.as_str())) " for "
                    (text::lasted(tenure_api::millis(kept.remaining.saturating_sub(self.age))))
                } }
            }
            @if let Some(held_up) = &view.held_up {
                p.note data-state="held-up" { (icon("held-up")) span { "Held up: " (shown(&held_up.to_string())) } }
            }
            @if let Some(flapping) = &self.history.flapping {
                p.note data-state="flapping" { (icon("flapping")) span {
                    "Flapping: " (flapping.terms) " terms began within "
                    (text::lasted(flapping.within_ms)) "."
                } }
            }
        }
    }

    fn candidates(&self) -> Markup {
        let view = self.view;
        let holder = view.holder.as_ref().map(|holder| &holder.member);
        html! {
            @if view.candidates.is_empty() { p.say { "No member stands for it." } } @else {
                table.list.small {
                    thead { tr {
                        th scope="col" { "Member" }
                        th.num scope="col" { "Priority" }
                        th.num scope="col" { "Standing for" }
                    } }
                    tbody { @for candidate in &view.candidates {
                        tr {
                            th scope="row" {
                                (name(candidate.member.id.as_str()))
                                @if holder == Some(&candidate.member) && self.state != State::Silent {
                                    span.mark.leads { (icon("led")) "leads" }
                                }
                            }
                            td.num {
                                (candidate.priority.get())
                                @if !candidate.priority.may_lead() { span.dim { " never leads" } }
                            }
                            td.num { (text::whole(candidate.waiting + self.age)) }
                        }
                    } }
                }
            }
        }
    }

    fn terms(&self) -> Markup {
        let terms = &self.history.terms;
        html! {
            @if terms.is_empty() { p.say { "The journal has no term of it." } } @else {
                (gantt::chart(terms, self.wall))
                div.scroll tabindex="0" role="region" aria-label="Terms, newest first" { table.list.small.terms {
                    thead { tr {
                        th.num scope="col" { "Term" }
                        th scope="col" { "Member" }
                        th scope="col" { "From" }
                        th.num scope="col" { "Lasted" }
                        th scope="col" { "Ended" }
                    } }
                    tbody { @for term in terms.iter().rev() { (self.term(term)) } }
                } }
                @if terms.len() >= self.asked && self.asked < MOST_TERMS {
                    p.more { a href={
                        (text::election_href(self.view.election.as_str())) "&terms=" (MOST_TERMS)
                    } { "More terms" } }
                }
            }
        }
    }

    fn term(&self, term: &PastTerm) -> Markup {
        let hard = term.ended.is_some_and(gantt::is_hard);
        html! {
            tr data-stands[term.stands] {
                th.num scope="row" { (term.term) }
                td { (name(&term.member)) }
                td { (text::moment(term.from)) }
                td.num { @match term.lasted_ms {
                    Some(lasted) => (text::lasted(lasted)),
                    None if term.stands => (text::since(term.from, self.wall)),
                    None => "",
                } }
                td.end data-hard[hard] {
                    @if hard { (icon("ended")) }
                    @match (term.ended, term.stands) {
                        (Some(cause), _) => (cause),
                        (None, true) => "stands",
                        (None, false) => "over; the journal does not say how",
                    }
                }
            }
        }
    }
}

/// How the last term came to its end.
fn ending(last: &PastTerm) -> Markup {
    html! {
        "Term " (last.term) " of " (name(&last.member)) " ended"
        @if let Some(at) = last.to { " at " (text::moment(at)) }
        @if let Some(cause) = last.ended { ": " (cause) }
        "."
    }
}
