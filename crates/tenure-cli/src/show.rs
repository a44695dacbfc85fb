//! How elections, entries and moments are shown to people: what several verbs share.

use tenure::{ElectionView, Happening, Timestamp};
use tenure_api::{Cause, Moment};

use crate::output::Tone;

/// A moment for a person: `2026-11-15 22:08:23`, UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    Moment::from(at).short()
}

/// The leader's id, or that there is none.
pub(crate) fn leader_cell(view: &ElectionView) -> (Tone, String) {
    match &view.holder {
        Some(holder) => (Tone::Good, holder.member.id.to_string()),
        None => (Tone::Warn, "(nobody)".into()),
    }
}

/// Candidates that do not lead.
pub(crate) fn waiting(view: &ElectionView) -> impl Iterator<Item = &tenure::Candidate> {
    view.candidates.iter().filter(|c| !view.is_held_by(c.member.incarnation))
}

/// What is out of the ordinary.
pub(crate) fn states(view: &ElectionView) -> String {
    let paused = view.paused.as_ref().map(|_| "paused");
    let stepping = view.step_down.as_ref().map(|_| "asked to step down");
    let reserved = view.reserved.as_ref().map(|_| "reserved");
    let held_up = view.held_up.as_ref().map(|_| "held up");
    [paused, stepping, reserved, held_up].into_iter().flatten().collect::<Vec<_>>().join(", ")
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

/// An entry for people: what happened, in one clause.
pub(crate) fn entry_text(what: &Happening) -> (Tone, String) {
    match what {
        Happening::Joined { member, .. } => (Tone::Faint, format!("{} joined", member.id)),
        Happening::Left { member } => (Tone::Faint, format!("{} left", member.id)),
        Happening::Ended { member, cause } => {
            (Tone::Warn, format!("{} was ended: {}", member.id, Cause::from(*cause)))
        }
        Happening::Stood { member, priority, .. } => {
            (Tone::Faint, format!("{} stands, priority {}", member.id, priority.get()))
        }
        Happening::Elected { term } => {
            (Tone::Good, format!("{} leads with term {}", term.member.id, term.number))
        }
        Happening::Released { number, member, cause, heir, .. } => {
            let heir = heir.as_ref().map(|h| format!(", kept for {h}")).unwrap_or_default();
            let cause = Cause::from(*cause);
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
