//! What became of each mutant, in a file of the repository, so that a later run does only
//! what changed since.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Doing, Outcome};

/// What became of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// A test failed.
    Caught,
    /// A test did not come to an end.
    Hung,
    /// The server refuses the text: it says nothing about the tests.
    Unviable,
    /// The tests that were tried so far passed; the others were not run yet.
    Open,
    /// No test failed.
    Survived,
    /// No test can fail: what is broken changes nothing that a test could see. It was said
    /// so by a person who read the statement, with the reason.
    Equivalent,
}

impl Fate {
    const ALL: [Self; 6] =
        [Self::Caught, Self::Hung, Self::Unviable, Self::Open, Self::Survived, Self::Equivalent];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Hung => "hung",
            Self::Unviable => "unviable",
            Self::Open => "open",
            Self::Survived => "SURVIVED",
            Self::Equivalent => "equivalent",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.name() == name)
    }
}

/// What is known of one mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) fate: Fate,
    /// Of the function that was broken, as it was then.
    pub(super) digest: String,
    /// The test that failed; of what is equivalent, why.
    pub(super) by: String,
}

/// All that is known of one crate, and the file that it is kept in: a line for each
/// mutant, sorted by name, so that two versions can be compared.
#[derive(Debug)]
pub(super) struct Ledger {
    path: PathBuf,
    known: BTreeMap<String, Entry>,
}

impl Ledger {
    /// What the file says; nothing, if there is none.
    pub(super) fn open(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_default();
        Self { path: path.to_owned(), known: text.lines().filter_map(parse).collect() }
    }

    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.known.get(name)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.known.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Whether the whole suite has judged this mutant of this very function.
    pub(super) fn is_final(&self, name: &str, digest: &str) -> bool {
        let entry = self.known.get(name).filter(|entry| entry.digest == digest);
        entry.is_some_and(|entry| entry.fate != Fate::Open)
    }

    pub(super) fn has_survived(&self, name: &str) -> bool {
        self.entry(name).is_some_and(|entry| entry.fate == Fate::Survived)
    }

    /// Takes over what is known of a function that is in another file now.
    pub(super) fn moved(&mut self, name: &str, digest: &str) {
        let Some(tail) = tail(name).filter(|_| !self.known.contains_key(name)) else { return };
        let mut same = self.known.iter().filter(|(other, entry)| {
            entry.digest == digest && self::tail(other).is_some_and(|other| other == tail)
        });
        if let Some(entry) = same.next().map(|(_, entry)| entry.clone()) {
            self.known.insert(name.to_owned(), entry);
        }
    }

    pub(super) fn forget(&mut self, chosen: impl Fn(&str) -> bool) {
        self.known.retain(|name, _| !chosen(name));
    }

    /// Notes what became of one, at once: a run may be stopped at any time. If it was said
    /// to be equivalent before its function changed, the reason stays, to be looked at again.
    pub(super) fn note(&mut self, name: &str, mut entry: Entry) -> Outcome {
        let before = self.known.get(name).filter(|before| before.fate == Fate::Equivalent);
        if let Some(before) = before.filter(|_| entry.by.is_empty()) {
            entry.by.clone_from(&before.by);
        }
        self.known.insert(name.to_owned(), entry);
        self.write()
    }

    fn write(&self) -> Outcome {
        let doing = || format!("write {}", self.path.display());
        let mut text = String::new();
        for (name, entry) in &self.known {
            let by = entry.by.replace(['\t', '\n'], " ");
            text += &format!("{}\t{}\t{by}\t{name}\n", entry.fate.name(), entry.digest);
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).doing(doing)?;
        }
        // Never half a file, whenever this process is ended.
        let new = self.path.with_extension("new");
        fs::write(&new, text).doing(doing)?;
        fs::rename(&new, &self.path).doing(doing)
    }

    /// How many of each, and the survivors by name.
    pub(super) fn summary(&self) -> String {
        let count = |fate| self.known.values().filter(|entry| entry.fate == fate).count();
        let counts: Vec<_> =
            Fate::ALL.iter().map(|fate| format!("{} {}", count(*fate), fate.name())).collect();
        let mut text = format!("{} mutants: {}\n", self.known.len(), counts.join(", "));
        for (name, _) in self.known.iter().filter(|(_, e)| e.fate == Fate::Survived) {
            text += &format!("survived: {name}\n");
        }
        text
    }
}

/// A mutant's name without its file; `None` if it is in no function.
fn tail(name: &str) -> Option<&str> {
    name.split_once(' ').map(|(_, tail)| tail).filter(|tail| !tail.starts_with(':'))
}

fn parse(line: &str) -> Option<(String, Entry)> {
    let mut fields = line.splitn(4, '\t');
    let fate = Fate::of(fields.next()?)?;
    let digest = fields.next()?.to_owned();
    let by = fields.next()?.to_owned();
    Some((fields.next()?.to_owned(), Entry { fate, digest, by }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(fate: Fate, digest: &str) -> Entry {
        Entry { fate, digest: digest.into(), by: "suite a::b".into() }
    }

    /// A later run takes the verdicts over, but for those of functions that changed since
    /// and those that the whole suite has not judged.
    #[test]
    fn what_is_known_is_kept_between_runs() {
        let dir = std::env::temp_dir().join(format!("tenure-ledger-{}", std::process::id()));
        let path = dir.join("store.tsv");
        let mut first = Ledger::open(&path);
        first.note("a.sql f: remove x = 1", entry(Fate::Caught, "1")).unwrap();
        first.note("a.sql f: negate y", entry(Fate::Survived, "1")).unwrap();
        first.note("a.sql g: negate z", entry(Fate::Open, "1")).unwrap();
        let said = Entry { by: "an index".into(), ..entry(Fate::Equivalent, "1") };
        first.note("c.sql h: remove w", said.clone()).unwrap();
        let mut again = Ledger::open(&path);
        assert_eq!(again.entry("a.sql f: remove x = 1"), Some(&entry(Fate::Caught, "1")));
        assert!(again.is_final("a.sql f: remove x = 1", "1"));
        assert!(!again.is_final("a.sql f: remove x = 1", "2"), "the function changed");
        assert!(!again.is_final("a.sql g: negate z", "1"), "not all tests were run");
        let summary = again.summary();
        assert!(summary.starts_with("4 mutants: 1 caught, 0 hung, 0 unviable, 1 open, 1 SURV"));
        assert!(again.is_final("c.sql h: remove w", "1"));
        let open = Entry { fate: Fate::Open, digest: "2".into(), by: String::new() };
        again.note("c.sql h: remove w", open).unwrap();
        assert_eq!(again.entry("c.sql h: remove w").unwrap().by, said.by, "to be looked at again");
        assert!(summary.contains("survived: a.sql f: negate y"), "{summary}");
        again.moved("b.sql f: negate y", "1");
        assert!(again.is_final("b.sql f: negate y", "1"), "the function is in another file");
        again.moved("b.sql f: remove x = 1", "2");
        assert!(!again.is_final("b.sql f: remove x = 1", "2"), "and changed");
        assert!(
            again.has_survived("a.sql f: negate y") && !again.has_survived("a.sql g: negate z")
        );
        again.forget(|name| name.contains(" f: "));
        assert_eq!(again.entries().count(), 2);
        fs::remove_dir_all(&dir).unwrap();
    }
}
