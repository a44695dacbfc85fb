//! `tenure watch`: one line for each change.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use tenure::{
    ElectionName, EndCause, Entry, Happening, Journalled, MemberRef, ReleaseCause, Seq, Tenure,
};

use crate::args::WatchArgs;
use crate::context::{Context, election_name};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Tone, say};
use crate::span;
use crate::verbs::status::because;

pub(crate) async fn run(context: &Context, args: &WatchArgs) -> Outcome {
    let names = args.names.iter().map(|name| election_name(name)).collect::<Result<_, _>>()?;
    let tenure = context.watch().await?;
    if !tenure.capabilities().journal {
        let kind = tenure.capabilities().name;
        let what = format!("the store {kind} keeps no journal to watch");
        return Err(Failure::usage(format!("{what}; repeat `tenure status --json` instead")));
    }
    let leaders = HashMap::new();
    let mut lines = Lines { out: context.output, names, leaders, left: args.count };
    let after = match args.from {
        Some(seq) => Some(known_place(context, &tenure, seq).await?),
        None => Some(lines.present(&tenure).await?),
    };
    let mut journal = tenure.follow(after)?;
    while lines.left != Some(0) {
        match journal.next().await {
            Some(Journalled::Entries(entries)) => lines.entries(&entries)?,
            Some(Journalled::Trimmed(up_to)) => {
                say(&format!("the journal no longer has what happened up to {up_to}"));
            }
            Some(Journalled::Interrupted(error)) => {
                say(&format!("the store is away, and is asked again: {error}"));
            }
            Some(Journalled::Restored) => say("the store answers again"),
            Some(_) => {}
            None => return Err(Failure::new(Exit::Store, "the watch was shut down")),
        }
    }
    Ok(Exit::Ok)
}

/// A place that the journal has reached. One beyond it is a mistake: to wait
/// until it is reached would pass over all that happens before.
async fn known_place(context: &Context, tenure: &Tenure, seq: u64) -> Outcome<Seq> {
    let (newest, _) = tenure.journal(1).await?;
    if seq <= newest.get() {
        return Ok(Seq::new(seq));
    }
    let namespace = &context.namespace;
    let what =
        format!("the journal of the namespace {namespace:?} ends at {newest}: it has no {seq}");
    let remedy = format!("give --from {newest} for what happens from now on");
    let hint = "if it once did, another store is meant, or this one was restored from a backup";
    Err(Failure::usage(format!("{what}; {remedy}; {hint}")))
}

/// What is printed, and how much of it yet.
struct Lines {
    out: Output,
    names: HashSet<ElectionName>,
    /// Who leads what is watched, as far as was told.
    leaders: HashMap<ElectionName, MemberRef>,
    left: Option<u64>,
}

impl Lines {
    fn wants(&self, election: &ElectionName) -> bool {
        self.names.is_empty() || self.names.contains(election)
    }

    /// Whether an entry is about an election that is watched, or is the end of its
    /// leader, and of the term with it.
    fn wants_entry(&mut self, what: &Happening) -> bool {
        if let Happening::Elected { term } = what
            && self.wants(&term.election)
        {
            self.leaders.insert(term.election.clone(), term.member.clone());
        }
        if let Happening::Released { election, .. } = what {
            self.leaders.remove(election);
        }
        match (what, what.election()) {
            (_, Some(election)) => self.wants(election),
            (Happening::Left { member } | Happening::Ended { member, .. }, None) => {
                self.names.is_empty() || self.leaders.values().any(|leader| leader == member)
            }
            _ => self.names.is_empty(),
        }
    }

    /// Who leads now, from one look; changes after it follow. Gives the place
    /// in the journal where they do.
    async fn present(&mut self, tenure: &Tenure) -> Outcome<Seq> {
        // The position first: a change between the two looks is told twice
        // rather than never.
        let (seq, _) = tenure.journal(1).await?;
        for view in tenure.elections().await? {
            let Some(holder) = view.holder else { continue };
            if !self.wants(&view.election) || self.left == Some(0) {
                continue;
            }
            self.leaders.insert(view.election.clone(), holder.member.clone());
            let value = json!({
                "seq": seq.get(), "at": span::moment(holder.elected_at), "event": "leads",
                "election": view.election.as_str(), "term": view.number.get(),
                "member": holder.member.id.as_str(),
            });
            let text = format!("{} leads with term {}", holder.member.id, view.number);
            let at = span::moment_short(holder.elected_at);
            self.print(seq, &at, view.election.as_str(), &text, Tone::Faint, &value)?;
        }
        Ok(seq)
    }

    fn entries(&mut self, entries: &[Entry]) -> Outcome<()> {
        for entry in entries {
            if !self.wants_entry(&entry.what) {
                continue;
            }
            if self.left == Some(0) {
                return Ok(());
            }
            let (at, value) = (span::moment_short(entry.at), entry_json(entry));
            let election = entry.what.election().map_or("-", ElectionName::as_str).to_owned();
            let (tone, text) = entry_text(&entry.what);
            self.print(entry.seq, &at, &election, &text, tone, &value)?;
        }
        Ok(())
    }

    fn print(
        &mut self,
        seq: Seq,
        at: &str,
        election: &str,
        text: &str,
        tone: Tone,
        value: &Value,
    ) -> Outcome<()> {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        if self.out.json {
            return self.out.value_line(value);
        }
        let seq = self.out.paint(Tone::Faint, &format!("{seq:>6}"));
        let text = self.out.paint(tone, text);
        self.out.line(&format!("{seq}  {at}  {election}  {text}"))
    }
}

/// An entry for people: what happened, in one clause.
pub(crate) fn entry_text(what: &Happening) -> (Tone, String) {
    match what {
        Happening::Joined { member, .. } => (Tone::Faint, format!("{} joined", member.id)),
        Happening::Left { member } => (Tone::Faint, format!("{} left", member.id)),
        Happening::Ended { member, cause } => {
            (Tone::Warn, format!("{} was ended: {}", member.id, end_text(*cause)))
        }
        Happening::Stood { member, priority, .. } => {
            (Tone::Faint, format!("{} stands, priority {}", member.id, priority.get()))
        }
        Happening::Elected { term } => {
            (Tone::Good, format!("{} leads with term {}", term.member.id, term.number))
        }
        Happening::Released { number, member, cause, heir, .. } => {
            let heir = heir.as_ref().map(|h| format!(", kept for {h}")).unwrap_or_default();
            let cause = cause_text(*cause);
            (Tone::Warn, format!("term {number} of {} is over: {cause}{heir}", member.id))
        }
        Happening::StepDownAsked { number, reason, by, to, .. } => {
            let to = to.as_ref().map(|t| format!(" in favour of {t}")).unwrap_or_default();
            let because = because(reason.as_str(), by.as_str());
            (Tone::Warn, format!("term {number} is asked to step down{to} {because}"))
        }
        Happening::Paused { reason, by, .. } => {
            (Tone::Warn, format!("paused {}", because(reason.as_str(), by.as_str())))
        }
        Happening::Resumed { by, .. } => (Tone::Good, format!("resumed by {by}")),
    }
}

/// An entry as JSON.
pub(crate) fn entry_json(entry: &Entry) -> Value {
    let mut value = json!({
        "seq": entry.seq.get(),
        "at": span::moment(entry.at),
        "event": event_name(&entry.what),
        "election": entry.what.election().map(ElectionName::as_str),
    });
    match &entry.what {
        Happening::Joined { member, profile } => {
            value["member"] = json!(member.id.as_str());
            value["endpoints"] = json!(profile.endpoints());
        }
        Happening::Left { member } => value["member"] = json!(member.id.as_str()),
        Happening::Ended { member, cause } => {
            value["member"] = json!(member.id.as_str());
            value["cause"] = json!(end_text(*cause));
        }
        Happening::Stood { member, priority, .. } => {
            value["member"] = json!(member.id.as_str());
            value["priority"] = json!(priority.get());
        }
        Happening::Elected { term } => {
            value["term"] = json!(term.number.get());
            value["member"] = json!(term.member.id.as_str());
            value["incarnation"] = json!(term.member.incarnation.to_string());
        }
        Happening::Released { number, member, cause, heir, .. } => {
            value["term"] = json!(number.get());
            value["member"] = json!(member.id.as_str());
            value["cause"] = json!(cause_text(*cause));
            value["heir"] = json!(heir.as_ref().map(tenure::MemberId::as_str));
        }
        Happening::StepDownAsked { number, reason, by, to, .. } => {
            value["term"] = json!(number.get());
            value["reason"] = json!(reason.as_str());
            value["by"] = json!(by.as_str());
            value["to"] = json!(to.as_ref().map(tenure::MemberId::as_str));
        }
        Happening::Paused { reason, by, .. } => {
            value["reason"] = json!(reason.as_str());
            value["by"] = json!(by.as_str());
        }
        Happening::Resumed { by, .. } => value["by"] = json!(by.as_str()),
    }
    value
}

fn event_name(what: &Happening) -> &'static str {
    match what {
        Happening::Joined { .. } => "joined",
        Happening::Left { .. } => "left",
        Happening::Ended { .. } => "ended",
        Happening::Stood { .. } => "stood",
        Happening::Elected { .. } => "elected",
        Happening::Released { .. } => "released",
        Happening::StepDownAsked { .. } => "step_down_asked",
        Happening::Paused { .. } => "paused",
        Happening::Resumed { .. } => "resumed",
    }
}

/// Why a term ended, in a word or two.
pub(crate) fn cause_text(cause: ReleaseCause) -> &'static str {
    match cause {
        ReleaseCause::Resigned => "resigned",
        ReleaseCause::SteppedDown => "stepped down as asked",
        ReleaseCause::Abandoned => "given up, no longer trusted",
        ReleaseCause::Left => "left",
        ReleaseCause::Ended(cause) => end_text(cause),
    }
}

fn end_text(cause: EndCause) -> &'static str {
    match cause {
        EndCause::Expired => "expired",
        EndCause::ProvenDead => "its process died",
        EndCause::Superseded => "replaced by a newer process of the same id",
        EndCause::Evicted => "evicted",
    }
}
