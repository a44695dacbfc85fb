//! `tenure status`: who leads, since when, and who waits.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tenure::journal::{PastTerm, ReleaseCause};
use tenure::naming::WhichNames;
use tenure::{ElectionView, Operator};
use tenure_api::{
    Cause, Election, Ended, Metadata, NameCounts, Status, StatusOfAll, StatusOfOne, StoreHealth,
    because, span,
};

use crate::args::StatusArgs;
use crate::context::{Context, known_view};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Output, Table, Tone};
use crate::show::{leader_cell, moment, states, waiting};

pub(crate) async fn run(context: &Context, args: &StatusArgs) -> Outcome {
    let operator = context.look().await?;
    let asked = Instant::now();
    let views = match &args.name {
        Some(name) => vec![known_view(&operator, name).await?],
        None => operator.elections().await?,
    };
    let round_trip = asked.elapsed();
    let health = health(context, &operator, round_trip);
    let views = vacancies(&operator, views).await?;
    let names = if args.names { Some(count_names(&operator).await?) } else { None };
    let out = context.output;
    match (&args.name, out.json) {
        (Some(_), true) => {
            let status = views[0].answer(&context.namespace);
            out.value(&StatusOfOne { status, store: health })?;
        }
        (None, true) => {
            let namespace = context.namespace.clone();
            let elections = views.iter().map(|seen| seen.answer(&namespace)).collect();
            out.value(&StatusOfAll { namespace, store: health, elections, names })?;
        }
        (_, false) => {
            people(out, &views, args.name.is_some(), names.as_ref())?;
            out.line(&out.paint(Tone::Faint, &health_line(&health, round_trip)))?;
        }
    }
    Ok(Exit::Ok)
}

/// How many names there are. No store keeps that number: each of them is read.
async fn count_names(operator: &Operator) -> Outcome<NameCounts> {
    let all = operator.names(WhichNames::Prefix(String::new())).await?.bindings;
    let owners: HashSet<_> = all.iter().filter_map(|binding| binding.owner.as_ref()).collect();
    Ok(NameCounts { bound: all.len() as u64, owners: owners.len() as u64 })
}

/// An election and, if it is vacant, how its last term ended.
struct Seen {
    view: ElectionView,
    ended: Option<PastTerm>,
}

/// For so many vacant elections the journal is asked how they became so.
const ASKED: usize = 20;

async fn vacancies(operator: &Operator, views: Vec<ElectionView>) -> Outcome<Vec<Seen>> {
    let mut seen = Vec::new();
    let mut asked = 0;
    for view in views {
        let vacant = view.holder.is_none() && view.number.get() > 0 && asked < ASKED;
        let mut ended = None;
        if vacant && operator.capabilities().journal {
            asked += 1;
            let last = operator.election(&view.election).history(1).await?.pop();
            ended = last.filter(|past| past.term.number == view.number && past.ended.is_some());
        }
        seen.push(Seen { view, ended });
    }
    Ok(seen)
}

impl Seen {
    /// What is out of the ordinary, and why it is vacant.
    fn states(&self) -> String {
        let states = states(&self.view);
        match self.stepped_down() {
            true if states.is_empty() => "stepped down".into(),
            true => format!("{states}, stepped down"),
            false => states,
        }
    }

    /// Whether the last leader was asked to step down, and did. It waits out its
    /// cooldown before it stands again, and until then is no candidate.
    fn stepped_down(&self) -> bool {
        let ended = self.ended.as_ref().and_then(|past| past.ended);
        ended.is_some_and(|(_, cause)| cause == ReleaseCause::SteppedDown)
    }

    /// For scripts.
    fn answer(&self, namespace: &str) -> Status {
        let ended = self.ended.as_ref().and_then(|past| {
            let (at, cause) = past.ended?;
            let member = past.term.member.id.to_string();
            Some(Ended { member, at: at.into(), cause: cause.into() })
        });
        Status { election: Election::new(namespace, &self.view), ended }
    }

    /// How the last term ended, for people.
    fn why_vacant(&self) -> Option<String> {
        let past = self.ended.as_ref()?;
        let (at, cause) = past.ended?;
        let number = past.term.number;
        let id = &past.term.member.id;
        let at = moment(at);
        let how = Cause::from(cause);
        let cooling = match self.stepped_down() {
            true => "; it may stand again after its cooldown, one ttl unless it was set otherwise",
            false => "",
        };
        Some(format!("since {at} UTC: term {number} of {id} is over, {how}{cooling}"))
    }
}

/// How the store is doing.
fn health(context: &Context, operator: &Operator, round_trip: Duration) -> StoreHealth {
    let capabilities = operator.capabilities();
    let because = capabilities.polled_because.map(String::from);
    let url = context.shown_store();
    // One that is not there yet is looked at as an empty one in memory.
    let scheme = url.split(':').next().unwrap_or_default();
    let absent = capabilities.name == "memory" && scheme != "memory";
    let kind = if absent { scheme } else { capabilities.name }.to_owned();
    StoreHealth {
        kind,
        url,
        round_trip_ms: fraction(round_trip),
        notifications: capabilities.watch.to_string(),
        trouble: because,
    }
}

/// Milliseconds with three places: a local store answers within less than one.
fn fraction(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}

fn health_line(health: &StoreHealth, round_trip: Duration) -> String {
    let StoreHealth { url, notifications, trouble, .. } = health;
    let trouble = trouble.as_ref().map(|t| format!("; {t}")).unwrap_or_default();
    let took = span::show(round_trip);
    format!("{url} answered in {took}, notifications {notifications}{trouble}")
}

fn people(out: Output, views: &[Seen], one: bool, names: Option<&NameCounts>) -> Outcome<()> {
    if one {
        for seen in views {
            details(out, seen)?;
        }
    } else if views.is_empty() {
        out.line("no elections yet; `tenure run --election NAME -- CMD` begins one")?;
    } else {
        overview(out, views)?;
    }
    if let Some(NameCounts { bound, owners }) = names {
        out.line(&format!("{bound} names are bound, by {owners} members"))?;
    }
    Ok(())
}

fn overview(out: Output, views: &[Seen]) -> Outcome<()> {
    let mut table =
        Table::new(&["election", "leader", "term", "since (UTC)", "left", "waiting", "state"]);
    for seen in views {
        let view = &seen.view;
        let holder = view.holder.as_ref();
        let (tone, leader) = leader_cell(view);
        let since = holder.map(|h| moment(h.elected_at)).unwrap_or_default();
        let left = holder.map(|h| span::roughly(h.remaining)).unwrap_or_default();
        let waiting = waiting(view).count();
        let state = seen.states();
        table.row(vec![
            (Tone::Strong, view.election.to_string()),
            (tone, leader),
            (Tone::Plain, view.number.to_string()),
            (Tone::Plain, since),
            (Tone::Plain, left),
            (Tone::Plain, waiting.to_string()),
            (Tone::Warn, state),
        ]);
    }
    out.table(&table)
}

fn details(out: Output, seen: &Seen) -> Outcome<()> {
    let view = &seen.view;
    let mut facts = Table::facts();
    facts.fact("election", Tone::Strong, view.election.as_str());
    let (tone, leader) = leader_cell(view);
    facts.fact("leader", tone, leader);
    facts.fact("term", Tone::Plain, view.number.to_string());
    if let Some(holder) = &view.holder {
        facts.fact("since", Tone::Plain, format!("{} UTC", moment(holder.elected_at)));
        let left = span::roughly(holder.remaining);
        let ttl = span::show(holder.ttl);
        facts.fact("remaining", Tone::Plain, format!("{left} of {ttl}, unless renewed"));
        if !holder.profile.endpoints().is_empty() {
            facts.fact("endpoints", Tone::Plain, holder.profile.endpoints().join(", "));
        }
        if !holder.profile.metadata().is_empty() {
            let text = match Metadata::from(&holder.profile) {
                Metadata::Text(text) => text,
                Metadata::Bytes { hex } => format!("{{\"hex\":\"{hex}\"}}"),
            };
            facts.fact("metadata", Tone::Plain, text);
        }
    }
    if let Some(why) = seen.why_vacant() {
        facts.fact("vacant", Tone::Warn, why);
    }
    if let Some(pause) = &view.paused {
        facts.fact("paused", Tone::Warn, because(pause.reason.as_str(), pause.by.as_str()));
    }
    if let Some(ask) = &view.step_down {
        let to = ask.to.as_ref().map(|to| format!(" in favour of {to}")).unwrap_or_default();
        let because = because(ask.reason.as_str(), ask.by.as_str());
        facts.fact("step-down", Tone::Warn, format!("asked{to} {because}"));
    }
    if let Some(kept) = &view.reserved {
        let left = span::roughly(kept.remaining);
        facts.fact("reserved", Tone::Warn, format!("for {} for {left}", kept.member));
    }
    if let Some(held_up) = &view.held_up {
        facts.fact("held up", Tone::Warn, held_up.to_string());
    }
    for (at, candidate) in waiting(view).enumerate() {
        let id = &candidate.member.id;
        let priority = candidate.priority.get();
        let waits = span::roughly(candidate.waiting);
        let name = if at == 0 { "candidates" } else { "" };
        facts.fact(name, Tone::Plain, format!("{id}, priority {priority}, waiting {waits}"));
    }
    out.table(&facts)
}
