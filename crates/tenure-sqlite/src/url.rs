//! The URL of an SQLite file: `sqlite:/path/to/file.db?option=value`.
//!
//! What would mean something else in a URL is written as `%` and two hexadecimal digits.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use tenure_store::url::{flag, millis, number, options, unknown};
use tenure_store::{Error, ErrorKind, Result};

use crate::{KIND, SqliteOptions};

/// What a path cannot have as it is.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%').add(b'?');

/// The options that a URL may have.
const KNOWN: [&str; 3] = ["journal_keep", "busy_timeout_ms", "share_file"];

/// The URL of an SQLite file, whatever its path looks like: a `?`, a `%` and bytes that
/// are not ASCII are written so that the URL names that very file.
///
/// ```
/// # use std::path::Path;
/// let url = tenure_sqlite::sqlite_url(Path::new("/home/what?/50%.db"));
/// assert_eq!(url, "sqlite:/home/what%3F/50%25.db");
/// ```
#[must_use]
pub fn sqlite_url(path: &Path) -> String {
    format!("{KIND}:{}", percent_encode(path.as_os_str().as_bytes(), ESCAPED))
}

impl SqliteOptions {
    /// Understands `sqlite:/path/to/file.db`, also with `//` after the colon: where the
    /// file is, and how to open it. It knows the options `journal_keep`,
    /// `busy_timeout_ms` and `share_file`.
    ///
    /// ```
    /// use tenure_sqlite::SqliteOptions;
    ///
    /// let (path, _options) = SqliteOptions::from_url("sqlite:/var/lib/app.db?share_file=1")?;
    /// assert_eq!(path.to_str(), Some("/var/lib/app.db"));
    /// assert!(SqliteOptions::from_url("sqlite:/var/lib/app.db?colour=red").is_err());
    /// # Ok::<(), tenure_store::Error>(())
    /// ```
    pub fn from_url(url: &str) -> Result<(PathBuf, Self)> {
        let rest = url.strip_prefix(KIND).and_then(|rest| rest.strip_prefix(':'));
        let rest = rest.ok_or_else(|| refuse("the URL is not one of an SQLite file"))?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() {
            let message = "the URL sqlite: names no file";
            return Err(refuse(message).remedy("write sqlite:/path/to/file.db"));
        }
        let mut parsed = Self::new();
        for option in options(query) {
            let (key, value) = option?;
            parsed = match key {
                "journal_keep" => parsed.journal_keep(number(key, &value)?),
                "busy_timeout_ms" => parsed.busy_timeout(millis(key, &value)?),
                "share_file" => parsed.share_file(flag(key, &value)?),
                _ => return Err(unknown(KIND, key, &KNOWN)),
            };
        }
        Ok((decode_path(path)?, parsed))
    }
}

/// The path that stands in a URL. A `%` that means nothing is refused: guessing could
/// open another file than the one that was meant.
fn decode_path(text: &str) -> Result<PathBuf> {
    let bytes = text.as_bytes();
    let means_a_byte = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit) && it != b"00")
    };
    let percents = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    if let Some((at, _)) = percents.into_iter().find(|(at, _)| !means_a_byte(*at)) {
        let message = match bytes.get(at + 1..at + 3) {
            Some(b"00") => format!(
                "the path in the sqlite: URL has the byte zero (%00) at byte {at}, which no path has"
            ),
            _ => format!(
                "the path in the sqlite: URL has a % at byte {at} that two hexadecimal digits do \
                 not follow"
            ),
        };
        return Err(refuse(message).remedy("write %25 for a % in a path, and %3F for a ?"));
    }
    Ok(PathBuf::from(OsString::from_vec(percent_decode_str(text).collect())))
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn back(path: &Path) -> PathBuf {
        let url = sqlite_url(path);
        assert!(!url.contains(['?', '\n']), "{url}");
        SqliteOptions::from_url(&url).unwrap().0
    }

    fn said(url: &str) -> String {
        SqliteOptions::from_url(url).unwrap_err().to_string()
    }

    /// R14: whatever a home directory is called, its file is the one that is
    /// named.
    #[test]
    fn every_path_can_be_written_as_a_url_and_read_back() {
        for bytes in [
            b"/home/ann/t.db".as_slice(),
            b"/home/what?/x=1&y/t.db",
            b"/home/50%/%41/t.db",
            "/home/jürgen 選挙/t.db".as_bytes(),
            b"/home/\xff\xfe%\xc3/t.db",
            b"/home/new\nline/t.db",
        ] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(back(path), path);
        }
    }

    #[test]
    fn a_percent_sign_that_means_nothing_is_named_with_what_to_write() {
        for text in ["/a%", "/a%4", "/a%zz/t.db", "/a%+1", "/a%00b"] {
            let error = said(&format!("sqlite:{text}"));
            assert!(error.contains("at byte 2") && error.contains("%25"), "{error}");
        }
    }

    #[test]
    fn urls_have_two_forms_and_options() {
        for url in ["sqlite:/a/b.db?journal_keep=5", "sqlite:///a/b.db?journal_keep=5"] {
            let (path, options) = SqliteOptions::from_url(url).unwrap();
            assert_eq!(path.to_str(), Some("/a/b.db"));
            assert_eq!(options.journal_keep, 5);
        }
        assert!(said("sqlite:").contains("names no file"));
        assert!(said("sqlite:/a?colour=red").contains("\"colour\""));
        assert!(said("sqlite:/a?journal_keep=many").contains("not a whole number"));
        assert!(said("sqlite:/a?share_file=7").contains("share_file"));
    }
}
