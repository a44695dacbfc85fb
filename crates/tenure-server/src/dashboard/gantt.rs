//! Terms over time: one lane for each member, one bar for each term.
//!
//! Coordinates are in percent, so that the chart is as wide as there is room for. What it shows
//! stands in the table of terms as well: it is a picture for those who see it.

use maud::{Markup, html};
use tenure::Timestamp;
use tenure_api::{Cause, Moment, PastTerm};

use super::text;

/// Lanes beyond this one are put together.
const LANES: usize = 10;
/// So many terms within [`WINDOW`] are flapping, as `tenure_api::Flapping` has it.
const BURST: usize = 5;
const WINDOW: u64 = 600_000;
/// The thinnest bar, in percent.
const THIN: f64 = 0.35;
/// The spans between two marks of the axis, in seconds.
const STEPS: [u64; 19] = [
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200,
    86_400, 604_800,
];
/// As many marks as there is room for on a phone.
const MARKS: u64 = 6;

/// The time that is shown, in milliseconds of the store's clock.
#[derive(Clone, Copy, Debug)]
struct Axis {
    from: u64,
    to: u64,
}

impl Axis {
    fn at(self, moment: u64) -> f64 {
        let span = self.to.saturating_sub(self.from).max(1);
        let past = moment.clamp(self.from, self.to) - self.from;
        100.0 * past as f64 / span as f64
    }

    fn step(self) -> u64 {
        let span = self.to.saturating_sub(self.from);
        let fits = |step: &u64| span / (step * 1_000) <= MARKS;
        let longest = STEPS[STEPS.len() - 1];
        STEPS.into_iter().find(fits).unwrap_or(longest * (1 + span / (longest * 1_000 * MARKS)))
            * 1_000
    }

    fn marks(self) -> impl Iterator<Item = u64> {
        let step = self.step();
        let first = self.from.div_ceil(step) * step;
        (first..=self.to).step_by(usize::try_from(step).unwrap_or(usize::MAX))
    }

    /// The moment in as few letters as tell two marks apart.
    fn label(self, at: u64) -> String {
        let shown = Moment::from(Timestamp::from_unix_millis(at)).short();
        let part = match self.step() {
            step if step >= 86_400_000 => shown.get(5..10),
            step if step >= 60_000 => shown.get(11..16),
            _ => shown.get(11..19),
        };
        part.unwrap_or(&shown).to_owned()
    }
}

/// An end that was neither asked for nor announced by the leader.
pub(crate) fn is_hard(cause: Cause) -> bool {
    !matches!(cause, Cause::Resigned | Cause::SteppedDown | Cause::Left)
}

/// Where a term begins and ends in the picture.
fn span(terms: &[PastTerm], n: usize, now: u64) -> (u64, u64) {
    let began = millis(terms[n].from);
    let next = terms.get(n + 1).map(|next| millis(next.from));
    let end = if terms[n].stands { Some(now) } else { terms[n].to.map(millis).or(next) };
    (began, end.unwrap_or(began).max(began))
}

fn millis(at: Moment) -> u64 {
    at.timestamp().unix_millis()
}

/// The times in which terms follow one another too fast.
fn bursts(terms: &[PastTerm]) -> Vec<(u64, u64)> {
    let starts: Vec<u64> = terms.iter().map(|term| millis(term.from)).collect();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for window in starts.windows(BURST) {
        let first = window[0];
        let last = window[BURST - 1];
        if last.saturating_sub(first) > WINDOW {
            continue;
        }
        match found.last_mut() {
            Some(burst) if first <= burst.1 => burst.1 = last,
            _ => found.push((first, last)),
        }
    }
    found
}

/// The chart of these terms, oldest first. `now` is on the store's clock, or nearly.
pub(crate) fn chart(terms: &[PastTerm], now: u64) -> Markup {
    let (Some(first), Some(last)) = (terms.first(), terms.last()) else {
        return html! {};
    };
    let axis = Axis { from: millis(first.from), to: now.max(millis(last.from) + 1_000) };
    let mut lanes: Vec<&str> = Vec::new();
    for term in terms.iter().rev() {
        if !lanes.contains(&term.member.as_str()) {
            lanes.push(&term.member);
        }
    }
    let others = lanes.split_off(lanes.len().min(LANES));
    let bursts = bursts(terms);
    html! {
        div.gantt role="img" aria-label={
            "Terms " (first.term) " to " (last.term) " over time; the table below has the same"
        } {
            @for lane in &lanes {
                div.lane {
                    span.who { (text::name(lane)) }
                    (bars(terms, axis, &bursts, now, |member| member == *lane))
                }
            }
            @if !others.is_empty() {
                div.lane {
                    span.who { (others.len()) " others" }
                    (bars(terms, axis, &bursts, now, |member| others.contains(&member)))
                }
            }
            div.lane.axis { span.who {} svg { @for at in axis.marks() {
                @let x = axis.at(at);
                text.first[x < 4.0].last[x > 96.0] x=(percent(x)) y="13" { (axis.label(at)) }
            } } }
        }
    }
}

fn percent(value: f64) -> String {
    format!("{value:.2}%")
}

fn bars(
    terms: &[PastTerm],
    axis: Axis,
    bursts: &[(u64, u64)],
    now: u64,
    is_here: impl Fn(&str) -> bool,
) -> Markup {
    html! {
        svg {
            @for burst in bursts {
                @let x = axis.at(burst.0);
                rect.burst x=(percent(x)) y="0" height="100%"
                    width=(percent((axis.at(burst.1) - x).max(THIN))) {}
            }
            @for at in axis.marks() {
                line.grid x1=(percent(axis.at(at))) x2=(percent(axis.at(at))) y1="0" y2="100%" {}
            }
            @for (n, term) in terms.iter().enumerate().filter(|(_, term)| is_here(&term.member)) {
                (bar(term, span(terms, n, now), axis))
            }
        }
    }
}

fn bar(term: &PastTerm, (from, to): (u64, u64), axis: Axis) -> Markup {
    let x = axis.at(from);
    let width = (axis.at(to) - x).max(THIN);
    // Something of a bar at the very end is still in the picture.
    let x = x.min(100.0 - width);
    let hard = term.ended.is_some_and(is_hard);
    let how = match (term.stands, term.ended) {
        (true, _) => "stands".to_owned(),
        (_, Some(cause)) => format!("{cause}, after {}", text::lasted(to - from)),
        _ => "over".to_owned(),
    };
    html! {
        g.term data-stands[term.stands] data-hard[hard] {
            title { "Term " (term.term) " of " (tenure::views::shown(&term.member)) ": " (how) }
            rect x=(percent(x)) y="5" height="16" width=(percent(width)) rx="2" {}
            @if width > 4.0 { text x=(percent(x + 0.6)) y="17" { (term.term) } }
            @if hard { text.end x=(percent(x + width)) y="17" { "✕" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(number: u64, from: u64, to: Option<u64>) -> PastTerm {
        let at = |millis| Moment::from(Timestamp::from_unix_millis(millis));
        PastTerm {
            term: number,
            member: format!("m{}", number % 13),
            incarnation: "1".into(),
            from: at(from),
            to: to.map(at),
            lasted_ms: to.map(|to| to - from),
            ended: to.map(|_| Cause::Expired),
            stands: to.is_none(),
            remaining_ms: None,
            seq: number,
        }
    }

    /// Every term is in the picture, also one that began this very moment.
    #[test]
    fn every_term_is_in_the_picture() {
        let day = 86_400_000;
        for span in [0, 1, 1_000, day, 400 * day, 100 * 365 * day] {
            let terms: Vec<_> =
                (0..30).map(|n| term(n, day + n * span, Some(day + n * span))).collect();
            let chart = chart(&terms, day + 29 * span).into_string();
            assert_eq!(chart.matches("<g class=\"term\"").count(), 30);
            assert!(chart.matches("class=\"lane\"").count() == LANES + 1, "{chart}");
            assert!(chart.matches("class=\"grid\"").count() <= 11 * 8, "{span}");
            for part in chart.split(" x=\"").skip(1) {
                let x: f64 = part.split('%').next().unwrap().parse().unwrap();
                assert!((0.0..=100.0).contains(&x), "{x}");
            }
        }
        assert!(chart(&[], 0).into_string().is_empty());
    }

    /// Where terms follow one another too fast is marked, and only there.
    #[test]
    fn a_burst_is_marked_where_it_is() {
        let minute = 60_000;
        let calm: Vec<_> = (0..20).map(|n| term(n, n * 3 * minute, None)).collect();
        assert!(bursts(&calm).is_empty());
        let starts = [0, 100, 101, 102, 103, 104, 105, 300];
        let burst: Vec<_> =
            starts.iter().enumerate().map(|(n, at)| term(n as u64, at * minute, None)).collect();
        assert_eq!(bursts(&burst), [(100 * minute, 105 * minute)]);
    }
}
