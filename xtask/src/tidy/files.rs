//! What is in the repository: the only part of `tidy` that reads the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::failure::{Doing, Outcome};

/// Folders that are not the repository's own text.
const SKIPPED: [&str; 3] = [".git", "target", "node_modules"];

/// Every text file, by its path relative to the root, with `/` between folders.
#[derive(Debug, Default)]
pub(crate) struct Files {
    texts: BTreeMap<String, String>,
    /// Everything there is, folders and other files too.
    paths: BTreeSet<String>,
}

impl Files {
    /// Reads everything below `root`.
    pub(crate) fn read(root: &Path) -> Outcome<Self> {
        let mut files = Self::default();
        files.walk(root, "")?;
        Ok(files)
    }

    fn walk(&mut self, folder: &Path, prefix: &str) -> Outcome {
        let read = || format!("read the folder {}", folder.display());
        for entry in fs::read_dir(folder).doing(read)? {
            let entry = entry.doing(read)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().doing(read)?;
            // In a work tree that git added beside the first one, .git is a file.
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if kind.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                let shown = || format!("read {path}");
                let bytes = fs::read(entry.path()).doing(shown)?;
                // What is not text has no lines to check.
                if let Ok(text) = String::from_utf8(bytes) {
                    self.texts.insert(path.clone(), text);
                }
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The text of one file.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Whether there is such a file or folder.
    pub(crate) fn exists(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    /// Every text, with its path.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The texts whose path ends so.
    pub(crate) fn ending<'a>(&'a self, end: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all().filter(move |(path, _)| path.ends_with(end))
    }

    #[cfg(test)]
    pub(crate) fn from_texts(texts: &[(&str, &str)]) -> Self {
        let mut files = Self::default();
        for (path, text) in texts {
            files.paths.insert((*path).to_owned());
            files.texts.insert((*path).to_owned(), (*text).to_owned());
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hidden folders such as `.ci` are read, built and foreign ones are not, and
    /// what is not text is known to exist all the same.
    #[test]
    fn the_repositorys_own_text_is_read_and_nothing_else() {
        let root = std::env::temp_dir().join(format!("tenure-files-{}", std::process::id()));
        for folder in [".ci", ".git", "target", "docs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("file"), "text").unwrap();
        }
        fs::write(root.join("docs/image.png"), [0xff, 0xd8]).unwrap();
        let files = Files::read(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let read: Vec<&str> = files.all().map(|(path, _)| path).collect();
        assert_eq!(read, [".ci/file", "docs/file"]);
        assert!(files.exists("docs") && files.exists("docs/image.png"));
        assert!(!files.exists("docs/absent"));
    }
}
