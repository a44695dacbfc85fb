//! The picture of a run: who led when, and what went wrong when.

use std::fmt::Write as _;

use crate::checker::Worker;
use crate::clock::{Nanos, seconds};
use crate::report::Report;

/// How much time one row of the picture shows; a run that is shorter fills one.
const ROW: Nanos = 60_000_000_000;
/// A line every so often.
const TICK: Nanos = 5_000_000_000;
/// Sizes in pixels.
const LEFT: f64 = 40.0;
const WIDTH: f64 = 1_200.0;
const LANE: f64 = 16.0;
const TOP: f64 = 44.0;
const LEGEND: f64 = 30.0;
const LINE: f64 = 14.0;
const GAP: f64 = 22.0;

/// The colour of each kind of fault.
const COLOURS: [(&str, &str); 20] = [
    ("kill -9", "#c00000"),
    ("stop", "#707070"),
    ("cut", "#e06000"),
    ("delay", "#e0b000"),
    ("black hole", "#202020"),
    ("half close", "#a05020"),
    ("store killed", "#ff4040"),
    ("lock held", "#4060c0"),
    ("clock jump", "#a000c0"),
    ("copied", "#40a040"),
    ("copy put back", "#006000"),
    ("holder killed", "#900050"),
    ("program killed", "#d04060"),
    ("guardian killed", "#b06090"),
    ("both killed", "#800000"),
    ("all three killed", "#400000"),
    ("program stopped", "#90a0b0"),
    ("guardian stopped", "#6080a0"),
    ("both stopped", "#305070"),
    ("program cut off", "#303030"),
];

/// The picture as SVG.
pub(crate) fn svg(report: &Report) -> String {
    let page = Page::new(report);
    let mut out = String::new();
    let width = LEFT + WIDTH + 10.0;
    let height = page.row_top(page.rows());
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"14\" font-size=\"12\">{}</text>",
        report.options.command()
    );
    page.legend(&mut out);
    page.frames(&mut out);
    page.faults(&mut out, false);
    page.terms(&mut out);
    page.faults(&mut out, true);
    out.push_str("</svg>\n");
    out
}

struct Page<'r> {
    report: &'r Report,
    lanes: usize,
    /// How much time a row shows.
    row: Nanos,
    /// Where the first row begins, below the legend.
    top: f64,
}

/// A kind of fault in the legend, and where it stands.
struct Entry {
    name: &'static str,
    colour: &'static str,
    x: f64,
    y: f64,
}

/// The kinds that happened, in as many lines as they take.
fn legend(report: &Report) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut x = LEFT;
    let mut y = LEGEND;
    for (name, colour) in COLOURS {
        if !report.marks.iter().any(|mark| mark.name == name) {
            continue;
        }
        let width = 30.0 + times(name.len()) * 6.0;
        if x + width > LEFT + WIDTH {
            x = LEFT;
            y += LINE;
        }
        entries.push(Entry { name, colour, x, y });
        x += width;
    }
    entries
}

/// A number of lanes or rows, for drawing.
#[allow(clippy::cast_precision_loss)]
fn times(count: usize) -> f64 {
    count as f64
}

impl<'r> Page<'r> {
    fn new(report: &'r Report) -> Self {
        let row = report.to.saturating_sub(report.from).clamp(1, ROW);
        let lanes = report.options.workers + report.options.programs;
        let below = legend(report).last().map_or(LEGEND, |entry| entry.y);
        Self { report, lanes, row, top: TOP + below - LEGEND }
    }

    fn rows(&self) -> usize {
        let length = self.report.to.saturating_sub(self.report.from);
        usize::try_from(length.div_ceil(self.row)).unwrap_or(1).max(1)
    }

    /// Pixels for a second.
    fn scale(&self) -> f64 {
        WIDTH / seconds(self.row)
    }

    fn row_top(&self, row: usize) -> f64 {
        self.top + times(row) * (times(self.lanes) * LANE + GAP)
    }

    fn legend(&self, out: &mut String) {
        for Entry { name, colour, x, y } in legend(self.report) {
            let _ = writeln!(
                out,
                "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{:.0}\" y=\"{y:.0}\">{name}</text>",
                y - 9.0,
                x + 13.0
            );
        }
    }

    /// A frame for each row, with a band for each lane and the time at its left.
    fn frames(&self, out: &mut String) {
        for row in 0..self.rows() {
            let top = self.row_top(row);
            let start = times(row) * seconds(self.row);
            let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{:.0}\">{start:.0} s</text>", top - 2.0);
            for lane in 0..self.lanes {
                let y = top + times(lane) * LANE;
                let _ = writeln!(
                    out,
                    "<text x=\"{:.0}\" y=\"{:.0}\">s{lane}</text>\
                     <rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{WIDTH}\" height=\"{:.0}\" \
                     fill=\"#f4f4f4\"/>",
                    LEFT - 18.0,
                    y + LANE - 5.0,
                    LANE - 1.0
                );
            }
            for tick in 1..self.row.div_ceil(TICK) {
                let x = LEFT + seconds(tick * TICK) * self.scale();
                let _ = writeln!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{top:.0}\" width=\"0.5\" height=\"{:.0}\" \
                     fill=\"#c8c8c8\"/>",
                    times(self.lanes) * LANE
                );
            }
        }
    }

    /// Those of the workers, and below them those of the programs, as long as anything of
    /// their commands ran.
    fn terms(&self, out: &mut String) {
        let verdict = &self.report.verdict;
        for span in &verdict.spans {
            let term = span.term;
            self.bar(out, span.worker, term, (span.from, span.to), &format!("term {term}"));
        }
        for family in &verdict.families {
            let what = format!("command of term {}", family.term);
            self.bar(out, family.program, family.term, (family.from, family.to), &what);
        }
    }

    fn bar(&self, out: &mut String, of: Worker, term: u64, ends: (Nanos, Nanos), what: &str) {
        // Neighbouring terms differ in colour.
        let hue = term * 137 % 360;
        let title = format!("{what}: {of}, {:.3} s", seconds(ends.1 - ends.0));
        let lane = times(of.slot) * LANE;
        for (x, row, width) in self.pieces(ends.0, ends.1) {
            let y = self.row_top(row) + lane;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" height=\"{:.0}\" \
                 fill=\"hsl({hue},60%,60%)\"><title>{title}</title></rect>",
                LANE - 6.0
            );
        }
    }

    /// Those of one worker lie below its spans as a thin line; those of the
    /// store lie behind everything.
    fn faults(&self, out: &mut String, of_workers: bool) {
        for mark in self.report.marks.iter().filter(|mark| mark.slot.is_some() == of_workers) {
            let known = COLOURS.iter().find(|(name, _)| *name == mark.name);
            let colour = known.map_or("black", |(_, colour)| *colour);
            for (x, row, width) in self.pieces(mark.from, mark.to) {
                let top = self.row_top(row);
                let (y, height, opacity) = match mark.slot {
                    Some(slot) => (top + times(slot) * LANE + LANE - 5.0, 4.0, 1.0),
                    None => (top, times(self.lanes) * LANE, 0.25),
                };
                let _ = writeln!(
                    out,
                    "<rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"{height:.0}\" \
                     fill=\"{colour}\" fill-opacity=\"{opacity}\"><title>{}</title></rect>",
                    width.max(2.0),
                    mark.name
                );
            }
        }
    }

    /// Where a span lies: at which x, in which row, how wide; more than one piece
    /// if it goes over the end of a row.
    fn pieces(&self, from: Nanos, to: Nanos) -> Vec<(f64, usize, f64)> {
        let start = self.report.from;
        let end = to.min(self.report.to).saturating_sub(start);
        let mut at = from.saturating_sub(start);
        let mut pieces = Vec::new();
        loop {
            let row = at / self.row;
            let upto = end.min((row + 1) * self.row).max(at);
            let scale = self.scale();
            let x = LEFT + seconds(at - row * self.row) * scale;
            let place = usize::try_from(row).unwrap_or(0).min(self.rows() - 1);
            pieces.push((x, place, seconds(upto - at) * scale));
            at = upto;
            if at >= end || pieces.len() > self.rows() {
                return pieces;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    /// Every term and every fault is in the picture, and it is well formed as far
    /// as counting goes.
    #[test]
    fn every_term_and_fault_is_drawn() {
        let svg = svg(&sample());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        for part in [
            "term 1: s0g1, 2.000 s",
            "term 2: s1g1",
            "<title>stop<",
            "<title>store killed<",
            "command of term 9: s6g1, 5.000 s",
        ] {
            assert_eq!(svg.matches(part).count(), 1, "{part}");
        }
        assert_eq!(svg.matches("<title>").count(), svg.matches("</title>").count());
        assert!(svg.contains(">stop</text>") && !svg.contains(">cut</text>"), "the legend");
    }

    /// A short run fills the width.
    #[test]
    fn a_row_is_no_longer_than_the_run() {
        let report = sample();
        let page = Page::new(&report);
        assert_eq!(page.rows(), 1);
        assert_eq!(page.pieces(report.from, report.to), [(LEFT, 0, WIDTH)]);
    }

    /// A span over the end of a row goes on in the next.
    #[test]
    fn a_span_over_the_end_of_a_row_is_drawn_in_two() {
        let mut report = sample();
        report.to = report.from + 2 * ROW;
        let page = Page::new(&report);
        let from = report.from + ROW - 30_000_000_000;
        let to = report.from + ROW + 15_000_000_000;
        let pieces = page.pieces(from, to);
        assert_eq!(pieces, [(LEFT + 600.0, 0, 600.0), (LEFT, 1, 300.0)]);
        // A fault without length is still a piece.
        assert_eq!(page.pieces(report.from, report.from), [(LEFT, 0, 0.0)]);
        // One that outlasts the run is cut at its end.
        assert_eq!(page.pieces(report.to - ROW / 2, report.to + ROW), [(LEFT + 600.0, 1, 600.0)]);
    }
}
