//! What is told of a run: a text to read, and whether it passed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::checker::{Death, Verdict};
use crate::clock::{Nanos, seconds};
use crate::failure::{Doing, Outcome};
use crate::guarded::Told;
use crate::nemesis::Mark;
use crate::options::Options;
use crate::timeline;

/// How many violations are shown; the number of all is always told.
const SHOWN: usize = 20;

/// How long after the last fault all was well again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Healed {
    /// A worker led.
    pub led: Option<Duration>,
    /// A command ran, if there are programs that run any.
    pub ran: Option<Duration>,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was asked for.
    pub options: Options,
    /// Where everything lies.
    pub folder: PathBuf,
    /// When it began.
    pub from: Nanos,
    /// When it ended.
    pub to: Nanos,
    /// The faults that happened.
    pub marks: Vec<Mark>,
    /// What the checker says.
    pub verdict: Verdict,
    /// How many copies of the store were put back.
    pub rollbacks: usize,
    /// Holders of many elections that were killed.
    pub deaths: Vec<Death>,
    /// How long after the last fault a worker led, and a command ran.
    pub healed: Healed,
    /// What became of the programs that run commands.
    pub guarded: Told,
    /// How many workers had a wall clock that could be jumped.
    pub jumps: usize,
    /// How many terms were won with a wall clock off the truth.
    pub jumped: usize,
}

impl Report {
    /// What is wrong with the run; empty if it passed.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let violations = self.verdict.violations.len();
        if violations > 0 {
            problems.push(format!("{violations} violations"));
        }
        let faults = self.marks.len();
        let least = self.options.least_faults();
        if u64::try_from(faults).unwrap_or(u64::MAX) < least {
            problems.push(format!("only {faults} faults, and at least {least} are asked for"));
        }
        if self.deaths.len() < self.options.least_deaths() {
            problems.push("no member that leads many elections was killed".into());
        }
        let both = self.marks.iter().filter(|mark| mark.name == "both killed").count();
        if both < self.options.least_both() {
            problems.push("no program was killed together with its guardian".into());
        }
        if self.verdict.families.is_empty() && self.options.programs > 0 {
            problems.push("no guarded command ran".into());
        }
        if self.rollbacks < self.options.least_rollbacks() {
            problems.push("no copy of the store was put back".into());
        }
        if self.verdict.acknowledged == 0 {
            problems.push("no worker wrote anything under the fence".into());
        }
        if self.verdict.loose_lost == 0 {
            let text = "the unfenced counter lost nothing: these faults would not show a fence \
                        that does not hold";
            problems.push(text.into());
        }
        problems
    }

    /// The share of the run in which a worker was known to lead.
    fn led(&self) -> f64 {
        let led: Nanos = self.verdict.spans.iter().map(|span| span.to - span.from).sum();
        seconds(led) / seconds(self.to - self.from).max(1e-9)
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let options = &self.options;
        let verdict = &self.verdict;
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<18}{value}");
        };
        line("command", options.command());
        line("store", options.store.name().into());
        line("workers", format!("{}, ttl {:?}", options.workers, options.ttl));
        line("lasted", format!("{:.1} s", seconds(self.to - self.from)));
        line("faults", format!("{}: {}", self.marks.len(), self.kinds()));
        line("wall clocks", self.clocks());
        let terms = verdict.spans.len();
        line("terms led", format!("{terms}, in {:.0} % of the time", self.led() * 100.0));
        line("after the faults", self.healing());
        line("overlaps", verdict.overlaps().to_string());
        if options.programs > 0 {
            line("guarded programs", self.programs());
            line("commands", self.commands());
        }
        for (death, unled) in self.deaths.iter().zip(&verdict.unled) {
            line("holder killed", succession(death, *unled));
        }
        if self.rollbacks > 0 {
            line("copies put back", self.forgotten());
        }
        line(
            "fenced writes",
            format!(
                "{} acknowledged, {} in doubt, {} refused by the fence; {} lost, doubled or stale",
                verdict.acknowledged,
                verdict.in_doubt,
                verdict.refused,
                verdict.broken_writes()
            ),
        );
        line(
            "unfenced writes",
            format!("{} acknowledged, at least {} of them lost", verdict.loose, verdict.loose_lost),
        );
        for violation in verdict.violations.iter().take(SHOWN) {
            line("VIOLATION", violation.to_string());
        }
        let problems = self.problems();
        line(
            "verdict",
            match problems.is_empty() {
                true => "passed".into(),
                false => format!("FAILED: {}", problems.join("; ")),
            },
        );
        text
    }

    /// What the guarantees give up when the store itself goes back, and no more.
    fn forgotten(&self) -> String {
        format!(
            "{}; with them {} fenced writes that had been acknowledged after the copy was made, \
             and {} overlaps of a forgotten term with the next, within its ttl",
            self.rollbacks, self.verdict.forgotten, self.verdict.excused
        )
    }

    fn healing(&self) -> String {
        let seconds = |span: Option<Duration>| span.unwrap_or_default().as_secs_f64();
        let mut text = format!("a worker led within {:.1} s", seconds(self.healed.led));
        if self.options.programs > 0 {
            let _ = write!(text, ", a command ran within {:.1} s", seconds(self.healed.ran));
        }
        text
    }

    fn programs(&self) -> String {
        let groups = match self.guarded.watchmen {
            0 => "without control groups".into(),
            n => format!("with control groups ({n} faults saw the watchman)"),
        };
        let mut text = format!("{} of `tenure run`, {groups}", self.options.programs);
        for (code, times) in &self.guarded.ended {
            let _ = write!(text, "; {times} ended by themselves with {code}");
        }
        text
    }

    /// What is promised, and apart from that what is not.
    fn commands(&self) -> String {
        let verdict = &self.verdict;
        let processes: usize = verdict.families.iter().map(|family| family.processes).sum();
        let ran: Nanos = verdict.families.iter().map(|family| family.to - family.from).sum();
        let share = seconds(ran) / seconds(self.to - self.from).max(1e-9) * 100.0;
        format!(
            "{} of {processes} processes, in {share:.0} % of the time; {} overlaps; {} more where \
             nothing is promised, and {} of a forgotten term with the next, within its ttl",
            verdict.families.len(),
            verdict.commands_at_once(),
            verdict.beside.unpromised,
            verdict.beside.forgotten
        )
    }

    fn kinds(&self) -> String {
        let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
        for mark in &self.marks {
            *kinds.entry(mark.name).or_default() += 1;
        }
        let kinds: Vec<String> = kinds.iter().map(|(name, n)| format!("{name} {n}")).collect();
        kinds.join(", ")
    }

    fn clocks(&self) -> String {
        match self.jumps {
            0 => "not jumped: libfaketime is not installed".into(),
            n => format!("jumped in {n} workers; {} terms won with a wrong clock", self.jumped),
        }
    }

    /// Writes the text and the picture into the folder of the run.
    pub fn write(&self) -> Outcome {
        for (name, text) in [("report.txt", self.text()), ("timeline.svg", timeline::svg(self))] {
            let path = self.folder.join(name);
            fs::write(&path, text).doing(|| format!("write {}", path.display()))?;
        }
        Ok(())
    }
}

fn succession(death: &Death, unled: Nanos) -> String {
    let taken = match death.taken {
        Some(taken) => {
            format!("taken over within {:.1} s", seconds(taken.saturating_sub(death.killed)))
        }
        None => "not taken over".into(),
    };
    let held = death.held;
    let unled = seconds(unled);
    format!(
        "it led {held} further elections; a sample was {taken}; at that time \
         no member led for {unled:.1} s at the longest"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::checker::{Beside, Family, TrustSpan, Violation, Worker};

    const SECOND: Nanos = 1_000_000_000;

    /// Ten seconds with two terms, a stop and a fault of the store.
    pub(crate) fn sample() -> Report {
        let span = |slot, term, from: Nanos, to: Nanos| TrustSpan {
            worker: Worker { slot, life: 1 },
            term,
            from: from * SECOND,
            to: to * SECOND,
        };
        let mark = |name, slot, from: Nanos, to: Nanos| Mark {
            name,
            slot,
            from: from * SECOND,
            to: to * SECOND,
        };
        let lasting = Duration::from_secs(1);
        Report {
            options: Options { lasting, ..Options::default() },
            folder: PathBuf::new(),
            from: 100 * SECOND,
            to: 110 * SECOND,
            marks: vec![mark("stop", Some(0), 103, 106), mark("store killed", None, 107, 108)],
            verdict: Verdict {
                spans: vec![span(0, 1, 101, 103), span(1, 2, 104, 109)],
                acknowledged: 9,
                loose: 8,
                loose_lost: 3,
                forgotten: 4,
                unled: vec![SECOND / 2],
                families: vec![Family {
                    program: Worker { slot: 6, life: 1 },
                    term: 9,
                    from: 102 * SECOND,
                    to: 107 * SECOND,
                    processes: 3,
                }],
                beside: Beside { unpromised: 1, forgotten: 0 },
                ..Verdict::default()
            },
            rollbacks: 2,
            deaths: vec![Death { killed: 104 * SECOND, held: 20_000, taken: Some(109 * SECOND) }],
            healed: Healed { led: Some(lasting / 2), ran: Some(lasting / 4) },
            guarded: Told { watchmen: 2, ended: [(137, 4)].into() },
            jumps: 0,
            jumped: 0,
        }
    }

    /// The text says what was asked, what happened and what came out.
    #[test]
    fn a_good_run_passes_and_tells_its_figures() {
        let text = sample().text();
        for part in [
            "cargo xtask chaos --store sqlite --seconds 1 --seed 1",
            "2: stop 1, store killed 1",
            "libfaketime is not installed",
            "2, in 70 % of the time",
            "led 20000 further elections; a sample was taken over within 5.0 s",
            "no member led for 0.5 s at the longest",
            "2; with them 4 fenced writes",
            "a worker led within 0.5 s, a command ran within 0.2 s",
            "3 of `tenure run`, with control groups (2 faults",
            "4 ended by themselves with 137",
            "1 of 3 processes, in 50 % of the time; 0 overlaps; 1 more where nothing",
            "9 acknowledged",
            "at least 3 of them lost",
            "verdict           passed",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
    }

    /// What the schedule has and did not happen was not shown.
    #[test]
    fn a_run_without_what_it_was_to_do_does_not_pass() {
        let mut report = sample();
        report.options.lasting = Duration::from_secs(60);
        report.marks = vec![Mark { name: "both killed", ..report.marks[0].clone() }; 90];
        assert_eq!(report.problems(), [""; 0]);
        report.marks = vec![Mark { name: "stop", ..report.marks[0].clone() }; 90];
        report.deaths.clear();
        report.verdict.families.clear();
        report.rollbacks = 0;
        let problems = report.problems().join("; ");
        assert!(problems.contains("no member that leads many"), "{problems}");
        assert!(problems.contains("no copy of the store"), "{problems}");
        assert!(problems.contains("killed together with its guardian"), "{problems}");
        assert!(problems.contains("no guarded command ran"), "{problems}");
    }

    /// Each way to fail fails, and says why.
    #[test]
    fn a_run_that_shows_nothing_does_not_pass() {
        type Break = fn(&mut Report);
        let breaks: [(Break, &str); 4] = [
            (|r| r.verdict.violations.push(Violation::Lost("x".into())), "1 violations"),
            (few_faults, "only 2 faults"),
            (|r| r.verdict.acknowledged = 0, "no worker wrote"),
            (|r| r.verdict.loose_lost = 0, "lost nothing"),
        ];
        fn few_faults(report: &mut Report) {
            report.options.lasting = Duration::from_secs(600);
            report.marks[0].name = "both killed";
        }
        assert!(sample().problems().is_empty());
        for (break_it, part) in breaks {
            let mut report = sample();
            break_it(&mut report);
            let problems = report.problems();
            assert!(problems.len() == 1 && problems[0].contains(part), "{part}: {problems:?}");
            assert!(report.text().contains("FAILED"));
        }
    }
}
