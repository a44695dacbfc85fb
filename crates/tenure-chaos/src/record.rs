//! What a worker writes down: one line for each thing, in a file of its own.
//!
//! A line is written with one call and is in the kernel's hands from then on, so
//! that a `kill -9` loses nothing that was said. A line that was cut off in the
//! middle of its writing is left out by the reader.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::clock::Nanos;
use crate::failure::{Doing, Outcome};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// At `from` and at `to`, and so at every moment between, this worker
    /// trusted that it leads.
    Trust {
        /// The term.
        term: u64,
        /// The first moment that is known.
        from: Nanos,
        /// The last moment that is known.
        to: Nanos,
    },
    /// A fenced write begins. If no [`Line::Done`] follows, it is not known whether
    /// it was applied.
    Try {
        /// What is put into the set.
        element: String,
        /// Before it was sent.
        at: Nanos,
    },
    /// The store said that the fenced write is there.
    Done {
        /// What was put into the set.
        element: String,
        /// After the answer.
        at: Nanos,
    },
    /// The fence refused the write.
    Refused {
        /// What was not put into the set.
        element: String,
    },
    /// The store said that the unfenced write is there.
    Loose {
        /// What was put into the set.
        element: String,
        /// Before the counter was read.
        from: Nanos,
        /// After the answer.
        at: Nanos,
    },
    /// A holder of many elections won one of those that are looked at.
    Won {
        /// Which one.
        election: u32,
        /// The term.
        term: u64,
    },
    /// At the moment `at` a holder of many elections led all that it is to lead.
    Holds {
        /// How many.
        count: u32,
        /// On the common clock.
        at: Nanos,
    },
    /// At the moment `at` this worker took it to be `wall` o'clock.
    Wall {
        /// On the common clock.
        at: Nanos,
        /// On its own wall clock, in seconds.
        wall: i64,
    },
}

impl Line {
    fn text(&self) -> String {
        match self {
            Self::Trust { term, from, to } => format!("trust {term} {from} {to}\n"),
            Self::Try { element, at } => format!("try {element} {at}\n"),
            Self::Done { element, at } => format!("done {element} {at}\n"),
            Self::Refused { element } => format!("refused {element}\n"),
            Self::Loose { element, from, at } => format!("loose {element} {from} {at}\n"),
            Self::Won { election, term } => format!("won {election} {term}\n"),
            Self::Holds { count, at } => format!("holds {count} {at}\n"),
            Self::Wall { at, wall } => format!("wall {at} {wall}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let kind = words.next()?;
        let rest: Vec<&str> = words.collect();
        Some(match (kind, rest.as_slice()) {
            ("trust", [term, from, to]) => Self::Trust {
                term: term.parse().ok()?,
                from: from.parse().ok()?,
                to: to.parse().ok()?,
            },
            ("wall", [at, wall]) => Self::Wall { at: at.parse().ok()?, wall: wall.parse().ok()? },
            ("try", [element, at]) => Self::Try { element: name(element)?, at: at.parse().ok()? },
            ("done", [element, at]) => Self::Done { element: name(element)?, at: at.parse().ok()? },
            ("refused", [element]) => Self::Refused { element: name(element)? },
            ("loose", [element, from, at]) => Self::Loose {
                element: name(element)?,
                from: from.parse().ok()?,
                at: at.parse().ok()?,
            },
            ("won", [election, term]) => {
                Self::Won { election: election.parse().ok()?, term: term.parse().ok()? }
            }
            ("holds", [count, at]) => {
                Self::Holds { count: count.parse().ok()?, at: at.parse().ok()? }
            }
            _ => return None,
        })
    }
}

fn name(element: &str) -> Option<String> {
    (!element.is_empty()).then(|| element.to_owned())
}

/// All whole lines of a log. The last one may have been cut off by a kill; any
/// other that cannot be read is an error.
pub(crate) fn parse(text: &str) -> Outcome<Vec<Line>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let lines = whole.lines().enumerate();
    lines
        .map(|(at, line)| {
            Line::parse(line).ok_or_else(|| {
                crate::Failure::new(format!("line {} of a log cannot be read: {line:?}", at + 1))
            })
        })
        .collect()
}

/// A worker's log, open for writing.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    /// Begins a new file.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        Ok(Self(file.doing(|| format!("create the log {}", path.display()))?))
    }

    /// Another handle on the same file.
    pub(crate) fn share(&self) -> Outcome<Self> {
        Ok(Self(self.0.try_clone().doing(|| "share the log".into())?))
    }

    /// Writes one line.
    pub(crate) fn write(&mut self, line: &Line) -> Outcome {
        self.0.write_all(line.text().as_bytes()).doing(|| "write to the log".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written is what is read.
    #[test]
    fn every_line_comes_back_as_it_was_written() {
        let element = "s1g2n3".to_owned();
        let lines = [
            Line::Trust { term: 7, from: 1, to: u64::MAX },
            Line::Try { element: element.clone(), at: 1 },
            Line::Done { element: element.clone(), at: 2 },
            Line::Refused { element: element.clone() },
            Line::Loose { element, from: 3, at: 4 },
            Line::Wall { at: 5, wall: -6 },
            Line::Won { election: 7, term: 8 },
            Line::Holds { count: 20_000, at: 9 },
        ];
        let text: String = lines.iter().map(Line::text).collect();
        assert_eq!(parse(&text).unwrap(), lines);
    }

    /// A kill in the middle of a line costs that line only.
    #[test]
    fn a_line_that_was_cut_off_is_left_out() {
        assert_eq!(parse("try a 1\ndone a 2\ntrust 1 20").unwrap().len(), 2);
        assert_eq!(parse("trust 1 2").unwrap(), []);
    }

    /// Evidence that cannot be read is not passed over.
    #[test]
    fn a_line_in_the_middle_that_makes_no_sense_is_an_error() {
        for bad in [
            "trust 1 2\n",
            "trust a 2 3\n",
            "done\n",
            "done a\n",
            "done a b\n",
            "try  1\n",
            "cheers 1\n",
            "\n",
        ] {
            let text = format!("try a 1\n{bad}");
            assert!(parse(&text).unwrap_err().to_string().contains("line 2"), "{bad:?}");
        }
    }
}
