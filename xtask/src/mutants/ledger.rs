//! What became of each mutant, in a file, so that a run that was cut off goes on.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::failure::{Doing, Outcome};

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// A test failed.
    Caught,
    /// The tests did not come to an end.
    Hung,
    /// The server refuses it: it says nothing about the tests.
    Unviable,
    /// No test failed.
    Survived,
}

impl Fate {
    const ALL: [Self; 4] = [Self::Caught, Self::Hung, Self::Unviable, Self::Survived];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Hung => "hung",
            Self::Unviable => "unviable",
            Self::Survived => "SURVIVED",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.name() == name)
    }
}

/// All that is known, and the file that it is kept in.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    known: BTreeMap<String, (Fate, String)>,
}

impl Ledger {
    /// The file at `path`; begun anew unless `resume`.
    pub(super) fn open(path: &Path, resume: bool) -> Outcome<Self> {
        let mut known = BTreeMap::new();
        if resume {
            let text = fs::read_to_string(path).unwrap_or_default();
            known.extend(text.lines().filter_map(parse));
        } else if path.exists() {
            fs::remove_file(path).doing(|| format!("remove {}", path.display()))?;
        }
        Ok(Self { path: path.to_owned(), known })
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Notes what became of one, and which test said so.
    pub(super) fn note(&mut self, name: &str, fate: Fate, by: &str) -> Outcome {
        let doing = || format!("write to {}", self.path.display());
        let mut options = fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(&self.path).doing(doing)?;
        writeln!(file, "{}\t{}\t{name}", fate.name(), by.replace(['\t', '\n'], " "))
            .doing(doing)?;
        self.known.insert(name.to_owned(), (fate, by.to_owned()));
        Ok(())
    }

    /// How many of each, and the survivors by name.
    pub(super) fn summary(&self) -> String {
        let count = |fate| self.known.values().filter(|(found, _)| *found == fate).count();
        let counts: Vec<_> =
            Fate::ALL.iter().map(|fate| format!("{} {}", count(*fate), fate.name())).collect();
        let mut text = format!("{} mutants: {}\n", self.known.len(), counts.join(", "));
        for (name, _) in self.known.iter().filter(|(_, (fate, _))| *fate == Fate::Survived) {
            text += &format!("survived: {name}\n");
        }
        text
    }
}

fn parse(line: &str) -> Option<(String, (Fate, String))> {
    let mut fields = line.splitn(3, '\t');
    let (fate, by, name) = (fields.next()?, fields.next()?, fields.next()?);
    Some((name.to_owned(), (Fate::of(fate)?, by.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was cut off goes on where it was; one that begins anew does not.
    #[test]
    fn what_is_known_is_kept_between_runs() {
        let dir = std::env::temp_dir().join(format!("tenure-ledger-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("sql.tsv");
        let mut first = Ledger::open(&path, false).unwrap();
        first.note("a.sql:1 remove x = 1", Fate::Caught, "a test").unwrap();
        first.note("a.sql:2 negate y", Fate::Survived, "").unwrap();
        let again = Ledger::open(&path, true).unwrap();
        assert!(again.knows("a.sql:1 remove x = 1") && !again.knows("b"));
        let summary = again.summary();
        assert!(summary.starts_with("2 mutants: 1 caught, 0 hung, 0 unviable, 1 SURVIVED"));
        assert!(summary.contains("survived: a.sql:2 negate y"), "{summary}");
        assert!(!Ledger::open(&path, false).unwrap().knows("a.sql:2 negate y"));
        fs::remove_dir_all(&dir).unwrap();
    }
}
