//! How elections, entries and moments are shown to people: what several verbs share.

use tenure::{ElectionView, Timestamp};
use tenure_api::{Event, Moment};

use crate::output::Tone;

/// A moment for a person: `2026-11-15 22:08:23`, UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    Moment::from(at).short()
}

/// The leader's id, or that there is none.
pub(crate) fn leader_cell(view: &ElectionView) -> (Tone, String) {
    match &view.holder {
        Some(holder) => (Tone::Good, holder.member.id.to_string()),
        None => (Tone::Warn, "(vacant)".into()),
    }
}

/// Candidates that do not lead.
pub(crate) fn waiting(view: &ElectionView) -> impl Iterator<Item = &tenure::views::Candidate> {
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

/// How much an entry matters to those who watch.
pub(crate) fn tone(event: Event) -> Tone {
    match event {
        Event::Ended | Event::Released | Event::StepDownAsked | Event::Paused => Tone::Warn,
        Event::Elected | Event::Resumed => Tone::Good,
        _ => Tone::Faint,
    }
}
