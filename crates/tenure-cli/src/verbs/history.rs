//! `tenure history`: past terms, and whether the leadership flaps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure::journal::PastTerm;
use tenure::{ElectionName, Timestamp};
use tenure_api::{Cause, Flapping, History, millis, span};

use crate::args::HistoryArgs;
use crate::context::{Context, known_view};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Output, Table, Tone};
use crate::show::moment;

pub(crate) async fn run(context: &Context, args: &HistoryArgs) -> Outcome {
    let operator = context.look().await?;
    let names = match &args.name {
        Some(name) => vec![known_view(&operator, name).await?.election],
        None => operator.elections().await?.into_iter().map(|view| view.election).collect(),
    };
    let mut all = Vec::new();
    for name in names {
        let mut terms = operator.election(&name).history(args.limit).await?;
        if let Some(since) = args.since {
            terms.retain(|past| stood_since(past, since));
        }
        all.push((name, terms));
    }
    let out = context.output;
    if out.json {
        let elections = all.iter().map(|(name, terms)| tenure::json::history(name, terms));
        let elections = elections.collect();
        out.value(&History { namespace: context.namespace.clone(), elections })?;
        return Ok(Exit::Ok);
    }
    if all.iter().all(|(_, terms)| terms.is_empty()) {
        out.line("no terms in the journal")?;
    }
    for (name, terms) in &all {
        if !terms.is_empty() {
            people(out, name, terms)?;
        }
    }
    Ok(Exit::Ok)
}

/// A filter for people: the only place where a store's wall clock meets this
/// host's, and nothing is decided on it.
fn stood_since(past: &PastTerm, since: Duration) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let from = Timestamp::from_unix_millis(millis(now.saturating_sub(since)));
    match past.ended {
        Some((at, _)) => at >= from,
        // Of one that is over, with its end not written down, only the beginning is known.
        None => past.stands.is_some() || past.term.elected_at >= from,
    }
}

fn lasted(past: &PastTerm) -> Option<Duration> {
    let (ended, _) = past.ended?;
    let span = ended.unix_millis().saturating_sub(past.term.elected_at.unix_millis());
    Some(Duration::from_millis(span))
}

fn people(out: Output, name: &ElectionName, terms: &[PastTerm]) -> Outcome<()> {
    out.line(&out.paint(Tone::Strong, name.as_str()))?;
    let mut table = Table::new(&["term", "leader", "from (UTC)", "to (UTC)", "lasted", "ended"]);
    for past in terms {
        let (to, ended) = match (past.ended, past.stands) {
            (Some((at, cause)), _) => (moment(at), Cause::from(cause).as_str()),
            (None, Some(_)) => ("now".into(), ""),
            // There is no successor, so that the journal does not say when.
            (None, None) => ("unknown".into(), "not live any more"),
        };
        let tone = if past.stands.is_some() { Tone::Good } else { Tone::Plain };
        table.row(vec![
            (Tone::Plain, past.term.number.to_string()),
            (tone, past.term.member.id.to_string()),
            (Tone::Plain, moment(past.term.elected_at)),
            (Tone::Plain, to),
            (Tone::Plain, lasted(past).map(span::roughly).unwrap_or_default()),
            (Tone::Plain, ended.into()),
        ]);
    }
    out.table(&table)?;
    if let Some(Flapping { terms, within_ms }) = tenure::json::history(name, terms).flapping {
        let within = span::roughly(Duration::from_millis(within_ms));
        let text = format!(
            "flapping: {terms} terms began within {within}; look at why they ended, and at \
             `tenure doctor`"
        );
        out.line(&out.paint(Tone::Warn, &text))?;
    }
    Ok(())
}
