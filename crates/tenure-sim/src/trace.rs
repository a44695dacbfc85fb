//! Traces: what happened, for people, and folded into a number for reruns.

use std::fmt::Write as _;

use tenure_core::{
    Beat, Claimed, Claims, Entry, Event, Failed, Happening, Input, Joined, Reply, Request,
};

use crate::clock::{Nanos, SECOND};
use crate::fact::{Fact, Who};
use crate::rng::TraceHash;

/// What happened in a world, one line for each fact.
#[derive(Debug, Default)]
pub struct Trace {
    lines: Vec<String>,
}

impl Trace {
    pub(crate) fn write(&mut self, now: Nanos, fact: &Fact<'_>) {
        let what = line(fact);
        if !what.is_empty() {
            let whole = now / SECOND;
            let part = now % SECOND / 1_000;
            self.lines.push(format!("{whole:>5}.{part:06}  {what}"));
        }
    }

    /// The last `most` lines.
    pub fn tail(&self, most: usize) -> impl Iterator<Item = &str> {
        self.lines[self.lines.len().saturating_sub(most)..].iter().map(String::as_str)
    }
}

/// A moment of true time, in seconds.
fn moment(at: Nanos) -> String {
    format!("{}.{:06}", at / SECOND, at % SECOND / 1_000)
}

fn line(fact: &Fact<'_>) -> String {
    match fact {
        Fact::Started { who } => format!("{who} starts"),
        Fact::Crashed { who } => format!("{who} crashes"),
        Fact::Froze { who, until, suspended } => {
            let how = if *suspended { "suspended" } else { "stopped" };
            format!("{who} is {how} until {}", moment(*until))
        }
        Fact::Fed { who, input, .. } => match input {
            Input::Wake => String::new(),
            Input::Reply { id, result } => {
                format!("{who} <- #{} {}", id.get(), reply(result))
            }
            other => format!("{who} <- {other:?}"),
        },
        Fact::Sent { who, id, request, local } => {
            format!("{who} -> #{id} {} (own clock {local})", asked(request))
        }
        Fact::Told { who, event, local, .. } => match event {
            Event::Standby { view } => format!(
                "{who} app: standby {} at {} (own clock {local})",
                view.election, view.number
            ),
            other => format!("{who} app: {other:?} (own clock {local})"),
        },
        Fact::Retrusted { who, election, until } => {
            format!("{who} clock changed its rate: {election} trusted until {}", moment(*until))
        }
        Fact::ClientTrusts { client, election, number, until, .. } => {
            format!("c{client} trusts {election}#{number} until {}", moment(*until))
        }
        Fact::ClientLost { client, election } => format!("c{client} trusts nothing of {election}"),
        Fact::NameRetrusted { who, name, until } => format!(
            "{who} clock changed its rate: {name} trusted until {}.{:06}",
            until / SECOND,
            until % SECOND / 1_000
        ),
        Fact::NameWorkStopped { who, name, token } => {
            format!("{who} work under {name}#{token} has stopped")
        }
        Fact::Bindings { live, .. } => {
            let shown = live.iter().map(|b| match &b.owner {
                Some(owner) => format!("{}#{} {owner}", b.name, b.token),
                None => format!("{}#{} unowned", b.name, b.token),
            });
            format!("names: [{}]", shown.collect::<Vec<_>>().join(", "))
        }
        Fact::NamesSurveyed { names } => format!("--- survey of names: {names:?}"),
        Fact::Settled { .. } => String::new(),
        Fact::WorkStopped { who, election, number } => {
            format!("{who} work of {election}#{number} has stopped")
        }
        Fact::Applied { who, store, request, reply: result, entries } => format!(
            "store ({store}): {who} {} => {}{}",
            asked(request),
            reply(result),
            written(entries)
        ),
        Fact::Stepped { step, .. } if step.is_idle() => String::new(),
        Fact::Stepped { by, store, step } => {
            let by = by.map_or_else(|| "operator".to_owned(), |who| who.to_string());
            let what = if step.conflict { "conflict" } else { "step" };
            format!("rows ({store}): {by} {what}{}", written(&step.entries))
        }
        Fact::Amended { store, amend, answer, entries } => {
            format!("store ({store}): operator {amend:?} => {answer:?}{}", written(entries))
        }
        Fact::Wrote { who, election, token, accepted, .. } => {
            let verdict = if *accepted { "accepted" } else { "refused" };
            format!("write of {who} to {election} with token {token} is {verdict}")
        }
        Fact::Promoted { lost } => format!("--- the copy takes over without {lost} writes"),
        Fact::Healed => "--- no more faults from here on".to_owned(),
        Fact::Bereaved { who, election, crashed } => {
            let how = if *crashed { "crashes" } else { "resigns" };
            format!("--- {who}, who leads {election}, {how}")
        }
        Fact::Surveyed { elections } => format!("--- survey: {elections:?}"),
        Fact::Over => "--- over".to_owned(),
    }
}

fn asked(request: &Request) -> String {
    match request {
        Request::Join(join) => format!("join {} for {:?}", join.member, join.ttl),
        Request::Heartbeat(beat) => {
            format!("beat {} for {:?} holding {}", beat.member, beat.ttl, beat.held.len())
        }
        Request::Leave(member) => format!("leave {member}"),
        Request::Claim(claim) => {
            let mut text = format!("claim {} for {:?}:", claim.member, claim.ttl);
            for bid in &claim.bids {
                let priority = bid.priority.get();
                let nonce = bid.nonce.get();
                let _ = write!(text, " {} (priority {priority}, nonce {nonce})", bid.election);
            }
            text
        }
        Request::Release(release) => {
            let mut text = format!("release {}:", release.member);
            for item in &release.items {
                let number = item.number.map_or(0, |n| n.get());
                let _ = write!(text, " {}#{number} {:?}", item.election, item.cause);
                if let Some((to, _)) = &item.successor {
                    let _ = write!(text, " to {to}");
                }
            }
            text
        }
        Request::Bind(bind) => format!("bind {:?}: {:?}", bind.member, bind.ops),
        Request::Read(query) => format!("read {:?}", query.which),
    }
}

fn reply(result: &Result<Reply, Failed>) -> String {
    match result {
        Err(failed) if failed.may_have_applied => "an error, perhaps applied".to_owned(),
        Err(_) => "an error, not applied".to_owned(),
        Ok(Reply::Join(Joined::In { .. })) => "in".to_owned(),
        Ok(Reply::Join(taken)) => format!("{taken:?}"),
        Ok(Reply::Heartbeat(Beat::Alive { holds, attention, terms, .. })) => {
            format!("alive, holds {holds:?}, attention {attention}, {} terms", terms.len())
        }
        Ok(Reply::Heartbeat(ended)) => format!("{ended:?}"),
        Ok(Reply::Leave) => "left".to_owned(),
        Ok(Reply::Release) => "released".to_owned(),
        Ok(Reply::Claim(Claims::Ended { superseded })) => format!("ended, superseded {superseded}"),
        Ok(Reply::Claim(Claims::Answered(answers))) => {
            let shown = answers.iter().map(|answer| match answer {
                Claimed::Won(term) => format!("won {}#{}", term.election, term.number),
                Claimed::Held(view) => seen(view),
                Claimed::Unknown(election) => format!("{election} unknown"),
            });
            shown.collect::<Vec<_>>().join(", ")
        }
        Ok(Reply::Bind(bindings)) => format!("{bindings:?}"),
        Ok(Reply::Read(snapshot)) => {
            let shown: Vec<_> = snapshot.elections.iter().map(seen).collect();
            format!("[{}]", shown.join(", "))
        }
    }
}

fn seen(view: &tenure_core::ElectionView) -> String {
    let holder = match &view.holder {
        Some(holder) => format!("held by {} for {:?}", holder.member, holder.remaining),
        None => "vacant".to_owned(),
    };
    let paused = if view.paused.is_some() { ", paused" } else { "" };
    let kept = view.reserved.as_ref().map_or(String::new(), |r| format!(", kept for {}", r.member));
    let down = if view.step_down.is_some() { ", asked to step down" } else { "" };
    format!("{}#{} {holder}{paused}{kept}{down}, {} ahead", view.election, view.number, view.ahead)
}

fn written(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let _ = write!(text, "\n{:14}  journal {}: ", "", entry.seq);
        let _ = match &entry.what {
            Happening::Elected { term, .. } => {
                write!(text, "elected {}#{} {}", term.election, term.number, term.member)
            }
            other => write!(text, "{other:?}"),
        };
    }
    text
}

/// Folds a fact into the number that two runs of a seed are compared by.
pub(crate) fn fold(hash: &mut TraceHash, now: Nanos, fact: &Fact<'_>) {
    hash.fold(now);
    let place = |who: &Who| (who.process as u64) << 32 | u64::from(who.start);
    let (kind, who, more) = match fact {
        Fact::Started { who } => (1, place(who), 0),
        Fact::Crashed { who } => (2, place(who), 0),
        Fact::Froze { who, until, .. } => (3, place(who), *until),
        Fact::Fed { who, local, .. } => (4, place(who), local.as_nanos()),
        Fact::Sent { who, id, .. } => (5, place(who), *id),
        Fact::Told { who, until, .. } => (6, place(who), until.unwrap_or(1)),
        Fact::Retrusted { who, until, .. } => (7, place(who), *until),
        Fact::Settled { who, local } => (8, place(who), local.as_nanos()),
        Fact::WorkStopped { who, number, .. } => (9, place(who), number.get()),
        Fact::Applied { who, store, entries, .. } => {
            (10, place(who), store.as_nanos() ^ entries.len() as u64)
        }
        Fact::Amended { store, entries, .. } => (11, 0, store.as_nanos() ^ entries.len() as u64),
        Fact::Wrote { who, token, accepted, .. } => {
            (12, place(who), token.get() * 2 + u64::from(*accepted))
        }
        Fact::Healed => (13, 0, 0),
        Fact::Bereaved { who, .. } => (14, place(who), 0),
        Fact::Surveyed { elections } => (15, 0, elections.len() as u64),
        Fact::Over => (16, 0, 0),
        Fact::Promoted { lost } => (17, 0, *lost as u64),
        Fact::Stepped { by, store, step } => {
            (18, by.as_ref().map_or(0, place), store.as_nanos() ^ step.entries.len() as u64)
        }
        Fact::NameRetrusted { who, until, .. } => (19, place(who), *until),
        Fact::NameWorkStopped { who, token, .. } => (20, place(who), token.get()),
        Fact::Bindings { store, live } => {
            let tokens = live.iter().fold(0, |sum: u64, b| sum.wrapping_mul(31) + b.token.get());
            (21, tokens, store.as_nanos())
        }
        Fact::NamesSurveyed { names } => (22, 0, names.len() as u64),
        Fact::ClientTrusts { client, until, .. } => (23, *client as u64, *until),
        Fact::ClientLost { client, .. } => (24, *client as u64, 0),
    };
    hash.fold(kind);
    hash.fold(who);
    hash.fold(more);
}
