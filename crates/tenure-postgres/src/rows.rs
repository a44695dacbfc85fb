//! What the functions answer, as values.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use serde::Deserialize;
use tenure_core::{
    BadName, Candidate, Columns, ElectionName, ElectionView, Entry, HeldUp, Holder, Incarnation,
    MemberId, MemberRef, MemberView, Note, Pause, Priority, Profile, Reservation, Seq, Snapshot,
    StepDown, TermBeat, TermNumber, TermOutcome, TermRef, Timestamp,
};
use tenure_store::Result;
use tokio_postgres::types::{IsNull, ToSql, Type, accepts, to_sql_checked};

use crate::error::damaged;

/// A span as the functions take it.
pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

/// PostgreSQL's integers are signed; ours stay far below the sign.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn span(micros: i64) -> Duration {
    Duration::from_micros(unsigned(micros))
}

/// When something happened, for people.
pub(crate) fn timestamp(at: SystemTime) -> Timestamp {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn name<T: FromStr<Err = BadName>>(text: &str) -> Result<T> {
    text.parse().map_err(|bad| damaged(format_args!("a name that cannot be: {bad}")))
}

/// A life, as the server keeps it: a uuid.
#[derive(Debug)]
pub(crate) struct Life(pub(crate) Incarnation);

impl ToSql for Life {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0.as_u128().to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

/// A life, out of a uuid's text.
pub(crate) fn life(text: &str) -> Result<Incarnation> {
    let hex = text.replace('-', "");
    hex.parse().map_err(|_| damaged(format_args!("the incarnation {text:?}")))
}

pub(crate) fn member(id: &str, uuid: &str) -> Result<MemberRef> {
    Ok(MemberRef::new(name(id)?, life(uuid)?))
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(unsigned(millis))
}

fn profile(endpoints: Option<Vec<String>>, hex: Option<&str>) -> Result<Profile> {
    let hex = hex.unwrap_or_default().as_bytes();
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let byte = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?);
    let metadata: Option<Vec<u8>> = hex.chunks(2).map(byte).collect();
    let metadata = metadata.ok_or_else(|| damaged("metadata that is not hexadecimal"))?;
    Profile::new(endpoints.unwrap_or_default(), metadata)
        .map_err(|bad| damaged(format_args!("a profile that cannot be: {bad}")))
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| damaged(format_args!("unknown JSON: {error}")))
}

#[derive(Deserialize)]
pub(crate) struct ViewRow {
    election: String,
    number: i64,
    holder: Option<HolderRow>,
    paused: Option<PauseRow>,
    step_down: Option<StepDownRow>,
    reserved: Option<ReservedRow>,
    #[serde(default)]
    held_up: Option<HeldUpRow>,
    ahead: u32,
    candidates: Vec<CandidateRow>,
}

#[derive(Deserialize)]
struct HolderRow {
    id: String,
    life: String,
    elected_ms: i64,
    ttl_us: i64,
    left_us: i64,
    unconfirmed: bool,
    endpoints: Option<Vec<String>>,
    metadata: Option<String>,
}

#[derive(Deserialize)]
struct PauseRow {
    reason: Option<String>,
    by: Option<String>,
}

#[derive(Deserialize)]
struct StepDownRow {
    number: i64,
    reason: Option<String>,
    by: Option<String>,
    to: Option<String>,
}

#[derive(Deserialize)]
struct TermBeatRow {
    renewed: bool,
    step_down: Option<StepDownRow>,
}

#[derive(Deserialize)]
struct ReservedRow {
    id: String,
    left_us: i64,
}

#[derive(Deserialize)]
struct HeldUpRow {
    process: Option<u32>,
}

#[derive(Deserialize)]
struct CandidateRow {
    id: String,
    life: String,
    priority: i64,
    waiting_us: i64,
}

fn note(text: Option<String>) -> Note {
    Note::new(text.unwrap_or_default())
}

fn level(priority: i64) -> Result<Priority> {
    let level = u16::try_from(priority);
    level.map(Priority::new).map_err(|_| damaged(format_args!("the priority {priority}")))
}

impl ViewRow {
    pub(crate) fn view(self) -> Result<ElectionView> {
        let number = TermNumber::new(unsigned(self.number));
        let step_down = self.step_down.map(|row| row.step_down()).transpose()?;
        let candidates = self.candidates.into_iter().map(|row| row.candidate());
        Ok(ElectionView {
            election: name(&self.election)?,
            number,
            holder: self.holder.map(|row| row.holder()).transpose()?,
            paused: self.paused.map(|p| Pause { reason: note(p.reason), by: note(p.by) }),
            step_down,
            reserved: self.reserved.map(|row| row.reservation()).transpose()?,
            held_up: self.held_up.map(|row| HeldUp::Transaction { process: row.process }),
            ahead: self.ahead,
            candidates: candidates.collect::<Result<_>>()?,
        })
    }

    /// The view of a bid that was lost. One that came upon a lock knows that the vacancy is
    /// held up, whether or not it can be told by whom.
    pub(crate) fn lost(self, is_fenced: bool) -> Result<ElectionView> {
        let mut view = self.view()?;
        if is_fenced {
            view.held_up.get_or_insert(HeldUp::Transaction { process: None });
        }
        Ok(view)
    }
}

impl HolderRow {
    fn holder(self) -> Result<Holder> {
        Ok(Holder {
            member: member(&self.id, &self.life)?,
            profile: profile(self.endpoints, self.metadata.as_deref())?,
            elected_at: at(self.elected_ms),
            ttl: span(self.ttl_us),
            remaining: span(self.left_us),
            unconfirmed: self.unconfirmed,
        })
    }
}

/// What became of the terms that a heartbeat named.
pub(crate) fn term_beats(named: &[TermRef], json: Option<&str>) -> Result<Vec<TermBeat>> {
    let rows: Vec<TermBeatRow> = json.map(parse).transpose()?.unwrap_or_default();
    if rows.len() != named.len() {
        return Err(damaged(format_args!("{} answers for {} terms", rows.len(), named.len())));
    }
    let beat = |(term, row): (&TermRef, TermBeatRow)| {
        let step_down = row.step_down.map(|row| row.step_down()).transpose()?;
        let outcome = match row.renewed {
            true => TermOutcome::Renewed { step_down },
            false => TermOutcome::Lost,
        };
        Ok(TermBeat { term: term.clone(), outcome })
    };
    named.iter().zip(rows).map(beat).collect()
}

impl StepDownRow {
    fn step_down(self) -> Result<StepDown> {
        let to = self.to.map(|id| name(&id)).transpose()?;
        let number = TermNumber::new(unsigned(self.number));
        Ok(StepDown { number, reason: note(self.reason), by: note(self.by), to })
    }
}

impl ReservedRow {
    fn reservation(self) -> Result<Reservation> {
        Ok(Reservation { member: name(&self.id)?, remaining: span(self.left_us) })
    }
}

impl CandidateRow {
    fn candidate(self) -> Result<Candidate> {
        Ok(Candidate {
            member: member(&self.id, &self.life)?,
            priority: level(self.priority)?,
            waiting: span(self.waiting_us),
        })
    }
}

#[derive(Deserialize)]
struct MemberRow {
    id: String,
    life: String,
    ttl_us: i64,
    left_us: i64,
    joined_ms: i64,
    holds: u32,
    endpoints: Option<Vec<String>>,
    metadata: Option<String>,
}

impl MemberRow {
    fn view(self) -> Result<MemberView> {
        Ok(MemberView {
            member: member(&self.id, &self.life)?,
            profile: profile(self.endpoints, self.metadata.as_deref())?,
            ttl: span(self.ttl_us),
            remaining: span(self.left_us),
            joined_at: at(self.joined_ms),
            holds: self.holds,
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct SnapshotRow {
    seq: i64,
    elections: Vec<ViewRow>,
    members: Vec<MemberRow>,
    history: Vec<EntryRow>,
}

impl SnapshotRow {
    pub(crate) fn snapshot(self) -> Result<Snapshot> {
        Ok(Snapshot {
            seq: Seq::new(unsigned(self.seq)),
            elections: self.elections.into_iter().map(ViewRow::view).collect::<Result<_>>()?,
            members: self.members.into_iter().map(MemberRow::view).collect::<Result<_>>()?,
            history: self.history.into_iter().map(EntryRow::entry).collect::<Result<_>>()?,
            examined: None,
        })
    }
}

/// A part of the journal, and how much of it there is.
pub(crate) struct JournalPage {
    pub(crate) seq: Seq,
    pub(crate) trimmed: Seq,
    pub(crate) entries: Vec<Entry>,
}

impl JournalPage {
    /// Where to go on if what follows a place is not here: entries may be gone at either
    /// end, trimmed, or forgotten by a server that was promoted or restored.
    pub(crate) fn place_to_go_on_from(&self, after: Seq) -> Option<Seq> {
        let gone = after < self.trimmed || after > self.seq;
        gone.then(|| self.trimmed.max(after.min(self.seq)))
    }
}

#[derive(Deserialize)]
pub(crate) struct PageRow {
    seq: i64,
    trimmed: i64,
    entries: Vec<EntryRow>,
}

impl PageRow {
    pub(crate) fn page(self) -> Result<JournalPage> {
        Ok(JournalPage {
            seq: Seq::new(unsigned(self.seq)),
            trimmed: Seq::new(unsigned(self.trimmed)),
            entries: self.entries.into_iter().map(EntryRow::entry).collect::<Result<_>>()?,
        })
    }
}

#[derive(Deserialize)]
struct EntryRow {
    seq: i64,
    at_ms: i64,
    kind: String,
    election: Option<String>,
    number: Option<i64>,
    member: Option<String>,
    life: Option<String>,
    priority: Option<i64>,
    cause: Option<String>,
    heir: Option<String>,
    endpoints: Option<Vec<String>>,
    metadata: Option<String>,
    #[serde(default)]
    details: BTreeMap<Cow<'static, str>, Cow<'static, str>>,
}

impl EntryRow {
    fn entry(self) -> Result<Entry> {
        let seq = self.seq;
        let at = at(self.at_ms);
        let what = self.columns()?.happening(at);
        let damaged = || damaged(format_args!("the journal entry {seq}, which is not complete"));
        Ok(Entry { seq: Seq::new(unsigned(seq)), at, what: what.ok_or_else(damaged)? })
    }

    fn columns(self) -> Result<Columns<'static>> {
        let member = match (&self.member, &self.life) {
            (Some(id), Some(life)) => Some(member(id, life)?),
            _ => None,
        };
        let election = self.election.as_deref().map(name::<ElectionName>).transpose()?;
        let heir = self.heir.as_deref().map(name::<MemberId>).transpose()?;
        Ok(Columns {
            kind: self.kind.into(),
            election: election.map(Cow::Owned),
            number: self.number.map(|number| TermNumber::new(unsigned(number))),
            member: member.map(Cow::Owned),
            priority: self.priority.map(level).transpose()?,
            cause: self.cause.map(Cow::Owned),
            heir: heir.map(Cow::Owned),
            profile: Some(Cow::Owned(profile(self.endpoints, self.metadata.as_deref())?)),
            details: self.details,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H26: what the functions tell of an entry is what happened.
    #[test]
    fn every_happening_is_read_back_as_it_is_told() {
        let at = Timestamp::from_unix_millis(77);
        for what in tenure_testkit::happenings::each(at) {
            let entry = Entry { seq: Seq::new(3), at, what };
            let json = crate::fuzzing::written(&entry).to_string();
            assert_eq!(parse::<EntryRow>(&json).unwrap().entry().unwrap(), entry, "{json}");
        }
    }

    #[test]
    fn damaged_answers_are_errors_that_say_so() {
        for json in ["{}", "[]", "{\"seq\":1,\"trimmed\":0,\"entries\":[{\"seq\":1}]}"] {
            let said = parse::<PageRow>(json).err().map(|e| e.to_string());
            assert!(said.is_some_and(|s| s.contains("the database answered")), "{json}");
        }
        assert!(profile(None, Some("0g")).is_err() && profile(None, Some("0")).is_err());
        assert_eq!(profile(None, Some("00ff")).unwrap().metadata(), [0, 255]);
        assert!(life("not-a-uuid").is_err());
        let odd = r#"{"seq":1,"trimmed":0,"entries":[{"seq":1,"at_ms":0,"kind":"elected"}]}"#;
        let said = parse::<PageRow>(odd).unwrap().page().err().map(|e| e.to_string());
        assert!(said.is_some_and(|s| s.contains("journal entry 1")));
    }
}
