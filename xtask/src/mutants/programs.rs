//! Test programs of one worker, whose statements can be overwritten.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::scratch::{Built, ROOM, in_place_of};
use crate::failure::{Doing, Failure, Outcome};

/// Where each statement stands: by its file, the programs and the bytes in them.
type Places = BTreeMap<PathBuf, Vec<(usize, u64)>>;

/// A set of programs that may be broken.
#[derive(Debug, Default)]
pub(super) struct Programs {
    pub(super) all: Vec<Built>,
    places: Places,
}

impl Programs {
    /// Copies programs to a folder, and finds the statements in them.
    pub(super) fn copy(
        built: &[Built],
        folder: &Path,
        statements: &BTreeMap<PathBuf, String>,
    ) -> Outcome<Self> {
        fs::create_dir_all(folder).doing(|| format!("make {}", folder.display()))?;
        let mut programs = Self { all: Vec::new(), places: Places::new() };
        for (number, program) in built.iter().enumerate() {
            let path = folder.join(format!("{}-{number}", program.target));
            // Never the same file: a program of the build may be shared with other builds.
            drop(fs::remove_file(&path));
            fs::copy(&program.path, &path).doing(|| format!("copy {}", path.display()))?;
            let bytes = fs::read(&path).doing(|| format!("read {}", path.display()))?;
            for (file, offset) in find(&bytes, statements) {
                programs.places.entry(file).or_default().push((number, offset));
            }
            programs.all.push(Built { path, ..program.clone() });
        }
        if let Some(lost) = statements.keys().find(|file| !programs.places.contains_key(*file)) {
            let text = format!("{} is in no test program as it is in its file", lost.display());
            return Err(Failure::new(text));
        }
        Ok(programs)
    }

    /// Puts one text in the place of another, in all programs.
    pub(super) fn overwrite(&self, file: &Path, text: &str, by: &str) -> Outcome {
        let bytes = in_place_of(text, by)?;
        for (program, offset) in self.places.get(file).into_iter().flatten() {
            let path = &self.all[*program].path;
            let doing = || format!("write to {}", path.display());
            let open = fs::OpenOptions::new().write(true).open(path).doing(doing)?;
            open.write_all_at(bytes.as_bytes(), *offset).doing(doing)?;
        }
        Ok(())
    }
}

/// The statements in a program, each with its first byte. They are found by the spaces
/// behind them, which are rare: a program has many million bytes.
fn find(bytes: &[u8], statements: &BTreeMap<PathBuf, String>) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b' ' {
            at += ROOM;
            continue;
        }
        let begin = bytes[..at].iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
        let end = bytes[at..].iter().position(|byte| *byte != b' ').map_or(bytes.len(), |n| at + n);
        let ends_here = |text: &&str| {
            end - begin >= ROOM && bytes[..begin].ends_with(text.trim_end_matches(' ').as_bytes())
        };
        // A text may be the end of another: then the longer one stands here.
        let texts = statements.iter().filter(|(_, text)| ends_here(&text.as_str()));
        if let Some((file, text)) = texts.max_by_key(|(_, text)| text.len()) {
            let from = begin - text.trim_end_matches(' ').len();
            found.push((file.clone(), from as u64));
        }
        at = end + 1;
    }
    found
}

/// The tests of each program, as `target name`, with the program's place.
pub(super) fn tests(built: &[Built]) -> Outcome<Vec<(usize, String)>> {
    let mut found = Vec::new();
    for (number, program) in built.iter().enumerate() {
        let output = Command::new(&program.path)
            .args(["--list", "--format", "terse"])
            .current_dir(&program.folder)
            .stdin(Stdio::null())
            .output()
            .doing(|| format!("list the tests of {}", program.path.display()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let names = said.lines().filter_map(|line| line.strip_suffix(": test"));
        found.extend(names.map(|name| (number, name.to_owned())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::scratch::padded;
    use super::*;

    fn statements(texts: &[(&str, &str)]) -> BTreeMap<PathBuf, String> {
        texts.iter().map(|(file, text)| (PathBuf::from(file), (*text).to_owned())).collect()
    }

    /// Each text is found where it is, wherever it begins, also twice, and not where it is
    /// only the end of another.
    #[test]
    fn statements_are_found_in_a_program() {
        let known = statements(&[("a.sql", "SELECT 1\n"), ("b.sql", "x; SELECT 1\n")]);
        for shift in [0, 1, 50, ROOM - 1, ROOM + 1] {
            let mut bytes = vec![7_u8; shift];
            bytes.extend(padded("SELECT 1\n").bytes());
            bytes.extend([0; 3]);
            bytes.extend(padded("x; SELECT 1\n").bytes());
            let second = bytes.len();
            bytes.extend(padded("SELECT 1\n").bytes());
            let found = find(&bytes, &known);
            let of = |file: &str| -> Vec<u64> {
                let these = found.iter().filter(|(f, _)| f == Path::new(file));
                these.map(|(_, at)| *at).collect()
            };
            assert_eq!(of("a.sql"), [shift as u64, second as u64], "{shift}");
            assert_eq!(of("b.sql").len(), 1, "{shift}");
        }
    }

    /// A program is broken in its copy, mended again, and the build is never touched.
    #[test]
    fn a_text_is_overwritten_and_put_back() {
        let dir = std::env::temp_dir().join(format!("tenure-programs-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("suite");
        let whole = format!("\u{7f}ELF{}the end", padded("SELECT 1 WHERE a"));
        fs::write(&path, &whole).unwrap();
        let built = [Built { target: "suite".into(), path: path.clone(), folder: dir.clone() }];
        let known = statements(&[("a.sql", "SELECT 1 WHERE a")]);
        let copy = Programs::copy(&built, &dir.join("copy"), &known).unwrap();
        let file = Path::new("a.sql");
        copy.overwrite(file, &known[file], "SELECT 1 WHERE NOT (a)").unwrap();
        let broken = fs::read_to_string(&copy.all[0].path).unwrap();
        assert!(broken.contains("NOT (a)") && broken.ends_with("the end"), "{broken}");
        copy.overwrite(file, &known[file], &known[file]).unwrap();
        assert_eq!(fs::read_to_string(&copy.all[0].path).unwrap(), whole);
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        let other = statements(&[("c.sql", "SELECT 2")]);
        assert!(Programs::copy(&built, &dir.join("copy"), &other).is_err());
        fs::remove_dir_all(&dir).unwrap();
    }
}
