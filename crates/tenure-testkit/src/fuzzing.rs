//! Fuzz targets that need nothing but public interfaces. Each takes any bytes and
//! panics if a property does not hold: that is what a fuzzer looks for.
//!
//! What needs the inside of a crate is in that crate's own `fuzzing.rs`.

use std::fmt::{Debug, Display};
use std::str::FromStr;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use tenure_core::{
    Amend, Amended, BadName, ElectionName, Incarnation, MAX_NAME, MAX_NOTE, MemberId, Namespace,
    Note, Profile, Query, Snapshot,
};

use tenure_cas::{CasOptions, CasStore, Expect, Loaded, MAX_RECORD, MemoryRegister, Register};
use tenure_store::{ErrorKind, ManualClock, Result, Store};

/// Names, notes, profiles and incarnations.
pub fn names(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    name::<Namespace>("the namespace", &text);
    name::<ElectionName>("the election name", &text);
    name::<MemberId>("the member id", &text);
    note(&text);
    if let Ok(life) = text.parse::<Incarnation>() {
        assert_eq!(life.to_string().parse(), Ok(life), "an incarnation reads back");
    }
    let lines: Vec<&str> = text.split('\n').collect();
    match Profile::new(&lines, data) {
        Ok(profile) => {
            assert_eq!(profile.endpoints(), lines);
            assert_eq!(profile.metadata(), data);
        }
        Err(bad) => assert!(names_one_of(&bad, &["endpoint", "metadata"]), "{bad}"),
    }
}

fn names_one_of(bad: &BadName, things: &[&str]) -> bool {
    let said = bad.to_string();
    things.iter().any(|thing| said.contains(thing))
}

fn name<T: FromStr<Err = BadName> + Display + Debug + PartialEq>(what: &str, text: &str) {
    let fine = !text.is_empty()
        && text.len() <= MAX_NAME
        && !text.chars().any(char::is_control)
        && text.trim() == text;
    match text.parse::<T>() {
        Ok(name) => {
            assert!(fine, "{text:?} must be refused");
            assert_eq!(name.to_string(), text);
            assert_eq!(name.to_string().parse::<T>().as_ref(), Ok(&name));
        }
        Err(bad) => {
            assert!(!fine, "{text:?} must be taken: {bad}");
            assert!(names_one_of(&bad, &[what]), "{bad}");
            assert!(bad.to_string().len() < 500, "an error of bearable length: {bad}");
        }
    }
}

/// Stores keep the text of a note and make a note of it again.
fn note(text: &str) {
    let note = Note::new(text);
    assert!(note.as_str().len() <= MAX_NOTE);
    assert!(!note.as_str().chars().any(char::is_control), "{note:?}");
    assert_eq!(Note::new(note.as_str()), note, "a note reads back");
}

/// A record of the compare-and-swap family with any content: an election's, a
/// member's, or a member's candidacies.
pub fn records(data: &[u8]) {
    let json = serde_json::from_slice(data).unwrap_or(Value::Null);
    election(data, &json);
    member(data, &json);
    // A list of everything is not stopped by it.
    Bucket::with("standing", id_in(&json).as_str(), data).everything(0);
}

/// What this version reads and writes; anything else it must keep.
const OF_ELECTIONS: [&str; 10] = [
    "tenure",
    "election",
    "revision",
    "number",
    "holder",
    "won",
    "step_down",
    "paused",
    "reserved",
    "history",
];
const OF_MEMBERS: [&str; 15] = [
    "tenure",
    "member",
    "incarnation",
    "revision",
    "beat",
    "ttl_ns",
    "clock",
    "elapsed_ns",
    "profile",
    "joined_at_ms",
    "condemned",
    "attention",
    "changes",
    "ended",
    "past",
];

/// A register with one cell in it, and a store that reads it.
struct Bucket {
    cells: Arc<MemoryRegister>,
    store: CasStore,
    ns: Namespace,
    key: String,
}

impl Bucket {
    fn with(folder: &str, name: &str, data: &[u8]) -> Self {
        let mut key = format!("tenure/default/{folder}/");
        for byte in name.bytes() {
            match char::from(byte) {
                plain if byte.is_ascii_alphanumeric() || "-_".contains(plain) => key.push(plain),
                _ => key.push_str(&format!("={byte:02X}")),
            }
        }
        let cells = Arc::new(MemoryRegister::new());
        let put = cells.swap(&key, Expect::Absent, data.to_vec());
        assert!(matches!(put.now_or_never(), Some(Ok(_))), "memory stores at once");
        let options = CasOptions { seed: 1, ..CasOptions::default() };
        let clock = Arc::new(ManualClock::new());
        let store = CasStore::new(cells.clone(), clock, options).expect("good options");
        Self { cells, store, ns: Namespace::default(), key }
    }

    fn read(&self, query: &Query) -> Result<Snapshot> {
        self.store.read(&self.ns, query).now_or_never().expect("memory answers at once")
    }

    /// Everything, with as many past terms: a record that cannot be read is left out.
    fn everything(&self, history: usize) -> Snapshot {
        let query = Query { history, ..Query::everything() };
        self.read(&query).expect("one record does not stop a list of everything")
    }

    fn amend(&self, amend: &Amend) -> Result<Amended> {
        self.store.amend(&self.ns, amend).now_or_never().expect("memory answers at once")
    }

    /// What is in the cell now.
    fn now(&self) -> Option<Value> {
        match self.cells.load(&self.key, None).now_or_never().expect("memory answers at once") {
            Ok(Loaded::Found { bytes, .. }) => {
                assert!(bytes.len() <= MAX_RECORD);
                Some(serde_json::from_slice(&bytes).expect("what the store wrote is JSON"))
            }
            _ => None,
        }
    }

    /// A refusal says which record, and that it is not ours.
    fn refused(&self, error: &tenure_store::Error) {
        assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
        assert!(error.to_string().contains(&self.key), "{error}");
        assert!(!error.may_have_applied(), "{error}");
    }

    /// Fields of a later version are kept when the record is rewritten.
    fn keeps(&self, before: &Value, known: &[&str]) {
        let Some(after) = self.now() else { return };
        let fields = before.as_object().into_iter().flatten();
        for (field, value) in fields.filter(|(field, _)| !known.contains(&field.as_str())) {
            assert_eq!(after.get(field), Some(value), "the field {field} is kept");
        }
    }
}

fn election(data: &[u8], json: &Value) {
    let name = json.get("election").and_then(Value::as_str);
    let name = name.and_then(|name| ElectionName::new(name).ok());
    let name = name.unwrap_or_else(|| ElectionName::new("e").expect("a good name"));
    let bucket = Bucket::with("elections", name.as_str(), data);
    // Where everything is asked for, what cannot be read is left out.
    let all = bucket.everything(100);
    let query = Query { history: 100, ..Query::elections([name.clone()]) };
    let number = match bucket.read(&query) {
        Err(error) => {
            assert!(all.elections.is_empty(), "{error}");
            return bucket.refused(&error);
        }
        Ok(snapshot) => {
            let view = &snapshot.elections[0];
            assert_eq!(all.elections.len(), 1);
            assert_eq!((&view.election, &all.elections[0].election), (&name, &name));
            assert_eq!(Some(view.number.get()), json.get("number").and_then(Value::as_u64));
            view.number
        }
    };
    let pause = Amend::Pause { election: name, reason: Note::new("why"), by: Note::new("who") };
    match bucket.amend(&pause) {
        // It was nearly too long before.
        Err(error) => assert_eq!(error.kind(), ErrorKind::Invalid, "{error}"),
        Ok(_) => {
            bucket.keeps(json, &OF_ELECTIONS);
            let view = bucket.read(&query).expect("it was read before").elections.remove(0);
            assert_eq!(view.number, number, "a number does not go back");
            assert!(view.paused.is_some());
        }
    }
}

fn id_in(json: &Value) -> MemberId {
    let id = json.get("member").and_then(Value::as_str).and_then(|id| MemberId::new(id).ok());
    id.unwrap_or_else(|| MemberId::new("m").expect("a good id"))
}

fn member(data: &[u8], json: &Value) {
    let id = id_in(json);
    let bucket = Bucket::with("members", id.as_str(), data);
    let listed = bucket.everything(0);
    for view in &listed.members {
        assert_eq!(view.member.id, id);
        let life = json.get("incarnation").and_then(Value::as_str).and_then(|l| l.parse().ok());
        assert_eq!(Some(view.member.incarnation), life);
    }
    match bucket.amend(&Amend::Evict { member: id, now: false, by: Note::new("who") }) {
        Err(error) if error.kind() == ErrorKind::Invalid => {}
        Err(error) => {
            assert!(listed.members.is_empty(), "{error}");
            bucket.refused(&error);
        }
        Ok(_) => bucket.keeps(json, &OF_MEMBERS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{damage, replay};

    #[test]
    fn kept_inputs_of_names_hold() {
        replay("names", names);
    }

    #[test]
    fn kept_inputs_of_records_hold() {
        replay("records", records);
    }

    #[test]
    fn damaged_inputs_of_names_hold() {
        damage("names", names);
    }

    #[test]
    fn damaged_inputs_of_records_hold() {
        damage("records", records);
    }
}
