//! `tenure history`: past terms, and whether the leadership flaps.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure::{PastTerm, Timestamp};
use tenure_api::{Cause, ElectionHistory, Flapping, History, millis, span};

use crate::args::HistoryArgs;
use crate::context::{Context, known_view};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::output::{Output, Table, Tone};
use crate::show::moment;

/// So many terms that begin within such a time are worth a word.
const FLAPPING: (usize, Duration) = (5, Duration::from_secs(600));

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
        let elections = all.iter().map(|(name, terms)| ElectionHistory {
            election: name.to_string(),
            terms: terms.iter().map(answer).collect(),
            flapping: flapping(terms)
                .map(|(terms, within)| Flapping { terms, within_ms: millis(within) }),
        });
        let elections = elections.collect();
        out.value(&History { namespace: context.namespace.clone(), elections })?;
        return Ok(Exit::Ok);
    }
    if all.iter().all(|(_, terms)| terms.is_empty()) {
        out.line("no terms in the journal")?;
    }
    for (name, terms) in &all {
        if !terms.is_empty() {
            people(out, name.as_str(), terms)?;
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

fn answer(past: &PastTerm) -> tenure_api::PastTerm {
    tenure_api::PastTerm {
        term: past.term.number.get(),
        member: past.term.member.id.to_string(),
        incarnation: past.term.member.incarnation.to_string(),
        from: past.term.elected_at.into(),
        to: past.ended.map(|(at, _)| at.into()),
        lasted_ms: lasted(past).map(millis),
        ended: past.ended.map(|(_, cause)| cause.into()),
        stands: past.stands.is_some(),
        remaining_ms: past.stands.map(millis),
        seq: past.seq.get(),
    }
}

fn people(out: Output, name: &str, terms: &[PastTerm]) -> Outcome<()> {
    out.line(&out.paint(Tone::Strong, name))?;
    let mut table = Table::new(&["term", "leader", "from", "to", "lasted", "ended"]);
    for past in terms {
        let (to, ended) = match (past.ended, past.stands) {
            (Some((at, cause)), _) => (moment(at), Cause::from(cause).as_str()),
            (None, Some(_)) => ("now".into(), ""),
            // Nobody has taken over, so nobody has written down when.
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
    if let Some((count, within)) = flapping(terms) {
        let within = span::roughly(within);
        let text = format!(
            "flapping: {count} terms began within {within}; look at why they ended, and at \
             `tenure doctor`"
        );
        out.line(&out.paint(Tone::Warn, &text))?;
    }
    Ok(())
}

/// The most terms that began within the window, if they are too many. Both
/// moments are of the same store's clock.
fn flapping(terms: &[PastTerm]) -> Option<(usize, Duration)> {
    let starts: Vec<u64> = terms.iter().map(|p| p.term.elected_at.unix_millis()).collect();
    crowded(&starts)
}

fn crowded(starts: &[u64]) -> Option<(usize, Duration)> {
    let window = millis(FLAPPING.1);
    let counts = starts.iter().enumerate().map(|(at, first)| {
        let within = starts[at..].iter().take_while(|s| s.saturating_sub(*first) <= window);
        let last = within.clone().last().copied().unwrap_or(*first);
        (within.count(), Duration::from_millis(last.saturating_sub(*first)))
    });
    counts.max_by_key(|(count, _)| *count).filter(|(count, _)| *count >= FLAPPING.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_short_terms_are_pointed_out_and_few_are_not() {
        let minute = 60_000;
        assert_eq!(crowded(&[]), None);
        assert_eq!(crowded(&[0, 1, 2, 3]), None);
        let spread: Vec<u64> = (0..9).map(|n| n * 3 * minute).collect();
        assert_eq!(crowded(&spread), None);
        let burst = [0, 100 * minute, 101 * minute, 102 * minute, 103 * minute, 104 * minute];
        assert_eq!(crowded(&burst), Some((5, Duration::from_secs(240))));
    }
}
