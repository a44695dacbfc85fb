//! What the benchmarks share: medians, a table, and bars that fail the run.

#![allow(clippy::print_stdout, dead_code, missing_docs, unreachable_pub)]

use std::time::Duration;

/// The median, and the middle half around it.
pub fn median(values: &mut [f64]) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
    (at(0.5), at(0.25), at(0.75))
}

pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Collects bars, and ends the program with 1 if one was missed.
#[derive(Default)]
pub struct Bars {
    missed: u32,
}

impl Bars {
    /// One line: what, how much, and the bar it must stay under.
    pub fn at_most(&mut self, what: &str, value: f64, bar: f64, unit: &str) {
        let held = value <= bar;
        self.missed += u32::from(!held);
        let verdict = if held { "ok" } else { "MISSED" };
        println!("{what:<58} {value:>10.3} {unit:<4} bar {bar:>8} {unit:<4} {verdict}");
    }

    pub fn finish(self) {
        if self.missed > 0 {
            println!("{} bar(s) missed", self.missed);
            std::process::exit(1);
        }
    }
}
