//! `tenure watch`: one line for each change.

use std::collections::{HashMap, HashSet};

use tenure::journal::{Entry, Happening, Journalled, Seq};
use tenure::views::MemberRef;
use tenure::{ElectionName, Operator};

use crate::args::WatchArgs;
use crate::context::{Context, election_name};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, Tone, say};
use crate::show::{moment, tone};

pub(crate) async fn run(context: &Context, args: &WatchArgs) -> Outcome {
    if let Some(prefix) = &args.names {
        return super::watch_names::run(context, prefix, args).await;
    }
    let names = args.elections.iter().map(|name| election_name(name)).collect::<Result<_, _>>()?;
    let operator = context.watch().await?;
    if !operator.capabilities().journal {
        let kind = operator.capabilities().name;
        let what = format!("the store {kind} keeps no journal to watch");
        return Err(Failure::usage(format!("{what}; repeat `tenure status --json` instead")));
    }
    let leaders = HashMap::new();
    let mut lines = Lines { out: context.output.streaming(), names, leaders, left: args.count };
    let after = match args.from {
        Some(seq) => Some(known_place(context, &operator, seq).await?),
        None => Some(lines.present(&operator).await?),
    };
    let mut journal = operator.follow(after)?;
    while lines.left != Some(0) {
        match journal.next().await {
            Some(Journalled::Entries(entries)) => lines.entries(&entries)?,
            Some(Journalled::Trimmed(up_to)) => {
                say(&format!("the journal no longer has what happened up to {up_to}"));
            }
            Some(Journalled::Interrupted(error)) => {
                say(&format!("the store does not answer; trying again: {error}"));
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
async fn known_place(context: &Context, operator: &Operator, seq: u64) -> Outcome<Seq> {
    let (newest, _) = operator.journal(1).await?;
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
        if let Happening::Elected { term, .. } = what
            && self.wants(&term.election)
        {
            self.leaders.insert(term.election.clone(), term.member.clone());
        }
        if let Happening::Released { election, .. } = what {
            self.leaders.remove(election);
        }
        match (what, what.election()) {
            (_, Some(election)) => self.wants(election),
            (Happening::Left { member, .. } | Happening::Ended { member, .. }, None) => {
                self.names.is_empty() || self.leaders.values().any(|leader| leader == member)
            }
            _ => self.names.is_empty(),
        }
    }

    /// Who leads now, from one look; changes after it follow. Gives the place
    /// in the journal where they do.
    async fn present(&mut self, operator: &Operator) -> Outcome<Seq> {
        // The position first: a change between the two looks is told twice
        // rather than never.
        let (seq, _) = operator.journal(1).await?;
        for view in operator.elections().await? {
            let Some(leads) = tenure_api::Entry::leads(seq, &view) else { continue };
            let Some(holder) = view.holder else { continue };
            if !self.wants(&view.election) || self.left == Some(0) {
                continue;
            }
            self.leaders.insert(view.election.clone(), holder.member.clone());
            let at = moment(holder.elected_at);
            self.print(seq, &at, view.election.as_str(), &leads)?;
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
            let at = moment(entry.at);
            let election = entry.what.election().map_or("-", ElectionName::as_str).to_owned();
            self.print(entry.seq, &at, &election, &entry.into())?;
        }
        Ok(())
    }

    fn print(
        &mut self,
        seq: Seq,
        at: &str,
        election: &str,
        value: &tenure_api::Entry,
    ) -> Outcome<()> {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        if self.out.json {
            return self.out.value_line(value);
        }
        let seq = self.out.paint(Tone::Faint, &format!("{seq:>6}"));
        let text = self.out.paint(tone(value.what.event()), &value.what.to_string());
        self.out.line(&format!("{seq}  {at}  {election}  {text}"))
    }
}
