//! `tenure status`: who leads, since when, and who waits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenure::{ElectionView, PastTerm, Profile, ReleaseCause, Tenure, Watch};

use crate::args::NameArgs;
use crate::context::{Context, known_view, millis};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Output, Table, Tone};
use crate::span;
use crate::verbs::watch::cause_text;

pub(crate) async fn run(context: &Context, args: &NameArgs) -> Outcome {
    let tenure = context.look().await?;
    let asked = Instant::now();
    let views = match &args.name {
        Some(name) => vec![known_view(&tenure, name).await?],
        None => tenure.elections().await?,
    };
    let health = Health::of(context, &tenure, asked.elapsed());
    let views = vacancies(&tenure, views).await?;
    let out = context.output;
    match (&args.name, out.json) {
        (Some(_), true) => {
            let mut value = seen_json(&context.namespace, &views[0]);
            value["store"] = health.json();
            out.value(&value)?;
        }
        (None, true) => {
            let all = views.iter().map(|seen| seen_json(&context.namespace, seen));
            let all: Vec<Value> = all.collect();
            let namespace = &context.namespace;
            let store = health.json();
            out.value(&json!({ "namespace": namespace, "store": store, "elections": all }))?;
        }
        (_, false) => people(out, &views, args.name.is_some(), &health)?,
    }
    Ok(Exit::Ok)
}

/// An election and, if nobody leads it, how its last term ended.
struct Seen {
    view: ElectionView,
    ended: Option<PastTerm>,
}

/// For so many vacant elections the journal is asked how they became so.
const ASKED: usize = 20;

async fn vacancies(tenure: &Tenure, views: Vec<ElectionView>) -> Outcome<Vec<Seen>> {
    let (mut seen, mut asked) = (Vec::new(), 0);
    for view in views {
        let vacant = view.holder.is_none() && view.number.get() > 0 && asked < ASKED;
        let mut ended = None;
        if vacant && tenure.capabilities().journal {
            asked += 1;
            let last = tenure.election(&view.election).history(1).await?.pop();
            ended = last.filter(|past| past.term.number == view.number && past.ended.is_some());
        }
        seen.push(Seen { view, ended });
    }
    Ok(seen)
}

impl Seen {
    /// What is out of the ordinary, and why nobody leads.
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

    /// How the last term ended, for people.
    fn why_vacant(&self) -> Option<String> {
        let past = self.ended.as_ref()?;
        let (at, cause) = past.ended?;
        let (number, id) = (past.term.number, &past.term.member.id);
        let (at, how) = (span::moment_short(at), cause_text(cause));
        let cooling = match self.stepped_down() {
            true => "; it may stand again after its cooldown, one ttl unless it was set otherwise",
            false => "",
        };
        Some(format!("since {at} UTC: term {number} of {id} is over, {how}{cooling}"))
    }
}

/// The election as every JSON answer has it, and how its last term ended.
fn seen_json(namespace: &str, seen: &Seen) -> Value {
    let mut value = view_json(namespace, &seen.view);
    let ended = seen.ended.as_ref().and_then(|past| Some((past, past.ended?)));
    value["ended"] = json!(ended.map(|(past, (at, cause))| json!({
        "member": past.term.member.id.as_str(),
        "at": span::moment(at),
        "cause": cause_text(cause),
    })));
    value
}

/// How the store is doing.
struct Health {
    url: String,
    name: String,
    round_trip: Duration,
    watch: String,
    trouble: Option<String>,
}

impl Health {
    fn of(context: &Context, tenure: &Tenure, round_trip: Duration) -> Self {
        let capabilities = tenure.capabilities();
        let because = capabilities.polled_because.map(String::from);
        let url = context.shown_store();
        // One that is not there yet is looked at as an empty one in memory.
        let scheme = url.split(':').next().unwrap_or_default();
        let absent = capabilities.name == "memory" && scheme != "memory";
        let name = if absent { scheme } else { capabilities.name }.to_owned();
        Self {
            url,
            name,
            round_trip,
            watch: watch_mode(capabilities.watch),
            trouble: tenure.status().watch_error.or(because),
        }
    }

    fn json(&self) -> Value {
        json!({
            "kind": self.name,
            "url": self.url,
            "round_trip_ms": fraction(self.round_trip),
            "notifications": self.watch,
            "trouble": self.trouble,
        })
    }

    fn line(&self) -> String {
        let trouble = self.trouble.as_ref().map(|t| format!("; {t}")).unwrap_or_default();
        let took = span::show(self.round_trip);
        format!("{} answered in {took}, notifications {}{trouble}", self.url, self.watch)
    }
}

/// Milliseconds with three places: a local store answers within less than one.
fn fraction(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e6).round() / 1e3
}

/// How changes are heard of, in a word or two.
pub(crate) fn watch_mode(watch: Watch) -> String {
    match watch {
        Watch::Native => "native".into(),
        Watch::Polled(every) => format!("polled every {}", span::show(every)),
    }
}

/// One election, as every JSON answer has it.
pub(crate) fn view_json(namespace: &str, view: &ElectionView) -> Value {
    let holder = view.holder.as_ref();
    let leader = holder.map(|holder| {
        json!({
            "id": holder.member.id.as_str(),
            "incarnation": holder.member.incarnation.to_string(),
            "endpoints": holder.profile.endpoints(),
            "metadata": metadata(&holder.profile),
        })
    });
    let candidates = view.candidates.iter().map(|candidate| {
        json!({
            "id": candidate.member.id.as_str(),
            "priority": candidate.priority.get(),
            "waiting_ms": millis(candidate.waiting),
        })
    });
    json!({
        "namespace": namespace,
        "election": view.election.as_str(),
        "term": view.number.get(),
        "leader": leader,
        "elected_at": holder.map(|h| span::moment(h.elected_at)),
        "expires_in_ms": holder.map(|h| millis(h.remaining)),
        "paused": view.paused.as_ref().map(|p| json!({
            "reason": p.reason.as_str(), "by": p.by.as_str(),
        })),
        "step_down": view.step_down.as_ref().map(|s| json!({
            "term": s.number.get(), "reason": s.reason.as_str(), "by": s.by.as_str(),
            "to": s.to.as_ref().map(|to| to.as_str()),
        })),
        "reserved": view.reserved.as_ref().map(|r| json!({
            "for": r.member.as_str(), "expires_in_ms": millis(r.remaining),
        })),
        "candidates": candidates.collect::<Vec<_>>(),
    })
}

/// Metadata is bytes; text is shown as text, anything else in hexadecimal.
pub(crate) fn metadata(profile: &Profile) -> Value {
    match std::str::from_utf8(profile.metadata()) {
        Ok(text) => json!(text),
        Err(_) => json!({ "hex": hex(profile.metadata()) }),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn people(out: Output, views: &[Seen], one: bool, health: &Health) -> Outcome<()> {
    if one {
        for seen in views {
            details(out, seen)?;
        }
    } else if views.is_empty() {
        out.line("no elections yet; `tenure run --election NAME -- CMD` begins one")?;
    } else {
        overview(out, views)?;
    }
    out.line(&out.paint(Tone::Faint, &health.line()))
}

fn overview(out: Output, views: &[Seen]) -> Outcome<()> {
    let mut table =
        Table::new(&["election", "leader", "term", "since", "left", "waiting", "state"]);
    for seen in views {
        let view = &seen.view;
        let holder = view.holder.as_ref();
        let (tone, leader) = leader_cell(view);
        let since = holder.map(|h| span::moment_short(h.elected_at)).unwrap_or_default();
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

/// The leader's id, or that there is none.
pub(crate) fn leader_cell(view: &ElectionView) -> (Tone, String) {
    match &view.holder {
        Some(holder) => (Tone::Good, holder.member.id.to_string()),
        None => (Tone::Warn, "(nobody)".into()),
    }
}

/// Candidates that do not lead.
fn waiting(view: &ElectionView) -> impl Iterator<Item = &tenure::Candidate> {
    view.candidates.iter().filter(|c| !view.is_held_by(c.member.incarnation))
}

/// What is out of the ordinary.
pub(crate) fn states(view: &ElectionView) -> String {
    let paused = view.paused.as_ref().map(|_| "paused");
    let stepping = view.step_down.as_ref().map(|_| "asked to step down");
    let reserved = view.reserved.as_ref().map(|_| "reserved");
    [paused, stepping, reserved].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn details(out: Output, seen: &Seen) -> Outcome<()> {
    let view = &seen.view;
    let mut facts = Table::facts();
    facts.fact("election", Tone::Strong, view.election.as_str());
    let (tone, leader) = leader_cell(view);
    facts.fact("leader", tone, leader);
    facts.fact("term", Tone::Plain, view.number.to_string());
    if let Some(holder) = &view.holder {
        facts.fact("since", Tone::Plain, format!("{} UTC", span::moment_short(holder.elected_at)));
        let left = span::roughly(holder.remaining);
        let ttl = span::show(holder.ttl);
        facts.fact("remaining", Tone::Plain, format!("{left} of {ttl}, unless renewed"));
        if !holder.profile.endpoints().is_empty() {
            facts.fact("endpoints", Tone::Plain, holder.profile.endpoints().join(", "));
        }
        if !holder.profile.metadata().is_empty() {
            let text = match metadata(&holder.profile) {
                Value::String(text) => text,
                other => other.to_string(),
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
    for (at, candidate) in waiting(view).enumerate() {
        let (id, priority) = (&candidate.member.id, candidate.priority.get());
        let waits = span::roughly(candidate.waiting);
        let name = if at == 0 { "candidates" } else { "" };
        facts.fact(name, Tone::Plain, format!("{id}, priority {priority}, waiting {waits}"));
    }
    out.table(&facts)
}

/// `by ann: draining the node`.
pub(crate) fn because(reason: &str, by: &str) -> String {
    match (by.is_empty(), reason.is_empty()) {
        (false, false) => format!("by {by}: {reason}"),
        (false, true) => format!("by {by}"),
        (true, false) => reason.to_owned(),
        (true, true) => "no reason given".to_owned(),
    }
}
