//! Entry points for fuzzing, and for the test that replays what fuzzing kept.
//!
//! Each takes any bytes and panics if a property does not hold: that is what a
//! fuzzer looks for. Not part of the crate's interface.
#![allow(missing_docs, clippy::unwrap_used)]

use serde_json::{Value, json};
use tenure_core::{Entry, Hint};
use tenure_store::{ErrorKind, Result};

use crate::rows::{PageRow, SnapshotRow, ViewRow, parse};
use crate::watch::{Event, understand};

/// What the functions answer with, as JSON.
pub fn answers(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(page) = checked(parse::<PageRow>(&text).and_then(PageRow::page)) {
        let written: Vec<Value> = page.entries.iter().map(written).collect();
        let again = json!({
            "seq": signed(page.seq.get()), "trimmed": signed(page.trimmed.get()),
            "entries": written,
        });
        let again = parse::<PageRow>(&again.to_string()).unwrap().page().unwrap();
        assert_eq!((again.seq, again.trimmed), (page.seq, page.trimmed));
        assert_eq!(again.entries, page.entries, "a page reads back");
    }
    if let Some(snapshot) = checked(parse::<SnapshotRow>(&text).and_then(SnapshotRow::snapshot)) {
        let again = checked(parse::<SnapshotRow>(&text).and_then(SnapshotRow::snapshot));
        assert_eq!(again, Some(snapshot));
    }
    checked(parse::<ViewRow>(&text).and_then(ViewRow::view));
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap()
}

/// A refusal says that the answer is not one of Tenure's.
fn checked<T>(result: Result<T>) -> Option<T> {
    let error = match result {
        Ok(value) => return Some(value),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
    assert!(error.to_string().starts_with("the database answered with "), "{error}");
    None
}

/// An entry, as the function `journal` has it.
pub(crate) fn written(entry: &Entry) -> Value {
    let row = entry.what.columns();
    let profile = row.profile.as_deref();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!({
        "seq": signed(entry.seq.get()),
        "at_ms": signed(entry.at.unix_millis()),
        "kind": row.kind,
        "election": row.election.map(|election| election.to_string()),
        "number": row.number.map(|number| signed(number.get())),
        "member": row.member.as_ref().map(|member| member.id.to_string()),
        "life": row.member.as_ref().map(|member| member.incarnation.to_string()),
        "priority": row.priority.map(|priority| priority.get()),
        "cause": row.cause,
        "heir": row.heir.map(|heir| heir.to_string()),
        "endpoints": profile.map(|profile| profile.endpoints()),
        "metadata": profile.map(|profile| hex(profile.metadata())),
        "details": row.details,
    })
}

/// The payload of a notification, which any role that may connect can have sent (rule N1).
pub fn hints(data: &[u8]) {
    let payload = String::from_utf8_lossy(data);
    let named = payload.split('\n').next().is_some_and(|line| !line.is_empty());
    let Some((event, quiet)) = understand(&payload) else {
        assert!(!named, "whatever names a namespace is a reason to look");
        return;
    };
    let Event::News { ns, seq, hints } = &event else { panic!("{event:?}") };
    assert!(named && payload.starts_with(ns.as_ref()));
    let mut again = format!("{ns}\n{seq}");
    for hint in hints.iter().flat_map(|hints| hints.iter()) {
        again.push('\n');
        again.push_str(&line(hint));
    }
    if quiet {
        again.push_str("\nq");
    }
    let back = understand(&again);
    assert_eq!(format!("{back:?}"), format!("{:?}", Some((event, quiet))), "{again:?}");
}

fn line(hint: &Hint) -> String {
    match hint {
        Hint::Anything => "a".into(),
        Hint::Election(name) => format!("e\t{name}"),
        Hint::Handed { election, to } => format!("h\t{election}\t{to}"),
        Hint::Vacant { election, heir: None } => format!("v\t{election}"),
        Hint::Vacant { election, heir: Some(heir) } => format!("v\t{election}\t{heir}"),
        Hint::Gone(life) => format!("g\t{life}"),
        Hint::Names => "n".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_testkit::{damage, replay};

    #[test]
    fn kept_inputs_of_answers_hold() {
        replay("postgres_answers", answers);
    }

    #[test]
    fn kept_inputs_of_hints_hold() {
        replay("postgres_hints", hints);
    }

    #[test]
    fn damaged_inputs_of_postgres_answers_hold() {
        damage("postgres_answers", answers);
    }

    #[test]
    fn damaged_inputs_of_postgres_hints_hold() {
        damage("postgres_hints", hints);
    }
}
