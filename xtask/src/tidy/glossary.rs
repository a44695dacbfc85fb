//! The glossary lists words that are not used, and where each may stand all the same. This
//! is its judge: what is written there is what is checked, so that the page cannot say one
//! thing and the repository do another.

use super::Finding;
use super::files::Files;
use super::words::is_record;

const GLOSSARY: &str = "docs/glossary.md";
/// The words of this file's tests.
const ITSELF: &str = "xtask/src/tidy/glossary.rs";
/// The heading under which the table stands.
const HEADING: &str = "## Not used";
/// Where words of the project's own are: code, statements, pages and proofs.
const READ: [&str; 4] = [".rs", ".sql", ".md", ".tla"];

/// A word that is not used.
#[derive(Debug, PartialEq, Eq)]
struct Unused {
    word: String,
    instead: String,
    /// In which phrases it may stand.
    phrases: Vec<String>,
    /// In which files and folders.
    paths: Vec<String>,
}

pub(crate) fn check(files: &Files) -> Vec<Finding> {
    let Some(page) = files.get(GLOSSARY) else { return Vec::new() };
    let unused = table(page);
    if unused.is_empty() {
        let text = format!("there is no table of words under \"{HEADING}\"");
        return vec![Finding::of_file(GLOSSARY, text)];
    }
    let mut found: Vec<_> = unused.iter().flat_map(|word| gone(word, files)).collect();
    let is_read = |path: &str| READ.iter().any(|end| path.ends_with(end)) && !is_record(path);
    let own = [GLOSSARY, ITSELF];
    for (path, text) in files.all().filter(|(path, _)| is_read(path) && !own.contains(path)) {
        for (number, line) in text.lines().enumerate() {
            let wrong = unused.iter().filter(|word| word.is_in(path, line));
            found.extend(wrong.map(|Unused { word, instead, .. }| {
                let text = format!("the glossary does not use \"{word}\": {instead}");
                Finding::at(path, number + 1, text)
            }));
        }
    }
    found
}

/// The rows of the table.
fn table(page: &str) -> Vec<Unused> {
    let Some((_, rest)) = page.split_once(HEADING) else { return Vec::new() };
    let rows = rest.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.filter_map(row).collect()
}

fn row(line: &str) -> Option<Unused> {
    let mut cells = line.trim_matches('|').split('|').map(str::trim);
    let word = cells.next()?.to_lowercase();
    let instead = cells.next()?.to_owned();
    let (paths, phrases) = spans(cells.next()?).partition(|span| span.contains('/'));
    Some(Unused { word, instead, phrases, paths })
}

/// What stands between backquotes.
fn spans(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

impl Unused {
    fn is_in(&self, path: &str, line: &str) -> bool {
        // Most lines have none of it: a look that is quick comes first.
        if !line.to_lowercase().contains(&self.word)
            || self.paths.iter().any(|start| path.starts_with(start.as_str()))
        {
            return false;
        }
        let line =
            self.phrases.iter().fold(line.to_owned(), |line, phrase| line.replace(phrase, " "));
        words(&line).any(|word| self.is_form(&word))
    }

    /// The word itself, several of it, or what was done to something.
    fn is_form(&self, word: &str) -> bool {
        word.strip_prefix(&self.word).is_some_and(|end| matches!(end, "" | "s" | "d" | "ed"))
    }
}

/// What a row says of files that are not there any more, or that have no such word.
fn gone(unused: &Unused, files: &Files) -> Vec<Finding> {
    let free = Unused { paths: Vec::new(), phrases: Vec::new(), ..copy(unused) };
    let is_needed = |start: &str| {
        let mut there = files.all().filter(|(path, _)| path.starts_with(start));
        there.any(|(path, text)| text.lines().any(|line| free.is_in(path, line)))
    };
    let idle = unused.paths.iter().filter(|start| !is_needed(start));
    let text = |start| format!("\"{}\" does not stand in `{start}`: take that out", unused.word);
    idle.map(|start| Finding::of_file(GLOSSARY, text(start))).collect()
}

fn copy(of: &Unused) -> Unused {
    let word = of.word.clone();
    Unused { word, instead: String::new(), phrases: Vec::new(), paths: Vec::new() }
}

/// The words of a line in lower case, names taken apart: `HelperEnd` and `helper_exit` both
/// have two.
fn words(line: &str) -> impl Iterator<Item = String> {
    let mut apart = String::with_capacity(line.len() + 8);
    let mut last = ' ';
    for c in line.chars() {
        if c.is_uppercase() && last.is_lowercase() {
            apart.push(' ');
        }
        apart.push(if c.is_alphabetic() { c } else { ' ' });
        last = c;
    }
    let apart = apart.to_lowercase();
    apart.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| lease | a place in the first table |\n\n## Not used\n\nProse.\n\n\
        | word | instead | stands in |\n|---|---|---|\n\
        | acquire | win | `Ordering::Acquire`; others: `docs/others.md` |\n\
        | helper | what it does | |\n\nMore.\n";

    fn found(texts: &[(&str, &str)]) -> Vec<(String, usize)> {
        let others = ("docs/others.md", "they acquire it");
        let all = [&[(GLOSSARY, PAGE), others], texts].concat();
        check(&Files::from_texts(&all)).into_iter().map(|f| (f.path, f.line)).collect()
    }

    /// Each word is found by itself, in another form and as a part of a name, in code and in
    /// prose alike.
    #[test]
    fn words_that_are_not_used_are_found() {
        for text in ["acquire", "He Acquired it.", "fn try_acquire()", "AcquireNow", "a\nhelpers"] {
            let last = text.lines().count();
            for path in ["a.rs", "docs/a.md", "sql/a.sql"] {
                assert_eq!(found(&[(path, text)]), [(path.to_owned(), last)], "{text}");
            }
        }
    }

    /// What is excepted, what only looks alike, and what records the past is left alone.
    #[test]
    fn what_may_stand_is_not_found() {
        for (path, text) in [
            ("a.rs", "x.load(Ordering::Acquire)"),
            ("docs/others.md", "acquired"),
            ("a.md", "lease"),
            ("a.md", "acquirer, helpful"),
            ("CHANGELOG.md", "acquire"),
            ("a.toml", "helper"),
        ] {
            assert!(found(&[(path, text)]).is_empty(), "{path}: {text}");
        }
        let twice = "Ordering::Acquire, and acquire";
        assert_eq!(found(&[("a.rs", twice)]), [("a.rs".to_owned(), 1)]);
    }

    /// A page without the table would check nothing, and a place that needs no exception
    /// would let the word in later.
    #[test]
    fn a_glossary_that_excepts_too_much_is_found() {
        let check = |page: &str| check(&Files::from_texts(&[(GLOSSARY, page)]));
        assert_eq!(check("## Not used\n").len(), 1);
        let found = check(PAGE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.contains("docs/others.md"), "{found:?}");
    }
}
