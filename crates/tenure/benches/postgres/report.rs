//! Lines and bars: each bar keeps its value of every run, and is missed when no
//! run met it.

use crate::common;

enum Side {
    AtMost,
    AtLeast,
}

struct Bar {
    what: String,
    side: Side,
    bar: f64,
    unit: &'static str,
    values: Vec<f64>,
}

impl Bar {
    fn holds(&self, value: f64) -> bool {
        match self.side {
            Side::AtMost => value <= self.bar,
            Side::AtLeast => value >= self.bar,
        }
    }

    fn shown(&self) -> String {
        let side = match self.side {
            Side::AtMost => "<=",
            Side::AtLeast => ">=",
        };
        format!("bar {side} {} {}", self.bar, self.unit)
    }
}

/// What was measured, over all runs.
#[derive(Default)]
pub(crate) struct Report {
    bars: Vec<Bar>,
}

impl Report {
    /// Prints a contender's middle half and gives its median.
    pub(crate) fn spread(&self, what: &str, values: &mut [f64], unit: &str) -> f64 {
        let (mid, low, high) = common::median(values);
        println!("  {what:<66} {mid:>10.3} {unit:<3} ({low:.3} to {high:.3})");
        mid
    }

    /// Prints a figure that has no bar.
    pub(crate) fn shown(&self, what: &str, value: f64, unit: &str) {
        println!("  {what:<66} {value:>10.3} {unit}");
    }

    pub(crate) fn at_most(&mut self, what: &str, value: f64, bar: f64, unit: &'static str) {
        self.take(what, value, Side::AtMost, bar, unit);
    }

    pub(crate) fn at_least(&mut self, what: &str, value: f64, bar: f64, unit: &'static str) {
        self.take(what, value, Side::AtLeast, bar, unit);
    }

    fn take(&mut self, what: &str, value: f64, side: Side, bar: f64, unit: &'static str) {
        let known = self.bars.iter().position(|b| b.what == what);
        let at = known.unwrap_or_else(|| {
            self.bars.push(Bar { what: what.into(), side, bar, unit, values: Vec::new() });
            self.bars.len() - 1
        });
        let bar = &mut self.bars[at];
        bar.values.push(value);
        let verdict = if bar.holds(value) { "ok" } else { "MISSED" };
        println!("  {what:<66} {value:>10.3} {unit:<3} {} {verdict}", bar.shown());
    }

    /// Prints all bars with the values of every run; whether none was missed.
    pub(crate) fn finish(&self) -> bool {
        println!("\n{:<68} {:>32}  bar", "in all runs", "values");
        let mut missed = 0;
        for bar in &self.bars {
            let held = bar.values.iter().any(|value| bar.holds(*value));
            missed += u32::from(!held);
            let values: Vec<String> = bar.values.iter().map(|v| format!("{v:.3}")).collect();
            let verdict = if held { "ok" } else { "MISSED" };
            println!("{:<68} {:>32}  {} {verdict}", bar.what, values.join(" "), bar.shown());
        }
        if missed > 0 {
            println!("{missed} bar(s) missed");
        }
        missed == 0
    }
}
